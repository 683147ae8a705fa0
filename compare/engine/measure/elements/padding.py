"""Rows of a padded batch that hold tokens, by the attention mask that was dumped with it."""

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


@dataclass(frozen=True, slots=True)
class Padding:
    """For each side, call → (the rows that hold tokens, how many rows there are with the padding). Without padding a call is not in it."""

    sides: tuple[Mapping[int, tuple[Int64, int]], Mapping[int, tuple[Int64, int]]]

    @property
    def known(self) -> bool:
        return any(self.sides)

    def rows(self, side: int, call: int) -> tuple[Int64 | None, int]:
        return self.sides[side].get(call, (None, 0))


def padding_of(sides: Sides, nodes: Nodes, held: tuple[HeldTensors, HeldTensors]) -> Padding:
    """Two-dimensional masks [batch, tokens] of integers or booleans, 0 where there is no token. A mask that cannot be read tells
    nothing."""
    left, right = (_of_side(dump, nodes, side, held[side]) for side, dump in enumerate(sides.dumps))
    return Padding((left, right))


def _of_side(dump: Dump, nodes: Nodes, side: int, held: HeldTensors) -> dict[int, tuple[Int64, int]]:
    named = np.array([name.rpartition(".")[2] in MASKS for name in dump.slot_names] or [False])
    flat = np.array([len(shape) == 2 for shape in dump.shapes] or [False])
    whole = np.array([not is_floating(dtype) for dtype in dump.dtypes] or [False])
    slots = dump.slots
    usable = named[slots.name] & (slots.leaf == Leaf.TENSOR) & (slots.file >= 0) & flat[slots.shape] & whole[slots.dtype]
    found: dict[int, tuple[Int64, int]] = {}
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
            found[call] = (chosen, mask.size)
    return found
