"""Compared key data as the documents that a reader asks for (``docs/formats.md``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from compare.engine.keydata.alignment import Place, Tables
from compare.engine.keydata.key_comparison import CONSEQUENCE, KeyComparison, KeyDataComparison
from compare.engine.keydata.numbers import Array, Numbers, overlap, values
from compare.engine.keydata.table_pair import DIFFERS, EQUAL, NOT_COMPARABLE, NOT_READ, PADDING, TablePair
from compare.engine.model import JsonObject, Statistic

FORMAT = 1
MOST_VALUES = 4096
MOST_ROWS = 4096
STATISTICS = tuple(statistic.name.lower() for statistic in Statistic)


def place_document(place: Place) -> JsonObject:
    step, rank, micro_step, entry = place
    return {"step": step, "rank": _known(rank), "micro_step": _known(micro_step), "id": entry}


def key_document(n: int, key: KeyComparison, stage: str | None) -> JsonObject:
    """One entry of the run verdict's ``key_data``."""
    counts = {state: number for state, number in key.counts.items() if state != NOT_READ or number}
    return {
        "n": n,
        "key": key.name,
        "order": n,
        "kind": key.kind,
        "stage": stage,
        "state": key.state,
        "first": None if key.first is None else place_document(key.first.place),
        "tables": len(key.pairs),
        "counts": counts,
        "copies": key.copies,
        "caused_by": sorted(key.caused_by),
    }


def overview(keys: list[JsonObject], comparison: KeyDataComparison) -> JsonObject:
    """Every key × step × rank × micro_step at a glance, as columns."""
    cells: dict[str, list[Any]] = {
        name: [] for name in ("n", "step", "rank", "micro_step", "state", "tables", "differing", "same", "max_abs", "max_rel")
    }
    for n, key in enumerate(comparison.keys):
        for place, group in groupby(enumerate(key.pairs), key=lambda entry: entry[1].place[:3]):
            entries = list(group)
            pairs = [pair for _, pair in entries]
            numbers = [pair.numbers for pair in pairs if pair.numbers is not None]
            compared = sum(each.compared for each in numbers)
            row = (
                n,
                place[0],
                _known(place[1]),
                _known(place[2]),
                _cell_state({key.table_state(at) for at, _ in entries}),
                len(pairs),
                sum(pair.state == DIFFERS for pair in pairs),
                100 * sum(each.same for each in numbers) / compared if compared else None,
                max((each.max_abs for each in numbers), default=None),
                max((each.max_rel for each in numbers), default=None),
            )
            for name, value in zip(cells, row, strict=True):
                cells[name].append(value)
    return {"format": FORMAT, "keys": keys, "cells": cells}


def key_tables(n: int, key: KeyComparison, comparison: KeyDataComparison) -> JsonObject:
    """All tables of one key with their numbers."""
    tables = [table_document(t, key, pair, comparison.sides) for t, pair in enumerate(key.pairs)]
    return {"format": FORMAT, "n": n, "key": key.name, "kind": key.kind, "state": key.state, "tables": tables}


def table_document(t: int, key: KeyComparison, pair: TablePair, sides: tuple[Tables | None, Tables | None]) -> JsonObject:
    elsewhere = pair.right_place is not None and pair.rows[0] >= 0 and pair.rows[1] >= 0 and pair.right_place[1:] != pair.place[1:]
    left, right = (_of(side, row) for side, row in zip(sides, pair.rows, strict=True))
    return {
        "t": t,
        **place_document(pair.place),
        "right": place_document(pair.right_place) if elsewhere and pair.right_place is not None else None,
        "state": key.table_state(t),
        "evidence": pair.evidence,
        "note": pair.note,
        "left_shape": left["shape"],
        "right_shape": right["shape"],
        "left_dtype": left["dtype"],
        "right_dtype": right["dtype"],
        "left_problem": left["problem"],
        "right_problem": right["problem"],
        **_numbers(pair.numbers),
        "cropped": pair.numbers is not None and not pair.lines and left["shape"] != right["shape"],
        "masked": None
        if pair.masked is None
        else {name: value for name, value in _numbers(pair.masked).items() if name in ("compared", "same", "max_abs", "max_rel")},
        "statistics": {name: [left["statistics"][name], right["statistics"][name]] for name in STATISTICS},
    }


Line = tuple[Array, Array, int | None]  # left, right, tokens that are no padding


def in_full(lines: Sequence[Line], kind: str, row: int, start: int) -> JsonObject:
    """The values of one table: at most MOST_VALUES a side, from ``start`` on in line ``row``; beyond the end there are none."""
    chosen = lines[row] if row < len(lines) else (np.empty(0), np.empty(0), None)
    first = row // MOST_ROWS * MOST_ROWS
    kept = slice(start, start + MOST_VALUES)
    left, right = chosen[0][kept], chosen[1][kept]
    return {
        "rows": [_line(first + at, line) for at, line in enumerate(lines[first : first + MOST_ROWS])],
        "rows_of": len(lines),
        "row": row,
        "from": start,
        "of": max(len(chosen[0]), len(chosen[1])),
        "left": _listed(left, kind),
        "right": _listed(right, kind),
        "difference": _difference(left, right),
    }


def lines_of(sides: tuple[Tables | None, Tables | None], rows: tuple[int, int]) -> list[Line]:
    """A table as rows along its first axis, the other axes flattened; a list or scalar is one row."""
    left = sides[0]
    arrays = [
        np.empty(0) if side is None or row < 0 or (array := values(side.table, row)) is None else array
        for side, row in zip(sides, rows, strict=True)
    ]
    lengths = left.lengths(rows[0]) if left is not None and rows[0] >= 0 else None
    if max(array.ndim for array in arrays) < 2:
        return [(arrays[0].reshape(-1), arrays[1].reshape(-1), None)]
    split = [list(array.reshape(array.shape[0], -1)) if array.ndim > 1 and array.size else [array.reshape(-1)] for array in arrays]
    nothing = np.empty(0)
    return [
        (
            split[0][at] if at < len(split[0]) else nothing,
            split[1][at] if at < len(split[1]) else nothing,
            int(lengths[at]) if lengths is not None and at < len(lengths) else None,
        )
        for at in range(max(map(len, split)))
    ]


@np.errstate(all="ignore")
def _line(at: int, line: Line) -> JsonObject:
    left, right, valid = line
    x, y = overlap(left, right)
    same = (x == y) | ((x != x) & (y != y))
    distance = np.where(same, 0, np.abs(x.astype(np.float64) - y.astype(np.float64)))
    known = distance[~np.isnan(distance)]
    return {
        "row": at,
        "left_length": len(left),
        "right_length": len(right),
        "valid": valid,
        "same": int(same.sum()),
        "first_mismatch": None if same.all() else int(same.argmin()),
        "max_abs": float(known.max()) if len(known) else None,
        "mean_abs": float(known.mean()) if len(known) else None,
    }


def _listed(array: Array, kind: str) -> list[Any]:
    """Plain numbers; tokens as integers where they are."""
    if kind == "tokens" and array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = array.astype(np.int64)
    listed: list[Any] = array.tolist()
    return listed


@np.errstate(all="ignore")
def _difference(left: Array, right: Array) -> list[float | None]:
    both = min(len(left), len(right))
    distance: list[float | None] = (right[:both].astype(np.float64) - left[:both].astype(np.float64)).tolist()
    return distance + [None] * (max(len(left), len(right)) - both)


def _cell_state(states: set[str]) -> str:
    """Of several tables: what matters most. Tables that one side lacks count only where there are no others."""
    found = next((state for state in (DIFFERS, CONSEQUENCE, NOT_READ, NOT_COMPARABLE, PADDING, EQUAL) if state in states), None)
    return found or min(states)


def _of(side: Tables | None, row: int) -> Mapping[str, Any]:
    """What a side says of a table."""
    if side is None or row < 0:
        return {"shape": None, "dtype": None, "problem": None, "statistics": dict.fromkeys(STATISTICS)}
    table = side.table
    shape = side.shape(row)
    known = int(table.present[row])
    return {
        "shape": None if shape is None else list(shape),
        "dtype": None if table.dtype[row] < 0 else table.dtypes[table.dtype[row]],
        "problem": None if table.problem[row] < 0 else json.loads(table.problems[table.problem[row]]),
        "statistics": {name: float(table.statistics[row, at]) if known & 1 << at else None for at, name in enumerate(STATISTICS)},
    }


def _numbers(numbers: Numbers | None) -> JsonObject:
    names = ("compared", "same", "first_mismatch", "max_abs", "max_rel", "within_1e_3", "within_1e_2", "nan", "inf")
    if numbers is None:
        return dict.fromkeys(names)
    of = numbers.compared or 1

    def share(count: int) -> float | None:
        return 100 * count / of if numbers.compared else None

    return dict(
        zip(
            names,
            (
                numbers.compared,
                share(numbers.same),
                numbers.first_mismatch,
                numbers.max_abs,
                numbers.max_rel,
                share(numbers.within_tight),
                share(numbers.within_loose),
                list(numbers.nan),
                list(numbers.inf),
            ),
            strict=True,
        )
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number
