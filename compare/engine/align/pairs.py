"""Which slots of both sides hold the same numbers, and why.

Where both sides run the same code, slots of a node pair by name. Otherwise they pair by quantity: what the vocabulary says a slot holds,
not how it is called. A partner may live in another module (the residual stream) or be several slots side by side (q, k, v).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compare.engine.align.canonical import entry_of, layer_of, naming
from compare.engine.align.conventions import conventions, decoder, fill, pattern_of
from compare.engine.align.lists import Lists
from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.places import Interner
from compare.engine.align.quantities import quantities_of
from compare.engine.align.relations import Block, Reason, Relation
from compare.engine.align.ruled import with_rules
from compare.engine.align.shards import (
    Shards,
    copies_disagree,
    elements_of,
    held_by_a_rank,
    in_pieces,
    over_ranks,
    shards_of,
    with_addends,
)
from compare.engine.model import Bool, Dump, Group, Int32, Int64, Leaf, RecordKind, UInt8

__all__ = ["Pairs", "Reason", "Relation", "pairs_of"]


ALL_STATISTICS, MAX_AND_MIN, ALL_BUT_MEAN, NO_STATISTIC = 0b1111, 0b0011, 0b1011, 0b0000


@dataclass(frozen=True, slots=True)
class Pairs:
    """One row a pair, in execution order of the primary side.

    ``slots`` lists the slots of each side; ``elsewhere`` has bit 1 (left) or 2 (right) where the partner lives in another module than the
    node. ``quantity`` indexes ``quantity_names`` (-1: none). ``group`` is INPUT where either side sees the tensor as the node's input.
    ``disagree``: ranks that should hold copies of one tensor hold others. ``usable``: the statistics that can be compared at all, a bit
    each as in ``SlotTable.present``: all of them, MAX_AND_MIN where shards overlap, ALL_BUT_MEAN where one side pads the vocabulary with
    rows of its own, or has merged an adapter into a weight (then they can only show that the rest is equal), none of partial sums that are
    still to be added up over ranks: their slots stand together only where there are tensors, which can be added.
    """

    node: Int32
    group: UInt8
    direction: UInt8
    relation: UInt8
    reason: UInt8
    elsewhere: UInt8
    quantity: Int32
    slots: tuple[Lists, Lists]
    disagree: Bool
    usable: UInt8
    quantity_names: Sequence[str]

    def __len__(self) -> int:
        return len(self.node)


def pairs_of(sides: Sides, nodes: Nodes, primary: int) -> Pairs:
    """``primary``: the side whose order of execution counts (0 left, 1 right)."""
    quantity_names = Interner()
    quantities = [quantities_of(d, p, sides.layers, sides.names, quantity_names) for d, p in zip(sides.dumps, sides.places, strict=True)]
    slot_node = [nodes.node_of[side][sides.dumps[side].slots.record] for side in (0, 1)]
    shards = (shards_of(sides.dumps[0], sides.places[0]), shards_of(sides.dumps[1], sides.places[1]))
    for side in (0, 1):
        quantities[side][~shards[side].leader] = -1
        quantities[side][sides.places[side].apart[sides.dumps[side].slots.record]] = -1
    blocks = [_by_name(sides, nodes, slot_node, quantities, shards)]
    if not sides.same_code:
        blocks += _by_quantity(sides, nodes, slot_node, quantities, quantity_names)
    if sides.rules.rules:
        blocks = with_rules(sides, nodes, slot_node, (shards[0].leader, shards[1].leader), blocks)
    return _ordered(sides, nodes, blocks, primary, quantity_names, shards)


def _by_name(sides: Sides, nodes: Nodes, slot_node: list[Int32], quantities: list[Int32], shards: tuple[Shards, Shards]) -> Block:
    """Slots of the same node with the same name. Across conventions only parameters, and modules that neither vocabulary describes."""
    names = Interner()
    keys, kept = [], []
    for side in (0, 1):
        dump = sides.dumps[side]
        shared = np.array([names(name) for name in dump.slot_names] or [0], np.int64)
        usable = (dump.slots.leaf != Leaf.PLACEHOLDER) & shards[side].leader
        if not sides.same_code:
            usable &= (dump.slots.group == Group.PARAMETERS) | (dump.slots.group == Group.PARAMETERS_GRAD) | _undescribed(sides, side)
            usable &= quantities[side] < 0
        rows = np.flatnonzero(usable)
        kept.append(rows)
        keys.append(slot_node[side][rows].astype(np.int64) * (1 << 24) + shared[dump.slots.name[rows]])
    both, lists = _grouped_by_common_key(keys, kept)
    first = [lists[side].values[lists[side].start[:-1]] if len(both) else np.zeros(0, np.int32) for side in (0, 1)]
    several = (lists[0].counts() > 1) | (lists[1].counts() > 1)
    relation = np.where(several, Relation.CONCAT, Relation.SAME).astype(np.uint8)
    by_name = Reason.SAME_SLOT if sides.same_code else Reason.SAME_NAME
    described = sides.dumps[0].slots.group[first[0]] >= Group.PARAMETERS if len(both) else np.zeros(0, bool)
    described &= sides.dumps[0].slots.group[first[0]] != Group.OUTPUT if len(both) else described
    reason = np.where(several, Reason.FUSED_PARTS, np.where(described, Reason.SAME_SLOT, by_name)).astype(np.uint8)
    node: Int32 = (both >> 24).astype(np.int32)
    group = sides.dumps[0].slots.group[first[0]] if len(both) else np.zeros(0, np.uint8)
    quantity = np.full(len(both), -1, np.int32)
    if len(both):
        same = quantities[0][first[0]] == quantities[1][first[1]]
        quantity = np.where(same, quantities[0][first[0]], -1).astype(np.int32)
    return Block(node, group, relation, reason, np.zeros(len(both), np.uint8), quantity, lists[0], lists[1])


def _grouped_by_common_key(keys: list[Int64], rows: list[Int64]) -> tuple[Int64, list[Lists]]:
    """The keys that both sides have, ascending, and each side's rows under them, in the order they came. Each side is sorted once: set
    operations on millions of keys cost more than all the rest of the pairing.
    """
    orders = [np.argsort(key, kind="stable") for key in keys]
    ordered = [key[order] for key, order in zip(keys, orders, strict=True)]
    distinct = [key[np.flatnonzero(np.diff(key, prepend=key[:1] - 1))] for key in ordered]
    both: Int64 = np.intersect1d(distinct[0], distinct[1], assume_unique=True)
    lists = []
    for key, order, row in zip(ordered, orders, rows, strict=True):
        first, last = np.searchsorted(key, both, "left"), np.searchsorted(key, both, "right")
        start: Int64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(last - first)])
        taken = np.repeat(first - start[:-1], last - first) + np.arange(start[-1])
        lists.append(Lists(start, row[order[taken]].astype(np.int32)))
    return both, lists


def _undescribed(sides: Sides, side: int) -> Bool:
    """Slots of module records that no vocabulary of either side describes (a visual tower, say)."""
    dump, places = sides.dumps[side], sides.places[side]
    described = np.array(
        [any(p.convention is not None and entry_of(text) in p.convention.tensors for p in sides.places) for text in sides.names.texts]
        or [False]
    )
    module = dump.records.kind == RecordKind.MODULE
    slots: Bool = (module & ~described[places.path])[dump.slots.record]
    return slots


class _Holders(NamedTuple):
    """Where quantities are: one row a (node, quantity), in the order of the slots that speak for them."""

    node: Int32
    quantity: Int32
    slot: Int32

    def taken(self, rows: Bool) -> _Holders:
        return _Holders(self.node[rows], self.quantity[rows], self.slot[rows])


class _Index(NamedTuple):
    """Distinct keys, ascending, each with a slot."""

    keys: Int64
    slots: Int32

    def find(self, keys: Int64) -> Int32:
        """The slot of each key, -1 where there is none."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int32)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.slots[at], -1).astype(np.int32)


def _by_quantity(sides: Sides, nodes: Nodes, slot_node: list[Int32], quantities: list[Int32], names: Interner) -> Iterator[Block]:
    """The same quantity in the same node; then what the other side holds elsewhere in the same call, or in parts."""
    parts = _concat_parts(names)
    width = len(names.texts)
    holders = [_holders(sides.dumps[side], slot_node[side], quantities[side]) for side in (0, 1)]
    places = [_indexed(each.node.astype(np.int64) * width + each.quantity, each.slot) for each in holders]
    homes = [_homes(sides.dumps[side], nodes, slot_node[side], quantities[side], width) for side in (0, 1)]
    partner = [places[1 - side].find(holders[side].node.astype(np.int64) * width + holders[side].quantity) for side in (0, 1)]
    both = partner[0] >= 0
    here = holders[0].taken(both)
    nowhere = np.zeros(len(here.node), np.uint8)
    same = np.full(len(here.node), Relation.SAME, np.uint8), np.full(len(here.node), Reason.SAME_QUANTITY, np.uint8)
    yield _block(sides, here, _singles(here.slot), _singles(partner[0][both]), *same, nowhere)
    streams = np.array([pattern_of(text)[0] == "stream.<n>" for text in names.texts] or [False])
    for side in (0, 1):
        other = 1 - side
        here, found = _found_elsewhere(holders[side].taken(partner[side] < 0), nodes, homes[other], parts, width)
        at_home = slot_node[other][found.values] == np.repeat(here.node, found.counts())
        in_node = np.logical_and.reduceat(at_home, found.start[:-1]) if len(here.node) else np.zeros(0, bool)
        several = found.counts() > 1
        relation = np.where(several, Relation.CONCAT, np.where(in_node, Relation.SAME, Relation.ALIAS)).astype(np.uint8)
        moved = np.where(streams[here.quantity] & ~in_node, Reason.RESIDUAL_STREAM, Reason.ELSEWHERE)
        reason = np.where(several, Reason.FUSED_PARTS, moved).astype(np.uint8)
        elsewhere = np.where(in_node, 0, 1 << other).astype(np.uint8)
        left, right = (_singles(here.slot), found) if side == 0 else (found, _singles(here.slot))
        yield _block(sides, here, left, right, relation, reason, elsewhere)


def _found_elsewhere(here: _Holders, nodes: Nodes, homes: _Index, parts: Lists, width: int) -> tuple[_Holders, Lists]:
    """Those holders whose quantity the other side holds in the same call, whole or in all of its parts, and the slots it holds it in."""
    call = nodes.call[here.node].astype(np.int64) * width
    whole = homes.find(call + here.quantity)
    pieces = np.where(whole < 0, parts.counts()[here.quantity], 0)
    row = np.repeat(np.arange(len(pieces)), pieces)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    members = homes.find(call[row] + parts.values[parts.start[here.quantity[row]] + nth])
    missing = np.bincount(row[members < 0], minlength=len(pieces)) > 0
    found = (whole >= 0) | ((pieces > 0) & ~missing)
    values = np.concatenate([whole[whole >= 0], members])
    of = np.concatenate([np.flatnonzero(whole >= 0), row])
    order = np.argsort(of, kind="stable")
    values, of = values[order], of[order]
    counts = np.where(whole >= 0, 1, pieces)[found]
    return here.taken(found), Lists(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), values[found[of]].astype(np.int32))


def _singles(slots: Int32) -> Lists:
    return Lists(np.arange(len(slots) + 1, dtype=np.int64), slots)


def _block(sides: Sides, here: _Holders, left: Lists, right: Lists, relation: UInt8, reason: UInt8, elsewhere: UInt8) -> Block:
    """A pair belongs to the group of the slots that lie in its node."""
    groups = [sides.dumps[side].slots.group[lists.values[lists.start[:-1]]] for side, lists in enumerate((left, right))]
    group = np.where(elsewhere & 1, groups[1], np.where(elsewhere & 2, groups[0], np.minimum(*groups))).astype(np.uint8)
    return Block(here.node, group, relation, reason, elsewhere, here.quantity, left, right)


def _indexed(keys: Int64, slots: Int32) -> _Index:
    """Of several slots with one key the first."""
    distinct, first = np.unique(keys, return_index=True)
    return _Index(distinct, slots[first])


def _holders(dump: Dump, slot_node: Int32, quantities: Int32) -> _Holders:
    """Outputs first: of several slots of a node with the same tensor the produced one speaks."""
    rows = np.flatnonzero(quantities >= 0)
    rows = rows[np.argsort(dump.slots.group[rows] != Group.OUTPUT, kind="stable")]
    node, quantity = slot_node[rows], quantities[rows]
    _, first = np.unique(node.astype(np.int64) * (int(quantity.max(initial=0)) + 1) + quantity, return_index=True)
    first.sort()
    return _Holders(node[first], quantity[first], rows[first].astype(np.int32))


def _homes(dump: Dump, nodes: Nodes, slot_node: Int32, quantities: Int32, width: int) -> _Index:
    """call · width + quantity → the slot where the tensor is first put out, or first taken in where nobody puts it out. Modules before
    API calls.
    """
    rows = np.flatnonzero(quantities >= 0)
    is_api = dump.records.kind[dump.slots.record[rows]] == RecordKind.API
    rows = rows[np.lexsort((rows, dump.slots.group[rows] != Group.OUTPUT, is_api))]
    return _indexed(nodes.call[slot_node[rows]].astype(np.int64) * width + quantities[rows], rows.astype(np.int32))


def _concat_parts(names: Interner) -> Lists:
    """A row a quantity: the quantities that make it up side by side, where it is such a one."""
    known: list[list[int]] = []
    for text in list(names.texts):
        pattern, layer = pattern_of(text)
        known.append([names(fill(part, layer, 0)) for part in decoder().concat.get(pattern, ())])
    known += [[]] * (len(names.texts) - len(known))
    start = np.cumsum([0, *map(len, known)], dtype=np.int64)
    return Lists(start, np.array([part for parts in known for part in parts], np.int32))


def _ordered(sides: Sides, nodes: Nodes, blocks: list[Block], primary: int, names: Interner, shards: tuple[Shards, Shards]) -> Pairs:
    """All blocks as one table, sorted by when the primary side had finished the pair; inputs before parameters before outputs."""
    node, group, relation, reason, elsewhere, quantity = (
        np.concatenate([getattr(block, name) for block in blocks])
        for name in ("node", "group", "relation", "reason", "elsewhere", "quantity")
    )
    leaders = (_joined([block.left for block in blocks]), _joined([block.right for block in blocks]))
    overlaps, padded = _overlapping(nodes, names, node, quantity)
    (left, cut_left), (right, cut_right) = (in_pieces(leaders[side], sides.dumps[side], shards[side]) for side in (0, 1))
    leaders = (left, right)
    lists, sharded, copied, overlapping = over_ranks(leaders, sides.dumps, shards, overlaps | padded)
    sharded |= overlapping | cut_left | cut_right
    relation = np.where(sharded, Relation.SHARD_CONCAT, np.where(copied & (relation != Relation.CONCAT), Relation.REPLICATED, relation))
    relation = relation.astype(np.uint8)
    unlike = [copies_disagree(sides.dumps[side], leaders[side], shards[side], copied) for side in (0, 1)]
    disagree = unlike[0] | unlike[1]
    partial = _partial_sums(names, nodes.call[node], quantity, disagree, leaders, sides.dumps, shards)
    relation[partial] = Relation.SUM
    lists = with_addends(lists, leaders, sides.dumps, shards, (partial & unlike[0], partial & unlike[1]))
    disagree &= ~partial
    usable = np.full(len(node), ALL_STATISTICS, np.uint8)
    usable[overlapping & overlaps] = MAX_AND_MIN
    usable[padded & (elements_of(lists[0], sides.dumps[0]) != elements_of(lists[1], sides.dumps[1]))] = ALL_BUT_MEAN
    usable[partial] = NO_STATISTIC
    usable[(group == Group.PARAMETERS) & _adapted_on_one_side(nodes)[nodes.path[node]]] = ALL_BUT_MEAN
    slots = sides.dumps[primary].slots
    mine = leaders[primary]
    when = sides.places[primary].order[slots.record[mine.values]]
    last = np.maximum.reduceat(when, mine.start[:-1]) if len(node) else np.zeros(0, np.int32)
    first = mine.values[mine.start[:-1]] if len(node) else np.zeros(0, np.int32)
    order = np.lexsort((first, group, last))
    return Pairs(
        node=node[order],
        group=group[order],
        direction=nodes.direction[node[order]],
        relation=relation[order],
        reason=reason[order],
        elsewhere=elsewhere[order],
        quantity=quantity[order],
        slots=(_taken(lists[0], order), _taken(lists[1], order)),
        disagree=disagree[order],
        usable=usable[order],
        quantity_names=names.texts,
    )


def _adapted_on_one_side(nodes: Nodes) -> Bool:
    """By path: modules beside which one side has an adapter and the other has none. Their weights differ where it was merged."""
    adapters = naming().adapters
    adapted = []
    for side in (0, 1):
        found: set[str] = set()
        for path in np.unique(nodes.path[nodes.records[side].counts() > 0]).tolist():
            parts = nodes.names[path].split(".")
            found.update(".".join(parts[:at]) for at, part in enumerate(parts) if part in adapters)
        adapted.append(found)
    either = adapted[0] ^ adapted[1]
    return np.array([bool(either) and _is_or_holds(name, either) for name in nodes.names] + [False])


def _is_or_holds(path: str, adapted: AbstractSet[str]) -> bool:
    """Whether the module is one of ``adapted``, or does the work of one of them."""
    parts = {fill(part, layer_of(path), 0) for convention in conventions() for part in convention.fused.get(entry_of(path), ())}
    return path in adapted or not parts.isdisjoint(adapted)


def _overlapping(nodes: Nodes, names: Interner, node: Int32, quantity: Int32) -> tuple[Bool, Bool]:
    """Pairs of which several ranks may hold the same part (key and value heads, when there are fewer of them than ranks), and pairs to
    which padding may be added (embedding, head): of the quantities themselves and of the parameters of the modules that make them.
    """
    found = []
    for patterns in (decoder().overlapping, decoder().padded):
        by_quantity = np.array([pattern_of(name)[0] in patterns for name in names.texts] + [False])
        makers = {decoder().quantities[pattern].by for pattern in patterns if pattern in decoder().quantities}
        by_path = np.array([entry_of(name) in makers for name in nodes.names] + [False])
        found.append(by_quantity[quantity] | (by_path[nodes.path[node]] & (quantity < 0)))
    return found[0], found[1]


def _partial_sums(
    names: Interner,
    call: Int32,
    quantity: Int32,
    disagree: Bool,
    leaders: tuple[Lists, Lists],
    dumps: tuple[Dump, Dump],
    shards: tuple[Shards, Shards],
) -> Bool:
    """Pairs whose ranks hold parts of a sum on purpose: further on, the same tensor of the same call is the same on all ranks, and it is
    another than any rank holds here. (Where it never is, the reduction is missing; where a rank holds it here, another's copy is wrong.)
    """
    summed = np.array([pattern_of(name)[0] in decoder().summed for name in names.texts] + [False])[quantity]
    key = call.astype(np.int64) * (len(names.texts) + 1) + quantity
    reduced, first = np.unique(key[summed & ~disagree], return_index=True)
    partial: Bool = summed & disagree & np.isin(key, reduced)
    rows = np.flatnonzero(partial)
    if not len(rows):
        return partial
    whole = np.flatnonzero(summed & ~disagree)[first][np.searchsorted(reduced, key[rows])]
    for side in (0, 1):
        partial[rows] &= ~held_by_a_rank(dumps[side], leaders[side], shards[side], rows, whole)
    return partial


def _joined(lists: list[Lists]) -> Lists:
    counts = np.concatenate([one.counts() for one in lists])
    return Lists(np.r_[0, np.cumsum(counts)].astype(np.int64), np.concatenate([one.values for one in lists]))


def _taken(lists: Lists, order: Int64) -> Lists:
    counts = lists.counts()[order]
    start = np.r_[0, np.cumsum(counts)].astype(np.int64)
    source = np.repeat(lists.start[:-1][order] - start[:-1], counts) + np.arange(start[-1])
    return Lists(start, lists.values[source])
