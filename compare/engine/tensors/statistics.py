"""Max, Min, Mean and Norm of a tensor, streamed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from compare.engine.tensors.file import TensorFile

CHUNK = 1 << 15
"""Elements of a chunk: float64 of this many stay in the processor's cache."""


class Statistics(NamedTuple):
    """As in dump.json, in the order of its columns, but in float64 and not rounded to the tensor's own type.

    One NaN makes all four NaN. An empty tensor has NaN for all four. bool counts as 0 and 1; of complex numbers it is the absolute values;
    the norm of a tensor without dimensions is its absolute value.
    """

    max: float
    min: float
    mean: float
    norm: float


def statistics(tensor: TensorFile) -> Statistics:
    """One pass over the file, in the memory of one chunk and a few numbers each. Sums are pairwise within a chunk, exact between chunks."""
    if not tensor.description.size:
        return Statistics(math.nan, math.nan, math.nan, math.nan)
    highs: list[float] = []
    lows: list[float] = []
    sums: list[float] = []
    squares: list[float] = []
    scratch = np.empty(CHUNK, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in tensor.chunks(CHUNK):
            numbers = np.abs(chunk) if chunk.dtype.kind == "c" else chunk
            highs.append(float(numbers.max()))
            lows.append(float(numbers.min()))
            sums.append(float(numbers.sum()))
            squares.append(float(np.square(numbers, out=scratch[: numbers.size]).sum()))
        high, low = float(np.max(highs)), float(np.min(lows))
        return Statistics(high, low, _sum(sums) / tensor.description.size, math.sqrt(_sum(squares)))


def _sum(parts: list[float]) -> float:
    return math.fsum(parts) if np.isfinite(parts).all() else float(np.sum(parts))
