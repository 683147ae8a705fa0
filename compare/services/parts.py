"""The parts of a comparison: how far each is, and those that are done as files that can be sent, whatever the others do."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from compare.engine.errors import DumpError
from compare.models import Comparison, Part
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
    row = _only(comparison) if n is None else Part.objects.filter(comparison=comparison, n=n).first()
    if row is None and comparison.state == Comparison.State.DONE:
        raise Refusal("part_unknown", HTTPStatus.NOT_FOUND, n=n)
    if row is not None and row.error is not None:
        raise Refusal(row.error["code"], HTTPStatus.CONFLICT, **row.error["params"])
    if row is None or row.state != Part.State.DONE:
        raise Refusal("not_ready", HTTPStatus.CONFLICT)
    folder = storage.part_result(comparison, row.n)
    if not folder.is_dir():
        raise Refusal("part_unknown", HTTPStatus.NOT_FOUND, n=row.n)
    etag = f'"{comparison.pk}.{row.attempt}.{row.n}"'
    return PartFiles(folder, storage.columns(comparison.left), storage.columns(comparison.right), etag)


def states(comparison: Comparison) -> list[dict[str, Any]]:
    """Each part in the order of the pipeline: ``{n, stage, step, state, verdict, error}``; empty until it is known which there are."""
    if not comparison.attempt:  # no worker has looked yet
        return []
    rows = list(comparison.parts.order_by("n").values("n", "stage", "step", "state", "verdict", "error"))
    return [{**row, "verdict": row["verdict"] or None} for row in rows]


def node(part: PartFiles, row: int) -> dict[str, Any]:
    """One row of the part's tree in full."""
    from compare.engine.store.reader import PartReader  # only here: numpy is not needed before

    try:
        return PartReader(part.folder, part.left, part.right).node(row)
    except DumpError as error:
        raise Refusal(error.code, HTTPStatus.NOT_FOUND, **error.params) from None


def _only(comparison: Comparison) -> Part | None:
    rows = list(Part.objects.filter(comparison=comparison).exclude(verdict__endswith="_only")[:2])
    if len(rows) > 1:
        raise Refusal("several_parts", HTTPStatus.CONFLICT)
    return rows[0] if rows else None
