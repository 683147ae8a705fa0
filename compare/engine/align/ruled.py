"""Pairs under the rules of a mapping file: slots of modules that a rule brought together, and slots that a rule names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compare.engine.align.lists import Lists
from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.quantities import is_floating
from compare.engine.align.relations import Block, Reason, Relation
from compare.engine.align.rules import SlotRule
from compare.engine.mapping.rules import is_record
from compare.engine.model import Bool, Direction, Dump, Group, Int32, Int64, Leaf, RecordKind

GROUPS = 4
PLACES = 1 << 20  # more slots than a module call has


def with_rules(sides: Sides, nodes: Nodes, slot_node: Sequence[Int32], leaders: tuple[Bool, Bool], blocks: Sequence[Block]) -> list[Block]:
    """The blocks with what the rules of ``sides.rules`` change. ``leaders``: slots that stand for their like on all ranks."""
    ruled = np.array([text in sides.rules.manual for text in nodes.names] or [False])[nodes.path]
    ruled &= (nodes.records[0].counts() > 0) & (nodes.records[1].counts() > 0)
    found = [_marked(_parts(block, nodes, ruled), ruled) for block in blocks]
    found.append(_by_position(sides, slot_node, leaders, ruled, found))
    return _with_slot_rules(sides, slot_node, leaders, found)


def _marked(block: Block, ruled: Bool) -> Block:
    here = ruled[block.node] & (block.elsewhere == 0)
    return block._replace(reason=np.where(here, Reason.MAPPING, block.reason).astype(np.uint8))


def _parts(block: Block, nodes: Nodes, ruled: Bool) -> Block:
    """Modules that are parts of another take in the same tensor: what goes in is compared once, not laid side by side; what comes back to
    it from several parts would have to be added up, which statistics cannot.
    """
    several = ruled[block.node] & ((block.left.counts() > 1) | (block.right.counts() > 1))
    forward = nodes.direction[block.node] == Direction.FORWARD
    once = several & forward & (block.group == Group.INPUT)
    added = several & ~forward & (block.group == Group.OUTPUT)
    if not (once | added).any():
        return block
    left, right = _first_only(block.left, once), _first_only(block.right, once)
    relation = np.where(once, Relation.SAME, block.relation).astype(np.uint8)
    return _kept(block._replace(left=left, right=right, relation=relation), ~added)


def _first_only(lists: Lists, chosen: Bool) -> Lists:
    counts = lists.counts()
    row = np.repeat(np.arange(len(counts)), counts)
    keep = ~chosen[row] | (np.arange(len(lists.values)) == lists.start[row])
    kept = np.where(chosen, np.minimum(counts, 1), counts)
    return Lists(np.r_[0, np.cumsum(kept)].astype(np.int64), lists.values[keep])


def _by_position(sides: Sides, slot_node: Sequence[Int32], leaders: tuple[Bool, Bool], ruled: Bool, blocks: Sequence[Block]) -> Block:
    """Tensors of ruled nodes that no name and no quantity paired: the n-th of a group with the n-th, where they are equally large."""
    keys, rows = [], []
    for side, dump in enumerate(sides.dumps):
        free = ruled[slot_node[side]] & (dump.slots.leaf == Leaf.TENSOR) & leaders[side]
        for block in blocks:
            free[(block.left, block.right)[side].values] = False
        slots = np.flatnonzero(free)
        floating = np.array([is_floating(dtype) for dtype in dump.dtypes] or [False])
        key = (slot_node[side][slots].astype(np.int64) * GROUPS + dump.slots.group[slots]) * 2 + floating[dump.slots.dtype[slots]]
        order = np.argsort(key, kind="stable")
        keys.append(key[order] * PLACES + _places(key[order]))
        rows.append(slots[order])
    both, left, right = np.intersect1d(keys[0], keys[1], return_indices=True)
    ends = (rows[0][left], rows[1][right])
    fits = sides.dumps[0].slots.elements[ends[0]] == sides.dumps[1].slots.elements[ends[1]]
    node = (both // PLACES // (2 * GROUPS))[fits].astype(np.int32)
    group = (both // PLACES // 2 % GROUPS)[fits].astype(np.uint8)
    return _block(
        node, group, Relation.SAME, np.zeros(len(node), np.uint8), [[end] for end in ends[0][fits]], [[end] for end in ends[1][fits]]
    )


def _places(ordered: Int64) -> Int64:
    """0, 1, 2 … within each run of equal keys."""
    if not len(ordered):
        return ordered
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return np.asarray(np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)])))


def _with_slot_rules(sides: Sides, slot_node: Sequence[Int32], leaders: tuple[Bool, Bool], blocks: list[Block]) -> list[Block]:
    wanted = _joined(dict.fromkeys(_slot_pairs(sides, leaders)), sides)
    if not wanted:
        return blocks
    within = _pairs_of_slots(blocks, wanted)
    dropped = [np.zeros(len(block.node), bool) for block in blocks]
    made: list[tuple[list[int], list[int]]] = []
    for left, right in wanted:
        pairs = [within[side].get(slot, set()) for side, slots in enumerate((left, right)) for slot in slots]
        if set.intersection(*pairs):
            continue  # they are a pair already, alone or among the parts of one
        for side, slots in enumerate((left, right)):
            for number, row in (pair for slot in slots for pair in within[side].get(slot, set())):
                # Where a slot only stands in as the partner of another module's, that is no pair of its own.
                dropped[number][row] |= not blocks[number].elsewhere[row] & (1 << side)
        made.append((left, right))
    node = np.array([slot_node[0][left[0]] for left, _ in made], np.int32)
    group = np.array([sides.dumps[0].slots.group[left[0]] for left, _ in made], np.uint8)
    elsewhere = np.array([0 if slot_node[1][right[0]] == slot_node[0][left[0]] else 2 for left, right in made], np.uint8)
    relation = [
        Relation.CONCAT if len(left) + len(right) > 2 else Relation.ALIAS if away else Relation.SAME
        for (left, right), away in zip(made, elsewhere.tolist(), strict=True)
    ]
    kept = [_kept(block, ~gone) for block, gone in zip(blocks, dropped, strict=True)]
    return [*kept, _block(node, group, relation, elsewhere, [left for left, _ in made], [right for _, right in made])]


def _pairs_of_slots(
    blocks: Sequence[Block], wanted: Sequence[tuple[list[int], list[int]]]
) -> tuple[dict[int, set[tuple[int, int]]], dict[int, set[tuple[int, int]]]]:
    """For each wanted slot of each side the pairs it is in, as (block, row)."""
    found: tuple[dict[int, set[tuple[int, int]]], dict[int, set[tuple[int, int]]]] = ({}, {})
    for side in (0, 1):
        slots = np.array(sorted({slot for entry in wanted for slot in entry[side]}), np.int32)
        for number, block in enumerate(blocks):
            lists = (block.left, block.right)[side]
            row = np.repeat(np.arange(len(block.node)), lists.counts())
            chosen = np.isin(lists.values, slots)
            for slot, place in zip(lists.values[chosen].tolist(), row[chosen].tolist(), strict=True):
                found[side].setdefault(slot, set()).add((number, place))
    return found


def _slot_pairs(sides: Sides, leaders: tuple[Bool, Bool]) -> Iterator[tuple[int, int]]:
    """Slots that the rules name: by a record's name that one call, by a module's path its forward calls in order."""
    if not sides.rules.slots:
        return
    by_name = [{name: row for row, name in enumerate(dump.records.name)} for dump in sides.dumps]
    for rule in sides.rules.slots:
        ends = [_slots_of(sides, side, rule, by_name[side], leaders[side]) for side in (0, 1)]
        yield from zip(*ends, strict=False)


def _slots_of(sides: Sides, side: int, rule: SlotRule, by_name: dict[str, int], leader: Bool) -> list[int]:
    name, slot = (rule.left, rule.left_slot) if side == 0 else (rule.right, rule.right_slot)
    dump, places = sides.dumps[side], sides.places[side]
    if is_record(name):
        rows = [by_name[name]] if name in by_name else []
    else:
        at = [index for index, text in enumerate(sides.names.texts) if text == name]
        chosen = np.isin(places.path, at) & (dump.records.kind == RecordKind.MODULE) & (dump.records.direction == Direction.FORWARD)
        rows = np.flatnonzero(chosen & dump.records.recorded).tolist()
    return [found for row in rows for found in _slots_named(dump, row, slot) if leader[found]]


def _slots_named(dump: Dump, record: int, name: str) -> list[int]:
    slots = range(int(dump.records.slot_start[record]), int(dump.records.slot_start[record + 1]))
    return [slot for slot in slots if dump.slot_names[int(dump.slots.name[slot])] == name]


def _joined(wanted: dict[tuple[int, int], None], sides: Sides) -> list[tuple[list[int], list[int]]]:
    """Slots that the rules name for one and the same slot of the other side are its parts, in the order of the file, where together they
    are as large; else each is a pair of its own.
    """
    joined = [([left], [right]) for left, right in wanted]
    for side in (0, 1):
        groups: dict[int, list[tuple[list[int], list[int]]]] = {}
        for entry in joined:
            groups.setdefault(entry[1 - side][0], []).append(entry)
        joined = []
        for whole, entries in groups.items():
            parts = [slot for entry in entries for slot in entry[side]]
            together = int(sides.dumps[side].slots.elements[parts].sum()) == int(sides.dumps[1 - side].slots.elements[whole])
            single = all(len(entry[1 - side]) == 1 for entry in entries)
            joined += [(parts, [whole]) if side == 0 else ([whole], parts)] if len(parts) > 1 and together and single else entries
    return joined


def _kept(block: Block, keep: Bool) -> Block:
    if keep.all():
        return block
    columns = {name: getattr(block, name)[keep] for name in ("node", "group", "relation", "reason", "elsewhere", "quantity")}
    return Block(**columns, left=_taken(block.left, keep), right=_taken(block.right, keep))


def _taken(lists: Lists, keep: Bool) -> Lists:
    counts = lists.counts()
    return Lists(np.r_[0, np.cumsum(counts[keep])].astype(np.int64), lists.values[np.repeat(keep, counts)])


def _block(
    node: Int32,
    group: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    relation: Relation | Sequence[Relation],
    elsewhere: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
) -> Block:
    count = len(node)
    return Block(
        node,
        group,
        np.full(count, relation, np.uint8) if isinstance(relation, Relation) else np.array(relation, np.uint8),
        np.full(count, Reason.MAPPING, np.uint8),
        elsewhere,
        np.full(count, -1, np.int32),
        _lists(left),
        _lists(right),
    )


def _lists(members: Sequence[Sequence[int]]) -> Lists:
    start = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return Lists(start, np.array([slot for slots in members for slot in slots], np.int32))
