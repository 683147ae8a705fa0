"""msprobe's columns of a comparison of real tensors, in its order and with its words for what has no number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compare.engine.exports.finished import Table
from compare.engine.measure.elements.table import State
from compare.engine.model import Dump, Int64

TENSORS = ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio")
DATA_NAME = "Data_name"
UNSUPPORTED, SHAPE, MISPLACED, NAN = "unsupported", "shape unmatched", "N/A", "Nan"
NO_NAME = "N/A"


def has_tensors(pairs: Table) -> bool:
    return bool(pairs.meta.get("tensors"))


def tensor_columns(pairs: Table, pair: Int64) -> list[list[Any]]:
    """One column for each of TENSORS; ``pair`` is -1 for a slot without partner."""
    count = len(pair)
    cells: list[list[Any]] = [[UNSUPPORTED] * count for _ in TENSORS]
    if not has_tensors(pairs) or not len(pairs.array("tensor_row")):
        return cells
    there = pair >= 0
    at = np.where(there, pair, 0)
    row = np.where(there, pairs.array("tensor_row")[at], -1)
    for place in np.flatnonzero(there & (pairs.array("tensor_state")[at] == State.UNLIKE)).tolist():
        for column in cells:
            column[place] = SHAPE
    elements, misplaced, within = (pairs.array(f"tensor.{name}") for name in ("count", "misplaced", "within"))
    plain = [pairs.array(f"tensor.{name}") for name in ("cosine", "euclidean", "largest", "largest_relative")]
    for place in np.flatnonzero(row >= 0).tolist():
        one = int(row[place])
        numbers = [float(column[one]) for column in plain] + [float(share) for share in within[one]]
        words: list[Any] = [MISPLACED] * len(TENSORS) if misplaced[one] else [NAN if math.isnan(value) else value for value in numbers]
        if elements[one] == 1 and not misplaced[one]:
            words[0] = UNSUPPORTED
        for column, word in zip(cells, words, strict=True):
            column[place] = word
    return cells


def data_names(dumps: Sequence[Dump], first: Sequence[Int64]) -> list[str]:
    """The names of both sides' tensor files as msprobe prints them: a list of two; ``first`` are the slots, -1 where there is none."""
    found = []
    for pair in zip(*(slots.tolist() for slots in first), strict=True):
        names = [(dump.data_name(slot) if slot >= 0 else None) or NO_NAME for dump, slot in zip(dumps, pair, strict=True)]
        found.append(str(names))
    return found
