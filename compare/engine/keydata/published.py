"""The key data of a finished comparison as a folder: written by the worker, sent as it is or asked for one table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.errors import DumpError
from compare.engine.keydata.alignment import Tables
from compare.engine.keydata.documents import Line, in_full, key_tables, lines_of, overview
from compare.engine.keydata.key_comparison import KeyDataComparison
from compare.engine.keydata.numbers import values
from compare.engine.keydata.store import read_key_data
from compare.engine.keydata.workbook import write_workbook
from compare.engine.model import JsonObject

FOLDER = "key_data"
OVERVIEW = "overview.json"
LOOP = "loop.json"


def write_key_data(comparison: KeyDataComparison, keys: list[JsonObject], folder: Path) -> None:
    """Into ``folder``, which is there and empty. ``keys``: as in the run verdict."""
    _write(folder / OVERVIEW, overview(keys, comparison))
    for n, key in enumerate(comparison.keys):
        _write(folder / f"{n}.json", key_tables(n, key, comparison))
        np.save(folder / f"{n}.rows.npy", np.array([pair.rows for pair in key.pairs], np.int32).reshape(-1, 2), allow_pickle=False)
        lines = [(t, *line) for t, pair in enumerate(key.pairs) for line in pair.lines]
        if lines:
            np.save(folder / f"{n}.lines.npy", np.array(lines, np.int32), allow_pickle=False)


def write_loop_document(loop: JsonObject, folder: Path) -> None:
    """What the run verdict will say of key data and configurations (``diagnose.run_loop``), beside them."""
    _write(folder / LOOP, loop)


def read_loop_document(folder: Path) -> JsonObject:
    """What ``write_loop_document`` left; NaN and infinities are strings by now."""
    document: JsonObject = json.loads((folder / LOOP).read_text("utf-8"))
    return document


def write_tables(folder: Path, target: Path, watch: Callable[[int], None]) -> None:
    """The tables of a finished comparison as a workbook (``workbook``). ``watch`` hears the number of rows written so far."""
    keys = json.loads((folder / FOLDER / OVERVIEW).read_text("utf-8"))["keys"]
    write_workbook((json.loads((folder / FOLDER / f"{key['n']}.json").read_text("utf-8")) for key in keys), target, watch)


def _write(path: Path, document: JsonObject) -> None:
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError:  # it holds NaN or infinities, which JSON has no numbers for
        text = json.dumps(spelled(document), ensure_ascii=False, allow_nan=False)
    path.write_text(text, "utf-8")


def spelled(value: Any) -> Any:
    """The same with NaN and infinities as strings, as every JSON the product writes has them."""
    if isinstance(value, dict):
        return {key: spelled(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [spelled(member) for member in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


class KeyDataReader:
    """``folder`` is a comparison's; the run folders hold the numbers it compared."""

    def __init__(self, folder: Path, left_run: Path, right_run: Path) -> None:
        self.folder = folder / FOLDER
        self.runs = (left_run, right_run)

    def table(self, n: int, t: int, row: int, start: int) -> JsonObject:
        """Table t of key n with its values (``docs/formats.md``). Raises DumpError ``key_data_unknown``."""
        try:
            key = _document(self.folder / f"{n}.json")
        except FileNotFoundError:
            raise DumpError("key_data_unknown", FOLDER, n=n, t=t) from None
        if not 0 <= t < len(key["tables"]):
            raise DumpError("key_data_unknown", FOLDER, n=n, t=t)
        table = key["tables"][t]
        rows = np.load(self.folder / f"{n}.rows.npy", mmap_mode="r", allow_pickle=False)[t]
        lines = self._lines(n, t, (int(rows[0]), int(rows[1])))
        head = {"format": key["format"], "n": n, "key": key["key"], "kind": key["kind"], "table": table}
        document: JsonObject = spelled({**head, **in_full(lines, key["kind"], row, start)})
        return document

    def _lines(self, n: int, t: int, rows: tuple[int, int]) -> list[Line]:
        sides = _tables(self.runs[0]), _tables(self.runs[1])
        moved = _lines_by_sequence(self.folder / f"{n}.lines.npy").get(t, [])
        found: list[Line] = []
        for line, length, row, right_line, right_length in moved:
            arrays = [None if side is None else values(side.table, at) for side, at in zip(sides, (rows[0], row), strict=True)]
            if arrays[0] is not None and arrays[1] is not None:
                found.append((arrays[0][line][:length], arrays[1][right_line][:right_length], max(length, right_length)))
        return found or lines_of(sides, rows)


@lru_cache(maxsize=8)
def _document(path: Path) -> JsonObject:
    document: JsonObject = json.loads(path.read_text("utf-8"))
    return document


@lru_cache(maxsize=8)
def _tables(run: Path) -> Tables | None:
    table = read_key_data(run)
    return None if table is None else Tables(table)


@lru_cache(maxsize=8)
def _lines_by_sequence(path: Path) -> dict[int, list[list[int]]]:
    """Table → its lines, as ``table_pair.Line``; none in comparisons that were stored without."""
    found: dict[int, list[list[int]]] = {}
    if path.is_file():
        for t, *line in np.load(path, allow_pickle=False).tolist():
            found.setdefault(t, []).append(line)
    return found
