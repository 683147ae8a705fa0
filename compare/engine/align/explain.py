"""Why a record has no partner. One code a record, from the contract's list; NOT_FOUND is no explanation but the lack of one."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from compare.engine.align.canonical import ROOT, entry_of, is_inside_wrapper, naming
from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.pairs import Pairs
from compare.engine.align.shards import same_calls
from compare.engine.model import Bool, Direction, Dump, Leaf, RecordKind, UInt8


class Explanation(IntEnum):
    MATCHED = 0
    NO_BACKWARD_ON_OTHER_SIDE = 1
    FUSED_AWAY = 2
    WRAPPER = 3
    NOT_CALLED = 4
    RECOMPUTE = 5
    IDENTITY = 6
    PLACEHOLDER = 7
    DIFFERENT_KIND = 8
    OTHER_CALLS = 9
    NOT_FOUND = 10
    SET_APART = 11  # by a rule of the mapping file


CODES = {code: code.name.lower() for code in Explanation}
# Explanations under which the other side could not have the record at all: they do not stop "identical".
STRUCTURAL = (
    Explanation.FUSED_AWAY,
    Explanation.WRAPPER,
    Explanation.NOT_CALLED,
    Explanation.RECOMPUTE,
    Explanation.IDENTITY,
    Explanation.PLACEHOLDER,
)


def matched_records(sides: Sides, pairs: Pairs, side: int, usable: Bool) -> Bool:
    """Records of which at least one slot is in a pair whose two ends can be compared (``usable``, one a pair), on any rank."""
    dump, places = sides.dumps[side], sides.places[side]
    lists = pairs.slots[side]
    used = np.repeat(usable, lists.counts())
    matched = np.zeros(len(dump.records), bool)
    matched[dump.slots.record[lists.values[used]]] = True
    if not places.spread:
        return matched
    call = same_calls(dump, places)
    anywhere: Bool = (np.bincount(call[matched], minlength=int(call.max(initial=0)) + 1) > 0)[call]
    return anywhere


def explain(sides: Sides, nodes: Nodes, pairs: Pairs, matched: tuple[Bool, Bool]) -> tuple[UInt8, UInt8]:
    """One Explanation a record of each side (rows that only construct.json names: MATCHED)."""
    left, right = (_side(sides, nodes, pairs, matched, side) for side in (0, 1))
    return left, right


def _side(sides: Sides, nodes: Nodes, pairs: Pairs, matched: tuple[Bool, Bool], side: int) -> UInt8:
    dump, other = sides.dumps[side], sides.dumps[1 - side]
    records, places = dump.records, sides.places[side]
    found = np.full(len(records), Explanation.NOT_FOUND, np.uint8)
    node = nodes.node_of[side]
    partner = nodes.records[1 - side].counts()[node] > 0
    is_api = records.kind == RecordKind.API
    forward = records.direction == Direction.FORWARD
    found[is_api] = Explanation.OTHER_CALLS
    found[~is_api & partner & forward] = Explanation.DIFFERENT_KIND
    further = ~is_api & ~partner & (places.call > 0)  # the other side calls the module less often: more micro-batches here
    found[further & _paths_of(nodes, 1 - side)[nodes.path[node]]] = Explanation.OTHER_CALLS
    lacks = _lacking(sides, side)
    for code in np.unique(lacks[lacks != Explanation.NOT_FOUND]):
        found[~is_api & forward & (lacks[places.path] == code)] = code
    found[~is_api & nodes.recompute[node]] = Explanation.RECOMPUTE
    root = np.array([text == ROOT for text in sides.names.texts] or [False])
    found[~is_api & root[places.path] & ~partner] = Explanation.WRAPPER
    inside = np.array([is_inside_wrapper(path) for path in dump.paths] or [False])
    found[inside[records.path] & ~is_api] = Explanation.WRAPPER
    if not (other.records.direction[other.records.recorded] == Direction.BACKWARD).any():
        found[~forward] = Explanation.NO_BACKWARD_ON_OTHER_SIDE
    empty = _only_placeholders(dump) | _faces_nulls(sides, pairs, side)
    if not (len(dump.slots) and len(other.slots)):
        empty = partner  # a dump of names: only what both sides have is explained by holding no values
    found[empty & (found != Explanation.NO_BACKWARD_ON_OTHER_SIDE)] = Explanation.PLACEHOLDER
    found[_set_apart(sides, side)] = Explanation.SET_APART
    found[matched[side] | ~records.recorded] = Explanation.MATCHED
    return found


def _set_apart(sides: Sides, side: int) -> Bool:
    """Records that a rule says have no partner, not those that only lost their name to another module."""
    places = sides.places[side]
    unpaired = sides.rules.unpaired[side]
    if not unpaired:
        return np.zeros(len(places.apart), bool)
    by_path = np.array([text in unpaired for text in sides.names.texts])
    above = np.where(sides.dumps[side].records.parent >= 0, sides.dumps[side].records.parent, 0)
    own: Bool = places.apart & (by_path[places.path] | by_path[places.path[above]])
    return own


def _paths_of(nodes: Nodes, side: int) -> Bool:
    """By path: whether any node of that path has records of a side."""
    there = np.zeros(len(nodes.names), bool)
    there[nodes.path[nodes.records[side].counts() > 0]] = True
    return there


def _lacking(sides: Sides, side: int) -> UInt8:
    """By canonical path: what the other side's convention says about modules that it does not have; and adapters, which a side that merged
    them into the weights does without."""
    codes = np.full(len(sides.names.texts), Explanation.NOT_FOUND, np.uint8)
    convention = sides.places[1 - side].convention
    lacks = {} if convention is None or sides.same_code else convention.lacks
    adapters = naming().adapters
    for index, text in enumerate(sides.names.texts):
        code = lacks.get(entry_of(text))
        if code is not None:
            codes[index] = Explanation[code.upper()]
        elif not adapters.isdisjoint(text.split(".")):
            codes[index] = Explanation.FUSED_AWAY
    return codes


def _only_placeholders(dump: Dump) -> Bool:
    """Records whose slots all stand for nothing: null or never resolved."""
    empty = np.isin(dump.slots.leaf, (Leaf.NULL, Leaf.PLACEHOLDER))
    filled = np.bincount(dump.slots.record[~empty], minlength=len(dump.records))
    nothing: Bool = filled == 0
    return nothing


def _faces_nulls(sides: Sides, pairs: Pairs, side: int) -> Bool:
    """Records whose partner is there and holds nulls (gradients of sharded parameters)."""
    other = pairs.slots[1 - side]
    null = sides.dumps[1 - side].slots.leaf[other.values[other.start[:-1]]] == Leaf.NULL
    lists = pairs.slots[side]
    faces = np.zeros(len(sides.dumps[side].records), bool)
    faces[sides.dumps[side].slots.record[lists.values[np.repeat(null, lists.counts())]]] = True
    return faces
