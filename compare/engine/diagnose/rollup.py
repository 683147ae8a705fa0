"""What each node shows: its own difference, its role in the story, and what is inside it. A parent shows its worst child."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from compare.engine.align.conventions import decoder, fill
from compare.engine.align.explain import Explanation
from compare.engine.diagnose.case import Case
from compare.engine.diagnose.origins import Origin
from compare.engine.measure.grades import NO_PAIR, Grade
from compare.engine.model import Bool, Float64, Group, Int32, UInt8

OTHER_SIZE = len(Explanation)  # both sides hold the tensor, for another number of rows
AMPLIFIES = 4.0  # output further off than the worst input by this factor


class Role(IntEnum):
    NONE = 0
    ORIGIN = 1
    INHERITED = 2
    AMPLIFIED = 3
    HEALED = 4
    LEFT_ONLY = 5
    RIGHT_ONLY = 6
    NO_DATA = 7
    NOT_COMPARABLE = 8


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One row a node. ``difference``, ``floor`` and ``growth`` are relative (NaN: none); ``pair`` is the pair that speaks for the node
    (-1: none), ``order`` its place among the compared pairs; ``reason`` is an Explanation (MATCHED: none) or OTHER_SIZE; ``origin``
    indexes the part's origins (-1).
    """

    grade: UInt8
    role: UInt8
    difference: Float64
    floor: Float64
    growth: Float64
    pair: Int32
    order: Int32
    reason: UInt8
    origin: Int32


def facts_of(case: Case, origins: list[tuple[int, Origin]]) -> NodeFacts:
    """``origins``: those of this case, each with its index in the verdict document."""
    count, pairs, grades = len(case.nodes), case.pairs, case.grades
    compared = grades.comparable & ~grades.argument
    puts_out = compared & ((pairs.group == Group.OUTPUT) | (pairs.group == Group.PARAMETERS_GRAD))
    takes_in = compared & (pairs.group == Group.INPUT)
    own = puts_out | (takes_in & ~_any(pairs.node, puts_out, count)[pairs.node])
    pair = _speaker(case, own, count)
    known = pair >= 0
    difference, floor = (_taken(column, pair) for column in (grades.difference, grades.floor))
    into = _largest(pairs.node, takes_in, grades.difference, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.where((into > 0) & (_taken(puts_out.astype(np.float64), pair) == 1), difference / into, np.nan)
    graded = compared & (own | (pairs.group == Group.PARAMETERS))
    grade = np.full(count, NO_PAIR, np.uint8)
    worst = _largest(pairs.node, graded, grades.grade.astype(np.float64), count)
    grade[~np.isnan(worst)] = worst[~np.isnan(worst)].astype(np.uint8)
    grade[(grade == NO_PAIR) & _any(pairs.node, ~grades.comparable & ~grades.nothing, count)] = Grade.INCOMPARABLE
    said = grades.comparable & grades.argument
    grade[(grade == NO_PAIR) & _any(pairs.node, said, count)] = Grade.EQUAL
    begins = min((origin.pair for _, origin in origins), default=len(pairs))
    role = _roles(case, grade, growth, takes_in, pair, begins)
    index = np.full(count, -1, np.int32)
    for number, origin in reversed(origins):
        index[origin.node] = number
        role[origin.node] = Role.ORIGIN
    order = np.where(known, _taken(case.position().astype(np.float64), pair), -1).astype(np.int32)
    reason = _reasons(case)
    other_size = (role == Role.NOT_COMPARABLE) & _any(pairs.node, case.differences.size, count) & (reason == Explanation.MATCHED)
    reason[other_size] = OTHER_SIZE
    return NodeFacts(grade, role, difference, floor, growth, pair, order, reason, index)


def _taken(column: Float64, pair: Int32) -> Float64:
    """The column's value at each node's pair; NaN where it has none."""
    found = np.full(len(pair), np.nan)
    known = pair >= 0
    found[known] = column[pair[known]]
    return found


def _any(node: Int32, chosen: Bool, count: int) -> Bool:
    return np.bincount(node[chosen], minlength=count) > 0


def _largest(node: Int32, chosen: Bool, values: Float64, count: int) -> Float64:
    found = np.full(count, -np.inf)
    usable = chosen & ~np.isnan(values)
    np.maximum.at(found, node[usable], values[usable])
    return np.where(np.isinf(found) & (found < 0), np.nan, found)


def _speaker(case: Case, own: Bool, count: int) -> Int32:
    """Of a node's own pairs the one that stands out most against its limit; while none diverges a layer speaks by its output."""
    rows = np.flatnonzero(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        against = case.grades.difference[rows] / case.grades.floor[rows]
    against = np.nan_to_num(against, nan=-1.0, posinf=np.inf)
    stream = _layer_outputs(case)[rows] & (case.grades.grade[rows] != Grade.DIVERGED)
    other = ~stream & (case.grades.grade[rows] != Grade.DIVERGED)
    ordered = rows[np.lexsort((rows, -against, other, case.pairs.node[rows]))]
    nodes = case.pairs.node[ordered]
    first = np.r_[True, nodes[1:] != nodes[:-1]] if len(nodes) else np.zeros(0, bool)
    pair = np.full(count, -1, np.int32)
    pair[nodes[first]] = ordered[first]
    return pair


def _layer_outputs(case: Case) -> Bool:
    """Pairs that compare the output of the layer they stand at."""
    pattern = decoder().layer_output
    names = {fill(pattern, layer, case.sides.layers): layer for layer in range(case.sides.layers)}
    layer_of_quantity = np.array([names.get(name, -2) for name in case.pairs.quantity_names] + [-2])
    found: Bool = (layer_of_quantity[case.pairs.quantity] == case.layer) & (case.pairs.group == Group.OUTPUT)
    return found


def _roles(case: Case, grade: UInt8, growth: Float64, takes_in: Bool, pair: Int32, begins: int) -> UInt8:
    count = len(case.nodes)
    role = np.full(count, Role.NONE, np.uint8)
    dirty_input = _any(case.pairs.node, takes_in & (case.grades.grade == Grade.DIVERGED), count)
    diverged = grade == Grade.DIVERGED
    role[diverged] = Role.INHERITED
    role[diverged & dirty_input & (growth > AMPLIFIES)] = Role.AMPLIFIED
    role[(grade <= Grade.NOISE) & dirty_input & (pair >= begins)] = Role.HEALED
    sides = [case.nodes.records[side].counts() > 0 for side in (0, 1)]
    without = grade == NO_PAIR
    role[without & sides[0] & sides[1]] = Role.NO_DATA
    role[without & sides[0] & ~sides[1]] = Role.LEFT_ONLY
    role[without & ~sides[0] & sides[1]] = Role.RIGHT_ONLY
    different = _reasons(case) == Explanation.DIFFERENT_KIND
    role[(grade == Grade.INCOMPARABLE) | (without & different & sides[0] & sides[1])] = Role.NOT_COMPARABLE
    return role


def _reasons(case: Case) -> UInt8:
    """Why a node's records have no partner; MATCHED where one of them has."""
    reason = np.full(len(case.nodes), Explanation.MATCHED, np.uint8)
    for side in (1, 0):
        recorded = case.dumps[side].records.recorded
        nodes = case.nodes.node_of[side]
        reason[nodes[recorded]] = case.explanations[side][recorded]
    for side in (0, 1):
        matched = case.matched[side]
        reason[case.nodes.node_of[side][matched]] = Explanation.MATCHED
    return reason
