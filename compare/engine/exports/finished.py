"""A finished comparison as the writers see it, whether it lies in memory or in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from compare.engine.diagnose.tree import tree_of
from compare.engine.model import Dump, JsonObject
from compare.engine.pipeline import Comparison
from compare.engine.publish import case_columns, row_columns
from compare.engine.store.columns import Columns
from compare.engine.store.dumps import read_dump
from compare.engine.store.joined import joined


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name, what is said of them, and their strings: ``publish.case_columns`` and ``row_columns`` say which there are."""

    array: Callable[[str], NDArray[Any]]
    meta: Mapping[str, Any]
    strings: Sequence[str] = ()

    def name(self, table: str, index: int, default: str = "") -> str:
        """The word for a number of an enumeration that ``meta`` lists."""
        return str(self.meta[table].get(str(index), default))


@dataclass(frozen=True, slots=True)
class FinishedCase:
    """One rank of a part (or all ranks of both sides): its pairs, and the two dumps they point into."""

    pairs: Table
    dumps: tuple[Dump, Dump]


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """One (stage, step): ``document`` is its verdict document, None where only one side holds it (``row`` says which)."""

    n: int
    row: JsonObject
    document: JsonObject | None
    open: Callable[[], tuple[Table, Sequence[FinishedCase]]]  # the tree's rows, and the cases; nothing is loaded before


@dataclass(frozen=True, slots=True)
class Finished:
    """``document``: the verdict or run verdict. ``mapping``: the text of the mapping file that was used, None without one."""

    document: JsonObject
    parts: Sequence[FinishedPart]
    mapping: str | None = None

    @property
    def several(self) -> bool:
        return "parts" in self.document

    def judged(self) -> Iterator[FinishedPart]:
        return (part for part in self.parts if part.document is not None)


def from_memory(comparison: Comparison, mapping: str | None = None) -> Finished:
    """What the command line holds."""
    rows = comparison.document.get("parts") or [_only_row(comparison.document, part.n) for part, _ in comparison.parts]
    parts = []
    for (part, verdict), row in zip(comparison.parts, rows, strict=True):

        def opened(verdict: Any = verdict) -> tuple[Table, Sequence[FinishedCase]]:
            arrays, strings, meta = row_columns(verdict, tree_of(verdict.cases, verdict.origins))
            cases = [FinishedCase(_table(*case_columns(case)), case.dumps) for case in verdict.cases]
            return _table(arrays, meta, strings["strings"]), cases

        parts.append(FinishedPart(part.n, row, None if verdict is None else verdict.document, opened))
    return Finished(comparison.document, parts, mapping)


def from_folder(folder: Path, left_run: Path, right_run: Path, mapping: str | None = None) -> Finished:
    """What ``compare_runs`` wrote; arrays are memory-mapped."""
    document: JsonObject = json.loads((folder / "verdict.json").read_text("utf-8"))
    numbers = sorted(int(part.name) for part in (folder / "parts").glob("*"))
    rows = document.get("parts") or [_only_row(document, n) for n in numbers]
    parts = []
    for row in rows:
        place = folder / "parts" / str(row["n"])

        def opened(place: Path = place) -> tuple[Table, Sequence[FinishedCase]]:
            columns = Columns(place / "columns" / "rows")
            kept = sorted((entry for entry in (place / "columns").iterdir() if entry.name != "rows"), key=lambda entry: int(entry.name))
            return Table(columns.array, columns.meta, columns.strings("strings")), [
                _stored_case(one, (left_run, right_run)) for one in kept
            ]

        verdict = json.loads((place / "verdict.json").read_text("utf-8")) if place.is_dir() else None
        parts.append(FinishedPart(row["n"], row, verdict, opened))
    return Finished(document, parts, mapping)


def _stored_case(folder: Path, runs: tuple[Path, Path]) -> FinishedCase:
    columns = Columns(folder)
    dumps = [joined([read_dump(run / name) for name in names]) for run, names in zip(runs, columns.meta["dumps"], strict=True)]
    return FinishedCase(Table(columns.array, columns.meta), (dumps[0], dumps[1]))


def _table(arrays: Mapping[str, NDArray[Any]], meta: JsonObject, strings: Sequence[str] = ()) -> Table:
    """As it would be read back: numbers that name something are text in a JSON file."""
    return Table(arrays.__getitem__, json.loads(json.dumps(meta)), strings)


def _only_row(document: JsonObject, n: int) -> JsonObject:
    left, right = document["left"], document["right"]
    return {
        "n": n,
        "left": {"stage": left.get("stage"), "step": left.get("step")},
        "right": {"stage": right.get("stage"), "step": right.get("step")},
        "stage": left.get("stage"),
        "step": left.get("step"),
        "ranks": left.get("ranks", []),
        "verdict": document["verdict"],
    }
