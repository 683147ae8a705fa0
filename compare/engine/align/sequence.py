"""Two sequences of API calls → which calls correspond, so that an inserted call costs one unmatched row and not every later one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

MOST_EDITS = 400  # beyond this many insertions and deletions the n-th call of a name is taken for the n-th of the same name


def align(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence (Myers' O(ND) difference algorithm, 1986), increasing on both sides."""
    begin = 0
    while begin < min(len(left), len(right)) and left[begin] == right[begin]:
        begin += 1
    end = 0
    while end < min(len(left), len(right)) - begin and left[-1 - end] == right[-1 - end]:
        end += 1
    head = [(i, i) for i in range(begin)]
    tail = [(len(left) - end + i, len(right) - end + i) for i in range(end)]
    middle = _myers(left[begin : len(left) - end], right[begin : len(right) - end])
    return head + [(i + begin, j + begin) for i, j in middle] + tail


def align_with_anchors(
    names: tuple[Sequence[Hashable], Sequence[Hashable]], exact: tuple[Sequence[Hashable], Sequence[Hashable]]
) -> list[tuple[int, int]]:
    """Calls that agree to the last bit are anchors; between anchors calls are aligned by name. ``exact`` tokens must imply equal names."""
    matched: list[tuple[int, int]] = []
    i = j = 0
    for a, b in [*align(exact[0], exact[1]), (len(exact[0]), len(exact[1]))]:
        matched += [(i + x, j + y) for x, y in align(names[0][i:a], names[1][j:b])]
        if a < len(exact[0]):
            matched.append((a, b))
        i, j = a + 1, b + 1
    return matched


def _myers(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    if not left or not right:
        return []
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(left) + len(right), MOST_EDITS) + 1):
        trail.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1])
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < len(left) and y < len(right) and left[x] == right[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= len(left) and y >= len(right):
                return _walk_back(trail, len(left), len(right))
    return _by_occurrence(left, right)


def _walk_back(trail: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    matched: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        furthest, diagonal = trail[edits], x - y
        down = diagonal == -edits or (diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        start_x = furthest[before]
        start_y = start_x - before
        while x > start_x and y > start_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            matched.append((x, y))
        x, y = start_x, start_y
    matched.reverse()
    return matched


def _by_occurrence(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The n-th of a name with the n-th of the same name, kept increasing on both sides."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for j, token in enumerate(right):
        places[token].append(j)
    seen: defaultdict[Hashable, int] = defaultdict(int)
    matched: list[tuple[int, int]] = []
    for i, token in enumerate(left):
        n = seen[token]
        seen[token] += 1
        if n < len(places[token]) and (not matched or places[token][n] > matched[-1][1]):
            matched.append((i, places[token][n]))
    return matched
