"""The parts of a finished comparison, as files that can be sent."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from compare.engine.errors import DumpError
from compare.models import Comparison
from compare.services import storage
from compare.services.refusals import Refusal


@dataclass(frozen=True)
class PartFiles:
    """One part's folder, and the columns of the runs it was made from."""

    folder: Path
    left: Path
    right: Path
    etag: str  # changes with everything below: a part is written once, by one attempt

    @property
    def tree(self) -> Path:
        return self.folder / "tree.bin.gz"

    @property
    def verdict(self) -> Path:
        return self.folder / "verdict.json"


def find(comparison: Comparison, n: int | None) -> PartFiles:
    """Part ``n``, or with None the only one. A part that only one side holds has nothing to look into."""
    if comparison.state != Comparison.State.DONE:
        raise Refusal("not_ready", HTTPStatus.CONFLICT)
    if n is None:
        n = _only(comparison)
    folder = storage.result(comparison) / "parts" / str(n)
    if not folder.is_dir():
        raise Refusal("part_unknown", HTTPStatus.NOT_FOUND, n=n)
    etag = f'"{comparison.pk}.{comparison.attempt}.{n}"'
    return PartFiles(folder, storage.columns(comparison.left), storage.columns(comparison.right), etag)


def node(part: PartFiles, row: int) -> dict[str, Any]:
    """One row of the part's tree in full."""
    from compare.engine.store.reader import PartReader  # only here: numpy is not needed before

    try:
        return PartReader(part.folder, part.left, part.right).node(row)
    except DumpError as error:
        raise Refusal(error.code, HTTPStatus.NOT_FOUND, **error.params) from None


def _only(comparison: Comparison) -> int:
    numbers = [int(folder.name) for folder in (storage.result(comparison) / "parts").iterdir()]
    if len(numbers) != 1:
        raise Refusal("several_parts", HTTPStatus.CONFLICT)
    return numbers[0]
