"""A training pass over prompt and response against the engine's prefill of the prompt: the rows of the prompt are comparable.

Under causal attention a row depends on itself and the rows before it. Where the ids of an inference pass are those with which the sequences
of a longer training pass begin, its rows are the first of each sequence there. The ids themselves must be there, as tensors: fingerprints
cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.pairs import Pairs
from compare.engine.errors import DumpError
from compare.engine.measure.elements.padding import Padding, Rows
from compare.engine.model import Int64
from compare.engine.tensors import HeldTensors

Ids = NDArray[Any]
FIRST_ROWS = "first_rows"
MOST_IDS = 1 << 24


def with_first_rows(padding: Padding, pairs: Pairs, sides: Sides, nodes: Nodes, held: tuple[HeldTensors, HeldTensors]) -> Padding:
    """The same with the first rows of training passes that are longer than the inference passes they stand against."""
    if sides.passes is None:
        return padding
    train = sides.passes.train
    found = dict(padding.sides[train])
    tokens, positions = (_by_call(pairs, nodes, name) for name in ("tokens", "positions"))
    for call, pair in tokens.items():
        if any(call in rows for rows in padding.sides):
            continue
        ids = [_read(pairs, pair, side, sides, held) for side in (0, 1)]
        longer, shorter = ids[train], ids[1 - train]
        if longer is None or shorter is None or sum(map(np.size, longer)) <= sum(map(np.size, shorter)):
            continue
        counted = [_read(pairs, positions[call], side, sides, held) if call in positions else None for side in (0, 1)]
        chosen = first_rows(_sequences(longer, counted[train]), _sequences(shorter, counted[1 - train]))
        if chosen is not None:
            found[call] = Rows(chosen, sum(map(np.size, longer)), FIRST_ROWS)
    whole = (found, padding.sides[1]) if train == 0 else (padding.sides[0], found)
    return replace(padding, sides=whole)


def first_rows(longer: Sequence[Ids], shorter: Sequence[Ids]) -> Int64 | None:
    """The rows of the longer side's sequences, one below the other, that hold those of the shorter side, in its order; None where one of
    these is not the beginning of a sequence of its own."""
    begins = np.cumsum([0, *map(len, longer)])
    free = list(range(len(longer)))
    found = []
    for ids in shorter:
        at = next((at for at in free if len(longer[at]) >= len(ids) and np.array_equal(longer[at][: len(ids)], ids)), None)
        if at is None:
            return None
        free.remove(at)
        found.append(np.arange(begins[at], begins[at] + len(ids)))
    return np.concatenate(found) if found else None


def _sequences(ids: Sequence[Ids], positions: Sequence[Ids] | None) -> list[Ids]:
    """The rows of a batch; of packed ids what lies between two places at which the positions begin anew."""
    if len(ids) == 1 and ids[0].ndim == 2 and ids[0].shape[0] > 1:
        return list(ids[0])
    flat = np.concatenate([one.reshape(-1) for one in ids])
    if positions is None:
        return [flat]
    count = np.concatenate([one.reshape(-1) for one in positions])
    if len(count) != len(flat):
        return [flat]
    return np.split(flat, np.flatnonzero(np.diff(count.astype(np.int64)) != 1) + 1)


def _by_call(pairs: Pairs, nodes: Nodes, quantity: str) -> dict[int, int]:
    """Call → the first pair of a quantity."""
    if quantity not in pairs.quantity_names:
        return {}
    rows = np.flatnonzero(pairs.quantity == pairs.quantity_names.index(quantity))
    return {call: row for row, call in reversed(list(zip(rows.tolist(), nodes.call[pairs.node[rows]].tolist(), strict=True)))}


def _read(pairs: Pairs, pair: int, side: int, sides: Sides, held: tuple[HeldTensors, HeldTensors]) -> list[Ids] | None:
    """The integers of one end of a pair; None where a file is missing or cannot be read, or there are too many."""
    dump = sides.dumps[side]
    slots = pairs.slots[side][pair]
    if (dump.slots.file[slots] < 0).any() or int(dump.slots.elements[slots].sum()) > MOST_IDS:
        return None
    try:
        return [held[side].open(dump.tensors, int(dump.slots.file[slot]), dump.data_name(slot) or "").array() for slot in slots.tolist()]
    except DumpError:
        return None
