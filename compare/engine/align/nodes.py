"""Which records of both sides stand beside each other: one node a pair of calls, or of groups of calls (q, k, v against qkv)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from compare.engine.align.canonical import entry_of, layer_of
from compare.engine.align.conventions import Convention, fill
from compare.engine.align.lists import Lists
from compare.engine.align.passes import Passes, passes_of, renumbered
from compare.engine.align.places import Interner, Places, paths_of, places_of
from compare.engine.align.rules import NO_RULES, AppliedRules, apply_rules
from compare.engine.align.sequence import align_with_anchors
from compare.engine.mapping.rules import MappingRules
from compare.engine.model import Bool, Dump, Int32, Int64, RecordKind, UInt8
from compare.engine.store.joined import joined

RANKS = 1 << 16  # more than a side has, pieces counted apart


class NodeKind(IntEnum):
    """``kind`` of a tree row; SECTION and PART are made by the tree, the others stand for records."""

    SECTION = 0
    MODULE = 1
    API = 2
    PART = 3
    CONTAINER = 4


@dataclass(frozen=True, slots=True)
class Nodes:
    """One row a node.

    ``path`` is the canonical module path, or for an API call the API's name, into ``names``; ``number`` counts an API call within its
    module (-1 for a module). ``node_of`` maps the records of each side to nodes. ``parent`` is a node or -1.
    """

    names: Sequence[str]
    path: Int32
    kind: UInt8
    direction: UInt8
    call: Int32
    recompute: Bool
    layer: Int32
    number: Int32
    parent: Int32
    records: tuple[Lists, Lists]
    node_of: tuple[Int32, Int32]

    def __len__(self) -> int:
        return len(self.path)


@dataclass(frozen=True, slots=True)
class Sides:
    """Both dumps with the places of their records. ``same_code``: both sides follow the same convention, or neither a known one.
    ``rules``: what a mapping file says about these two. ``passes``: which of their forward passes were fed the same, of a training side
    against an inference side.
    """

    dumps: tuple[Dump, Dump]
    places: tuple[Places, Places]
    names: Interner
    layers: int
    rules: AppliedRules = NO_RULES
    passes: Passes | None = None

    @property
    def same_code(self) -> bool:
        return self.places[0].convention is self.places[1].convention


def sides_of(
    left: Sequence[Dump], right: Sequence[Dump], mapping: MappingRules | None = None, namer: int = 0, train: int | None = None
) -> Sides:
    """``left``, ``right``: the dumps of the ranks that are compared together; one each, or all of a side whose layout is another.
    ``namer``: the side (0 left, 1 right) whose names stand for modules that only a rule of ``mapping`` brought together. ``train``: the
    side that trains where the other infers.
    """
    names = Interner()
    rules = apply_rules(mapping, (paths_of(left), paths_of(right)), namer) if mapping else NO_RULES
    places = [places_of(dumps, names, rules.sides[side], side) for side, dumps in enumerate((left, right))]
    passes = None if train is None else passes_of((left, right), train)
    if passes is not None and not passes.by_number:
        infer, most = 1 - passes.train, int(places[passes.train].call.max(initial=-1)) + 1
        places[infer] = renumbered((left, right)[infer], places[infer], passes, most)
    layers = max(places[0].layers, places[1].layers)
    return Sides((joined(left), joined(right)), (places[0], places[1]), names, layers, rules, passes)


def nodes_of(sides: Sides) -> Nodes:
    module_path = _fused_paths(sides)
    keys, calls = [], []
    for side in (0, 1):
        dump, places = sides.dumps[side], sides.places[side]
        is_api = dump.records.kind == RecordKind.API
        direction = dump.records.direction.astype(np.int64)
        key = ((module_path[side].astype(np.int64) * 2 + direction) * 2 + places.recompute) * (1 << 24) + places.call
        keys.append(np.where(is_api, -1, key))
        calls.append(is_api)
    together = np.concatenate(keys)
    distinct, node = np.unique(together[together >= 0], return_inverse=True)
    node_of = np.full(len(together), -1, np.int64)
    node_of[together >= 0] = node.reshape(-1)
    cut = len(keys[0])
    node_of_side = [node_of[:cut].astype(np.int32), node_of[cut:].astype(np.int32)]
    number = _api_nodes(sides, node_of_side, len(distinct))
    return _table(sides, module_path, node_of_side, number)


def _fused_paths(sides: Sides) -> tuple[Int32, Int32]:
    """The path under which a module record meets its partner: its own, or that of the module which does its work on the other side."""
    found = []
    for side in (0, 1):
        path = sides.places[side].path
        there = sides.places[1 - side].convention
        meets: dict[int, int] = {}
        if not sides.same_code and there is not None:
            meets = {part: whole for part, whole in _parts_of(sides, there, 1 - side).items() if not _renamed_by_rule(sides, part)}
        meets |= {sides.names(part): sides.names(whole) for part, whole in sides.rules.sides[side].fused.items()}
        table = np.arange(len(sides.names.texts), dtype=np.int32)
        for part, whole in meets.items():
            table[part] = whole
        found.append(table[path] if len(path) else path)
    return found[0], found[1]


def _renamed_by_rule(sides: Sides, path: int) -> bool:
    """A module that a rule gave a partner of its own does not meet the fused module that the vocabulary knows."""
    return sides.names.texts[path] in sides.rules.manual


def _parts_of(sides: Sides, convention: Convention, side: int) -> dict[int, int]:
    """Part path → fused path, for the fused modules that this side really has."""
    names = sides.names
    present = {names.texts[i] for i in np.unique(sides.places[side].path)}
    parts = {}
    for path in present:
        for part in convention.fused.get(entry_of(path), ()):
            parts[names(fill(part, layer_of(path), 0))] = names(path)
    return parts


def _api_nodes(sides: Sides, node_of: list[Int32], begin: int) -> tuple[Int32, Int32]:
    """Gives every API record a node; returns its number within its module call. Calls are matched only where both sides run the same
    code.
    """
    numbers = []
    calls = []
    for side in (0, 1):
        records = sides.dumps[side].records
        rows = np.flatnonzero(records.kind == RecordKind.API)
        parent = np.where(records.parent[rows] >= 0, node_of[side][records.parent[rows]], -1).astype(np.int64)
        places = sides.places[side]
        lane = places.rank[rows] + places.piece[rows] * (int(places.rank.max(initial=0)) + 1)
        group = (parent * 2 + records.direction[rows]) * RANKS + lane
        order = np.argsort(group, kind="stable")
        rows, group = rows[order], group[order]
        calls.append((rows, group))
        numbers.append(np.full(len(records), -1, np.int32))
    (left_rows, _), (right_rows, _) = calls
    next_node = begin
    matched = _matched_calls(sides, calls) if sides.same_code else np.zeros((0, 2), np.int64)
    for side, number in enumerate(_call_numbers(sides, calls, matched)):
        numbers[side][calls[side][0]] = number
    node_of[0][left_rows] = np.arange(next_node, next_node + len(left_rows))
    next_node += len(left_rows)
    alone = np.ones(len(right_rows), bool)
    alone[matched[:, 1]] = False
    node_of[1][right_rows[matched[:, 1]]] = node_of[0][left_rows[matched[:, 0]]]
    node_of[1][right_rows[alone]] = np.arange(next_node, next_node + int(alone.sum()))
    return numbers[0], numbers[1]


def _call_numbers(sides: Sides, calls: list[tuple[Int64, Int64]], matched: Int64) -> tuple[Int32, Int32]:
    """The number of each call among the calls of its name in its module. Where both sides run the same code that is its number in their
    merged sequence: matched calls in order, and between them what only one side calls.
    """
    keys = []
    for side, (rows, group) in enumerate(calls):
        name = group * (len(sides.names.texts) + 1) + sides.places[side].path[rows]
        anchor = np.zeros(len(rows), bool)
        anchor[matched[:, side]] = True
        before = np.cumsum(anchor)
        last = np.maximum.accumulate(np.where(anchor, np.arange(len(rows)), -1)) if len(rows) else np.zeros(0, np.int64)
        keys.append((name, before, np.arange(len(rows)) - last))
    if not sides.same_code:
        return _rank(keys[0][0]), _rank(keys[1][0])
    alone = np.ones(len(keys[1][0]), bool)
    alone[matched[:, 1]] = False
    # Every call of the left side, and what only the right side calls.
    counted = [np.concatenate([keys[0][column], keys[1][column][alone]]) for column in range(3)]
    order = np.lexsort((counted[2], counted[1], counted[0]))
    number = np.empty(len(order), np.int32)
    number[order] = _rank(counted[0][order])
    left = number[: len(keys[0][0])]
    right = np.empty(len(alone), np.int32)
    right[alone] = number[len(left) :]
    right[matched[:, 1]] = left[matched[:, 0]]
    return left, right


def _rank(key: Int64) -> Int32:
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(key) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    rank = np.empty(len(key), np.int32)
    rank[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.r_[starts, len(key)]))
    return rank


def _matched_calls(sides: Sides, calls: list[tuple[Int64, Int64]]) -> Int64:
    """Positions (in the grouped order of both sides) of corresponding calls. Modules with equal sequences are zipped at once."""
    (left_rows, left_group), (right_rows, right_group) = calls
    left_name, right_name = sides.places[0].path[left_rows], sides.places[1].path[right_rows]
    groups = np.intersect1d(left_group, right_group)
    bounds = [np.searchsorted(g, groups, side) for g in (left_group, right_group) for side in ("left", "right")]
    equal_length = (bounds[1] - bounds[0]) == (bounds[3] - bounds[2])
    shift = np.repeat(bounds[2] - bounds[0], np.where(equal_length, bounds[1] - bounds[0], 0))
    left = np.concatenate(
        [np.arange(a, b) for a, b in zip(bounds[0][equal_length], bounds[1][equal_length], strict=True)] or [np.zeros(0, np.int64)]
    )
    right = left + shift
    same = left_name[left] == right_name[right]
    owner = np.repeat(np.flatnonzero(equal_length), (bounds[1] - bounds[0])[equal_length])
    unlike = np.zeros(len(groups), bool)
    unlike[owner[~same]] = True
    unlike |= ~equal_length
    zipped = ~unlike[owner]
    pairs = [np.stack([left[zipped], right[zipped]], axis=1)]
    for group in np.flatnonzero(unlike):
        a, b, c, d = (int(bound[group]) for bound in bounds)
        exact = (
            _fingerprints(sides.dumps[0], left_rows[a:b], left_name[a:b]),
            _fingerprints(sides.dumps[1], right_rows[c:d], right_name[c:d]),
        )
        found = align_with_anchors((left_name[a:b].tolist(), right_name[c:d].tolist()), exact)
        if found:
            pairs.append(np.array(found, np.int64) + np.array([[a, c]]))
    return np.concatenate(pairs)


def _fingerprints(dump: Dump, rows: Int64, names: Int32) -> list[tuple[int, bytes]]:
    """Name and every statistic of a call: equal for calls that agree to the last bit."""
    start = dump.records.slot_start
    statistics = dump.slots.statistics
    return [(int(name), statistics[start[row] : start[row + 1]].tobytes()) for row, name in zip(rows, names, strict=True)]


def _table(sides: Sides, module_path: tuple[Int32, Int32], node_of: list[Int32], number: tuple[Int32, Int32]) -> Nodes:
    count = int(max(node_of[0].max(initial=-1), node_of[1].max(initial=-1))) + 1
    path = np.full(count, -1, np.int32)
    kind = np.full(count, NodeKind.CONTAINER, np.uint8)
    direction = np.zeros(count, np.uint8)
    call, layer, numbers, parent = (np.full(count, -1, np.int32) for _ in range(4))
    recompute = np.zeros(count, bool)
    lists = []
    for side in (1, 0):  # the left side writes last: where both know, its word stands
        records, places, nodes = sides.dumps[side].records, sides.places[side], node_of[side]
        path[nodes] = np.where(records.kind == RecordKind.API, places.path, module_path[side])
        real = np.where(records.kind == RecordKind.API, NodeKind.API, NodeKind.MODULE)
        kind[nodes[records.recorded]] = real[records.recorded]
        direction[nodes] = records.direction
        call[nodes] = places.call
        recompute[nodes] |= places.recompute
        layer[nodes] = places.layer
        numbers[nodes] = number[side]
        known = records.parent >= 0
        above = np.where(known, nodes[np.where(known, records.parent, 0)], -1)
        found = known & (above != nodes)
        parent[nodes[found]] = above[found]
        kept = np.flatnonzero(records.recorded)
        order = kept[np.argsort(nodes[kept], kind="stable")]
        start = np.searchsorted(nodes[order], np.arange(count + 1))
        lists.append(Lists(start.astype(np.int64), order.astype(np.int32)))
    return Nodes(
        names=sides.names.texts,
        path=path,
        kind=kind,
        direction=direction,
        call=call,
        recompute=recompute,
        layer=layer,
        number=numbers,
        parent=_without_cycles(parent),
        records=(lists[1], lists[0]),
        node_of=(node_of[0], node_of[1]),
    )


def _without_cycles(parent: Int32) -> Int32:
    """Parents come from two sides; where their words would make a ring, the ring is cut at its first member."""
    parent = parent.copy()
    depth = np.zeros(len(parent), np.int32)
    above = parent.copy()
    for _ in range(64):  # deeper than any module tree
        alive = above >= 0
        if not alive.any():
            return parent
        depth[alive] += 1
        above = np.where(alive, parent[np.where(alive, above, 0)], -1)
    parent[above >= 0] = -1
    return parent
