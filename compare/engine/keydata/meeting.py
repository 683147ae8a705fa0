"""Where a table of the left run lies on the right: at the same place, as far as the two runs count places alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from compare.engine.keydata.alignment import Place, Tables
from compare.engine.parts.pairing import rank_shift

Chosen = tuple[int | None, int | None]  # a step or rank for each side


class Meeting:
    """Steps and ranks may be counted from elsewhere on the right (``step_shift``, ``shift``: right − left), and a tree without micro-steps
    stands for the first of each.
    """

    def __init__(self, left: Tables, right: Tables, steps: Chosen, ranks: Chosen) -> None:
        self.sides = left, right
        held = [_numbers(side.table.step, side) for side in self.sides]
        self.step_shift = held[1][0] - held[0][0] if any(one is not None for one in steps) and _one_each(held) else 0
        held = [_numbers(side.table.rank, side) for side in self.sides]
        if any(one is not None for one in ranks) and _one_each(held):
            self.shift = held[1][0] - held[0][0]
        else:
            self.shift = self._rank_shift(held[0], held[1])

    def left(self, place: Place) -> Place:
        """A place of the right in the numbers of the left."""
        step, rank, *rest = place
        return (step - self.step_shift, rank - self.shift if rank >= 0 else rank, *rest)  # type: ignore[return-value]

    def spots(self, places: Iterable[Place], side: int) -> dict[Place, Place]:
        """Where each place of one key on a side (0 left, 1 right) is to be met, in the numbers of the left → the place itself."""
        known = set(places)
        found: dict[Place, Place] = {}
        for place in known:
            step, rank, micro_step, entry = place if side == 0 else self.left(place)
            if micro_step < 0 and (*place[:2], 0, entry) not in known:
                micro_step = 0
            found[step, rank, micro_step, entry] = place
        return found

    def _rank_shift(self, left: list[int], right: list[int]) -> int:
        """That of dumps; and of ranks that overlap, as many at a constant distance, that distance where more tables agree so."""
        shift = rank_shift(left, right)
        apart = right[0] - left[0] if left and len(left) == len(right) else 0
        if shift or not apart or any(b - a != apart for a, b in zip(left, right, strict=True)):
            return shift
        return apart if self._agreeing(apart) > self._agreeing(0) else 0

    def _agreeing(self, shift: int) -> int:
        a, b = (_fingerprints(side) for side in self.sides)
        return sum(b.get((key, (place[0], place[1] + shift, *place[2:]))) == digest for (key, place), digest in a.items())


def _fingerprints(side: Tables) -> Mapping[tuple[str, Place], bytes]:
    return {(key, place): side.digests[row] for key, places in side.by_key.items() for place, row in places.items() if row in side.digests}


def _numbers(column: np.ndarray, side: Tables) -> list[int]:
    numbers: list[int] = np.unique(np.asarray(column)[side.rows]).tolist()
    return [number for number in numbers if number >= 0]


def _one_each(held: list[list[int]]) -> bool:
    return len(held[0]) == len(held[1]) == 1
