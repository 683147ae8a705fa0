"""Tables whose sequences lie elsewhere on the right: compared line by line, each with its own; micro-batches by what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from compare.engine.keydata.alignment import Alignment, Place, Tables
from compare.engine.keydata.numbers import Array, measure, overlap, values
from compare.engine.keydata.table_pair import DIFFERS, EQUAL, LEFT_ONLY, NOT_COMPARABLE, RIGHT_ONLY, Line, TablePair, pair_at_place

OTHER_SEQUENCES = "other_sequences"


class Sequences:
    """Which line of the right belongs to which of the left: as the lists of prompts and responses say, where it is known whose line is
    whose on both sides. Trainers reorder their tables together with the lists, or the lists alone: each step is read as it agrees better.
    """

    def __init__(self, left: Tables, right: Tables, alignment: Alignment) -> None:
        self.sides = left, right
        self.alignment = alignment
        self.met = frozenset(alignment.partners.values())
        self.votes: dict[int, tuple[int, int]] = {}  # step → lines that agree where they stand, and with those of their own sequence

    def follows(self, step: int) -> bool:
        """Whether the tables of a step are in the order of the lists, where that is not the order they stand in."""
        at_place, by_sequence = self.votes.get(step, (1, 0))
        return by_sequence >= at_place

    def settle(self, pairs: Sequence[TablePair], right_key: str) -> list[TablePair]:
        """The pairs of a per-token key. What is equal at its place is equal; the rest is compared by sequence in steps that are so."""
        open_steps = {pair.place[0] for pair in pairs if not pair.settled}
        found = {
            at: moved
            for at, pair in enumerate(pairs)
            if pair.place[0] in open_steps and (moved := self._moved(pair, right_key)) is not None
        }
        for at, moved in found.items():
            pair = pairs[at]
            at_place, by_sequence = self.votes.get(pair.place[0], (0, 0))
            at_place += 0 if pair.rows[1] < 0 else self._equal_at_place(pair.rows)
            by_sequence += sum(_equal(*self._both(moved.rows[0], line)) for line in moved.lines)
            self.votes[pair.place[0]] = at_place, by_sequence
        settled = [found[at] if at in found and not pair.settled and self.follows(pair.place[0]) else pair for at, pair in enumerate(pairs)]
        return _once([*settled, *(_right_only(pair) for pair in pairs if min(pair.rows) >= 0)])

    def settle_batches(self, pairs: Sequence[TablePair]) -> list[TablePair]:
        """The pairs of a key that has one number a micro-batch: each goes with that of the same sequences in the same order. Where there is
        none, numbers of other batches are not comparable.
        """
        found: list[TablePair] = []
        parting: list[TablePair] = []
        for pair in pairs:
            known = any(self._batch(side, pair) is not None for side in (0, 1))
            (found if pair.settled or not known or not self.follows(pair.place[0]) else parting).append(pair)
        rights = {batch: pair for pair in parting if (batch := self._batch(1, pair)) is not None}
        for pair in parting:
            image = self._image(pair)
            partner = rights.get(image) if image is not None else None
            if image is not None and partner is not None and partner.right_place is not None:
                del rights[image]
                met = pair_at_place(self.sides, (pair.place, partner.right_place), (pair.rows[0], partner.rows[1]))
                found.append(met if partner is pair else replace(met, note="by_sequence"))
        done = {row for pair in found for row in (("left", pair.rows[0]), ("right", pair.rows[1]))}
        for pair in parting:
            left = pair.rows[0] >= 0 and ("left", pair.rows[0]) not in done
            right = pair.rows[1] >= 0 and ("right", pair.rows[1]) not in done
            found += self._unmet(pair, left=left, right=right)
        return found

    # --- lines --------------------------------------------------------------------------------------------------------------------------

    def _moved(self, pair: TablePair, right_key: str) -> TablePair | None:
        """The pair by sequence; None where that is not known, or comes to the same as at its place."""
        left, right = self.sides
        row = pair.rows[0]
        if row < 0 or row not in left.sequences or values(left.table, row) is None:
            return None
        lines: list[Line] = []
        for line, (place, length) in enumerate(left.sequences[row]):
            partner = self.alignment.partners.get(place)
            if partner is None:
                continue
            at = right.lines.get((right_key, partner))
            if at is None or values(right.table, at[0]) is None:
                return None
            lines.append((line, length, *at, right.sequences[at[0]][at[1]][1]))
        if not lines:
            return TablePair(pair.place, None, (row, -1), LEFT_ONLY, "none") if pair.rows[1] in right.sequences else None
        stays = all((line[2], line[3]) == (pair.rows[1], line[0]) for line in lines)
        if stays and len(right.sequences[pair.rows[1]]) == len(left.sequences[row]):
            return None
        both = [overlap(*self._both(row, line)) for line in lines]
        numbers = measure(np.concatenate([x for x, _ in both]), np.concatenate([y for _, y in both]))
        same = numbers.same == numbers.compared and all(line[1] == line[4] for line in lines)
        target = lines[0][2]
        rows = row, target
        return TablePair(
            pair.place, right.place(target), rows, EQUAL if same else DIFFERS, "values", numbers, None, "by_sequence", tuple(lines)
        )

    def _equal_at_place(self, rows: tuple[int, int]) -> int:
        arrays = [values(side.table, row) for side, row in zip(self.sides, rows, strict=True)]
        lengths = self.sides[0].lengths(rows[0])
        if arrays[0] is None or arrays[1] is None or lengths is None or arrays[1].ndim < 2:
            return 0
        return sum(_equal(x[:length], y[:length]) for x, y, length in zip(arrays[0], arrays[1], lengths.tolist(), strict=False))

    def _both(self, row: int, line: Line) -> tuple[Array, Array]:
        return self._line(0, row, line[0], line[1]), self._line(1, line[2], line[3], line[4])

    def _line(self, side: int, row: int, line: int, length: int) -> Array:
        array = values(self.sides[side].table, row)
        return np.empty(0) if array is None else array[line][:length]

    # --- micro-batches ------------------------------------------------------------------------------------------------------------------

    def _batch(self, side: int, pair: TablePair) -> tuple[Place, ...] | None:
        """Whose sequences a side's number was made of, None where that is not known."""
        place = (pair.place, pair.right_place)[side]
        return None if place is None or pair.rows[side] < 0 else self.sides[side].batches.get(place[:3])

    def _image(self, pair: TablePair) -> tuple[Place, ...] | None:
        """The left's batch as the right would call it, None where a sequence of it is not there."""
        batch = self._batch(0, pair)
        image = [] if batch is None else [self.alignment.partners[place] for place in batch if place in self.alignment.partners]
        return tuple(image) if batch and len(image) == len(batch) else None

    def _unmet(self, pair: TablePair, *, left: bool, right: bool) -> Iterator[TablePair]:
        """What a pair leaves whose sides (as told) found no partner of the same sequences."""
        batches = self._batch(0, pair) or (), self._batch(1, pair) or ()
        shared = (
            left and any(place in self.alignment.partners for place in batches[0]),
            right and any(place in self.met for place in batches[1]),
        )
        if left and right and any(shared):
            yield replace(pair, state=NOT_COMPARABLE, evidence="none", numbers=None, masked=None, note=OTHER_SEQUENCES)
            return
        if left:
            alone = TablePair(pair.place, None, (pair.rows[0], -1), LEFT_ONLY, "none")
            yield replace(alone, state=NOT_COMPARABLE, note=OTHER_SEQUENCES) if shared[0] else alone
        if right:
            alone = _right_only(pair)
            yield replace(alone, state=NOT_COMPARABLE, note=OTHER_SEQUENCES) if shared[1] else alone


def _right_only(pair: TablePair) -> TablePair:
    return TablePair(pair.place, pair.right_place, (-1, pair.rows[1]), RIGHT_ONLY, "none")


def _once(pairs: Sequence[TablePair]) -> list[TablePair]:
    """Without right tables alone that have a partner, or are there already."""
    met = {row for pair in pairs if pair.rows[0] >= 0 for row in (pair.rows[1], *(line[2] for line in pair.lines))}
    found: list[TablePair] = []
    for pair in pairs:
        if pair.rows[0] >= 0 or pair.rows[1] not in met:
            found.append(pair)
            met.add(pair.rows[1])
    return found


def _equal(x: Array, y: Array) -> bool:
    return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())
