"""The cells of a column of the pair table: text, int or float; numbers that are none are written as msprobe writes them."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Cells: TypeAlias = list[Any]  # one column of a chunk

MISSING = "N/A"


def shown(values: NDArray[np.float64], whole: NDArray[np.bool_], present: NDArray[np.bool_]) -> Cells:
    """Whole numbers of integer tensors (``whole``) without a point, "None" where no statistic was written."""
    cells: Cells = values.tolist()
    finite = np.isfinite(values)
    for row in np.flatnonzero(finite & whole & present & (values == np.floor(values))).tolist():
        cells[row] = int(cells[row])
    for row in np.flatnonzero(~finite & present).tolist():
        cells[row] = odd(cells[row])
    for row in np.flatnonzero(~present).tolist():
        cells[row] = "None"
    return cells


def odd(value: float) -> str:
    """How msprobe writes what is no number; the space keeps a spreadsheet from reading −inf as a formula."""
    return "nan" if math.isnan(value) else " inf" if value > 0 else " -inf"


def numbers(values: NDArray[Any], there: NDArray[np.bool_]) -> Cells:
    """'' where there is none."""
    cells: Cells = values.astype(np.float64).tolist()
    for row in np.flatnonzero(~there | ~np.isfinite(values)).tolist():
        cells[row] = "" if not there[row] or math.isnan(cells[row]) else odd(cells[row])
    return cells


def at(column: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """The column at each index; whatever where the index is -1."""
    if not len(column):
        return np.zeros(len(index), column.dtype)
    return np.asarray(column[np.where(index >= 0, index, 0)])
