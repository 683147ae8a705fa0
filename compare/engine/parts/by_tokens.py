"""Parts by the tokens that they hold: a training side against an inference side that counts its steps otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from compare.engine.loop import loop, stage_kind
from compare.engine.parts.pairing import SIDES, Grouped, Pairing, Part, PartKey, Ranks, Shared, StagePair, Unpaired, ranks_of
from compare.engine.parts.same_tokens import Feed, SameTokens, agrees, same_tokens
from compare.engine.parts.tokens import Agreement, Tokens, together

INFER = "infer"
GENERATE = "generate"
ALIKE = ("same_name", "same_kind", "processes")
Couple: TypeAlias = tuple[PartKey | None, PartKey | None]


@dataclass(frozen=True, slots=True)
class _Facing:
    """A training side (0 left, 1 right) against an inference side, and the stages of each that do the same forward pass."""

    train: int
    trains: Sequence[str | None]
    infers: Sequence[str | None]

    def ends(self, train: PartKey | None, infer: PartKey | None) -> Couple:
        return (train, infer) if self.train == 0 else (infer, train)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Dumps of one part that were fed the same: ranks that hold copies or shards of the same passes."""

    key: PartKey
    rows: Sequence[int]
    feed: Feed


def by_tokens(
    sides: tuple[Grouped, Grouped], couples: Sequence[Couple], stages: Sequence[StagePair], roles: tuple[str, str]
) -> Pairing | tuple[Sequence[Couple], Sequence[Unpaired]]:
    """The parts by their tokens where these refute the numbers of the steps, ``couples``; else the couples, those apart that set a training
    pass against a decode step; and what has no partner although one was looked for.

    The numbers are refuted where equal tokens lie in parts that they do not bring together.
    """
    facing = _facing(sides, stages, roles)
    if facing is None:
        return couples, ()
    trains, infers = _units(sides[facing.train], facing.trains), _units(sides[1 - facing.train], facing.infers)
    found = same_tokens([unit.feed for unit in trains], [unit.feed for unit in infers])
    together_by_number = set(couples)
    if any(
        len(run) > 1 or facing.ends(trains[at].key, infers[run[0]].key) not in together_by_number for at, (run, _) in found.pairs.items()
    ):
        return _parts(sides, trains, infers, found, facing, stages)
    couples = _without_decode(couples, trains, infers, facing)
    partner = {couple[facing.train]: couple[1 - facing.train] for couple in couples if None not in couple}
    return couples, _unpaired(trains, infers, found, facing, partner)


def training_side(roles: tuple[str, str], part: Part) -> int | None:
    """0 or 1 where a training pass stands against an inference pass; None where it does not, or nothing tells."""
    kinds = tuple(None if key is None else stage_kind(key[0]) for key in (part.left, part.right))
    if kinds[0] is not None and kinds[0] == kinds[1]:
        return None
    train = _not_inferring(roles)
    return train if train is not None else next((at for at in (0, 1) if (kinds[at], kinds[1 - at]) in loop().train_infer), None)


def _not_inferring(roles: tuple[str, str]) -> int | None:
    """Where one side infers, the other: a trainer is not always known for one (Megatron without gradients)."""
    return 1 - roles.index(INFER) if roles.count(INFER) == 1 else None


def _facing(sides: tuple[Grouped, Grouped], stages: Sequence[StagePair], roles: tuple[str, str]) -> _Facing | None:
    """None where no training stage stands against an inference stage: stages of one name or kind count their steps alike."""
    names = [list(dict.fromkeys(stage for stage, _ in side.groups)) for side in sides]
    trains_by_role = _not_inferring(roles)
    crossed = trains_by_role is not None
    alike = [pair for pair in stages if pair.used and pair.reason in ALIKE]
    if alike and not (crossed and all(stage_kind(pair.left) is None for pair in alike)):
        return None
    for train in (0, 1):
        if trains_by_role not in (None, train):
            continue
        unnamed = [name for name in names[1 - train] if crossed and stage_kind(name) is None]
        for kind, other in loop().train_infer:
            trains = [name for name in names[train] if stage_kind(name) == kind]
            infers = [name for name in names[1 - train] if stage_kind(name) == other] or unnamed
            if trains and infers:
                return _Facing(train, trains, infers)
        if crossed:
            trains = [name for name in names[train] if stage_kind(name) is None]
            infers = [name for name in names[1 - train] if stage_kind(name) in (None, GENERATE)]
            return _Facing(train, trains, infers) if trains and infers else None
    return None


def _units(side: Grouped, stages: Sequence[str | None]) -> list[_Unit]:
    """In order of their steps. A rank that embeds nothing (a later pipeline stage) goes with the rank at its place in the first stage."""
    found = []
    for key, rows in side.groups.items():
        if key[0] not in stages:
            continue
        fed = [row for row in rows if side.dumps[row].tokens]
        alike: dict[tuple[Tokens, ...], list[int]] = {}
        for place, row in enumerate(rows):
            source = row if side.dumps[row].tokens or not fed else fed[place % len(fed)]
            alike.setdefault(tuple(side.dumps[source].tokens), []).append(row)
        for passes, members in alike.items():
            lane = f"{key[0]} {[side.dumps[row].rank for row in members]}"
            found.append(_Unit(key, members, Feed(lane, passes)))
    return found


def _decoding(infers: Sequence[_Unit]) -> set[int]:
    """Inference dumps of one pass that saw fewer tokens than others: they decode, or warm the engine up."""
    counts = {at: unit.feed.passes[0].count for at, unit in enumerate(infers) if len(unit.feed.passes) == 1}
    least = min(counts.values(), default=0)
    most = max((one.count for unit in infers for one in unit.feed.passes), default=0)
    return {at for at, count in counts.items() if count == least < most}


def _without_decode(couples: Sequence[Couple], trains: Sequence[_Unit], infers: Sequence[_Unit], facing: _Facing) -> list[Couple]:
    """A training pass is not compared with a decode step that happens to have its number, unless there is nothing else."""
    decoding = _decoding(infers)
    decode = {infers[at].key for at in decoding} - {unit.key for at, unit in enumerate(infers) if at not in decoding}
    mine, theirs = ({unit.key: unit.feed for unit in reversed(units)} for units in (trains, infers))
    kept: list[Couple] = []
    alone: list[Couple] = []
    for couple in couples:
        one, other = couple[facing.train], couple[1 - facing.train]
        if len(couples) > 1 and one in mine and other in decode and not agrees(mine[one], theirs[other]).same:
            kept.append(facing.ends(one, None))
            alone.append(facing.ends(None, other))
        else:
            kept.append(couple)
    order = [unit.key for unit in infers]
    return kept + sorted(alone, key=lambda couple: order.index(couple[1 - facing.train] or order[0]))


def _parts(
    sides: tuple[Grouped, Grouped],
    trains: Sequence[_Unit],
    infers: Sequence[_Unit],
    found: SameTokens,
    facing: _Facing,
    stages: Sequence[StagePair],
) -> Pairing:
    """A part for every training one with tokens that the other side holds too; the rest is on one side only. Where a side holds one part
    there is no rest: what was not compared is said elsewhere."""
    ranks: dict[PartKey, list[Ranks]] = {}
    shared: dict[PartKey, Shared] = {}
    other: dict[PartKey, PartKey] = {}
    taken: set[PartKey] = set()
    for at, (run, sure) in sorted(found.pairs.items()):
        mine, theirs = trains[at], [infers[place] for place in run]
        first = mine.feed.passes[0]
        whole = _prefill(first, [one for unit in theirs for one in unit.feed.passes])
        ends = (first, whole) if facing.train == 0 else (whole, first)
        ranks.setdefault(mine.key, []).extend(_over_steps(sides, mine, theirs, facing))
        shared.setdefault(mine.key, Shared(*ends, sure is Agreement.EXACT, [unit.key[1] for unit in theirs]))
        other.setdefault(mine.key, theirs[0].key)
        taken |= {unit.key for unit in theirs}
    parts: list[Part] = []
    rest = all(len(side.groups) > 1 for side in sides)
    for key in sides[facing.train].groups:
        if key in ranks:
            parts.append(Part(len(parts), *facing.ends(key, other[key]), ranks[key], "tokens", shared[key]))
        elif rest:
            parts.append(Part(len(parts), *facing.ends(key, None), []))
    for key in sides[1 - facing.train].groups if rest else ():
        if key not in taken:
            parts.append(Part(len(parts), *facing.ends(None, key), []))
    pairs = dict.fromkeys((part.left[0], part.right[0]) for part in parts if part.left is not None and part.right is not None)
    proposed = [pair for pair in stages if not pair.used and (pair.left, pair.right) not in pairs]
    used = [StagePair(a, b, "tokens", used=True) for a, b in pairs]
    return Pairing(parts, used + proposed, _unpaired(trains, infers, found, facing, {}, taken))


def _prefill(train: Tokens, passes: Sequence[Tokens]) -> Tokens:
    """The passes, from the first one on, that are together the training pass."""
    counts = list(accumulate(one.count for one in passes))
    return together(passes[: counts.index(train.count) + 1]) or passes[0]


def _over_steps(sides: tuple[Grouped, Grouped], mine: _Unit, theirs: Sequence[_Unit], facing: _Facing) -> list[Ranks]:
    """Rank by rank, or all together; of an inference rank the dumps of all steps."""
    rows = (mine.rows, theirs[0].rows) if facing.train == 0 else (theirs[0].rows, mine.rows)
    dumps = sides[1 - facing.train].dumps
    found: list[Ranks] = []
    for left, right in ranks_of(sides[0].dumps, sides[1].dumps, *rows):
        ends = [list(left), list(right)]
        held = {dumps[row].rank for row in ends[1 - facing.train]}
        ends[1 - facing.train] += [row for unit in theirs[1:] for row in unit.rows if dumps[row].rank in held]
        found.append((ends[0], ends[1]))
    return found


def _unpaired(
    trains: Sequence[_Unit],
    infers: Sequence[_Unit],
    found: SameTokens,
    facing: _Facing,
    partner: Mapping[PartKey | None, PartKey | None],
    taken: Iterable[PartKey] = (),
) -> list[Unpaired]:
    """``partner``: what the training parts are compared with by their number: there the verdict says itself how many tokens each side has.
    ``taken``: inference parts that are compared by their tokens."""
    notes: list[Unpaired] = []
    feeds: dict[PartKey | None, Feed] = {unit.key: unit.feed for unit in reversed(infers)}
    for at, unit in enumerate(trains):
        met = feeds.get(partner.get(unit.key))
        tokens = unit.feed.passes[0] if unit.feed.passes else None
        if at in found.several and not (met is not None and agrees(unit.feed, met).same):
            others = [(infers[run[0]].key, infers[run[0]].feed.passes[0]) for run in found.several[at]]
            notes.append(Unpaired("several_fit", SIDES[facing.train], [unit.key], tokens, others))
        elif at in found.refused and unit.key not in partner:
            refusal = found.refused[at]
            closest = [] if refusal.closest is None else [infers[refusal.closest]]
            others = [(other.key, other.feed.passes[0]) for other in closest]
            notes.append(Unpaired("no_same_tokens", SIDES[facing.train], [unit.key], tokens, others, refusal.against))
    compared = {*taken, *partner.values()}
    decoding = [infers[at] for at in sorted(_decoding(infers)) if infers[at].key not in compared]
    if decoding:
        keys = list(dict.fromkeys(unit.key for unit in decoding))
        notes.append(Unpaired("decode", SIDES[1 - facing.train], keys, decoding[0].feed.passes[0]))
    return notes
