"""Copies of one tensor on several ranks, held against each other bit by bit: statistics may agree where elements do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compare.engine.align.nodes import Sides
from compare.engine.align.pairs import Pairs, Relation
from compare.engine.align.shards import shards_of
from compare.engine.errors import DumpError
from compare.engine.measure.elements.compare import compared
from compare.engine.measure.elements.layout import Side, best, layouts
from compare.engine.model import Bool, Dump
from compare.engine.tensors import HeldTensors


def copies_apart(pairs: Pairs, sides: Sides, held: tuple[HeldTensors, HeldTensors]) -> Bool:
    """[pairs]: of those that are copies on the ranks of a side, the ones whose copies are not all the same. A file that cannot be read
    says nothing."""
    apart = np.zeros(len(pairs), bool)
    replicated = np.flatnonzero(pairs.relation == Relation.REPLICATED).tolist()
    for side, (dump, places) in enumerate(zip(sides.dumps, sides.places, strict=True)):
        if not replicated or not places.spread:
            continue
        twins = shards_of(dump, places).twins
        known: dict[tuple[int, ...], bool] = {}
        for pair in replicated:
            for slot in pairs.slots[side][pair].tolist():
                copies = tuple(twins[slot].tolist())
                if len(copies) > 1 and copies not in known:
                    known[copies] = _unlike(dump, copies, held[side])
                apart[pair] |= known.get(copies, False)
    return apart


def _unlike(dump: Dump, copies: Sequence[int], held: HeldTensors) -> bool:
    files = [int(dump.slots.file[slot]) for slot in copies]
    if min(files) < 0:
        return False
    try:
        first, *others = [Side([[held.open(dump.tensors, file, dump.data_name(s) or "")]]) for file, s in zip(files, copies, strict=True)]
    except DumpError:
        return False
    for other in others:
        layout = best(layouts(first, other))
        if layout is not None:
            found = compared(layout)
            if found.identical < found.count:
                return True
    return False
