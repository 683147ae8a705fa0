"""What can be downloaded of a comparison that has a verdict. A new export is one line here and its writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from compare.models import Comparison
from compare.services import comparisons, key_data
from compare.services.refusals import Refusal


@dataclass(frozen=True)
class Export:
    """A file that can be sent as it is."""

    content_type: str
    find: Callable[[Comparison], Path | None]


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
EXPORTS = {
    "verdict.json": Export("application/json", comparisons.verdict_file),
    "keydata.xlsx": Export(XLSX, key_data.workbook),
}


def find(comparison: Comparison, name: str) -> tuple[Path, str]:
    """The file of an export and its content type."""
    export = EXPORTS.get(name)
    if export is None:
        raise Refusal("export_unknown", HTTPStatus.NOT_FOUND, name=name)
    path = export.find(comparison)
    if path is None:
        raise Refusal("not_ready", HTTPStatus.CONFLICT)
    return path, export.content_type
