"""How a series of sizes moves over the steps, by rules that a single step cannot turn: growing, in two levels, standing out here and there.

Growth is what Mann and Kendall's test calls a trend and Theil and Sen's line makes large: the test asks how many pairs of steps are in
rising order (H. B. Mann, Econometrica 13, 1945; M. G. Kendall, Rank Correlation Methods, 1970: variance with ties, continuity
correction), the line has the median slope of all pairs (P. K. Sen, J. Am. Stat. Assoc. 63, 1968). Neither assumes how the sizes scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_FOR_A_TEST = 4  # with three steps no order of them is rare: one in six rises throughout
SURE = 1.645  # standard normal: 5 %, one-sided
GROWTH = 0.5  # of the line, from its beginning to its end: what grows by less does not explain a curve that runs away
JUMP = 3.0  # least after a step over most before it
SPIKE = 10.0  # least of the steps that stand out over most of the others
MOST_STEPS = 600  # of a longer series every second, third, … counts: the pairs are as many as the square


def grows(steps: Sequence[int], sizes: Sequence[float]) -> bool:
    """Whether finite sizes >= 0 grow. Of three steps: whether each is larger than the one before. Of fewer nothing can be said: False."""
    if len(sizes) < LEAST_FOR_A_TEST:
        rising = len(sizes) == LEAST_FOR_A_TEST - 1 and bool((np.diff(sizes) > 0).all())
        return rising and growth(steps, sizes) >= GROWTH
    return rising_order(sizes) >= SURE and growth(steps, sizes) >= GROWTH


def rising_order(sizes: Sequence[float]) -> float:
    """Mann and Kendall's z: how far the pairs in rising order outnumber those in falling order, in standard deviations of chance."""
    y = _thinned(sizes)
    n = len(y)
    score = float(np.sign(y[None, :] - y[:, None])[np.triu_indices(n, 1)].sum())
    _, ties = np.unique(y, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return 0.0 if variance <= 0 or score == 0 else (score - math.copysign(1, score)) / math.sqrt(variance)


def growth(steps: Sequence[int], sizes: Sequence[float]) -> float:
    """By what share of its beginning Theil and Sen's line grows up to the last step; Inf where it begins at 0 or below."""
    x, y = _thinned(steps), _thinned(sizes)
    slope = _slope(x, y)
    begin = float(np.median(y - slope * (x - x[0])))
    rise = slope * float(x[-1] - x[0])
    return rise / begin if begin > 0 else math.inf if rise > 0 else 0.0


def level_change(sizes: Sequence[float]) -> int | None:
    """Position from which sizes > 0 are on a higher level for good; None where there is no such step, or a steady rise fits as well."""
    y = np.asarray(sizes, np.float64)
    if len(y) < 2 or not (y > 0).all():
        return None
    before, after = np.maximum.accumulate(y)[:-1], np.minimum.accumulate(y[::-1])[::-1][1:]
    at = int(np.argmax(after / before)) + 1
    if after[at - 1] < JUMP * before[at - 1]:
        return None
    logs = np.log(y)
    levels = np.concatenate([logs[:at] - np.median(logs[:at]), logs[at:] - np.median(logs[at:])])
    return at if float(np.abs(levels).sum()) < _misfit(logs) else None


def _misfit(y: Floats) -> float:
    """How far a series is from Theil and Sen's line, in sum."""
    x = np.arange(len(y), dtype=np.float64)
    slope = _slope(_thinned(x), _thinned(y))
    return float(np.abs(y - slope * x - np.median(y - slope * x)).sum())


def standing_out(sizes: Sequence[float]) -> list[int]:
    """Positions of the few sizes that are far above all others, the last not among them; empty where there are none."""
    order = np.argsort(np.asarray(sizes, np.float64), kind="stable")
    y = np.asarray(sizes, np.float64)[order]
    for few in range(1, (len(y) - 1) // 2 + 1):
        if y[-few - 1] > 0 and y[-few] >= SPIKE * y[-few - 1]:
            found = sorted(order[-few:].tolist())
            return [] if len(y) - 1 in found else found
    return []


def _slope(x: Floats, y: Floats) -> float:
    first, second = np.triu_indices(len(x), 1)
    return float(np.median((y[second] - y[first]) / (x[second] - x[first]))) if len(first) else 0.0


def _thinned(series: Sequence[float] | Floats) -> Floats:
    return np.asarray(series, np.float64)[:: max(1, -(-len(series) // MOST_STEPS))]
