"""Which dumps of a training side and of an inference side saw the same tokens, where the steps of the two are counted differently.

An engine counts forward passes (prefill, each decode, warm-up), a trainer its updates. So the number of a step says nothing across the two;
what was fed in does. A prompt that the engine prefilled in chunks is several of its steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compare.engine.parts.tokens import Agreement, Tokens, agreement, together

MOST_CHUNKS = 64  # steps over which one prefill is looked for
Run = tuple[int, ...]  # positions of passes that follow on each other; mostly one


@dataclass(frozen=True, slots=True)
class Feed:
    """What a dump (or several that hold copies or shards of the same passes) was fed: the tokens of its passes, in order. ``lane`` is
    shared by those that follow on each other, in order of their steps."""

    lane: str
    passes: Sequence[Tokens]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a training dump has no partner: the inference dump that comes closest (None: none holds tokens) and what speaks against it."""

    closest: int | None
    against: Agreement


@dataclass(frozen=True, slots=True)
class SameTokens:
    """By position among the training feeds: ``pairs`` the run of inference feeds, and how certain; ``several`` all the runs that fit where
    nothing decides between them; ``refused`` the others."""

    pairs: dict[int, tuple[Run, Agreement]] = field(default_factory=dict)
    several: dict[int, list[Run]] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)


def same_tokens(trains: Sequence[Feed], infers: Sequence[Feed]) -> SameTokens:
    """Pairs only where one run fits one training feed and no other: a fingerprint of statistics is weak, and equal prompts are common."""
    found = SameTokens()
    fitting = [_fitting(train, infers) for train in trains]
    wanted: defaultdict[int, set[int]] = defaultdict(set)
    for at, runs in enumerate(fitting):
        for run in runs:
            for place in run:
                wanted[place].add(at)
    for at, runs in enumerate(fitting):
        if not runs:
            found.refused[at] = _refusal(trains[at], infers)
        elif len(runs) == 1 and all(wanted[place] == {at} for run in runs for place in run):
            found.pairs[at] = next(iter(runs.items()))
        else:
            found.several[at] = list(runs)
    return found


def agrees(train: Feed, infer: Feed) -> Agreement:
    """Whether two feeds begin with the same tokens: the first training pass with the first inference pass, or with its first few together,
    where the engine prefilled in chunks."""
    if not train.passes or not infer.passes:
        return Agreement.UNKNOWN
    first = train.passes[0]
    plain = agreement(first, infer.passes[0])
    if plain.same:
        return plain
    for _, found in _chunks(first, infer.passes):
        return found
    return plain


def _fitting(train: Feed, infers: Sequence[Feed]) -> dict[Run, Agreement]:
    """The runs of inference feeds whose tokens are those of the first training pass; a checksum rules out what only statistics allow."""
    if not train.passes:
        return {}
    fits: dict[Run, Agreement] = {}
    for at, infer in enumerate(infers):
        if len(infer.passes) > 1 or (infer.passes and infer.passes[0].count == train.passes[0].count):
            found = agrees(train, infer)
            if found.same:
                fits[(at,)] = found
    if not fits:
        fits = dict(_over_steps(train.passes[0], infers))
    exact = {run for run, found in fits.items() if found is Agreement.EXACT}
    return {run: found for run, found in fits.items() if not exact or run in exact}


def _over_steps(train: Tokens, infers: Sequence[Feed]) -> Iterator[tuple[Run, Agreement]]:
    lanes: defaultdict[str, list[int]] = defaultdict(list)
    for at, infer in enumerate(infers):
        if len(infer.passes) == 1:
            lanes[infer.lane].append(at)
    for members in lanes.values():
        for begin in range(len(members)):
            window = members[begin : begin + MOST_CHUNKS]
            for count, found in _chunks(train, [infers[at].passes[0] for at in window]):
                yield tuple(window[:count]), found


def _chunks(train: Tokens, passes: Sequence[Tokens]) -> Iterator[tuple[int, Agreement]]:
    """How many of the passes, from the first one on, are together the training pass; nothing where they are not."""
    if passes and None not in (train.first, passes[0].first) and train.first != passes[0].first:
        return  # most steps of an engine decode: they begin in the middle
    total = 0
    for count, one in enumerate(passes[:MOST_CHUNKS], 1):
        total += one.count
        if total > train.count or (one.most is not None and train.most is not None and one.most > train.most):
            return
        if total == train.count:
            whole = together(passes[:count])
            found = Agreement.POSITIONS if whole is None else agreement(train, whole)
            if count > 1 and found.same:
                yield count, found
            return


def _refusal(train: Feed, infers: Sequence[Feed]) -> Refusal:
    """Of the inference feeds the one that comes closest: most of the signs agree, then the number of tokens."""
    if not train.passes:
        return Refusal(None, Agreement.UNKNOWN)
    order = (Agreement.EMBEDDING, Agreement.POSITIONS, Agreement.UNKNOWN, Agreement.IDS, Agreement.CHECKSUM, Agreement.COUNT)
    first = train.passes[0]
    known = [
        (order.index(agreement(first, infer.passes[0])), abs(first.count - infer.passes[0].count), at)
        for at, infer in enumerate(infers)
        if infer.passes
    ]
    if not known:
        return Refusal(None, Agreement.UNKNOWN)
    sign, _, at = min(known)
    return Refusal(at, order[sign])
