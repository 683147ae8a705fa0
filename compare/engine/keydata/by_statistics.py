"""Two tables of which a side has no numbers: by what the .json says of them, or what follows from the numbers of the other side."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from compare.engine.keydata.alignment import Tables
from compare.engine.keydata.numbers import values
from compare.engine.model import Statistic

ORDER_OF_SUMS = 1e-5
"""How far a mean or norm in float32 may be from one summed in another order, relative to the root mean square and to itself."""
COARSE = ((16, 2.0**-8), (13, 2.0**-11))
"""Bits of a float32 that a bfloat16, a float16 leaves empty, and half its step: statistics of such tensors are rounded to their type."""


def statistics_agree(sides: tuple[Tables, Tables], rows: tuple[int, int]) -> bool | None:
    """Whether shape, maximum, minimum, mean and norm are the same, to the bit where both are written. None where a side has nothing.

    Statistics that follow from numbers were summed in another order than those that were written, and perhaps in a coarser type: then mean
    and norm may be as far apart as that makes them.
    """
    if any(side.table.problem[row] >= 0 for side, row in zip(sides, rows, strict=True)):
        return None
    written = [_written(side, row) for side, row in zip(sides, rows, strict=True)]
    both = written[0].keys() & written[1].keys()
    tolerant = not both
    if tolerant:
        written = [found or _computed(side, row) for found, side, row in zip(written, sides, rows, strict=True)]
        both = written[0].keys() & written[1].keys()
    if not both:
        return None
    if sides[0].shape(rows[0]) != sides[1].shape(rows[1]):
        return False
    if not tolerant:
        return all(_same(written[0][at], written[1][at], 0.0) for at in both)
    rms = max(_root_mean_square(found, side.shape(row)) for found, side, row in zip(written, sides, rows, strict=True))
    step = max(_rounding(found.values()) for found in written)

    def allowed(at: int) -> float:
        size = max(abs(found[at]) for found in written)
        return ORDER_OF_SUMS * max(rms, size) + step * size if at in (Statistic.MEAN, Statistic.NORM) else 0.0

    return all(_same(written[0][at], written[1][at], allowed(at)) for at in both)


def _written(side: Tables, row: int) -> dict[int, float]:
    known = int(side.table.present[row])
    return {at: float(side.table.statistics[row, at]) for at in Statistic if known & 1 << at}


def _computed(side: Tables, row: int) -> dict[int, float]:
    """In the order of ``Statistic``; empty without numbers."""
    array = values(side.table, row)
    if array is None or not array.size:
        return {}
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        found = {
            Statistic.MAX: wide.max(),
            Statistic.MIN: wide.min(),
            Statistic.MEAN: wide.mean(),
            Statistic.NORM: np.sqrt((wide**2).sum()),
        }
    return {int(at): float(np.float32(number)) for at, number in found.items()}


def _root_mean_square(found: dict[int, float], shape: tuple[int, ...] | None) -> float:
    norm = abs(found.get(Statistic.NORM, 0.0))
    return norm / math.sqrt(max(1, math.prod(shape or ())))


def _rounding(found: Iterable[float]) -> float:
    """Half a step of the coarsest type that holds all of the numbers, relative to them; 0 where that is no coarse one."""
    bits = np.array(list(found), np.float32).view(np.uint32)
    return next((step for empty, step in COARSE if not (bits & ((1 << empty) - 1)).any()), 0.0)


def _same(a: float, b: float, allowed: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= allowed
