"""A table of the left run and its partner on the right, and what became of the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.engine.keydata.alignment import Place, Tables
from compare.engine.keydata.by_statistics import statistics_agree
from compare.engine.keydata.numbers import Array, Numbers, measure, overlap, values

EQUAL, PADDING, DIFFERS, LEFT_ONLY, RIGHT_ONLY = "equal", "padding", "differs", "left_only", "right_only"
NOT_READ, NOT_COMPARABLE = "not_read", "not_comparable"
STATES = (EQUAL, PADDING, DIFFERS, LEFT_ONLY, RIGHT_ONLY, NOT_READ, NOT_COMPARABLE)

Line = tuple[int, int, int, int, int]  # a left line and its tokens; the right row, line and tokens of the same sequence


@dataclass(frozen=True, slots=True)
class TablePair:
    """A row is -1 where a side has none. ``place`` is the left's, else the right's as the left counts.

    ``state``: equal; padding (only positions beyond the responses' ends differ); differs; left_only; right_only; not_read; not_comparable
    (a number of a micro-batch that the other side made up of other sequences). ``evidence``: values, statistics (a side has no numbers) or
    none. ``masked``: the numbers of the positions within the responses' lengths. ``note``: empty, not_read, padding_only, other_sequences,
    by_sequence (each line, or micro-batch, with that of the same sequences, which lies elsewhere on the right). ``lines``: of tables
    compared line by line.
    """

    place: Place
    right_place: Place | None
    rows: tuple[int, int]
    state: str
    evidence: str
    numbers: Numbers | None = None
    masked: Numbers | None = None
    note: str | None = None
    lines: Sequence[Line] = ()

    @property
    def settled(self) -> bool:
        """Whether nothing is left to explain."""
        return self.state in (EQUAL, PADDING)

    @property
    def compared(self) -> bool:
        """Whether both sides hold the table and its numbers, or at least its statistics, were compared."""
        return self.evidence != "none"


def pair_at_place(sides: tuple[Tables, Tables], places: tuple[Place, Place], rows: tuple[int, int]) -> TablePair:
    """Two tables, number by number as they stand."""
    (left, right), (a, b) = sides, rows
    x, y = values(left.table, a), values(right.table, b)
    if x is None or y is None:
        agree = statistics_agree(sides, rows)
        if agree is None:
            return TablePair(*places, rows, NOT_READ, "none", note="not_read")
        return TablePair(*places, rows, EQUAL if agree else DIFFERS, "statistics")
    numbers = measure(*overlap(x, y))
    same = x.shape == y.shape and numbers.same == numbers.compared
    kept = _within(sides, rows, (x, y))
    masked = None if kept is None else measure(*kept)
    state = EQUAL if same else PADDING if masked is not None and masked.same == masked.compared else DIFFERS
    note = "padding_only" if state == PADDING else None if numbers.compared else "empty"
    return TablePair(*places, rows, state, "values", numbers, masked, note)


def _within(sides: tuple[Tables, Tables], rows: tuple[int, int], arrays: tuple[Array, Array]) -> tuple[Array, Array] | None:
    """What is no padding of both, where both know it to be the same positions and there is any padding."""
    a, b = (side.valid(row) for side, row in zip(sides, rows, strict=True))
    if a is None or b is None or (a.all() and b.all()) or not _same_positions(a, b):
        return None
    return arrays[0][a], arrays[1][b]


def _same_positions(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> bool:
    """The same positions, whatever the width they are padded to."""
    if a.shape == b.shape:
        return np.array_equal(a, b)
    if a.ndim != 2 or b.ndim != 2 or len(a) != len(b):
        return False
    both = min(a.shape[1], b.shape[1])
    return np.array_equal(a[:, :both], b[:, :both]) and not a[:, both:].any() and not b[:, both:].any()
