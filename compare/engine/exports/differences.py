"""msprobe's columns of differences between statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.exports.cells import MISSING, Cells


def differences(values: Sequence[NDArray[np.float64]], text: Sequence[Sequence[Cells]]) -> list[Cells]:
    """Eight columns: left − right, and |left − right| / |right| in percent, for Max, Min, Mean, Norm."""
    left, right = values
    with np.errstate(all="ignore"):
        difference = left - right
        relative = np.abs(difference / right) * 100
    first: list[Cells] = []
    second: list[Cells] = []
    for place in range(4):
        signed: Cells = difference[:, place].tolist()
        percent: Cells = [f"{value!r}%" for value in relative[:, place].tolist()]
        equal = left[:, place] == right[:, place]
        for row in np.flatnonzero(equal).tolist():
            signed[row] = percent[row] = 0
        # Whatever is no plain number on both sides is decided one by one; there is little of it.
        plain = np.isfinite(left[:, place]) & np.isfinite(right[:, place]) & (right[:, place] != 0)
        for row in np.flatnonzero(~plain & ~equal).tolist():
            signed[row], percent[row] = _unusual(
                text[0][place][row], text[1][place][row], float(left[row, place]), float(right[row, place])
            )
        whole = (
            plain
            & ~equal
            & np.array([isinstance(a, int) and isinstance(b, int) for a, b in zip(text[0][place], text[1][place], strict=True)])
        )
        for row in np.flatnonzero(whole).tolist():
            signed[row] = int(signed[row])
        first.append(signed)
        second.append(percent)
    return [*first, *second]


def _unusual(left: Any, right: Any, a: float, b: float) -> tuple[Any, Any]:
    if MISSING in (left, right) or "None" in (left, right):
        return (0, 0) if left == right == "None" else (MISSING, MISSING)
    if not isinstance(left, str) and not isinstance(right, str):  # the right one is zero
        return a - b, " inf"
    if "nan" in (left, right):
        return "Nan", "Nan"
    if math.isnan(a) or math.isnan(b) or not (math.isinf(a) or math.isinf(b)):  # words
        return (0, 0) if left == right else ("Diff", "Diff")
    word = " inf" if a - b > 0 else " -inf"
    return word, word
