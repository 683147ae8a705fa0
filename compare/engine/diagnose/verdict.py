"""The verdict document (``probe-web/verdict/1``) of one part: all its ranks together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.align.explain import STRUCTURAL, Explanation
from compare.engine.align.pairs import Reason
from compare.engine.diagnose import headline
from compare.engine.diagnose.baseline import Baseline, baseline_findings, floor_words
from compare.engine.diagnose.case import Case, maker_of, module_name
from compare.engine.diagnose.causes import causes_of
from compare.engine.diagnose.choice_findings import Instead, choice_findings, choice_words
from compare.engine.diagnose.finding import Finding
from compare.engine.diagnose.findings import Unreadable, dumps_unreadable, findings_of, parts_not_compared, unreadable_words
from compare.engine.diagnose.layers import LayerRow, layers_of
from compare.engine.diagnose.origins import Inputs, Kind, Origin, diagnose_origins, downstream_ratio
from compare.engine.diagnose.premises import Premise, failed, premises_of
from compare.engine.diagnose.rank_findings import ranks_alone, ranks_alone_words
from compare.engine.diagnose.rank_order import When, order_of
from compare.engine.diagnose.tensor_findings import first_rows, first_rows_words
from compare.engine.diagnose.words import Text, both
from compare.engine.measure.grades import Grade
from compare.engine.measure.statistics import MAX, MEAN, MIN, NORM
from compare.engine.model import Direction, Group, JsonObject

SCHEMA = "probe-web/verdict/1"
UNEXPLAINED = (Explanation.NOT_FOUND, Explanation.SET_APART)  # what a person sets apart is not explained by that
HIGH, MEDIUM = 3.0, 1.5  # how far over its limit the clearest sign of an origin is


@dataclass(frozen=True, slots=True)
class SideFacts:
    """What the document says of a side besides its numbers. ``left_out``: stages and steps it holds that are in no part; ``instead``: what
    was chosen and is not there.
    """

    name: str
    role: str
    left_out: Sequence[tuple[str | None, int | None]] = ()
    instead: Sequence[Instead] = ()


@dataclass(frozen=True, slots=True)
class PartVerdict:
    """The settled cases of a part (one a rank), its origins with the case each was found in, and the document."""

    cases: Sequence[Case]
    origins: Sequence[tuple[int, Origin]]
    layers: Sequence[LayerRow]
    document: JsonObject


def judge(
    cases: Sequence[Case],
    sides: tuple[SideFacts, SideFacts],
    *,
    same_input: bool,
    baseline: Baseline | None = None,
    unreadable: Sequence[Unreadable] = (),
    pairing: Sequence[Finding] = (),
    alone: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> PartVerdict:
    """``unreadable``: dumps of this part that are in no case; ``alone``: ranks of either side that stand against none of the other. What
    was not compared is not identical. ``pairing``: what is to be said of how these dumps came to be compared.
    """
    premises = premises_of(cases)
    broken = failed(premises)
    settled: list[Case] = []
    origins: list[tuple[int, Origin]] = []
    for index, case in enumerate(cases):
        case, found = (case, []) if broken else diagnose_origins(case)
        settled.append(case)
        origins += [(index, origin) for origin in found]
    earlier = order_of(settled)
    origins.sort(key=lambda entry: (*earlier(entry[0], entry[1].pair), entry[0]))
    layers = layers_of(settled)
    partly = bool(unreadable) or any(alone) or first_rows(settled) is not None
    word = _word(settled, parted=bool(origins), broken=bool(broken), whole=not partly)
    told = [_origin(settled[index], origin) for index, origin in origins]
    said = _headline(word, settled, origins, layers, premises, broken)
    instead = [side.instead for side in sides]
    tails = [first_rows_words(settled), ranks_alone_words(alone), unreadable_words(unreadable), choice_words(instead)]
    for tail in (both("", "") if broken else floor_words(baseline), *tails):
        said = both(said["en"] + tail["en"], said["zh"] + tail["zh"])
    findings: Sequence[Finding] = [
        *pairing,
        *findings_of(settled, layers, premises, same_input=same_input),
        *baseline_findings(baseline, settled),
        *choice_findings(instead),
        *parts_not_compared([side.left_out for side in sides]),
        *ranks_alone(alone),
        *dumps_unreadable(unreadable),
    ]
    document: JsonObject = {
        "schema": SCHEMA,
        "left": _side(sides[0], settled, 0),
        "right": _side(sides[1], settled, 1),
        "verdict": word,
        "headline": said,
        "premises": [{"code": p.code, "state": p.state, "detail": p.detail} for p in premises],
        "first_difference": _first_difference(settled, earlier) if not broken else None,
        "first_divergence": told[0] if told else None,
        "origins": told,
        "coverage": {name: _coverage(settled, side) for side, name in enumerate(("left", "right"))},
        "layers": [_layer(row) for row in layers],
        "findings": [finding.document() for finding in findings],
        "counts": _counts(settled),
        "ranks_alone": {"left": list(alone[0]), "right": list(alone[1])},
        "by_rank": _by_rank(settled, {index for index, _ in origins}, unreadable, alone, broken=bool(broken)),
    }
    return PartVerdict(settled, origins, layers, finite(document))


def finite(value: object) -> JsonObject:
    """The same document with NaN and infinities as strings, as every JSON the product writes has them."""
    return _finite(value)  # type: ignore[return-value]


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _side(facts: SideFacts, cases: Sequence[Case], side: int) -> JsonObject:
    first = cases[0].dumps[side]
    return {
        "name": facts.name,
        "role": facts.role,
        "framework": first.framework,
        "task": first.task,
        "level": first.level,
        "stage": first.stage,
        "step": first.step,
        "ranks": [rank for case in cases for rank in case.ranks[side]],
        "records": sum(int(case.dumps[side].records.recorded.sum()) for case in cases),
    }


def _by_rank(
    cases: Sequence[Case], parted: set[int], unreadable: Sequence[Unreadable], alone: Sequence[Sequence[int]], *, broken: bool
) -> list[JsonObject]:
    """The verdict of each rank that stands against one rank alone, where any does, and of those that stand against none; ``parted``: the
    cases that hold an origin.
    """
    words = {
        case.rank: _word([case], parted=index in parted, broken=broken, whole=True)
        for index, case in enumerate(cases)
        if case.rank is not None and all(len(ranks) == 1 for ranks in case.ranks)
    }
    if not words:
        return []
    one_sided = {rank: f"{side}_only" for side, ranks in zip(("right", "left"), reversed(alone), strict=True) for rank in ranks}
    lost = {dump.rank: "not_comparable" for dump in unreadable if dump.rank is not None}
    return [{"rank": rank, "verdict": word} for rank, word in sorted({**one_sided, **lost, **words}.items())]


def _word(cases: Sequence[Case], *, parted: bool, broken: bool, whole: bool) -> str:
    return "not_comparable" if broken else "diverged" if parted else "identical" if whole and _identical(cases) else "consistent"


def _identical(cases: Sequence[Case]) -> bool:
    """Every paired slot equal, and nothing left unmatched that the other side could have."""
    for case in cases:
        if (case.grades.grade[~case.grades.nothing] != Grade.EQUAL).any() or case.pairs.disagree.any():
            return False
        for explanations in case.explanations:
            if not np.isin(explanations, (Explanation.MATCHED, *STRUCTURAL)).all():
                return False
    return any(bool(case.grades.comparable.any()) for case in cases)


def _headline(
    word: str,
    cases: Sequence[Case],
    origins: Sequence[tuple[int, Origin]],
    layers: Sequence[LayerRow],
    premises: Sequence[Premise],
    broken: Sequence[Premise],
) -> Text:
    if word == "not_comparable":
        return headline.not_comparable(broken)
    if word == "diverged":
        index, origin = origins[0]
        return headline.diverged(cases[index], origin, premises)
    data = headline.rests_on(cases)
    return headline.identical(cases, data) if word == "identical" else headline.consistent(cases, layers, premises, data)


def _origin(case: Case, origin: Origin) -> JsonObject:
    node, pair = origin.node, origin.pair
    records = [case.records_of(node, side) or case.pair_records(pair, side) for side in (0, 1)]
    return {
        "module": origin.module,
        "left": records[0],
        "right": records[1],
        "slot": case.slot_name(pair, case.primary),
        "direction": Direction(int(case.pairs.direction[pair])).name.lower(),
        "order": int(case.position()[pair]),
        "of": int(case.grades.comparable.sum()),
        "stage": case.dumps[0].stage or case.dumps[1].stage,
        "step": case.step,
        "rank": case.rank,
        "kind": str(origin.kind),
        "after": origin.after,
        "before": origin.before,
        "inputs": None if origin.inputs is None else str(origin.inputs),
        "evidence": _evidence(case, pair),
        "confidence": _confidence(origin, max(origin.ratio, downstream_ratio(case, origin))),
        "causes": [cause.document() for cause in causes_of(case, origin)],
    }


def _confidence(origin: Origin, ratio: float) -> str:
    """A place that was not dumped itself (BETWEEN) needs twice the evidence to be called certain; where nothing is known of the inputs,
    none is."""
    certain = 2 * HIGH if origin.kind is Kind.BETWEEN else HIGH
    return "high" if ratio >= certain and origin.inputs is not Inputs.NOT_COMPARED else "medium" if ratio >= MEDIUM else "low"


def _evidence(case: Case, pair: int) -> JsonObject:
    relative, ulps = case.differences.relative[pair], case.differences.ulps[pair]
    known = case.differences.compared[pair]

    def or_none(value: float, there: bool) -> float | None:
        return float(value) if there and not math.isnan(value) else None

    extremes = [float(relative[s]) for s in (MAX, MIN) if known[s] and not math.isnan(relative[s])]
    tensors = case.differences.tensors
    row = -1 if tensors is None else int(tensors.row[pair])
    measured = tensors is not None and row >= 0
    return {
        "norm_rel": or_none(relative[NORM], bool(known[NORM])),
        "max_rel": max(extremes, default=None),
        "mean_over_rms": or_none(relative[MEAN], bool(known[MEAN])),
        "ulps": tensors.median_ulps(row) if tensors is not None and measured else or_none(ulps[NORM], bool(known[NORM])),
        "cosine": or_none(tensors.cosine[row], True) if tensors is not None and measured else None,
        "rel_l2": or_none(tensors.relative_l2[row], True) if tensors is not None and measured else None,
        "checksums": case.checksums(pair),
    }


def _first_difference(cases: Sequence[Case], earlier: Callable[[int, int], When]) -> JsonObject | None:
    """The earliest pair that is not equal, however small; but for a tensor seen elsewhere (a view, say) whose statistics were only
    rounded otherwise.
    """
    found: list[tuple[When, int, int]] = []
    for index, case in enumerate(cases):
        view = (case.pairs.reason == Reason.ELSEWHERE) & (case.grades.grade == Grade.ROUNDING)
        unequal = case.grades.comparable & ~case.differences.equal & ~view
        rows = np.flatnonzero(unequal)
        if len(rows):
            found.append((earlier(index, int(rows[0])), index, int(rows[0])))
    if not found:
        return None
    _, index, pair = min(found)
    case = cases[index]
    quantity = case.quantity(pair)
    put_in = case.pairs.group[pair] == Group.INPUT
    return {
        "module": maker_of(case, quantity, pair) if quantity is not None and put_in else module_name(case, int(case.pairs.node[pair])),
        "left": case.pair_records(pair, 0),
        "right": case.pair_records(pair, 1),
        "slot": case.slot_name(pair, case.primary),
        "direction": Direction(int(case.pairs.direction[pair])).name.lower(),
        "order": int(case.position()[pair]),
        "grade": Grade(int(case.grades.grade[pair])).name.lower(),
        "rank": case.rank,
    }


def _coverage(cases: Sequence[Case], side: int) -> JsonObject:
    records = matched = explained = 0
    for case in cases:
        recorded = case.dumps[side].records.recorded
        records += int(recorded.sum())
        matched += int((case.matched[side] & recorded).sum())
        explained += int((recorded & ~np.isin(case.explanations[side], UNEXPLAINED)).sum())
    return {"records": records, "matched": matched, "explained": explained}


def _layer(row: LayerRow) -> JsonObject:
    by_name = None if row.by_name is None else {"slot": row.by_name[0], "norm": row.by_name[1], "norm_rel": row.by_name[2]}
    return {
        "index": row.index,
        "left": row.left,
        "right": row.right,
        "left_norm": row.left_norm,
        "right_norm": row.right_norm,
        "norm_rel": row.norm_rel,
        "rel_l2": row.relative_l2,
        "ulps": row.ulps,
        "grade": row.grade.name.lower(),
        "compared": row.compared,
        "by_name": by_name,
    }


def _counts(cases: Sequence[Case]) -> JsonObject:
    counts = {
        "pairs": 0,
        "equal": 0,
        "rounding": 0,
        "noise": 0,
        "diverged": 0,
        "incomparable": 0,
        "unmatched_left": 0,
        "unmatched_right": 0,
    }
    for case in cases:
        grades = np.bincount(case.grades.grade[~case.grades.nothing], minlength=5)
        counts["pairs"] += int(grades.sum())
        for grade in Grade:
            counts[grade.name.lower()] += int(grades[grade])
        for side, name in enumerate(("unmatched_left", "unmatched_right")):
            counts[name] += int((case.dumps[side].records.recorded & ~case.matched[side]).sum())
    return counts
