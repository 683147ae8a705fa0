"""Two tables of numbers, compared element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.model import KeyData

Array = NDArray[Any]
TIGHT, LOOSE = 1e-3, 1e-2


@dataclass(frozen=True, slots=True)
class Numbers:
    """The columns of msprobe's SingleComparator, with NaN = NaN and equal infinities counted as equal.

    ``same``, ``within_tight``, ``within_loose`` count elements of ``compared``. ``first_mismatch`` is a row-major index into what was
    compared, None where all is the same. ``max_abs`` = max |a − b| and ``max_rel`` = max |a − b| / max(|a|, |b|) are over the places where
    neither side is NaN (Inf against anything else: Inf), 0 where there are none. ``nan``: left, right, both at the same place; ``inf``:
    left, right.
    """

    compared: int
    same: int
    first_mismatch: int | None
    max_abs: float
    max_rel: float
    within_tight: int
    within_loose: int
    nan: tuple[int, int, int]
    inf: tuple[int, int]


def values(table: KeyData, row: int) -> Array | None:
    """The numbers of a row, [*shape], read-only; None where there is no .npy."""
    start = int(table.start[row])
    if start < 0:
        return None
    dtype = np.dtype(table.dtypes[table.dtype[row]])
    shape = table.shapes[table.shape[row]]
    size = math.prod(shape) * dtype.itemsize
    array: Array = np.asarray(table.data[start : start + size]).view(dtype).reshape(shape)
    return array


def overlap(left: Array, right: Array) -> tuple[Array, Array]:
    """The part both have: along every axis from the beginning, or of the flattened numbers where one has more axes."""
    if left.shape == right.shape:
        return left, right
    if left.ndim == right.ndim:
        both = tuple(slice(0, min(a, b)) for a, b in zip(left.shape, right.shape, strict=True))
        return left[both], right[both]
    size = min(left.size, right.size)
    return left.reshape(-1)[:size], right.reshape(-1)[:size]


def measure(left: Array, right: Array) -> Numbers:
    """Compares two arrays of one shape; differences are taken in their common dtype, float32 at least, as SingleComparator does."""
    a, b = left.reshape(-1), right.reshape(-1)
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return _same(a)
    return _measured(a, b)


def _same(a: Array) -> Numbers:
    """Of equal bytes."""
    nan = inf = 0
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        nan, inf = int(np.isnan(a).sum()), int(np.isinf(a).sum())
    return Numbers(a.size, a.size, None, 0.0, 0.0, a.size, a.size, (nan, nan, nan), (inf, inf))


@np.errstate(all="ignore")  # Inf − Inf and zero denominators are decided below
def _measured(a: Array, b: Array) -> Numbers:
    wide = np.result_type(a.dtype, b.dtype, np.float32) if "f" in (a.dtype.kind, b.dtype.kind) else np.dtype(np.float64)
    x, y = a.astype(wide, copy=False), b.astype(wide, copy=False)
    nan_x, nan_y = np.isnan(x), np.isnan(y)
    same = (a == b) | (nan_x & nan_y)
    difference = np.where(same, wide.type(0), np.abs(x - y))
    larger = np.maximum(np.abs(x), np.abs(y))
    relative = np.where(np.isinf(difference), wide.type(np.inf), difference / larger)
    relative[difference == 0] = 0
    finite = np.isfinite(difference)
    return Numbers(
        compared=a.size,
        same=int(same.sum()),
        first_mismatch=None if same.all() else int(same.argmin()),
        max_abs=_largest(difference),
        max_rel=_largest(relative),
        within_tight=int((same | (finite & (difference <= TIGHT * larger))).sum()),
        within_loose=int((same | (finite & (difference <= LOOSE * larger))).sum()),
        nan=(int(nan_x.sum()), int(nan_y.sum()), int((nan_x & nan_y).sum())),
        inf=(int(np.isinf(x).sum()), int(np.isinf(y).sum())),
    )


def _largest(array: Array) -> float:
    return float(array[~np.isnan(array)].max(initial=0))
