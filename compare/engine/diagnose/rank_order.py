"""Which of two places on different ranks comes first.

Ranks that hold the same layers run side by side, and a pair's number says when it ran. Stages of a pipeline run one after the other: what
comes first there is told by the call and the layer, however many pairs a rank has before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compare.engine.diagnose.case import Case
from compare.engine.model import Direction, Int64

When = tuple[int, ...]


def order_of(cases: Sequence[Case]) -> Callable[[int, int], When]:
    """(case, pair) → a key that sorts pairs of all cases by when they ran."""
    held = {tuple(np.unique(case.depth[case.depth >= 0]).tolist()) for case in cases}
    if len(held) < 2:
        return lambda _, pair: (pair,)
    known: dict[int, tuple[Int64, Int64, Int64]] = {}

    def key(index: int, pair: int) -> When:
        if index not in known:
            known[index] = _times(cases[index])
        call, direction, depth = known[index]
        return int(call[pair]), int(direction[pair]), int(depth[pair]), pair

    return key


def _times(case: Case) -> tuple[Int64, Int64, Int64]:
    """Call, direction and depth of each pair: twice its layer, falling on the way back. What is in no layer stands where it ran, after the
    layer before it; and what ran before the rank's first layer, just before that: another rank may have sent it.
    """
    node = case.pairs.node
    call, direction = case.nodes.call[node].astype(np.int64), case.nodes.direction[node].astype(np.int64)
    depth = np.empty(len(node), np.int64)
    for way in np.unique(np.column_stack([call, direction]), axis=0):
        rows = np.flatnonzero((call == way[0]) & (direction == way[1]))
        layer = case.depth[rows].astype(np.int64)
        inside = layer[layer >= 0]
        if way[1] == Direction.BACKWARD:
            before = -2 * int(inside.max(initial=0)) - 1
            depth[rows] = np.maximum.accumulate(np.where(layer >= 0, -2 * layer, before))
        else:
            before = 2 * int(inside.min(initial=np.iinfo(np.int32).max)) - 1
            depth[rows] = np.maximum.accumulate(np.where(layer >= 0, 2 * layer, before))
    return call, direction, depth
