"""Where the sides first part: the earliest place whose inputs (and parameters) still agree and whose output no longer does.

The first pair that diverges is a symptom; the search follows it back through what it is made of (``vocabulary/decoder.yaml``: ``from``)
while the sources stand out too, though by less than the limit. A differing parameter is an origin of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from compare.engine.align.canonical import ROOT
from compare.engine.align.conventions import decoder, fill
from compare.engine.diagnose.case import Case, maker_of, module_name
from compare.engine.measure.grades import Grade, grades_of
from compare.engine.measure.noise import profile
from compare.engine.model import Bool, Direction, Group, Int64

MOST_ORIGINS = 16
CLEAR = 1.5  # how far beyond its limit a pair must be to need no second sign, and to count before a parameter that plainly differs
INDEPENDENT_RATIO = 3.0  # and to be told from a consequence of an earlier origin
MANY_CONSEQUENCES = 8
BARELY = 1.1  # below this two statistics over their limits are no more than one
LEAP = 8.0  # how much further over its limit what follows must be for a lone small sign before it to be chance


class Kind(StrEnum):
    ORIGIN = "origin"
    NONFINITE = "nonfinite"
    BETWEEN = "between"
    WEIGHTS = "weights"


class Inputs(StrEnum):
    """What is known of an origin's inputs: all that both sides have were compared and agree, or only some of them, or none."""

    AGREE = "agree"
    SOME_NOT_COMPARED = "some_not_compared"
    NOT_COMPARED = "not_compared"


@dataclass(frozen=True, slots=True)
class Origin:
    """``pair`` holds the evidence. ``node`` is the row of the tree it is shown at. ``after`` and ``before`` are module names, for BETWEEN
    only. ``ratio`` is how far over its limit the clearest sign of it is (inf: a parameter or NaN). ``inputs``: for ORIGIN only."""

    pair: int
    node: int
    module: str
    kind: Kind
    after: str | None
    before: str | None
    ratio: float
    inputs: Inputs | None = None


def diagnose_origins(case: Case) -> tuple[Case, list[Origin]]:
    """The origins in execution order, and the case with its grades settled: judged against the level before the first of them."""
    weights = np.flatnonzero(case.grades.weight)
    case, first, chance = _symptom(case, weights)
    if first is None and not len(weights):
        return case, []
    symptom = None if first is None else _followed_back(case, first)
    clearest = 0.0 if first is None else float(case.grades.ratio[first])
    begins = min(x for x in (first, symptom, int(weights[0]) if len(weights) else None) if x is not None)
    case = _graded(case, chance, begins, symptom)
    found = [_weights(case, pair) for pair in _once_a_module(case, weights)]
    if symptom is not None and (not len(weights) or symptom < weights[0]):
        found.append(_activation(case, symptom, clearest))
    begun = {origin.module for origin in found}
    if not case.exact and case.pairs.direction[begins] == Direction.FORWARD:
        found += [origin for origin in _independent(case, begins) if origin.module not in begun]
    found.sort(key=lambda origin: origin.pair)
    return case, found[:MOST_ORIGINS]


def _graded(case: Case, chance: Bool, begins: int | None = None, stands_out: int | None = None) -> Case:
    grades = grades_of(
        case.pairs,
        case.dumps,
        case.depth,
        case.differences,
        case.noise,
        exact=case.exact,
        floor=case.floor,
        begins=begins,
        stands_out=stands_out,
        chance=chance,
    )
    return replace(case, grades=grades, _representatives={})


def _symptom(case: Case, weights: Int64) -> tuple[Case, int | None, Bool]:
    """The first pair that diverges and does not stand alone. Of many honest pairs one or the other leaves its limit by chance; a fault
    shows in more than one statistic, far over the limit, or in what is made of the tensor.
    """
    chance = np.zeros(len(case.pairs), bool)
    while True:
        first = _first_beyond(case, weights)
        if first is None or case.exact or _corroborated(case, first):
            return case, first, chance
        chance |= _same_tensor(case, first)
        case = _graded(case, chance)


def _same_tensor(case: Case, pair: int) -> Bool:
    quantity = case.pairs.quantity
    same: Bool = (quantity == quantity[pair]) & (case.nodes.call[case.pairs.node] == case.call(pair)) & (quantity >= 0)
    same[pair] = True
    return same


def _corroborated(case: Case, pair: int) -> bool:
    if case.grades.ratio[pair] >= CLEAR:
        return True
    over = case.noise.estimate[pair] > case.grades.limit[pair]
    later = (case.grades.grade == Grade.DIVERGED) & ~case.grades.weight & ~_same_tensor(case, pair)
    if int(over.sum()) > 1 and case.grades.ratio[pair] >= BARELY:
        return True
    following = np.flatnonzero(later[pair:])[:1] + pair
    if not len(following):
        return int(over.sum()) > 1
    # A chance just before a fault: what follows leaps, from a level that was noisy already.
    leaps = case.grades.ratio[following[0]] > LEAP * case.grades.ratio[pair]
    return not (bool(leaps) and case.grades.level[pair].max() >= profile().exact_level)


def _first_beyond(case: Case, weights: Int64) -> int | None:
    """The first pair in execution order that diverges, parameters aside. Gradients count only when forward pass and weights agree."""
    beyond = (case.grades.grade == Grade.DIVERGED) & ~case.grades.weight & (case.pairs.group != Group.PARAMETERS)
    forward = beyond & (case.pairs.direction == Direction.FORWARD)
    if len(weights):
        clear = case.grades.ratio >= CLEAR
        before = np.flatnonzero(forward & clear & (np.arange(len(forward)) < weights[0]))
        return int(before[0]) if len(before) else None
    rows = np.flatnonzero(forward) if forward.any() else np.flatnonzero(beyond)
    return int(rows[0]) if len(rows) else None


def _sources(case: Case, pair: int) -> tuple[list[int], bool]:
    """The measured pairs that a pair's tensor is made of, and whether a step in between was not measured."""
    quantity = case.quantity(pair)
    if quantity is not None:
        found = dict.fromkeys(_measured_sources(case, case.call(pair), quantity, {quantity}))
        gap = any(one is None for one in found)
        return [one for one in found if one is not None], gap
    if case.pairs.group[pair] == Group.INPUT:
        return [], True
    node = case.pairs.node[pair]
    same = np.flatnonzero((case.pairs.node == node) & (case.pairs.group == Group.INPUT) & case.grades.comparable)
    return same.tolist(), False


def _measured_sources(case: Case, call: int, quantity: str, seen: set[str]) -> Iterator[int | None]:
    """Pairs of the quantity's sources; where a source was not measured, None and what *it* is made of. ``seen`` keeps each quantity to
    one visit.
    """
    for alternatives in decoder().made_from(quantity, case.sides.layers):
        for name in alternatives:
            measured = _measured(case, call, name) if name else []
            if measured or not name:  # no name: a source that not every model has
                yield from measured
                break
        else:
            yield None
            if alternatives[-1] not in seen:
                seen.add(alternatives[-1])
                yield from _measured_sources(case, call, alternatives[-1], seen)


def _measured(case: Case, call: int, quantity: str) -> list[int]:
    own = case.representative(call, quantity)
    whole = decoder().whole_of(quantity)
    around = None if whole is None else case.representative(call, whole)
    if own is not None:
        return [own] if around is None else [own, around]
    parts = [case.representative(call, part) for part in decoder().parts_of(quantity)]
    if parts and all(part is not None for part in parts):
        return [part for part in parts if part is not None]
    return [] if around is None else [around]


def _suspicion(case: Case, pair: int) -> float:
    """How far a pair stands out, in units of what calls for following it back: half its limit, or little at all while everything was
    equal.
    """
    if case.differences.nonfinite[pair] or not case.grades.comparable[pair]:
        return 0.0
    if case.exact:
        return 0.0 if case.differences.equal[pair] else np.inf
    half = case.grades.limit[pair] / 2
    if case.grades.level[pair].max() < profile().exact_level:
        half = np.minimum(half, profile().exact_jump)
    with np.errstate(invalid="ignore"):
        return float((case.noise.estimate[pair] / half).max())


def _followed_back(case: Case, pair: int) -> int:
    """The earliest ancestor reached by going, step by step, to the source that stands out most."""
    if case.differences.nonfinite[pair]:
        return pair
    if _edge(case, pair) is not None:
        return pair
    quantity = case.quantity(pair)
    start = case.representative(case.call(pair), quantity) if quantity is not None else None
    here = pair if start is None else start
    seen = {here}
    while True:
        sources = [source for source in _through_streams(case, _sources(case, here)[0]) if source not in seen]
        suspects = [(suspicion, source) for source in sources if (suspicion := _suspicion(case, source)) > 1]
        if not suspects:
            break
        here = max(suspects)[1]
        seen.add(here)
    return min([here, *_early_signs(case, here)])


def _edge(case: Case, pair: int) -> int | None:
    """The pair at which the same tensor is put out and still agrees, where it differs only as an input: something changed it on the way."""
    quantity = case.quantity(pair)
    if quantity is None or case.pairs.group[pair] != Group.INPUT:
        return None
    maker = case.representative(case.call(pair), quantity)
    return maker if maker is not None and maker != pair and case.grades.grade[maker] != Grade.DIVERGED else None


def _early_signs(case: Case, pair: int) -> Iterator[int]:
    """Ancestors in the same layer that stood out while nearly everything before them was equal to the last bit: where that ended is where
    it began, even if what lies between shows nothing (one branch dwarfed by a residual stream, say).
    """
    pending, seen = [pair], {pair}
    while pending:
        for source in _sources(case, pending.pop())[0]:
            if source in seen or case.layer[source] != case.layer[pair]:
                continue
            seen.add(source)
            pending.append(source)
            if case.grades.level[source].max() < profile().exact_level and _suspicion(case, source) > 1:
                yield source


def _through_streams(case: Case, sources: list[int]) -> list[int]:
    """The sources, and those of the residual streams among them: a stream dwarfs the branch that was just added to it and hides its
    fault.
    """
    found = list(sources)
    for source in sources:
        quantity = case.quantity(source)
        if quantity is not None and decoder().quantity(quantity).noise == "stream":
            found += _sources(case, source)[0]
    return found


def _activation(case: Case, pair: int, clearest: float) -> Origin:
    quantity = case.quantity(pair)
    module = maker_of(case, quantity, pair) if quantity is not None else module_name(case, int(case.pairs.node[pair]))
    sources, gap = _sources(case, pair)
    kind, after, before = Kind.ORIGIN, None, None
    if case.differences.nonfinite[pair]:
        kind = Kind.NONFINITE
    elif _edge(case, pair) is not None:
        kind, after, before = Kind.BETWEEN, module, module_name(case, int(case.pairs.node[pair]))
        module = _common_parent(case, after, before)
    elif gap and not _itself_clean(case, pair, module):
        kind, before = Kind.BETWEEN, module
        after = _last_clean(case, pair, sources)
        module = (None if quantity is not None else _container(case, pair)) or _common_parent(case, after, before)
    node = _node_of(case, module if kind is not Kind.BETWEEN else before, pair)
    inputs = _inputs(case, pair, sources) if kind is Kind.ORIGIN else None
    return Origin(pair, node, module, kind, after, before, max(clearest, float(case.grades.ratio[pair])), inputs)


def _inputs(case: Case, pair: int, sources: list[int]) -> Inputs:
    """By the inputs of the pair's own module; where it has none on both sides, by what its tensor is made of."""
    own = (case.pairs.node == case.pairs.node[pair]) & (case.pairs.group == Group.INPUT) & ~case.grades.nothing
    compared = bool((own & case.grades.comparable).any())
    if (own & ~case.grades.comparable & ~case.grades.argument).any():
        return Inputs.SOME_NOT_COMPARED if compared else Inputs.NOT_COMPARED
    return Inputs.AGREE if compared or sources else Inputs.NOT_COMPARED


def _itself_clean(case: Case, pair: int, module: str) -> bool:
    """Whether a module with others inside it puts out the tensor and takes in clean ones: what happened inside was not dumped on both
    sides, but where it happened is known."""
    if case.quantity(pair) is None:
        return False
    node = _node_of(case, module, pair)
    if case.nodes.names[int(case.nodes.path[node])] != module or not (case.nodes.parent == node).any():
        return False
    own = (case.pairs.node == node) & (case.pairs.group == Group.INPUT) & case.grades.comparable & ~case.grades.argument
    return bool(own.any()) and not bool((case.grades.grade[own] == Grade.DIVERGED).any())


def _last_clean(case: Case, pair: int, sources: list[int]) -> str | None:
    """The module after which everything still agreed: the latest measured source, else the last output before the pair."""
    if sources:
        latest = max(sources)
        quantity = case.quantity(latest)
        return maker_of(case, quantity, latest) if quantity is not None else module_name(case, int(case.pairs.node[latest]))
    before = np.flatnonzero(
        (case.pairs.group[:pair] == Group.OUTPUT) & case.grades.comparable[:pair] & (case.pairs.node[:pair] != case.pairs.node[pair])
    )
    return module_name(case, int(case.pairs.node[before[-1]])) if len(before) else None


def _container(case: Case, pair: int) -> str | None:
    """The innermost module around a pair's node whose own inputs were compared and agree: the step happened inside it."""
    node = int(case.nodes.parent[case.pairs.node[pair]])
    while node >= 0:
        takes_in = (case.pairs.node == node) & (case.pairs.group == Group.INPUT) & case.grades.comparable & ~case.grades.argument
        if takes_in.any() and not (case.grades.grade[takes_in] == Grade.DIVERGED).any():
            return module_name(case, node)
        node = int(case.nodes.parent[node])
    return None


def _common_parent(case: Case, after: str | None, before: str | None) -> str:
    """The closest module around both that the dumps know."""
    if after is None or before is None:
        return before or ROOT
    shared = []
    for a, b in zip(after.partition("/")[0].split("."), before.partition("/")[0].split("."), strict=False):
        if a != b:
            break
        shared.append(a)
    known = set(case.nodes.names)
    while shared and ".".join(shared) not in known:
        shared.pop()
    return ".".join(shared) or ROOT


def _node_of(case: Case, module: str | None, pair: int) -> int:
    """The node that carries a module's name in the pair's call and direction, else the pair's own."""
    own = int(case.pairs.node[pair])
    nodes = case.nodes
    same = np.flatnonzero((nodes.call == nodes.call[own]) & (nodes.direction == nodes.direction[own]) & (nodes.kind == 1))
    return next((int(node) for node in same if nodes.names[int(nodes.path[node])] == module), own)


def _weights(case: Case, pair: int) -> Origin:
    node = int(case.pairs.node[pair])
    return Origin(pair, node, module_name(case, node), Kind.WEIGHTS, None, None, float("inf"))


def _once_a_module(case: Case, weights: Int64) -> list[int]:
    """A module's parameters differ in every call; the first call speaks for all, with the statistic that differs most."""
    found: dict[int, int] = {}
    for pair in weights.tolist():
        path = int(case.nodes.path[case.pairs.node[pair]])
        known = found.get(path)
        if known is None or (
            case.pairs.node[known] == case.pairs.node[pair] and case.grades.difference[pair] > case.grades.difference[known]
        ):
            found[path] = pair
    return list(found.values())[:MOST_ORIGINS]


def _independent(case: Case, begins: int) -> Iterator[Origin]:
    """Later places that no earlier origin explains. Whatever follows a divergence may be its consequence, so this is told only where the
    tensor's sources and the residual stream that enters its layer are back to equal within rounding, and only for named tensors."""
    strong = (
        (case.grades.ratio >= INDEPENDENT_RATIO) & ~case.grades.weight & (case.pairs.quantity >= 0) & (np.arange(len(case.pairs)) > begins)
    )
    settled = case.grades.grade <= Grade.ROUNDING
    entering: dict[tuple[int, int], bool] = {}  # (call, layer) → whether the stream that enters the layer is back
    done: set[tuple[int, int]] = set()
    for pair in np.flatnonzero(strong & ~case.differences.nonfinite).tolist():
        call, layer = case.call(pair), int(case.layer[pair])
        if (call, layer) not in entering:
            stream = case.representative(call, fill("stream.<n>", layer, case.sides.layers))
            entering[call, layer] = stream is not None and bool(settled[stream])
        key = (call, int(case.pairs.quantity[pair]))
        if not entering[call, layer] or key in done:
            continue
        done.add(key)
        sources, gap = _sources(case, pair)
        if not gap and sources and settled[sources].all():
            yield _activation(case, pair, 0.0)


def downstream_ratio(case: Case, origin: Origin) -> float:
    """How far over their limits the pairs after an origin typically are: a consequence that stays raises confidence. 0 where few of them
    diverge.
    """
    later = np.arange(len(case.pairs)) > origin.pair
    ratios = case.grades.ratio[later & (case.grades.grade == Grade.DIVERGED) & np.isfinite(case.grades.ratio)]
    return float(np.median(ratios)) if len(ratios) >= MANY_CONSEQUENCES else 0.0
