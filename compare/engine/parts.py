"""Which dumps of the left side are compared with which of the right: parts are (stage, step), and the ranks of a part go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compare.engine.errors import DumpError
from compare.engine.options import Options

# Stages read in pipeline order; others follow in the order in which the side holds them.
PIPELINE = (
    "actor_generate_sequences",
    "generate_sequences",
    "generate",
    "reference_compute_log_prob",
    "ref_compute_log_prob",
    "critic_compute_values",
    "actor_compute_log_prob",
    "old_log_prob",
    "critic_update",
    "actor_update",
    "update_actor",
    "actor_train",
)

PartKey = tuple[str | None, int | None]


class Placed(Protocol):
    """Where a dump stands in its run. That is all that pairing parts needs: neither its columns nor its file are opened for it."""

    @property
    def stage(self) -> str | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def rank(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Part:
    """``ranks`` says which dumps are compared with which: rank by rank, or all of one side with all of the other where the layouts
    differ. It is empty where one side has no such part (``only``: left or right).
    """

    n: int
    left: PartKey | None
    right: PartKey | None
    ranks: Sequence[tuple[Sequence[int], Sequence[int]]]  # positions in the two sides' dumps

    @property
    def only(self) -> str | None:
        return "right" if self.left is None else "left" if self.right is None else None


def parts_of(left: Sequence[Placed], right: Sequence[Placed], options: Options) -> list[Part]:
    """Raises DumpError ``no_such_choice`` where a side does not hold what was asked for."""
    chosen = (_chosen(left, options, 0), _chosen(right, options, 1))
    groups = tuple(_grouped(side, rows) for side, rows in zip((left, right), chosen, strict=True))
    pairs = _paired(list(groups[0]), list(groups[1]))
    found = []
    for n, (a, b) in enumerate(pairs):
        ranks = _ranks(left, right, groups[0][a], groups[1][b]) if a is not None and b is not None else []
        found.append(Part(n, a, b, ranks))
    return found


def left_out(side: Sequence[Placed], options: Options, parts: Sequence[Part], which: int) -> list[PartKey]:
    """What the side (0 left, 1 right) holds besides the parts, where nothing chose among them: one step against a run of several."""
    used = {(part.left, part.right)[which] for part in parts}
    return [key for key in _grouped(side, _chosen(side, options, which)) if key not in used]


def _chosen(dumps: Sequence[Placed], options: Options, side: int) -> list[int]:
    rows = list(range(len(dumps)))
    for name in ("stage", "step", "rank"):
        wanted = options.each(name)[side]
        if wanted is None:
            continue
        held = {str(getattr(dumps[row], name)) for row in rows if getattr(dumps[row], name) is not None}
        if wanted in held:
            rows = [row for row in rows if str(getattr(dumps[row], name)) == wanted]
        elif len(held) > 1 or (not held and len(rows) > 1):
            raise DumpError("no_such_choice", ("left", "right")[side], name=name, value=wanted, held=", ".join(sorted(held)) or "none")
    return rows


def _grouped(dumps: Sequence[Placed], rows: Sequence[int]) -> dict[PartKey, list[int]]:
    groups: dict[PartKey, list[int]] = {}
    for row in rows:
        groups.setdefault((dumps[row].stage, dumps[row].step), []).append(row)

    def place(key: PartKey) -> tuple[int, int]:
        """What happened first: by step, and within a step along the pipeline."""
        stage, step = key
        return (step if step is not None else -1, PIPELINE.index(stage) if stage in PIPELINE else len(PIPELINE))

    return {key: groups[key] for key in sorted(groups, key=place)}


def _paired(left: Sequence[PartKey], right: Sequence[PartKey]) -> list[tuple[PartKey | None, PartKey | None]]:
    if len(left) == 1 or len(right) == 1:
        one, many = (left, right) if len(left) == 1 else (right, left)
        partner = next((key for key in many if key == one[0]), next((key for key in many if key[1] == one[0][1]), many[0]))
        pair = (one[0], partner) if len(left) == 1 else (partner, one[0])
        return [pair]
    pairs: list[tuple[PartKey | None, PartKey | None]] = [(key, key if key in right else None) for key in left]
    return pairs + [(None, key) for key in right if key not in left]


def _ranks(
    left: Sequence[Placed], right: Sequence[Placed], a: Sequence[int], b: Sequence[int]
) -> list[tuple[Sequence[int], Sequence[int]]]:
    by_rank = {right[row].rank: row for row in b}
    if len(a) == len(b) and {left[row].rank for row in a} == set(by_rank):
        return [([row], [by_rank[left[row].rank]]) for row in a]
    return [(list(a), list(b))]
