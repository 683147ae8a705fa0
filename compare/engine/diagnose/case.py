"""Everything known about one pair of dumps: the tables of align and measure, and the names the verdict uses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from compare.engine.align.canonical import layer_of
from compare.engine.align.conventions import decoder
from compare.engine.align.explain import explain, matched_records
from compare.engine.align.nodes import NodeKind, Nodes, Sides, nodes_of, sides_of
from compare.engine.align.pairs import Pairs, Reason, pairs_of
from compare.engine.ingest import Progress
from compare.engine.mapping.rules import MappingRules
from compare.engine.measure.elements.copies import copies_apart
from compare.engine.measure.elements.first_rows import with_first_rows
from compare.engine.measure.elements.padding import padding_of
from compare.engine.measure.elements.table import elements_of, has_tensors
from compare.engine.measure.elements.unpadded import unpadded_of
from compare.engine.measure.grades import Grades, grades_of
from compare.engine.measure.noise import Noise, noise_of
from compare.engine.measure.self_noise import Floor, SelfNoise, floor_of, self_noise_of
from compare.engine.measure.statistics import Differences, differences_of, with_tensors
from compare.engine.model import Bool, Direction, Dump, Group, Int32, UInt8
from compare.engine.tensors import HeldTensors

Held: TypeAlias = tuple[HeldTensors, HeldTensors]

LEAST_UNLIKE = 6  # one output in so many of another size: the two ranks hold other shares of the model


@dataclass(frozen=True, slots=True)
class Case:
    """One left dump against one right dump (one rank of a part).

    ``primary`` is the side whose order of execution counts. ``floor`` is what a baseline measured. ``layer`` is the layer of each pair's
    node (-1: outside the decoder's layers), ``depth`` the same with the blocks of other towers counted too. ``position`` is each pair's
    place among the compared pairs (-1: not compared), ``compared`` their number.
    """

    sides: Sides
    nodes: Nodes
    pairs: Pairs
    differences: Differences
    noise: Noise
    grades: Grades
    layer: Int32
    depth: Int32
    primary: int
    exact: bool
    floor: Floor | None
    step: int | None
    rank: int | None
    ranks: tuple[list[int], ...]
    explanations: tuple[UInt8, UInt8]
    matched: tuple[Bool, Bool]
    _representatives: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def dumps(self) -> tuple[Dump, Dump]:
        return self.sides.dumps

    def position(self) -> Int32:
        compared = self.grades.comparable
        return np.where(compared, np.cumsum(compared) - 1, -1).astype(np.int32)

    def quantity(self, pair: int) -> str | None:
        index = int(self.pairs.quantity[pair])
        return None if index < 0 else self.pairs.quantity_names[index]

    def call(self, pair: int) -> int:
        return int(self.nodes.call[self.pairs.node[pair]])

    def representative(self, call: int, quantity: str) -> int | None:
        """The pair that speaks for a quantity of one call: where it is put out, else where it is first seen."""
        if not self._representatives and len(self.pairs):
            self._representatives.update(_representatives(self))
        return self._representatives.get((call, quantity))

    def records_of(self, node: int, side: int) -> list[str]:
        """Names of a node's records on one side."""
        return [self.dumps[side].records.name[int(record)] for record in self.nodes.records[side][node]]

    def pair_records(self, pair: int, side: int) -> list[str]:
        dump = self.dumps[side]
        found = dict.fromkeys(int(dump.slots.record[slot]) for slot in self.pairs.slots[side][pair])
        return [dump.records.name[record] for record in found]

    def checksums(self, pair: int) -> tuple[str, str] | None:
        """The checksums of both sides, where they were compared."""
        if not self.differences.checked[pair]:
            return None
        rows = [int(lists[pair][0]) for lists in self.pairs.slots]
        left, right = (dump.texts[int(dump.slots.checksum[row])] for dump, row in zip(self.dumps, rows, strict=True))
        return left, right

    def slot_name(self, pair: int, side: int) -> str:
        dump = self.dumps[side]
        return dump.slot_names[int(dump.slots.name[self.pairs.slots[side][pair][0]])]


def _representatives(case: Case) -> dict[tuple[int, str], int]:
    pairs, grades = case.pairs, case.grades
    rows = np.flatnonzero((pairs.quantity >= 0) & grades.comparable & (pairs.direction == 0))
    put_out = (pairs.group[rows] == Group.OUTPUT) & (pairs.reason[rows] != Reason.ELSEWHERE)
    rows = rows[np.lexsort((rows, ~put_out))]
    found: dict[tuple[int, str], int] = {}
    for call, quantity, row in zip(case.nodes.call[pairs.node[rows]].tolist(), pairs.quantity[rows].tolist(), rows.tolist(), strict=True):
        found.setdefault((call, pairs.quantity_names[quantity]), row)
    return found


def module_name(case: Case, node: int) -> str:
    """The canonical name of a node: its module path; for an API call ``<module path>/<Prefix.api.N>``, without a module its bare name."""
    nodes = case.nodes
    path = nodes.names[int(nodes.path[node])]
    if nodes.kind[node] != NodeKind.API:
        return path
    call = f"{path}.{int(nodes.number[node])}"
    above = int(nodes.parent[node])
    return call if above < 0 else f"{nodes.names[int(nodes.path[above])]}/{call}"


def maker_of(case: Case, quantity: str, pair: int) -> str:
    """The module that makes a quantity, as far as the dumps know it: a fused name where either side is fused, else the closest module
    around it.
    """
    known = {case.nodes.names[i] for i in np.unique(case.nodes.path)}
    path = decoder().made_by(quantity, case.sides.layers, known)
    if path is None:
        return module_name(case, int(case.pairs.node[pair]))
    whole = decoder().whole_of(quantity)
    if path not in known and whole is not None:
        path = decoder().made_by(whole, case.sides.layers, known) or path
    while path not in known and "." in path and layer_of(path) >= 0:
        path = path.rpartition(".")[0]
    return path if path in known else module_name(case, int(case.pairs.node[pair]))


def build_case(
    left: Sequence[Dump],
    right: Sequence[Dump],
    *,
    primary: int,
    exact: bool,
    spent: dict[str, float],
    watch: Progress,
    self_noise: SelfNoise | None = None,
    mapping: MappingRules | None = None,
    namer: int = 0,
    train: int | None = None,
    held: Held | None = None,
) -> Case:
    """Aligns and measures the dumps of one rank a side, or of all ranks of sides with different layouts. Adds the seconds it took to
    ``spent`` (``align_s``, ``measure_s``) and tells ``watch`` between the steps. ``self_noise``: of the same left dumps. ``mapping``,
    ``namer``, ``train``: see ``sides_of``.
    """
    begin = time.perf_counter()
    sides = sides_of(left, right, mapping, namer, train)
    watch("align", 0.3, {"records": sum(len(dump.records) for dump in (*left, *right))})
    nodes = nodes_of(sides)
    watch("align", 0.6, {"nodes": len(nodes)})
    pairs = pairs_of(sides, nodes, primary)
    aligned = time.perf_counter()
    spent["align_s"] += aligned - begin
    watch("measure", 0.0, {"pairs": len(pairs)})
    differences = _measured(sides, nodes, pairs, held, watch)
    if held is not None and differences.tensors is not None:
        pairs = replace(pairs, disagree=pairs.disagree | copies_apart(pairs, sides, held))
    watch("measure", 0.8, {"pairs": len(pairs)})
    noise = noise_of(pairs, differences)
    layer = nodes.layer[pairs.node] if len(pairs) else np.zeros(0, np.int32)
    numbered = np.array([layer_of(name) for name in nodes.names] + [-1], np.int32)
    depth = np.where(layer >= 0, layer, numbered[nodes.path[pairs.node]]).astype(np.int32) if len(pairs) else layer
    floor = None if self_noise is None else floor_of(self_noise, pairs, noise, replaces=sides.same_code)
    grades = grades_of(pairs, sides.dumps, depth, differences, noise, exact=exact, floor=floor)
    watch("measure", 0.9, {"pairs": len(pairs)})
    usable = grades.comparable | grades.nothing
    matched = (matched_records(sides, pairs, 0, usable), matched_records(sides, pairs, 1, usable))
    explanations = explain(sides, nodes, pairs, matched)
    spent["measure_s"] += time.perf_counter() - aligned
    return Case(
        sides=sides,
        nodes=nodes,
        pairs=pairs,
        differences=differences,
        noise=noise,
        grades=grades,
        layer=layer,
        depth=depth,
        primary=primary,
        exact=exact,
        floor=floor,
        step=left[0].step if left[0].step is not None else right[0].step,
        rank=left[0].rank if left[0].rank is not None else right[0].rank,
        ranks=tuple(list(dict.fromkeys(dump.rank for dump in side if dump.rank is not None)) for side in (left, right)),
        explanations=explanations,
        matched=matched,
    )


def other_layout(case: Case) -> bool:
    """Whether the two ranks compared hold a model cut in different ways: other layers, or the same tokens in tensors of other sizes."""
    left, right = (np.unique(places.layer[places.layer >= 0]) for places in case.sides.places)
    if not np.array_equal(left, right):
        return True
    outputs = (case.pairs.group == Group.OUTPUT) & (case.pairs.direction == Direction.FORWARD) & (case.differences.elements > 0)
    tokens = np.array([name == "tokens" for name in case.pairs.quantity_names] + [False])[case.pairs.quantity]
    same_tokens = bool((tokens & case.differences.equal).any())
    return same_tokens and LEAST_UNLIKE * int((outputs & case.differences.size).sum()) > int(outputs.sum())


def other_shapes(case: Case) -> bool:
    """Whether two ranks, of sides that hold other ranks, have other local shapes: other layers, weights or outputs. Where they worked on
    another number of tokens outputs are held against each other by their last dimension.
    """
    left, right = (np.unique(places.layer[places.layer >= 0]) for places in case.sides.places)
    pairs, size = case.pairs, case.differences.size
    known = case.differences.elements > 0
    weights = (pairs.group == Group.PARAMETERS) & known
    outputs = (pairs.group == Group.OUTPUT) & (pairs.direction == Direction.FORWARD) & known
    tokens = np.array([name == "tokens" for name in pairs.quantity_names] + [False])[pairs.quantity]
    unlike = _other_width(case) if bool((tokens & size).any()) else size
    share = [LEAST_UNLIKE * int((rows & other).sum()) > int(rows.sum()) for rows, other in ((weights, size), (outputs, unlike))]
    return not np.array_equal(left, right) or any(share)


def _other_width(case: Case) -> Bool:
    """Pairs whose tensors differ in their last dimension."""
    widths = []
    for dump, lists in zip(case.dumps, case.pairs.slots, strict=True):
        last = np.array([shape[-1] if shape else 0 for shape in dump.shapes] + [0], np.int64)
        widths.append(last[dump.slots.shape[lists.values[lists.start[:-1]]]])
    found: Bool = widths[0] != widths[1]
    return found


def measured_self_noise(
    left: Sequence[Dump], again: Sequence[Dump], spent: dict[str, float], watch: Progress, held: Held | None = None
) -> SelfNoise | None:
    """How far the left dumps are from a second dump of the same side; None where that does not align: fewer than half of the forward
    records have a partner, or the code, the tokens or the weights are others."""
    case = build_case(left, again, primary=0, exact=False, spent=spent, watch=watch, held=held)
    forward = (case.dumps[0].records.direction == Direction.FORWARD) & case.dumps[0].records.recorded
    tokens = np.array([name == "tokens" for name in case.pairs.quantity_names] + [False])[case.pairs.quantity]
    other_tokens = tokens & (case.differences.size | ~case.differences.equal)
    too_few = 2 * int((case.matched[0] & forward).sum()) < int(forward.sum()) or not forward.any()
    if too_few or not case.sides.same_code or other_tokens.any() or case.grades.weight.any():
        return None
    return self_noise_of(case.pairs, case.noise, case.grades.comparable & ~case.grades.argument, case.dumps[0])


def _measured(sides: Sides, nodes: Nodes, pairs: Pairs, held: Held | None, watch: Progress) -> Differences:
    """By the statistics in dump.json, and by the tensors themselves where both sides have them."""
    if held is None or not has_tensors(sides.dumps):
        return differences_of(pairs, sides.dumps)
    padding = with_first_rows(padding_of(sides, nodes, held), pairs, sides, nodes, held)
    differences = differences_of(pairs, sides.dumps, list(unpadded_of(pairs, sides, nodes, held, padding)))
    watch("measure", 0.1, {"pairs": len(pairs)})
    return with_tensors(differences, elements_of(pairs, sides, nodes, held, padding, watch))
