"""Rows of a tensor that the other side has too: those of a padded batch that hold tokens, by the attention mask that was dumped with it;
those of a longer pass that were fed the same tokens first (``first_rows``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.quantities import is_floating
from compare.engine.errors import DumpError
from compare.engine.model import Dump, Int64, Leaf
from compare.engine.tensors import HeldTensors

MASKS = ("attention_mask", "padding_mask")
LARGEST_MASK = 1 << 24  # elements
UNPADDED = "unpadded"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that are compared, of how many. ``layout`` names why: unpadded, first_rows."""

    chosen: Int64
    of: int
    layout: str


@dataclass(frozen=True, slots=True)
class Padding:
    """For each side, call → the rows that are compared. A call of which that is all rows is not in it."""

    sides: tuple[Mapping[int, Rows], Mapping[int, Rows]]

    @property
    def known(self) -> bool:
        return any(self.sides)

    def rows(self, side: int, call: int) -> Rows | None:
        return self.sides[side].get(call)


def padding_of(sides: Sides, nodes: Nodes, held: tuple[HeldTensors, HeldTensors]) -> Padding:
    """Two-dimensional masks [batch, tokens] of integers or booleans, 0 where there is no token. A mask that cannot be read tells
    nothing."""
    left, right = (_of_side(dump, nodes, side, held[side]) for side, dump in enumerate(sides.dumps))
    return Padding((left, right))


def _of_side(dump: Dump, nodes: Nodes, side: int, held: HeldTensors) -> dict[int, Rows]:
    named = np.array([name.rpartition(".")[2] in MASKS for name in dump.slot_names] or [False])
    flat = np.array([len(shape) == 2 for shape in dump.shapes] or [False])
    whole = np.array([not is_floating(dtype) for dtype in dump.dtypes] or [False])
    slots = dump.slots
    usable = named[slots.name] & (slots.leaf == Leaf.TENSOR) & (slots.file >= 0) & flat[slots.shape] & whole[slots.dtype]
    found: dict[int, Rows] = {}
    for slot in np.flatnonzero(usable & (slots.elements <= LARGEST_MASK)).tolist():
        call = int(nodes.call[nodes.node_of[side][slots.record[slot]]])
        if call in found:
            continue
        try:
            mask = held.open(dump.tensors, int(slots.file[slot]), dump.data_name(slot) or "").array()
        except DumpError:
            continue
        chosen = np.flatnonzero(mask.reshape(-1))
        if 0 < len(chosen) < mask.size:
            found[call] = Rows(chosen, mask.size, UNPADDED)
    return found
