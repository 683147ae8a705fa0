"""What of two runs is compared with what: parts are (stage, step), and the ranks of a part go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from compare.engine.parts.tokens import Agreement, Tokens

PartKey: TypeAlias = tuple[str | None, int | None]
Ranks: TypeAlias = tuple[Sequence[int], Sequence[int]]  # positions in the two sides' dumps
RankPairs: TypeAlias = Sequence[Ranks]
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class StagePair:
    """``reason``: same_name, same_kind, processes, train_infer, requests, tokens, chosen, only_one. ``used``: compared so; else it is
    proposed, by the names that ``stage`` takes: without process folders.
    """

    left: str | None
    right: str | None
    reason: str
    used: bool


class Placed(Protocol):
    """Where a dump stands in its run. That is all that pairing parts needs: neither its columns nor its file are opened for it."""

    @property
    def stage(self) -> str | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def process(self) -> int | None:
        """The process folder of an asynchronous rollout that the dump lies in."""

    @property
    def tokens(self) -> Sequence[Tokens]:
        """What its forward passes were fed, in order."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The tokens by which two dumps were paired, as each side's fingerprint has them. ``steps``: those of the engine that prefilled
    them."""

    left: Tokens
    right: Tokens
    exact: bool
    steps: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Unpaired:
    """Dumps of one side that have no partner by their tokens. ``code``: several_fit (``others`` are the parts that fit equally well),
    no_same_tokens (``others`` is the part that comes closest, if there is one, ``against`` what speaks against it), decode (``keys`` saw
    ``tokens`` each: no prefill among them).
    """

    code: str
    side: str  # left, right
    keys: Sequence[PartKey]
    tokens: Tokens | None
    others: Sequence[tuple[PartKey, Tokens]] = ()
    against: Agreement = Agreement.UNKNOWN


@dataclass(frozen=True, slots=True)
class Pairing:
    """What is compared with what, how stages were paired, and what has no partner although it was looked for by its tokens."""

    parts: Sequence[Part]
    stages: Sequence[StagePair]
    unpaired: Sequence[Unpaired] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """``ranks`` says which dumps are compared with which: rank by rank, or all of one side with all of the other where they hold other
    ranks (``diagnose/rank_pairs.py`` has the last word). It is empty where one side has no such part (``only``: left or right).
    ``reason``: step (the same number), nearest (a side holds nothing else), chosen, requests, tokens; ``shared`` are the tokens that a pair
    rests on.
    """

    n: int
    left: PartKey | None
    right: PartKey | None
    ranks: RankPairs
    reason: str | None = None
    shared: Shared | None = None

    @property
    def only(self) -> str | None:
        return "right" if self.left is None else "left" if self.right is None else None


@dataclass(frozen=True, slots=True)
class Grouped:
    """The chosen dumps of a side by part."""

    dumps: Sequence[Placed]
    groups: Mapping[PartKey, Sequence[int]]


def rank_shift(left: Iterable[int], right: Iterable[int]) -> int:
    """What is to be added to a left rank: the distance of the first ones where the other side counts its ranks from elsewhere (an engine
    on cards of its own). 0 where any number is on both sides: then the others are missing.
    """
    a, b = set(left), set(right)
    return min(b) - min(a) if a and b and a.isdisjoint(b) else 0


def ranks_of(left: Sequence[Placed], right: Sequence[Placed], a: Sequence[int], b: Sequence[int]) -> list[Ranks]:
    """Rank by rank where both sides have the same ranks, or as many at a constant distance; else all."""
    numbers = [[side[row].rank or 0 for row in rows] for side, rows in ((left, a), (right, b))]
    shift = rank_shift(*numbers)
    by_rank = {right[row].rank or 0: row for row in b}
    if len(set(numbers[0])) == len(a) == len(b) == len(by_rank) and all(rank + shift in by_rank for rank in numbers[0]):
        return [([row], [by_rank[(left[row].rank or 0) + shift]]) for row in a]
    return [(list(a), list(b))]
