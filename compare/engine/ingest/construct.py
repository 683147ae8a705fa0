"""Who encloses whom: from construct.json where it says so, from the names where it does not."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec
import numpy as np

from compare.engine.errors import DumpError, printable
from compare.engine.ingest.limits import BLOCK, MOST_RECORDS
from compare.engine.ingest.names import parse
from compare.engine.ingest.notes import Notes
from compare.engine.ingest.records import RecordColumns
from compare.engine.ingest.splitter import split
from compare.engine.model import Direction, Int32, RecordKind

MICRO_STEPS = "megatron_micro_step_number"

# Plain: the parent's name or null. Megatron: [parent or null, micro step].
Parent: TypeAlias = str | int | tuple[str | None, int | None] | None
decode_parent = msgspec.json.Decoder(Parent).decode
decode_parents = msgspec.json.Decoder(dict[str, Parent]).decode

UNKNOWN = -2
NONE = -1
UNRECORDED = -3


class Construct:
    """What one construct.json says about the rows of one dump. ``entries`` counts its lines: 0 = structure must come from the names."""

    def __init__(self, records: RecordColumns) -> None:
        self.records = records
        self.parent = array("i", [UNKNOWN]) * len(records)
        self.parents_without_record: dict[int, str] = {}  # row → name of its parent
        self.entries_without_record: dict[str, str | None] = {}
        self.entries = 0
        self.notes = Notes("")

    def read(self, read: Callable[[int], bytes], place: str, block_size: int = BLOCK) -> None:
        """Stream the file. Raises DumpError: what ``splitter.split`` raises; bad_construct, duplicate_key."""
        self.notes.place = place
        for run in split(read, place, None, block_size):
            found: dict[str, Parent] = {}
            with suppress(msgspec.DecodeError):
                found = decode_parents(run.as_object())
            if len(found) == len(run):
                for child, parent in found.items():
                    row = self.records.rows.get(child, NONE)
                    if row >= 0 and self.parent[row] == UNKNOWN and parent.__class__ is str and parent in self.records.rows:
                        self.parent[row] = self.records.rows[parent]  # what nearly all lines are
                        self.entries += 1
                    else:
                        self.add(child, parent, place, run.offset)
            else:
                for child, value, offset in run:
                    try:
                        parent = decode_parent(value)
                    except msgspec.DecodeError as error:
                        raise DumpError("bad_construct", place, record=printable(child), offset=offset) from error
                    self.add(child, parent, place, offset)

    def add(self, child: str, parent: Parent, place: str, offset: int) -> None:
        if isinstance(parent, tuple):
            parent = parent[0]
        elif isinstance(parent, int):
            if child != MICRO_STEPS:
                raise DumpError("bad_construct", place, record=printable(child), offset=offset)
            return
        self.entries += 1
        row = self.records.rows.get(child, NONE)
        if row < 0:
            if child in self.entries_without_record:
                raise DumpError("duplicate_key", place, key=printable(child), offset=offset)
            self.entries_without_record[child] = parent
            if len(self.entries_without_record) > MOST_RECORDS:
                raise DumpError("too_many_records", place, limit=MOST_RECORDS)
        else:
            if self.parent[row] != UNKNOWN:
                raise DumpError("duplicate_key", place, key=printable(child), offset=offset)
            self.settle(row, parent)

    def settle(self, row: int, parent: str | None) -> None:
        """Say which record encloses that of a row."""
        parent_row = NONE if parent is None else self.records.rows.get(parent, UNRECORDED)
        self.parent[row] = parent_row
        if parent_row == UNRECORDED and parent is not None:
            self.parents_without_record[row] = parent

    def record_all(self) -> None:
        """Give every entry without a record an empty one: they are all that a structure dump holds."""
        entries, self.entries_without_record = self.entries_without_record, {}
        for name in entries:
            self.records.add(name)
            self.records.slot_start.append(self.records.slot_start[-1])
            self.parent.append(UNKNOWN)
        for name, parent in entries.items():
            self.settle(self.records.rows[name], parent)


def parents(records: RecordColumns, construct: Construct) -> Int32:
    """The parent row of every row, -1 = none; never a circle. Appends a row for each ancestor that only construct.json names.

    Circles, calls that construct.json does not know, and parents that are neither recorded nor explained, are noted. A name that is no
    call (``optimizer``) needs no record.
    """
    parent = construct.parent  # UNRECORDED only until the loop below has given that parent a row
    names = list(records.rows)
    recorded = len(records)
    # Ancestors without a record of their own: up the chain until a recorded one, or one that construct.json does not explain.
    missing = dict(construct.parents_without_record)
    while missing:
        further: dict[int, str] = {}
        for child, name in missing.items():
            row = records.rows.get(name)
            if row is None:
                row = len(records)
                records.add(name)
                names.append(name)
                records.slot_start.append(records.slot_start[-1])
                parent.append(UNKNOWN)
                if name in construct.entries_without_record:
                    above = construct.entries_without_record[name]
                    if above is None:
                        parent[row] = NONE
                    elif (above_row := records.rows.get(above)) is not None:
                        parent[row] = above_row
                    else:
                        further[row] = above
                elif parse(name).kind in (RecordKind.MODULE, RecordKind.API):
                    construct.notes.unknown_parent(names[child], name)
            parent[child] = row
        missing = further
    kind, direction, path, _ = (column.tolist() for column in records.columns())
    from_names = _FromNames(list(records.paths), records.paths, kind, direction, records.call, path)
    for row in range(len(parent)):
        if parent[row] == UNKNOWN:
            parent[row] = from_names.parent(row)
            if construct.entries and row < recorded and kind[row] in (RecordKind.MODULE, RecordKind.API):
                construct.notes.not_in_construct(names[row])
    cut = _cut_cycles(parent, range(len(parent)))
    for row in sorted(cut):
        construct.notes.circle(names[row])
    if construct.entries:
        borrowed = _borrow_from_forward(records.rows, names, kind, direction, parent, cut)
        _cut_cycles(parent, borrowed)  # what was told stays, what was borrowed gives way
    return np.array(parent, dtype=np.int32)


class _FromNames:
    """Parents by dotted path: the record of the longest proper prefix that is a recorded module, of the same direction and nearest call."""

    def __init__(
        self, paths: list[str], path_index: dict[str, int], kind: list[int], direction: list[int], call: Sequence[int], path: list[int]
    ) -> None:
        self.paths = paths
        self.path_index = path_index
        self.kind = kind
        self.direction = direction
        self.call = call
        self.path = path
        self.modules: dict[tuple[int, int], dict[int, int]] = {}  # (path, direction) → rows by call
        for row, (row_kind, row_path, row_direction) in enumerate(zip(kind, path, direction, strict=True)):
            if row_kind == RecordKind.MODULE:
                self.modules.setdefault((row_path, row_direction), {}).setdefault(call[row], row)
        self.enclosing: dict[tuple[int, int], tuple[int, int] | None] = {}

    def parent(self, row: int) -> int:
        kind = self.kind[row]
        if kind not in (RecordKind.MODULE, RecordKind.PARAMETERS_GRAD):
            return NONE
        key = (self.path[row], self.direction[row])
        if kind == RecordKind.PARAMETERS_GRAD:
            for direction in (Direction.BACKWARD, Direction.FORWARD):
                if (key[0], int(direction)) in self.modules:
                    return self._nearest((key[0], int(direction)), row)
        if key not in self.enclosing:
            self.enclosing[key] = self._enclosing(key)
        enclosing = self.enclosing[key]
        return NONE if enclosing is None else self._nearest(enclosing, row)

    def _enclosing(self, key: tuple[int, int]) -> tuple[int, int] | None:
        path, direction = self.paths[key[0]], key[1]
        while path:
            path = path.rpartition(".")[0]
            index = self.path_index.get(path)
            if index is not None and (index, direction) in self.modules:
                return index, direction
        return None

    def _nearest(self, key: tuple[int, int], row: int) -> int:
        calls = self.modules[key]
        wanted = self.call[row]
        if wanted in calls:
            return calls[wanted]
        return calls[min(calls, key=lambda call: (abs(call - wanted), call))]


def _borrow_from_forward(
    rows: dict[str, int], names: list[str], kind: list[int], direction: list[int], parent: array[int], cut: set[int]
) -> set[int]:
    """Backward hooks often know no parent: the backward of the forward's parent is meant, or of the nearest ancestor that has one. Rows
    that were cut out of a circle are left as they are. Returns the rows that got a parent.
    """
    borrowed: set[int] = set()
    nearest: dict[int, int] = {}  # forward row → row of the backward of its nearest ancestor that has one
    for row in range(len(parent)):
        if parent[row] != NONE or direction[row] != Direction.BACKWARD or row in cut:
            continue
        at = rows.get(_other_direction(names[row], kind[row]), NONE)
        climbed: list[int] = []
        found = NONE
        while at >= 0 and found == NONE:
            if at in nearest:
                found = nearest[at]
                break
            climbed.append(at)
            at = parent[at]
            if at >= 0:
                found = rows.get(_other_direction(names[at], kind[at]), NONE)
        nearest.update(dict.fromkeys(climbed, found))
        if found not in (NONE, row):
            parent[row] = found
            borrowed.add(row)
    return borrowed


def _other_direction(name: str, kind: int) -> str:
    if kind == RecordKind.MODULE:
        head, call = name.rsplit(".", 1)
        path, direction = head.rsplit(".", 1)
        return f"{path}.{'backward' if direction == 'forward' else 'forward'}.{call}"
    if kind == RecordKind.API:
        path, direction = name.rsplit(".", 1)
        return f"{path}.{'backward' if direction == 'forward' else 'forward'}"
    return ""


def _cut_cycles(parent: array[int], may_be_cut: Container[int]) -> set[int]:
    """Make a root of the lowest row of every cycle that may be cut there; return these rows. Every cycle must hold one."""
    roots: set[int] = set()
    rows = len(parent)
    above = np.array(parent, dtype=np.int32)
    above = np.append(np.where(above < 0, rows, above), rows)  # row ``rows`` stands for "no parent" and is its own parent
    for _ in range(rows.bit_length()):
        above = above[above]
    walked: set[int] = set()
    for first in np.flatnonzero(above[:rows] != rows).tolist():
        steps: dict[int, int] = {}
        row = first
        while row >= 0 and row not in walked and row not in steps:
            steps[row] = len(steps)
            row = parent[row]
        if row in steps:
            cycle = [member for member, step in steps.items() if step >= steps[row]]
            root = min(member for member in cycle if member in may_be_cut)
            parent[root] = NONE
            roots.add(root)
        walked.update(steps)
    return roots
