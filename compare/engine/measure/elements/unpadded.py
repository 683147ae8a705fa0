"""The statistics of the rows that both sides have, computed from the tensors: those in dump.json count padding and later tokens in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.pairs import Pairs
from compare.engine.errors import DumpError
from compare.engine.measure.elements.ends import End
from compare.engine.measure.elements.layout import Side, unpadded_end
from compare.engine.measure.elements.metrics import BLOCK, WIDEST
from compare.engine.measure.elements.padding import Padding
from compare.engine.model import Float64
from compare.engine.tensors import HeldTensors


@dataclass(frozen=True, slots=True)
class Unpadded:
    """One end of a pair: Max, Min, Mean, Norm [4] of its ``elements`` that the other end has too."""

    pair: int
    side: int
    elements: int
    values: Float64


def unpadded_of(pairs: Pairs, sides: Sides, nodes: Nodes, held: tuple[HeldTensors, HeldTensors], padding: Padding) -> Iterator[Unpadded]:
    """For pairs whose ends differ in size by rows that one of them has more."""
    if not padding.known or not len(pairs):
        return
    sizes = [np.add.reduceat(d.slots.elements[lists.values], lists.start[:-1]) for d, lists in zip(sides.dumps, pairs.slots, strict=True)]
    for pair in np.flatnonzero(sizes[0] != sizes[1]).tolist():
        call = int(nodes.call[pairs.node[pair]])
        for side, dump in enumerate(sides.dumps):
            rows = padding.rows(side, call)
            slots = pairs.slots[side][pair].tolist()
            if rows is None or int(sizes[side][pair]) * len(rows.chosen) != int(sizes[1 - side][pair]) * rows.of:
                continue
            if any(dump.slots.file[slot] < 0 for slot in slots):
                continue
            try:
                tensors = [held[side].open(dump.tensors, int(dump.slots.file[slot]), dump.data_name(slot) or "") for slot in slots]
            except DumpError:
                continue
            if any(tensor.description.element.value.kind == "c" for tensor in tensors):
                continue
            end = unpadded_end(Side([[tensor] for tensor in tensors], rows))
            if end is not None:
                yield Unpadded(pair, side, int(sizes[1 - side][pair]), _statistics(end))


def _statistics(end: End) -> Float64:
    highs, lows, sums, squares = [], [], [], []
    rows, columns = end.shape
    height = max(1, BLOCK // max(min(columns, WIDEST), 1))
    for row in range(0, rows, height):
        for column in range(0, columns, WIDEST):
            block = end.block(row, min(height, rows - row), column, min(WIDEST, columns - column)).astype(np.float64)
            highs.append(float(block.max()))
            lows.append(float(block.min()))
            sums.append(float(block.sum()))
            squares.append(float(np.square(block).sum()))
    return np.array([np.max(highs), np.min(lows), sum(sums) / (rows * columns), math.sqrt(sum(squares))])
