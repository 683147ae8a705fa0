"""Cases → the rows of the tree: nodes in pre-order, with sections where a dump holds more than one call or direction, and parts of fused
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.align.canonical import ROOT, canonical_path
from compare.engine.align.explain import CODES, Explanation
from compare.engine.align.nodes import NodeKind
from compare.engine.align.places import Interner
from compare.engine.diagnose.case import Case, module_name
from compare.engine.diagnose.order import node_order
from compare.engine.diagnose.origins import Origin
from compare.engine.diagnose.rollup import NodeFacts, Role, facts_of
from compare.engine.measure.grades import NO_PAIR
from compare.engine.model import Bool, Direction, Int32, RecordKind

NONE = 255


@dataclass(frozen=True, slots=True)
class Tree:
    """``columns`` as on the wire; ``case``, ``node`` and ``part`` say what a row stands for (-1: a section; part: a record of the left
    side).
    """

    columns: dict[str, NDArray[Any]]
    strings: Sequence[str]
    reasons: Sequence[str]
    case: Int32
    node: Int32
    part: Int32
    facts: Sequence[NodeFacts]


@dataclass(slots=True)
class _Row:
    parent: int
    depth: int
    kind: int
    case: int
    node: int
    part: int
    name: int
    right_name: int


class _Builder:
    def __init__(self, cases: Sequence[Case], facts: Sequence[NodeFacts]) -> None:
        self.cases = cases
        self.facts = facts
        self.strings = Interner()
        self.rows: list[_Row] = []

    def add(self, parent: int, kind: int, case: int, node: int, part: int, name: str, right_name: str | None) -> int:
        depth = self.rows[parent].depth + 1 if parent >= 0 else 0
        right = -1 if right_name is None or right_name == name else self.strings(right_name)
        self.rows.append(_Row(parent, depth, kind, case, node, part, self.strings(name), right))
        return len(self.rows) - 1

    def case_rows(self, index: int, above: int) -> None:
        case = self.cases[index]
        nodes = case.nodes
        order = node_order(case)
        ranked = np.lexsort((order, nodes.parent))
        starts = np.searchsorted(nodes.parent[ranked], np.arange(-1, len(nodes) + 1))
        children = [ranked[starts[i + 1] : starts[i + 2]].tolist() for i in range(-1, len(nodes))]
        roots = children[0]
        groups: dict[tuple[int, int], list[int]] = {}
        for root in roots:
            groups.setdefault((int(nodes.direction[root]), int(nodes.call[root])), []).append(root)
        calls = {direction: sum(1 for d, _ in groups if d == direction) for direction, _ in groups}
        names = _Names(case)
        for (direction, call), members in sorted(groups.items(), key=lambda group: order[group[1]].min()):
            section = above
            if len(groups) > 1:
                label = Direction(direction).name.lower() + (f" {call}" if calls[direction] > 1 else "")
                section = self.add(above, NodeKind.SECTION, index, -1, -1, label, None)
            pending = [(node, section) for node in reversed(members)]
            while pending:
                node, parent = pending.pop()
                row = self.add(parent, int(nodes.kind[node]), index, node, -1, *names.of(node))
                self.parts(index, node, row, names)
                pending += [(child, row) for child in reversed(children[node + 1])]

    def parts(self, index: int, node: int, row: int, names: _Names) -> None:
        case = self.cases[index]
        many, one = (case.nodes.records[side][node] for side in (0, 1))
        side = 0
        if len(one) > len(many):
            many, one, side = one, many, 1
        if len(many) < 2:
            return
        kind, places = case.dumps[side].records.kind, case.sides.places[side]
        first = (places.rank[many] == places.rank[many[0]]) & (places.piece[many] == places.piece[many[0]])
        plain = many[first & (kind[many] == RecordKind.MODULE)].tolist()
        if len(plain) < 2:
            return
        begin = 0
        for record in plain:
            width = _output_width(case, side, record)
            rows = f"{begin}–{begin + width - 1}" if width else None
            begin += width
            self.add(row, NodeKind.PART, index, node, record if side == 0 else -2 - record, names.record(side, record), rows)


class _Names:
    """How rows are called: each side's own last path component, without wrappers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.shown = [
            [_last(canonical_path(path, listed=places.listed)) for path in dump.paths]
            for dump, places in zip(case.dumps, case.sides.places, strict=True)
        ]

    def record(self, side: int, record: int) -> str:
        return self.shown[side][int(self.case.dumps[side].records.path[record])]

    def of(self, node: int) -> tuple[str, str | None]:
        nodes = self.case.nodes
        if nodes.kind[node] == NodeKind.API:
            return f"{nodes.names[int(nodes.path[node])]}.{int(nodes.number[node])}", None
        sides = [self._side(node, side) for side in (0, 1)]
        path = nodes.names[int(nodes.path[node])]
        if path == ROOT:
            return self._root(node), None
        own = _last(path)
        return (sides[0] or sides[1] or own), sides[1] if sides[0] else None

    def _root(self, node: int) -> str:
        """The model itself has no name of its own: its class."""
        for side, dump in enumerate(self.case.dumps):
            for record in self.case.nodes.records[side][node]:
                if dump.records.class_name[record] >= 0:
                    return dump.classes[int(dump.records.class_name[record])]
        return ROOT

    def _side(self, node: int, side: int) -> str:
        records = self.case.nodes.records[side][node]
        return ", ".join(dict.fromkeys(self.record(side, int(record)) for record in records))


def _last(path: str) -> str:
    """The last component of a path; a number together with the name before it: ``layers.3``."""
    parts = path.split(".")
    return ".".join(parts[-2:]) if parts[-1].isdigit() and len(parts) > 1 else parts[-1]


def _output_width(case: Case, side: int, record: int) -> int:
    dump = case.dumps[side]
    for slot in range(int(dump.records.slot_start[record]), int(dump.records.slot_start[record + 1])):
        shape = int(dump.slots.shape[slot])
        if dump.slot_names[int(dump.slots.name[slot])] == "output.0" and shape >= 0 and dump.shapes[shape]:
            return int(dump.shapes[shape][-1])
    return 0


def tree_of(cases: Sequence[Case], origins: Sequence[tuple[int, Origin]]) -> Tree:
    facts = [facts_of(case, [(n, o) for n, (at, o) in enumerate(origins) if at == index]) for index, case in enumerate(cases)]
    builder = _Builder(cases, facts)
    for index, case in enumerate(cases):
        above = -1
        if len(cases) > 1:
            above = builder.add(-1, NodeKind.SECTION, index, -1, -1, f"rank {case.rank}", None)
        builder.case_rows(index, above)
    rows = builder.rows
    case_of, node_of, part_of = (np.array([getattr(row, name) for row in rows], np.int32) for name in ("case", "node", "part"))
    columns: dict[str, NDArray[Any]] = {
        "parent": np.array([row.parent for row in rows], np.int32),
        "depth": np.array([row.depth for row in rows], np.uint8),
        "kind": np.array([row.kind for row in rows], np.uint8),
        "name": np.array([row.name for row in rows], np.int32),
        "right_name": np.array([row.right_name for row in rows], np.int32),
    }
    _own_columns(columns, builder, case_of, node_of, part_of)
    _inside_columns(columns)
    reasons = [CODES[code] for code in Explanation if code is not Explanation.MATCHED] + ["other_size"]
    return Tree(columns, builder.strings.texts, reasons, case_of, node_of, part_of, facts)


def _own_columns(columns: dict[str, NDArray[Any]], builder: _Builder, case_of: Int32, node_of: Int32, part_of: Int32) -> None:
    count = len(node_of)
    empty = {
        "direction": 0,
        "call": 0,
        "layer": -1,
        "role": 0,
        "grade": NO_PAIR,
        "difference": np.nan,
        "floor": np.nan,
        "growth": np.nan,
        "order": -1,
        "origin": -1,
        "reason": NONE,
        "module": -1,
        "left_class": -1,
        "right_class": -1,
        "left_count": 0,
        "right_count": 0,
    }
    for name, value in empty.items():
        columns[name] = np.full(count, value, np.float64 if isinstance(value, float) else np.int32)
    for index, (case, facts) in enumerate(zip(builder.cases, builder.facts, strict=True)):
        rows = np.flatnonzero((case_of == index) & (node_of >= 0))
        node = node_of[rows]
        nodes = case.nodes
        for name, source in (
            ("direction", nodes.direction),
            ("call", nodes.call),
            ("layer", nodes.layer),
            ("role", facts.role),
            ("grade", facts.grade),
            ("difference", facts.difference),
            ("floor", facts.floor),
            ("growth", facts.growth),
            ("order", facts.order),
            ("origin", facts.origin),
        ):
            columns[name][rows] = source[node]
        columns["reason"][rows] = np.where(facts.reason[node] == Explanation.MATCHED, NONE, facts.reason[node].astype(np.int32) - 1)
        columns["module"][rows] = [builder.strings(module_name(case, n)) for n in node.tolist()]
        for side, name in enumerate(("left", "right")):
            columns[f"{name}_count"][rows] = _call_counts(case, side)[node]
            columns[f"{name}_class"][rows] = _class_names(case, side, builder.strings)[node]
        _part_columns(columns, case, rows[part_of[rows] != -1], part_of)


def _call_counts(case: Case, side: int) -> Int32:
    """Records of a node, gradients of parameters aside: they belong to the module's backward call."""
    records = case.dumps[side].records
    first = _first_rank(case, side)
    calls = np.flatnonzero(records.recorded & (records.kind != RecordKind.PARAMETERS_GRAD) & first)
    with_calls = np.bincount(case.nodes.node_of[side][calls], minlength=len(case.nodes))
    every = case.nodes.records[side].counts()
    return np.minimum(np.where(with_calls > 0, with_calls, np.minimum(every, 1)), 255).astype(np.int32)


def _first_rank(case: Case, side: int) -> Bool:
    """Records of the lowest rank that holds their node: the others' say the same."""
    rank, node = case.sides.places[side].rank, case.nodes.node_of[side]
    lowest = np.full(len(case.nodes), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(lowest, node, rank)
    first: Bool = rank == lowest[node]
    return first


def _class_names(case: Case, side: int, strings: Interner) -> Int32:
    records = case.dumps[side].records
    table = np.array([strings(name) for name in case.dumps[side].classes] + [-1], np.int32)
    found = np.full(len(case.nodes), -1, np.int32)
    rows = np.arange(len(records))[::-1]  # the first record of a node writes last
    found[case.nodes.node_of[side][rows]] = table[records.class_name[rows]]
    return found


def _part_columns(columns: dict[str, NDArray[Any]], case: Case, rows: NDArray[Any], part_of: Int32) -> None:
    """A part has no story of its own: no role, no order; its difference is that of the pair its output takes part in alone, where there
    is one.
    """
    for name, value in (
        ("role", Role.NONE),
        ("origin", -1),
        ("order", -1),
        ("grade", NO_PAIR),
        ("reason", NONE),
        ("left_count", 0),
        ("right_count", 0),
    ):
        columns[name][rows] = value
    for name in ("difference", "floor", "growth"):
        columns[name][rows] = np.nan
    if not len(rows):
        return
    alone: dict[tuple[int, int], int] = {}
    for side in (0, 1):
        lists = case.pairs.slots[side]
        single = np.flatnonzero((lists.counts() == 1) & (case.pairs.group == 2) & case.grades.comparable)
        record = case.dumps[side].slots.record[lists.values[lists.start[single]]]
        for pair, owner in zip(single[::-1].tolist(), record[::-1].tolist(), strict=True):
            alone[side, owner] = pair
    for row in rows.tolist():
        part = int(part_of[row])
        pair = alone.get((0, part) if part >= 0 else (1, -2 - part))
        columns["left_count" if part >= 0 else "right_count"][row] = 1
        if pair is not None:
            columns["grade"][row] = case.grades.grade[pair]
            columns["difference"][row] = case.grades.difference[pair]
            columns["floor"][row] = case.grades.floor[pair]


def _inside_columns(columns: dict[str, NDArray[Any]]) -> None:
    """Sizes, worst descendants and counts, from the last row up: a parent comes before its children."""
    parent, role, difference = columns["parent"].tolist(), columns["role"].tolist(), columns["difference"].tolist()
    part = (columns["kind"] == NodeKind.PART).tolist()
    count = len(parent)
    size, worst = [1] * count, [float("nan")] * count
    inside = {kind: [0] * count for kind in (Role.ORIGIN, Role.INHERITED, Role.AMPLIFIED)}
    for row in range(count - 1, -1, -1):
        above = parent[row]
        if above < 0:
            continue
        size[above] += size[row]
        for value in (worst[row], difference[row]):
            if not part[row] and value == value and not value <= worst[above]:
                worst[above] = value
        for kind, counts in inside.items():
            counts[above] += counts[row] + (role[row] == kind)
    columns["size"] = np.array(size, np.int32)
    columns["worst"] = np.array(worst)
    columns["inside_origin"] = np.array(inside[Role.ORIGIN], np.int32)
    columns["inside_inherited"] = np.array(inside[Role.INHERITED], np.int32)
    columns["inside_amplified"] = np.array(inside[Role.AMPLIFIED], np.int32)
