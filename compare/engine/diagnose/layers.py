"""The layers table: one row a layer, its worst call, with what was compared and what a comparison by name would have shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.align.canonical import template_of
from compare.engine.align.pairs import Reason
from compare.engine.diagnose.case import Case, module_name
from compare.engine.diagnose.premises import layer_output_pairs
from compare.engine.measure.grades import Grade
from compare.engine.measure.statistics import NORM
from compare.engine.model import Direction, Group


@dataclass(frozen=True, slots=True)
class LayerRow:
    """``norm_rel`` = |ΔNorm| / Norm; ``relative_l2`` is that of the elements, where tensors were compared; ``by_name`` is the Norm of the
    right side's same-named layer output and how far it is off, where the layer's output had to be looked for elsewhere."""

    index: int
    left: str | None
    right: str | None
    left_norm: float | None
    right_norm: float | None
    norm_rel: float | None
    relative_l2: float | None
    ulps: float | None
    grade: Grade
    compared: str
    by_name: tuple[str, float, float] | None
    pair: int
    node: int


def layers_of(cases: Sequence[Case]) -> list[LayerRow]:
    found: dict[int, LayerRow] = {}
    for case in cases:
        themselves = _layers_themselves(case)
        for layer, pairs in layer_output_pairs(case).items():
            for pair in pairs:
                row = _row(case, layer, pair, themselves.get((layer, case.call(pair)), []))
                known = found.get(layer)
                if known is None or (row.grade, row.norm_rel or 0.0) > (known.grade, known.norm_rel or 0.0):
                    found[layer] = row
    return [found[layer] for layer in sorted(found)]


def _row(case: Case, layer: int, pair: int, themselves: Sequence[int]) -> LayerRow:
    """``themselves``: the nodes of the layer module in the pair's call."""
    sides = [_own_module(case, themselves, side) for side in (0, 1)]
    norms = [float(side.values[pair, NORM]) for side in case.differences.sides]
    known = bool(case.differences.compared[pair, NORM])
    tensors = case.differences.tensors
    return LayerRow(
        index=layer,
        left=sides[0],
        right=sides[1],
        left_norm=norms[0] if not np.isnan(norms[0]) or known else None,
        right_norm=norms[1] if not np.isnan(norms[1]) or known else None,
        norm_rel=float(case.differences.relative[pair, NORM]) if known else None,
        relative_l2=float(tensors.relative_l2[tensors.row[pair]]) if tensors is not None and tensors.row[pair] >= 0 else None,
        ulps=float(case.differences.ulps[pair, NORM]) if known and np.isfinite(case.differences.ulps[pair, NORM]) else None,
        grade=Grade(int(case.grades.grade[pair])),
        compared=_compared(case, pair),
        by_name=_by_name(case, pair, themselves),
        pair=pair,
        node=next(iter(themselves), int(case.pairs.node[pair])),
    )


def _layers_themselves(case: Case) -> dict[tuple[int, int], list[int]]:
    """(layer, call) → the nodes that stand for the layer itself, whatever its path is called."""
    nodes = case.nodes
    itself = np.array([template_of(name).endswith(".<n>") for name in nodes.names] or [False])
    rows = np.flatnonzero(itself[nodes.path] & (nodes.layer >= 0) & (nodes.direction == Direction.FORWARD) & (nodes.kind == 1))
    found: dict[tuple[int, int], list[int]] = {}
    for row, layer, call in zip(rows.tolist(), nodes.layer[rows].tolist(), nodes.call[rows].tolist(), strict=True):
        found.setdefault((layer, call), []).append(row)
    return found


def _own_module(case: Case, themselves: Sequence[int], side: int) -> str | None:
    for node in themselves:
        if len(case.nodes.records[side][node]):
            return case.nodes.names[int(case.nodes.path[node])]
    return None


def _place(case: Case, pair: int, side: int) -> str:
    """Where a side's slot was found, as a canonical module and slot name."""
    dump = case.dumps[side]
    slot = case.pairs.slots[side][pair][0]
    node = int(case.nodes.node_of[side][dump.slots.record[slot]])
    return f"{module_name(case, node).removeprefix('model.')} {case.slot_name(pair, side)}"


def _compared(case: Case, pair: int) -> str:
    if case.pairs.reason[pair] in (Reason.RESIDUAL_STREAM, Reason.ELSEWHERE):
        elsewhere = int(case.pairs.elsewhere[pair])
        sides = [side for side in (0, 1) if elsewhere & (1 << side)]
        places = ", ".join(f"{('left', 'right')[side]} {_place(case, pair, side)}" for side in sides)
        return f"residual stream: {places}"
    return case.slot_name(pair, 0)


def _by_name(case: Case, pair: int, themselves: Sequence[int]) -> tuple[str, float, float] | None:
    """The same-named output that carries the residual (the last floating-point one), and its distance from the left Norm."""
    if case.pairs.reason[pair] != Reason.RESIDUAL_STREAM:
        return None
    side = 1 if case.pairs.elsewhere[pair] & 2 else 0
    dump = case.dumps[side]
    for node in themselves:
        for record in case.nodes.records[side][node]:
            slots = np.arange(dump.records.slot_start[record], dump.records.slot_start[record + 1])
            outputs = slots[(dump.slots.group[slots] == Group.OUTPUT) & (dump.slots.present[slots] >> NORM & 1 == 1)]
            if len(outputs) < 2:
                continue
            norm = float(dump.slots.statistics[outputs[-1], NORM])
            there = float(case.differences.sides[1 - side].values[pair, NORM])
            return dump.slot_names[int(dump.slots.name[outputs[-1]])], norm, abs(norm - there) / there if there else float("inf")
    return None
