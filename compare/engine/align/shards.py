"""Tensors that are spread over ranks: which slots of a side's ranks are the same slot, and whether together they are shards or copies.
And tensors of a pass that was run in pieces (a prefill in chunks), whose rows follow on each other.

Sizes decide: where the other side's tensor is as large as all ranks' together they are shards laid side by side (column-parallel outputs,
weights, sequence-parallel rows); where it is as large as one rank's they are copies, and the first speaks for all. Where it lies between
the two, shards overlap (key and value heads that several ranks hold, rows that pad a vocabulary): Max and Min still hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.engine.align.lists import Lists
from compare.engine.align.places import Places
from compare.engine.model import Bool, Dump, Float64, Group, Int64, Leaf, RecordKind


@dataclass(frozen=True, slots=True)
class Shards:
    """``leader`` marks the slot that stands for its like on all ranks and in all pieces; ``twins`` lists, for the first rank's slot of each
    piece, the slots of all ranks, itself first; ``pieces`` lists, for each leader, those of all pieces, itself first (None: a whole pass).
    """

    leader: Bool
    twins: Lists
    pieces: Lists | None = None


def same_calls(dump: Dump, places: Places) -> Int64:
    """A number a record, equal for the same call of the same module on several ranks and in several pieces; API calls are not matched."""
    kind = np.where(dump.records.kind == RecordKind.PARAMETERS_GRAD, 2, dump.records.direction)
    api = np.where(dump.records.kind == RecordKind.API, np.arange(len(dump.records)), -1)
    call = np.stack([places.path, kind, places.call, places.recompute, api], axis=1)
    _, same = np.unique(call, axis=0, return_inverse=True)
    return same.reshape(-1).astype(np.int64)


def shards_of(dump: Dump, places: Places) -> Shards:
    """Slots of the same name in the same call of the same module, one a rank and piece."""
    count = len(dump.slots)
    if not places.spread:
        return Shards(np.ones(count, bool), Lists(np.arange(count + 1), np.arange(count, dtype=np.int32)))
    key = same_calls(dump, places)[dump.slots.record] * max(len(dump.slot_names), 1) + dump.slots.name
    if not places.piece.any():
        return Shards(*_alike(key, np.arange(count)))
    piece = places.piece[dump.slots.record]
    first, twins = _alike(key * (int(piece.max()) + 1) + piece, np.arange(count))
    rows = np.flatnonzero(first)
    leader, pieces = _alike(key, rows[np.argsort(piece[rows], kind="stable")])
    return Shards(leader, twins, pieces)


def _alike(key: Int64, rows: Int64) -> tuple[Bool, Lists]:
    """Of the rows that share a key: marks the first, and lists all of them under it, in the order of ``rows``."""
    _, first, group = np.unique(key[rows], return_index=True, return_inverse=True)
    leader = np.zeros(len(key), bool)
    leader[rows[first]] = True
    owner = rows[first][group.reshape(-1)]
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], np.arange(len(key) + 1))
    return leader, Lists(start.astype(np.int64), rows[order].astype(np.int32))


def in_pieces(lists: Lists, dump: Dump, shards: Shards) -> tuple[Lists, Bool]:
    """Lists of leaders → lists in which a tensor stands with its further pieces, one below the other; and which rows have such. Parameters
    and plain numbers are the same in every piece."""
    count = len(lists.start) - 1
    if shards.pieces is None or not count:
        return lists, np.zeros(count, bool)
    first = lists.values[lists.start[:-1]]
    tensors = (dump.slots.leaf[first] == Leaf.TENSOR) & (dump.slots.group[first] != Group.PARAMETERS)
    every = _expanded(lists, shards.pieces)
    further = tensors & (every.counts() > lists.counts())
    return _chosen(lists, every, further), further


def over_ranks(
    lists: tuple[Lists, Lists], dumps: tuple[Dump, Dump], shards: tuple[Shards, Shards], may_overlap: Bool
) -> tuple[tuple[Lists, Lists], Bool, Bool, Bool]:
    """Lists of leaders → lists of the slots that make up each end of a pair; and which pairs are made of shards, which of copies, which of
    shards that overlap (only of those that ``may_overlap``).

    Of the ways in which the two ends can be equally large the one with the fewest shards is taken; where there is none, the leaders stay.
    """
    every = tuple(_expanded(one, shard.twins) for one, shard in zip(lists, shards, strict=True))
    one_size, all_size = (tuple(elements_of(one, dump) for one, dump in zip(kind, dumps, strict=True)) for kind in (lists, every))
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
    # One rank's share may be as large on both sides because both sides are cut the same way: then the ranks hold other numbers on both.
    unlike = [_unlike(one, dump, shard) for one, dump, shard in zip(lists, dumps, shards, strict=True)]
    cut = copied & spread[0] & spread[1] & unlike[0] & unlike[1]
    alike = cut & (all_size[0] == all_size[1])
    use[0] |= alike
    use[1] |= alike
    sharded |= alike
    copied &= ~alike
    smaller = np.minimum(*one_size)  # a rank holds less than there is, and all ranks together more
    overlapping = may_overlap & (~settled | (cut & ~alike)) & (spread[0] | spread[1]) & (smaller < np.minimum(*all_size))
    copied &= ~overlapping
    for side in (0, 1):
        use[side] |= overlapping & spread[side]
    return (_chosen(lists[0], every[0], use[0]), _chosen(lists[1], every[1], use[1])), sharded, copied, overlapping


def with_addends(
    lists: tuple[Lists, Lists],
    leaders: tuple[Lists, Lists],
    dumps: tuple[Dump, Dump],
    shards: tuple[Shards, Shards],
    partial: tuple[Bool, Bool],
) -> tuple[Lists, Lists]:
    """Lists in which the parts of a sum that a side's ranks hold (``partial``, by side) stand together. Only where both ends have all of
    their tensor files: statistics cannot be added.
    """
    if not any(rows.any() for rows in partial):
        return lists
    ends = [
        _chosen(lists[side], _expanded(leaders[side], shards[side].twins) if partial[side].any() else lists[side], partial[side])
        for side in (0, 1)
    ]
    there = np.logical_and(*(_with_files(end, dump) for end, dump in zip(ends, dumps, strict=True)))
    return _chosen(lists[0], ends[0], there & partial[0]), _chosen(lists[1], ends[1], there & partial[1])


def _with_files(lists: Lists, dump: Dump) -> Bool:
    """Rows all of whose slots have a tensor file."""
    found: Bool = np.logical_and.reduceat(dump.slots.file[lists.values] >= 0, lists.start[:-1])
    return found


def copies_disagree(dump: Dump, lists: Lists, shards: Shards, copied: Bool) -> Bool:
    """Pairs (of those that are ``copied``) whose ranks hold copies with other statistics."""
    found: Bool = copied & _unlike(lists, dump, shards)
    return found


def held_by_a_rank(dump: Dump, lists: Lists, shards: Shards, rows: Int64, others: Int64) -> Bool:
    """Rows whose first slot has on some rank all the statistics of the first slot of the row beside it in ``others``, of a side whose
    ranks differ there; NaN says nothing.
    """
    slots, wanted = lists.values[lists.start[rows]], lists.values[lists.start[others]]
    counts = shards.twins.counts()[slots]
    row = np.repeat(np.arange(len(rows)), counts)
    twins = shards.twins.values[shards.twins.start[slots][row] + np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)]
    known: Float64 = dump.slots.statistics[wanted][row]
    own: Float64 = dump.slots.statistics[slots][row]
    values: Float64 = dump.slots.statistics[twins]
    whole = _agree(values, known) & ~np.isnan(values).all(axis=1)
    held: Bool = np.isin(np.arange(len(rows)), row[whole]) & np.isin(np.arange(len(rows)), row[~_agree(values, own)])
    return held


def _agree(one: Float64, other: Float64) -> Bool:
    found: Bool = ((one == other) | np.isnan(one) | np.isnan(other)).all(axis=1)
    return found


def _unlike(lists: Lists, dump: Dump, shards: Shards) -> Bool:
    """Rows of which some slot has other statistics on another rank; NaN says nothing."""
    if len(lists.start) < 2:
        return np.zeros(0, bool)
    if (shards.twins.counts() <= 1).all():
        return np.zeros(len(lists.start) - 1, bool)
    owner = np.repeat(np.arange(len(shards.leader)), shards.twins.counts())
    values = dump.slots.statistics[shards.twins.values]
    other = (values != dump.slots.statistics[owner]) & ~np.isnan(values) & ~np.isnan(dump.slots.statistics[owner])
    unlike = np.zeros(len(shards.leader), bool)
    unlike[owner[other.any(axis=1)]] = True
    found: Bool = np.logical_or.reduceat(unlike[lists.values], lists.start[:-1])
    return found


def elements_of(lists: Lists, dump: Dump) -> Int64:
    """The number of elements of each row's slots together."""
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
