"""The pair table as CSV and as XLSX. Nothing from a dump is ever a formula or a link."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import xlsxwriter

from compare.engine.exports.finished import Finished
from compare.engine.exports.table import PairTable
from compare.engine.mapping.write import guarded

SHEET_ROWS = 1_048_500  # msprobe splits its sheets there; the format ends at 1,048,576
LONGEST_CELL = 32_767
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # what XML cannot hold

Watch = Callable[[int], None]


def write_csv(finished: Finished, target: Path, watch: Watch = lambda _: None) -> None:
    """``watch`` hears the number of rows written so far."""
    done = 0
    with target.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        table = PairTable(finished)
        writer.writerow(table.header)
        for columns in table.chunks():
            writer.writerows(zip(*map(_guarded, columns), strict=True))
            done += len(columns[0])
            watch(done)


def _guarded(column: Sequence[Any]) -> Iterable[Any]:
    """Text that a spreadsheet would calculate is marked as text; numbers are ours and stay."""
    return [guarded(cell) if isinstance(cell, str) else cell for cell in column]


def write_xlsx(finished: Finished, target: Path, watch: Watch = lambda _: None) -> None:
    """Row by row to disk: memory does not grow with the table."""
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    table, done = PairTable(finished), 0
    with xlsxwriter.Workbook(str(target), options) as book:
        bold = book.add_format({"bold": True, "bottom": 1})
        sheet, row = _sheet(book, table.header, bold), 1
        for columns in table.chunks():
            for cells in zip(*columns, strict=True):
                if row == SHEET_ROWS:
                    sheet, row = _sheet(book, table.header, bold), 1
                for place, cell in enumerate(cells):
                    if isinstance(cell, str):
                        if cell:
                            sheet.write_string(row, place, _FORBIDDEN.sub("\ufffd", cell[:LONGEST_CELL]))
                    else:
                        sheet.write_number(row, place, cell)
                row += 1
            done += len(columns[0])
            watch(done)


def _sheet(book: Any, names: Sequence[str], bold: Any) -> Any:
    sheet = book.add_worksheet(f"pairs {len(book.worksheets()) + 1}")
    sheet.freeze_panes(1, 2)
    sheet.set_column(0, 1, 60)
    sheet.set_column(2, len(names) - 1, 14)
    for place, name in enumerate(names):
        sheet.write_string(0, place, name, bold)
    return sheet
