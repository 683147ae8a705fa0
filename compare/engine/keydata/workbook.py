"""Compared key data as a workbook: one sheet a key, the columns of msprobe's SingleComparator first, then what it does not print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import xlsxwriter

from compare.engine.model import JsonObject

COLUMNS = (
    "step", "rank", "micro_step", "id", "shape1", "shape2", "相同元素百分比(%)", "首个不匹配元素索引", "最大绝对误差", "最大相对误差",
    "误差在千分之一内元素占比(%)", "误差在百分之一内元素占比(%)",
)  # fmt: skip
MORE = (
    "state", "note", "evidence", "cropped", "NaN left", "NaN right", "NaN both", "Inf left", "Inf right", "within response: elements",
    "within response: same (%)", "within response: max abs", "right rank", "right micro_step", "right id",
)  # fmt: skip
LONGEST_SHEET = 1_048_576 - 1  # rows, without the head
LONGEST_NAME = 31
FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")


def write_workbook(keys: Iterable[JsonObject], target: Path, watch: Callable[[int], None] = lambda _: None) -> None:
    """``keys``: the documents of ``documents.key_tables``. Text is written as text whatever it begins with, never as a formula or link."""
    book = xlsxwriter.Workbook(
        str(target),
        {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False},
    )
    names: set[str] = set()
    written = 0
    for key in keys:
        tables = key["tables"]
        count = max(1, -(-len(tables) // LONGEST_SHEET))
        for part in range(count):
            sheet = book.add_worksheet(_sheet_name(key["key"] if count == 1 else f"{key['key']} part_{part}", names))
            sheet.freeze_panes(1, 4)
            for column, title in enumerate((*COLUMNS, *MORE)):
                sheet.write_string(0, column, title)
            for row, table in enumerate(tables[part * LONGEST_SHEET : (part + 1) * LONGEST_SHEET], 1):
                for column, value in enumerate(cells(table)):
                    _write(sheet, row, column, value)
                written += 1
                if not written % 1000:
                    watch(written)
    if not names:
        book.add_worksheet("key data")
    book.close()


def cells(table: JsonObject) -> Iterator[Any]:
    """One line, in the order of COLUMNS and MORE; None is an empty cell."""
    yield from (table["step"], table["rank"], table["micro_step"], _number(table["id"]))
    for side in ("left_shape", "right_shape"):
        yield None if table[side] is None else str(table[side])
    yield from (table[name] for name in ("same", "first_mismatch", "max_abs", "max_rel", "within_1e_3", "within_1e_2"))
    yield from (table["state"], table["note"], table["evidence"], "yes" if table["cropped"] else "no")
    yield from table["nan"] or (None, None, None)
    yield from table["inf"] or (None, None)
    masked = table["masked"] or {}
    yield from (masked.get(name) for name in ("compared", "same", "max_abs"))
    right = table["right"] or {}
    yield from (right.get("rank"), right.get("micro_step"), _number(right["id"]) if right else None)


def _write(sheet: Any, row: int, column: int, value: Any) -> None:
    if isinstance(value, int | float) and value == value and abs(value) != float("inf"):
        sheet.write_number(row, column, value)
    elif value is not None:
        sheet.write_string(row, column, str(value))


def _number(entry: str) -> int | str:
    return int(entry) if entry.isascii() and entry.isdigit() and len(entry) < 16 else entry


def _sheet_name(key: str, taken: set[str]) -> str:
    """A name that a workbook takes: short, without signs that mean something in references, and not there yet."""
    name = FORBIDDEN.sub("_", key).strip("'")[:LONGEST_NAME] or "key"
    number = 1
    while name.lower() in taken or name.lower() == "history":
        number += 1
        name = f"{name[: LONGEST_NAME - 6]} ({number})"
    taken.add(name.lower())
    return name
