"""Tensors that are spread over ranks: which slots of a side's ranks are the same slot, and whether together they are shards or copies.

Sizes decide: where the other side's tensor is as large as all ranks' together they are shards laid side by side (column-parallel outputs,
weights, sequence-parallel rows); where it is as large as one rank's they are copies, and the first speaks for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.engine.align.lists import Lists
from compare.engine.align.places import Places
from compare.engine.model import Bool, Dump, Int32, Int64, RecordKind


@dataclass(frozen=True, slots=True)
class Shards:
    """``leader`` marks the slot that stands for its like on all ranks; ``twins`` lists, for each leader, the slots of all ranks, itself
    first.
    """

    leader: Bool
    twins: Lists


def same_calls(dump: Dump, places: Places) -> Int64:
    """A number a record, equal for the same call of the same module on several ranks. API calls are not matched across ranks."""
    kind = np.where(dump.records.kind == RecordKind.PARAMETERS_GRAD, 2, dump.records.direction)
    api = np.where(dump.records.kind == RecordKind.API, np.arange(len(dump.records)), -1)
    call = np.stack([places.path, kind, places.call, places.recompute, api], axis=1)
    _, same = np.unique(call, axis=0, return_inverse=True)
    return same.reshape(-1).astype(np.int64)


def shards_of(dump: Dump, places: Places) -> Shards:
    """Slots of the same name in the same call of the same module, one a rank."""
    count = len(dump.slots)
    if not places.rank.any():
        return Shards(np.ones(count, bool), Lists(np.arange(count + 1), np.arange(count, dtype=np.int32)))
    key = same_calls(dump, places)[dump.slots.record] * max(len(dump.slot_names), 1) + dump.slots.name
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    leader = np.zeros(len(key), bool)
    leader[first] = True
    owner = first[group.reshape(-1)]
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], np.arange(len(key) + 1))
    return Shards(leader, Lists(start.astype(np.int64), order.astype(np.int32)))


def over_ranks(
    lists: tuple[Lists, Lists], dumps: tuple[Dump, Dump], shards: tuple[Shards, Shards]
) -> tuple[tuple[Lists, Lists], Bool, Bool]:
    """Lists of leaders → lists of the slots that make up each end of a pair; and which pairs are made of shards, which of copies.

    Of the ways in which the two ends can be equally large the one with the fewest shards is taken; where there is none, the leaders stay.
    """
    every = tuple(_expanded(one, shard.twins) for one, shard in zip(lists, shards, strict=True))
    one_size, all_size = (tuple(_elements(one, dump) for one, dump in zip(kind, dumps, strict=True)) for kind in (lists, every))
    spread = tuple(all_size[side] != one_size[side] for side in (0, 1))
    use = [np.zeros(len(one_size[0]), bool), np.zeros(len(one_size[0]), bool)]
    settled = one_size[0] == one_size[1]
    for left, right in ((True, False), (False, True), (True, True)):
        sizes = (all_size[0] if left else one_size[0], all_size[1] if right else one_size[1])
        fits = ~settled & (sizes[0] == sizes[1])
        use[0] |= fits & left
        use[1] |= fits & right
        settled |= fits
    sharded = (use[0] & spread[0]) | (use[1] & spread[1])
    copied = ~sharded & (spread[0] | spread[1]) & (one_size[0] == one_size[1])
    return (_chosen(lists[0], every[0], use[0]), _chosen(lists[1], every[1], use[1])), sharded, copied


def copies_disagree(dump: Dump, lists: Lists, shards: Shards, copied: Bool) -> Int32:
    """Pairs (of those that are ``copied``) whose ranks hold copies with other statistics."""
    found = []
    for pair in np.flatnonzero(copied).tolist():
        for slot in lists[pair].tolist():
            values = dump.slots.statistics[shards.twins[slot]]
            if len(values) > 1 and not ((values == values[0]) | np.isnan(values)).all():
                found.append(pair)
                break
    return np.array(found, np.int32)


def _elements(lists: Lists, dump: Dump) -> Int64:
    return np.add.reduceat(dump.slots.elements[lists.values], lists.start[:-1]) if len(lists.start) > 1 else np.zeros(0, np.int64)


def _expanded(lists: Lists, twins: Lists) -> Lists:
    """Every leader replaced by the slots of all ranks; parts of a fused tensor stay together."""
    counts = twins.counts()[lists.values]
    source = np.repeat(twins.start[:-1][lists.values] - np.r_[0, np.cumsum(counts)[:-1]], counts) + np.arange(counts.sum())
    ends = np.r_[0, np.cumsum(counts)][lists.start]
    return Lists(ends.astype(np.int64), twins.values[source])


def _chosen(one: Lists, every: Lists, use: Bool) -> Lists:
    counts = np.where(use, every.counts(), one.counts())
    start = np.r_[0, np.cumsum(counts)].astype(np.int64)
    values = np.empty(start[-1], np.int32)
    row = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(start[-1]) - start[row]
    from_every = use[row]
    values[from_every] = every.values[(every.start[:-1][row] + within)[from_every]]
    values[~from_every] = one.values[(one.start[:-1][row] + within)[~from_every]]
    return Lists(start, values)
