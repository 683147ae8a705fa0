"""The order in which nodes are shown and told: execution order of the primary side, with what only the other side has after its nearest
earlier neighbour.
"""

from __future__ import annotations

import numpy as np

from compare.engine.diagnose.case import Case
from compare.engine.model import Float64, Int32


def node_order(case: Case) -> Float64:
    """A sortable key a node: the last record of the primary side, or for others that of the matched record before them, and a half."""
    primary, other = case.primary, 1 - case.primary
    key = np.full(len(case.nodes), -1.0)
    mine = case.nodes.node_of[primary]
    np.maximum.at(key, mine, case.sides.places[primary].order.astype(np.float64))
    theirs: Int32 = case.nodes.node_of[other]
    has_primary = key[theirs] >= 0
    before = np.maximum.accumulate(np.where(has_primary, np.arange(len(theirs)), -1)) if len(theirs) else theirs
    alone = np.flatnonzero(~has_primary)
    if len(alone):
        neighbour = np.where(before[alone] >= 0, key[theirs[np.maximum(before[alone], 0)]], -1.0)
        fraction = 0.5 + alone / (4.0 * max(len(theirs), 1))
        for node, value in zip(theirs[alone].tolist(), (neighbour + fraction).tolist(), strict=True):
            key[node] = max(key[node], value)
    return key
