"""Which ranks of a part are compared with which: rank by rank where both sides cut the model alike, all together where they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compare.engine.align.replicas import rank_by_rank, replicas, token_count
from compare.engine.diagnose.case import Case, other_layout, other_shapes
from compare.engine.model import Dump, Group
from compare.engine.parts.pairing import RankPairs, Ranks

Opened = Callable[[int], Dump]
Compared = Callable[[Sequence[int], Sequence[int]], Case]


def pair_ranks(pairs: RankPairs, opened: tuple[Opened, Opened], compared: Compared) -> tuple[RankPairs, list[Case]]:
    """The pairs of ranks (positions in the two sides' dumps) that are compared, each with its case. Ranks that are in none stand against
    nothing.

    ``pairs``: one with one where the folders say which; else some or all of one side with some or all of the other. ``opened``: a side's
    dump at a position. ``compared``: the case of some ranks of each side.
    """
    if any(max(map(len, pair)) > 1 for pair in pairs):
        found = [_settled(pair, opened, compared) for pair in pairs]
        return [pair for settled, _ in found for pair in settled], [case for _, cases in found for case in cases]
    first = compared(*pairs[0])
    if len(pairs) > 1 and other_layout(first):
        return _together([row for a, _ in pairs for row in a], [row for _, b in pairs for row in b], opened, compared)
    return pairs, [first, *(compared(*pair) for pair in pairs[1:])]


def _settled(pair: Ranks, opened: tuple[Opened, Opened], compared: Compared) -> tuple[RankPairs, list[Case]]:
    return ([pair], [compared(*pair)]) if max(map(len, pair)) == 1 else _of_other_numbers(*pair, opened, compared)


def _of_other_numbers(
    a: Sequence[int], b: Sequence[int], opened: tuple[Opened, Opened], compared: Compared
) -> tuple[RankPairs, list[Case]]:
    """The two sides hold other ranks. Only the dumps say whether some are missing or the model is cut otherwise: same layout, same local
    shapes. A single rank stands against all copies of it.
    """
    dumps = [opened[0](row) for row in a], [opened[1](row) for row in b]
    if any(len({dump.step for dump in side}) > 1 for side in dumps):  # a pass in pieces
        return _together(a, b, opened, compared)
    matched = [([a[i]], [b[j]]) for i, j in rank_by_rank(*dumps)]
    totals = [sum(token_count(dump) for dump in side) for side in dumps]
    counts = [token_count(dumps[0][a.index(matched[0][0][0])]), token_count(dumps[1][b.index(matched[0][1][0])])]
    dealt_otherwise = counts[0] != counts[1] and totals[0] == totals[1]  # the same tokens, more of them a rank
    first = None if dealt_otherwise else compared(*matched[0])
    if first is None or other_shapes(first):
        return _together(a, b, opened, compared)
    if min(len(a), len(b)) == 1:
        pairs, cases = _together(a, b, opened, compared)
        if not any(_no_copies(case) for case in cases):
            return pairs, cases
    return matched, [first, *(compared(*pair) for pair in matched[1:])]


def _no_copies(case: Case) -> bool:
    """Whether ranks of one side hold other shares of the model: weights of the same name that differ, or most of what is put out."""
    group, disagree = case.pairs.group, case.pairs.disagree
    outputs = group == Group.OUTPUT
    return bool((disagree & (group == Group.PARAMETERS)).any()) or 2 * int((disagree & outputs).sum()) > int(outputs.sum())


def _together(a: Sequence[int], b: Sequence[int], opened: tuple[Opened, Opened], compared: Compared) -> tuple[RankPairs, list[Case]]:
    """All ranks at once, taken apart by the tokens they worked on: replicas of a data-parallel side are not shards."""
    groups = replicas([opened[0](row) for row in a], [opened[1](row) for row in b])
    pairs = [([a[at] for at in mine], [b[at] for at in theirs]) for mine, theirs in groups]
    return pairs, [compared(*pair) for pair in pairs]
