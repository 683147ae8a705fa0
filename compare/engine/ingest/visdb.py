"""Reads a ``.vis.db``, the SQLite file in which msprobe graph_visualize keeps one dump or two compared ones, back into dumps.

The file is a stranger's: it is copied, opened read-only and immutable, asked nothing but three plain tables, and its own code (views,
triggers, functions, virtual tables) is never run. Every number in it is text; names, order, hierarchy and stacks are those of the dump.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.errors import DumpError, os_error, printable
from compare.engine.ingest import construct as constructs
from compare.engine.ingest import limits
from compare.engine.ingest.columns import Interned, SlotColumns
from compare.engine.ingest.leaves import LeafValue, Unreadable, from_json
from compare.engine.ingest.notes import Notes
from compare.engine.ingest.records import RecordColumns, tables
from compare.engine.ingest.source import Meter
from compare.engine.ingest.splitter import whole_characters
from compare.engine.ingest.stacks import SEPARATOR
from compare.engine.model import Dump, RecordKind

SQLITE_START = b"SQLite format 3\0"
COLUMNS = {
    "tb_config": frozenset({"graph_type", "task"}),
    "tb_nodes": frozenset({
        "node_order", "node_name", "node_type", "up_node", "stack_id", "input_data", "output_data", "data_source", "step", "rank",
    }),
    "tb_stack": frozenset({"id", "stack_info"}),
}  # fmt: skip
SOURCES = ("NPU", "Bench")
CALL_NODES = frozenset({"0", "1"})  # modules and APIs; the others gather loose API calls
ROOT = "DefaultModel"
TASKS = {"all": "tensor", "structure": "structure"}  # summary, md5 and a single build: statistics
STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine
LOOKS_A_MEGABYTE, LEAST_LOOKS = 100, 1000  # honest files need under 5 a megabyte
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
NO_TEXT = frozenset({"null", "None"})
FORWARDED = ("type", "dtype", "Max", "Min", "Mean", "Norm", "md5", "format", "value")
# Where the word behind the record's name is none of these, the row is a parameter's gradient.
GROUPS = {"input": "input", "kwargs": "input", "output": "output", "parameters": "parameters"}


def read_database(read: Callable[[int], bytes], place: str, meter: Meter) -> Iterator[Dump]:
    """Yield a dump for every side, step and rank; the sides of a comparison become the stages NPU and Bench.

    Raises DumpError: database_foreign, database_damaged, database_too_large, too_many_records, bad_record.
    """
    with tempfile.TemporaryDirectory(prefix="probe-web-") as folder:
        path = Path(folder) / "graph.db"
        size = _copy(read, path, place)
        with _opened(path, size, place, meter) as database:
            yield from _dumps(database, place)


def _copy(read: Callable[[int], bytes], path: Path, place: str) -> int:
    size = 0
    try:
        with path.open("wb") as copy:
            while block := read(limits.BLOCK):
                if size == 0 and not block.startswith(SQLITE_START):
                    raise DumpError("database_foreign", place, detail="it is no SQLite file")
                copy.write(block)
                size += len(block)
                if size > limits.LARGEST_DATABASE:
                    raise DumpError("database_too_large", place, limit=limits.LARGEST_DATABASE >> 30)
    except OSError as error:
        raise os_error(error, place) from error
    if not size:
        raise DumpError("file_empty", place)
    return size


@contextmanager
def _opened(path: Path, size: int, place: str, meter: Meter) -> Iterator[sqlite3.Connection]:
    looks = LEAST_LOOKS + LOOKS_A_MEGABYTE * (size >> 20)

    def look() -> int:
        nonlocal looks
        looks -= 1
        meter.add(0)
        return int(looks < 0)

    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)) as database:
            database.text_factory = _text
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.LARGEST_ENTRY)
            database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON", "cache_size=-8000"):
                database.execute(f"PRAGMA {pragma}")
            _check_tables(database, place)
            database.set_authorizer(_allowed)
            database.set_progress_handler(look, STEPS_BETWEEN_LOOKS)
            yield database
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # the last: its messages quote names
        detail = "it asks for more work than an honest one" if looks < 0 else str(error)
        raise DumpError("database_damaged", place, detail=printable(detail)) from error


def _allowed(action: int, table: str | None, column: str | None, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in READING and (table is None or table in COLUMNS) else sqlite3.SQLITE_DENY


def _text(held: bytes) -> str:
    return held.decode("utf-8", "replace")


def _check_tables(database: sqlite3.Connection, place: str) -> None:
    """All tables are there, plain ones, with the columns that will be read; no column is computed."""
    kinds = {name: (kind, root) for name, kind, root in database.execute("SELECT name, type, rootpage FROM sqlite_master")}
    for table, wanted in COLUMNS.items():
        kind, root = kinds.get(table, ("", 0))
        if kind != "table" or not root:  # a virtual table has no page of its own
            raise DumpError("database_foreign", place, detail=f"it has no table {table}")
        plain = {name for _, name, *_, hidden in database.execute(f"PRAGMA table_xinfo({table})") if not hidden}
        if missing := sorted(wanted - plain):
            raise DumpError("database_foreign", place, detail=f"its table {table} has no column {missing[0]}")


def _dumps(database: sqlite3.Connection, place: str) -> Iterator[Dump]:
    graph, task = next(database.execute("SELECT graph_type, task FROM tb_config"), ("build", ""))
    stacks = _stacks(database, place)
    found = database.execute("SELECT DISTINCT step, rank, data_source FROM tb_nodes").fetchall()
    for step, rank, source in found:
        if source not in SOURCES or not all(type(number) is int and 0 <= number < 10**9 for number in (step, rank)):
            raise DumpError("database_foreign", place, detail="a node lies in no step, rank or side")
    for source in SOURCES:  # the left one first
        for step, rank in sorted((step, rank) for step, rank, held in found if held == source):
            stage = source if graph == "compare" else None
            yield _Nodes(database, f"{place}/{source}/step{step}/rank{rank}", (source, step, rank)).dump(
                TASKS.get(task, "statistics"), stage, stacks
            )
    if not found:
        raise DumpError("empty_side", place)


def _stacks(database: sqlite3.Connection, place: str) -> dict[str, str]:
    """Stack id → frames joined as in ``model.Dump``."""
    found: dict[str, str] = {}
    for key, text in database.execute("SELECT id, stack_info FROM tb_stack"):
        frames = _json(text, place, str(key)) if text else []
        if not isinstance(frames, list) or not all(isinstance(frame, str) for frame in frames):
            raise DumpError("bad_record", place, record=printable(str(key)), offset=0, detail="a stack that is no list of lines")
        found[str(key)] = SEPARATOR.join(map(whole_characters, frames))
    return found


class _Nodes:
    """The nodes of one side, step and rank on their way into columns."""

    def __init__(self, database: sqlite3.Connection, place: str, key: tuple[str, int, int]) -> None:
        self.database = database
        self.place = place
        self.key = key
        self.records = RecordColumns()
        self.slots = SlotColumns()
        self.stack_ids: list[str | None] = []

    def dump(self, task: str, stage: str | None, stacks: dict[str, str]) -> Dump:
        above, kinds = self._hierarchy()
        query = (
            "SELECT node_name, node_type, stack_id, input_data, output_data FROM tb_nodes"
            " WHERE data_source = ? AND step = ? AND rank = ? ORDER BY node_order"
        )
        for name, kind, stack, put_in, put_out in self.database.execute(query, self.key):
            held = [self._arguments(text, name) for text in (put_in, put_out)]
            # A node without values is one that only construct.json named, but where there are none at all.
            if kind in CALL_NODES and name != ROOT and (task == "structure" or any(held)):
                self._record(name, held)
                self.stack_ids.append(stack)
        recorded = len(self.records)
        construct = constructs.Construct(self.records)
        for name in kinds:
            if kinds[name] in CALL_NODES and name != ROOT:
                construct.add(name, self._enclosing(name, above, kinds), self.place, 0)
        parent = constructs.parents(self.records, construct)
        distinct: Interned[str] = Interned()
        stack_column = np.full(len(self.records), -1, dtype=np.int32)
        for row, key in enumerate(self.stack_ids):
            if frames := stacks.get(key or ""):
                stack_column[row] = distinct[frames]
        construct.notes.place = self.place
        held_tables = tables(self.records, self.slots, parent, recorded, stack_column, Notes(self.place), construct.notes)
        return Dump(
            place=self.place,
            task=task,
            level="mix" if (held_tables["records"].kind == RecordKind.API).any() else "L0",
            framework="mindspore" if any(name.startswith("Cell.") for name in self.records.rows) else "pytorch",
            stage=stage,
            step=self.key[1],
            rank=self.key[2],
            has_construct=construct.entries > 0,
            has_stack=bool(distinct),
            **held_tables,
            stacks=list(distinct),
        )

    def _hierarchy(self) -> tuple[dict[str, str | None], dict[str, str]]:
        above: dict[str, str | None] = {}
        kinds: dict[str, str] = {}
        query = "SELECT node_name, node_type, up_node FROM tb_nodes WHERE data_source = ? AND step = ? AND rank = ? ORDER BY node_order"
        for name, kind, up in self.database.execute(query, self.key):
            if not isinstance(name, str) or not name or name in kinds:
                raise DumpError(
                    "database_foreign", self.place, detail=f"a node has no name, or the name of another: {printable(str(name))}"
                )
            above[name], kinds[name] = (up if isinstance(up, str) and up else None), str(kind)
            if len(kinds) > limits.MOST_RECORDS:
                raise DumpError("too_many_records", self.place, limit=limits.MOST_RECORDS)
        return above, kinds

    @staticmethod
    def _enclosing(name: str, above: dict[str, str | None], kinds: dict[str, str]) -> str | None:
        """The nearest ancestor that stands for a call; the root and the gatherings of loose calls do not."""
        passed = {name}
        up = above[name]
        while up is not None and up not in passed and (up == ROOT or kinds.get(up, "0") not in CALL_NODES):
            passed.add(up)
            up = above.get(up)
        return None if up in passed else up

    def _record(self, name: str, held: list[list[tuple[str, Any]]]) -> None:
        name = whole_characters(name)
        if self.records.add(name) < 0:
            raise DumpError("database_foreign", self.place, detail=f"two nodes are called {printable(name)}")
        found = sorted(((self._slot(name, row), value) for argument in held for row, value in argument), key=lambda entry: entry[0][0])
        try:
            for (_, slot), value in found:
                self.slots.add(self.slots.names[slot], _leaf(value))
        except Unreadable as error:
            raise DumpError("bad_record", self.place, record=printable(name), offset=0, detail=str(error)) from error
        self.slots.nan_held = True
        self.slots.pack()
        self.records.slot_start.append(len(self.slots))

    def _slot(self, record: str, row: str) -> tuple[int, str]:
        """Where a row belongs among its record's slots, and the slot's name."""
        rest = whole_characters(row).removeprefix(f"{record}.")
        word, _, name = rest.partition(".")
        group = GROUPS.get(word)
        if group is None or not name:
            return 3, f"parameters_grad.{rest}" if group is None else group
        return ("input", "parameters", "output").index(group), f"{group}.{name}"

    def _arguments(self, text: Any, name: str) -> list[tuple[str, Any]]:
        if text is None or text == "":
            return []
        found = _json(text, self.place, name)
        if not isinstance(found, dict):
            raise DumpError("bad_record", self.place, record=printable(str(name)), offset=0, detail="values that are no object")
        return list(found.items())


def _leaf(value: Any) -> LeafValue[Any] | None:
    """The leaf that a row was made of; what was null on its own or has only nulls cannot be told apart."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    plain: dict[str, Any] = {name: value[name] for name in FORWARDED if isinstance(value.get(name), str) and value[name] not in NO_TEXT}
    if str(value.get("dtype", "")).startswith("<class"):  # a number or a text, told as if it were a tensor of no dimensions
        written = plain.get("value", plain.get("Max"))
        if value["type"] == "bool" and written in ("True", "False"):
            written = written == "True"
        return from_json({"type": value["type"], "value": written})
    for name in ("shape", "group_ranks"):
        if isinstance(value.get(name), str):
            plain[name] = _list(value[name])
    return from_json(plain)


def _list(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json(text: Any, place: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise DumpError("bad_record", place, record=printable(str(name)), offset=0, detail="values that are no JSON") from error
