"""What the numbers rest on: same tokens, same length, same positions, same weights, enough overlap. Each is reported; three of them end a
comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compare.engine.align.conventions import decoder, fill, pattern_of
from compare.engine.align.explain import Explanation
from compare.engine.align.nodes import NodeKind
from compare.engine.diagnose.case import Case, module_name
from compare.engine.measure.statistics import MAX, MIN, NORM
from compare.engine.measure.ulp import EXACT, significand_bits
from compare.engine.model import Direction, Group, JsonObject, Leaf

ENDS_COMPARISON = ("tokens", "length", "overlap")
FIRST_STREAM = "stream.0"


@dataclass(frozen=True, slots=True)
class Premise:
    code: str
    state: str  # ok, failed or unknown
    detail: JsonObject


def premises_of(cases: Sequence[Case]) -> list[Premise]:
    """All premises over the ranks compared: failed where one rank fails, ok where one is ok and none fails."""
    found = []
    for check in (_tokens, _length, _positions, _weights, _overlap):
        each = [check(case) for case in cases]
        worst = next((p for p in each if p.state == "failed"), None) or next((p for p in each if p.state == "ok"), each[0])
        found.append(worst)
    return found


def failed(premises: Sequence[Premise], codes: Sequence[str] = ENDS_COMPARISON) -> list[Premise]:
    return [premise for premise in premises if premise.state == "failed" and premise.code in codes]


def _pair(case: Case, quantity: str) -> int | None:
    """The first pair of a quantity, comparable or not."""
    if quantity not in case.pairs.quantity_names:
        return None
    rows = np.flatnonzero(case.pairs.quantity == case.pairs.quantity_names.index(quantity))
    return int(rows[0]) if len(rows) else None


def _side_values(case: Case, pair: int, statistic: int) -> list[float]:
    return [float(case.differences.sides[side].values[pair, statistic]) for side in (0, 1)]


def _tokens(case: Case) -> Premise:
    """The ids agree in their extremes, and equal ids through equal embedding weights give an equal embedding."""
    ids, embedding = _pair(case, "tokens"), _pair(case, FIRST_STREAM)
    detail: JsonObject = {}
    if ids is not None:
        detail["count"] = [int(side.elements[ids]) for side in case.differences.sides]
        detail["max"] = _side_values(case, ids, MAX)
        detail["min"] = _side_values(case, ids, MIN)
        if not case.differences.size[ids] and not case.differences.equal[ids]:
            return Premise("tokens", "failed", detail)
    if embedding is None or case.differences.size[embedding] or case.differences.nonfinite[embedding]:
        return Premise("tokens", "ok" if ids is not None and case.differences.equal[ids] else "unknown", detail)
    detail["embedding_norm"] = _side_values(case, embedding, NORM)
    if case.grades.ratio[embedding] <= 1 or _one_factor(case, embedding):
        return Premise("tokens", "ok", detail)
    weights = np.flatnonzero(
        (case.pairs.node == case.pairs.node[embedding]) & (case.pairs.group == Group.PARAMETERS) & case.grades.comparable
    )
    if not len(weights):
        return Premise("tokens", "unknown", detail)
    return Premise("tokens", "ok" if case.grades.weight[weights].any() else "failed", detail)


def _one_factor(case: Case, pair: int) -> bool:
    """Whether all statistics of one side are those of the other times one factor: a scale was applied, the tokens are the same."""
    left, right = (side.values[pair] for side in case.differences.sides)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = right[[MAX, MIN, NORM]] / left[[MAX, MIN, NORM]]
    if not np.isfinite(ratio).all():
        return False
    rounding = 4 * float(case.noise.unit[pair])
    return bool(np.ptp(ratio) <= rounding * abs(ratio).max()) and bool(abs(ratio[2] - 1) > rounding)


def _length(case: Case) -> Premise:
    ids = _pair(case, "tokens")
    if ids is not None:
        counts = [int(side.elements[ids]) for side in case.differences.sides]
        return Premise("length", "ok" if counts[0] == counts[1] else "failed", {"left": counts[0], "right": counts[1]})
    stream = _pair(case, FIRST_STREAM)
    if stream is not None:
        counts = [int(side.elements[stream]) for side in case.differences.sides]
        return Premise("length", "ok" if counts[0] == counts[1] else "failed", {"left": counts[0], "right": counts[1], "of": "embedding"})
    outputs = (case.pairs.group == Group.OUTPUT) & (case.pairs.direction == Direction.FORWARD)
    sized = outputs & (case.differences.sides[0].elements > 0) & (case.differences.sides[1].elements > 0)
    if not sized.any():
        return Premise("length", "unknown", {})
    apart = int((sized & case.differences.size).sum())
    return Premise("length", "failed" if 2 * apart > int(sized.sum()) else "ok", {"outputs": int(sized.sum()), "other_size": apart})


def _positions(case: Case) -> Premise:
    pair = _pair(case, "positions")
    fractional = _fractional_positions(case)
    if fractional is not None:
        return Premise("positions", "failed", fractional)
    if pair is None or case.differences.size[pair]:
        return Premise("positions", "unknown", {})
    detail: JsonObject = {"max": _side_values(case, pair, MAX), "min": _side_values(case, pair, MIN)}
    return Premise("positions", "ok" if case.differences.equal[pair] else "failed", detail)


def _fractional_positions(case: Case) -> JsonObject | None:
    """Positions stored in a floating dtype: large ones are no longer integers."""
    for side, dump in enumerate(case.dumps):
        named = np.array([name.rpartition(".")[2] in ("positions", "position_ids") for name in dump.slot_names] or [False])
        rows = np.flatnonzero(named[dump.slots.name] & (dump.slots.leaf == Leaf.TENSOR))
        if len(rows) and significand_bits(dump.dtypes[int(dump.slots.dtype[rows[0]])]) != EXACT:
            return {"side": ("left", "right")[side], "dtype": dump.dtypes[int(dump.slots.dtype[rows[0]])]}
    return None


def _weights(case: Case) -> Premise:
    parameters = weights_of(case)
    if not parameters.compared:
        return Premise("weights", "unknown", {"compared": 0})
    detail: JsonObject = {"compared": parameters.compared, "differing": parameters.differing, "modules": parameters.modules[:8]}
    return Premise("weights", "failed" if parameters.differing else "ok", detail)


@dataclass(frozen=True, slots=True)
class Weights:
    """How many parameters were compared, how many of them differ (each counted once, however often it was used), and in which modules."""

    compared: int
    differing: int
    modules: Sequence[str]


def weights_of(case: Case) -> Weights:
    parameters = (case.pairs.group == Group.PARAMETERS) & case.grades.comparable
    if not parameters.any():
        return Weights(0, 0, ())
    key = case.nodes.path[case.pairs.node].astype(np.int64) * len(case.dumps[0].slot_names) + _names(case)
    differing = np.flatnonzero(parameters & case.grades.weight)
    modules = list(dict.fromkeys(module_name(case, int(case.pairs.node[pair])) for pair in differing.tolist()))
    return Weights(len(np.unique(key[parameters])), len(np.unique(key[differing])), modules)


def _names(case: Case) -> np.ndarray[Any, np.dtype[np.int32]]:
    lists = case.pairs.slots[0]
    return case.dumps[0].slots.name[lists.values[lists.start[:-1]]]


def _overlap(case: Case) -> Premise:
    """Enough of the forward pass was matched, and some layer's output can be compared."""
    counts = []
    for side, dump in enumerate(case.dumps):
        forward = (dump.records.direction == Direction.FORWARD) & dump.records.recorded
        forward &= case.explanations[side] != Explanation.OTHER_CALLS  # the calls of another implementation have no partner to miss
        counts.append((int((forward & case.matched[side]).sum()), int(forward.sum())))
    smaller = min(counts, key=lambda count: count[1])
    detail: JsonObject = {"matched": [c[0] for c in counts], "records": [c[1] for c in counts]}
    enough = smaller[1] > 0 and 2 * smaller[0] >= smaller[1] and bool(case.grades.comparable.any())
    layers = layer_output_pairs(case)
    detail["layers"] = len(layers)
    if not all(len(dump.slots) for dump in case.dumps):
        there = [case.nodes.records[side].counts() > 0 for side in (0, 1)]
        detail["names_only"] = {
            "both": int((there[0] & there[1]).sum()),
            "left": int((there[0] & ~there[1]).sum()),
            "right": int((there[1] & ~there[0]).sum()),
        }
    has_layers = case.sides.layers > 0
    return Premise("overlap", "ok" if enough and (layers or not has_layers) else "failed", detail)


def layer_output_pairs(case: Case) -> dict[int, list[int]]:
    """Layer → the pairs that compare its output, one a call: by the vocabulary the residual stream, else the layer module's first
    output.
    """
    pattern = decoder().layer_output
    found: dict[int, list[int]] = {}
    by_name = {name: index for index, name in enumerate(case.pairs.quantity_names)}
    usable = case.grades.comparable & (case.pairs.direction == Direction.FORWARD) & ~case.grades.argument
    for layer in range(case.sides.layers):
        index = by_name.get(fill(pattern, layer, case.sides.layers))
        rows = np.flatnonzero(usable & (case.pairs.quantity == index)) if index is not None else np.zeros(0, np.int64)
        if len(rows):
            own = (case.pairs.group[rows] == Group.OUTPUT) & (case.layer[rows] == layer)
            rows = rows[np.argsort(~own, kind="stable")]
            _, first = np.unique(case.nodes.call[case.pairs.node[rows]], return_index=True)
            found[layer] = rows[first].tolist()
    if found:
        return found
    is_layer = np.array([pattern_of(name)[1] >= 0 for name in case.nodes.names] or [False])
    module = is_layer[case.nodes.path] & (case.nodes.kind == NodeKind.MODULE)
    rows = np.flatnonzero(usable & (case.pairs.group == Group.OUTPUT) & module[case.pairs.node] & ~case.differences.exact)
    for node, row in zip(case.pairs.node[rows].tolist(), rows.tolist(), strict=True):
        layer = int(case.nodes.layer[node])
        if not any(case.pairs.node[known] == node for known in found.get(layer, [])):
            found.setdefault(layer, []).append(row)
    return found
