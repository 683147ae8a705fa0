"""Which table of the left run belongs to which of the right, and which positions of a table are padding."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.keydata.numbers import Array, values
from compare.engine.keydata.tables import entry_order
from compare.engine.loop import key_order, quantity
from compare.engine.model import Int64, KeyData

Place = tuple[int, int, int, str]  # step, rank, micro_step, id
PROMPTS, RESPONSES = "prompts", "responses"


class Tables:
    """One side's tables by key and place. ``step`` and ``rank`` choose among them where the side holds several."""

    def __init__(self, table: KeyData, *, step: int | None = None, rank: int | None = None) -> None:
        self.table = table
        rows = np.arange(len(table))
        for column, wanted in ((table.step, step), (table.rank, rank)):
            if wanted is not None and len(numbers_held(column)) > 1:
                rows = rows[column[rows] == wanted]
        self.rows = rows

    @cached_property
    def by_key(self) -> dict[str, dict[Place, int]]:
        found: dict[str, dict[Place, int]] = {}
        table = self.table
        columns = (table.key, table.step, table.rank, table.micro_step, table.id)
        for row, key, step, rank, micro_step, entry in zip(
            self.rows.tolist(), *(np.asarray(column)[self.rows].tolist() for column in columns), strict=True
        ):
            found.setdefault(table.keys[key], {})[step, rank, micro_step, table.ids[entry]] = row
        return found

    def named(self, name: str) -> Mapping[Place, int]:
        """The tables of a key under whatever name the trainer gives it."""
        if name in self.by_key:
            return self.by_key[name]
        for key, places in self.by_key.items():
            known = quantity(key)
            if known is not None and known.key == name:
                return places
        return {}

    @cached_property
    def digests(self) -> dict[int, bytes]:
        """A fingerprint of the numbers of every row that has some, with their dtype and shape."""
        found: dict[int, bytes] = {}
        for row in self.rows.tolist():
            array = values(self.table, row)
            if array is not None:
                found[row] = _fingerprint(array)
        return found

    @cached_property
    def sequences(self) -> dict[int, list[tuple[Place, int]]]:
        """For rows of kind per_token: whose sequence each line is (the place of its response) and how many tokens it has.

        Only where it is known: the responses of that step and rank are as many as the sequences of all its micro-steps, none is longer than
        its line, and no table of them shows that it holds them in another order.
        """
        responses: defaultdict[tuple[int, int], list[tuple[Place, int]]] = defaultdict(list)
        for place, row in sorted(self.named(RESPONSES).items(), key=_in_order):
            shape = self.shape(row)
            if shape is not None and len(shape) == 1:
                responses[place[:2]].append((place, shape[0]))
        found: dict[int, list[tuple[Place, int]]] = {}
        shuffled: set[tuple[int, int]] = set()
        for key, places in self.by_key.items():
            known = quantity(key)
            if known is None or known.kind != "per_token":
                continue
            batches: defaultdict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
            for place, row in sorted(places.items(), key=_in_order):
                batches[place[:2]].append((row, self.shape(row) or ()))
            for at, rows in batches.items():
                cut = _cut(responses.get(at, []), rows)
                found.update(cut)
                if self._shuffled(cut):
                    shuffled.add(at)
        table = self.table
        return {row: lines for row, lines in found.items() if (int(table.step[row]), int(table.rank[row])) not in shuffled}

    def _shuffled(self, cut: Mapping[int, Sequence[tuple[Place, int]]]) -> bool:
        """Whether lines end, in padding of one value, where the responses do, but in another order: a trainer shuffled its batch."""
        arrays = [array for row in cut if (array := values(self.table, row)) is not None and array.size]
        if len(arrays) < len(cut) or not arrays:
            return False
        ends, lengths = _ends(arrays), [length for lines in cut.values() for _, length in lines]
        return ends != lengths and sorted(ends) == sorted(lengths)

    def lengths(self, row: int) -> Int64 | None:
        """Tokens of each line of a per_token row, [batch], or None."""
        sequences = self.sequences.get(row)
        return None if sequences is None else np.array([length for _, length in sequences], np.int64)

    def valid(self, row: int) -> NDArray[np.bool_] | None:
        """Which positions of a row are no padding, [*shape]: those within the responses, of ``prob_diff`` those that its mask keeps. None
        where that is not known."""
        shape, lengths = self.shape(row), self.lengths(row)
        if shape is not None and lengths is not None:
            valid: NDArray[np.bool_] = np.arange(shape[1]) < lengths[:, None]
            return valid
        masked = self._masks.get(row)
        mask = None if masked is None else values(self.table, masked)
        return None if mask is None or mask.shape != shape else mask != 0

    @cached_property
    def _masks(self) -> dict[int, int]:
        """Row of prob_diff → row of its prob_mask."""
        masks = self.named("prob_mask")
        return {row: masks[place] for place, row in self.named("prob_diff").items() if place in masks}

    @cached_property
    def lines(self) -> dict[tuple[str, Place], tuple[int, int]]:
        """(key, place of a response) → row and line that belong to it."""
        names = self.table.keys
        return {
            (names[self.table.key[row]], place): (row, line)
            for row, sequences in self.sequences.items()
            for line, (place, _) in enumerate(sequences)
        }

    @cached_property
    def batches(self) -> dict[tuple[int, int, int], tuple[Place, ...]]:
        """Step, rank, micro-step → whose sequences were worked on there, in order: as the last per-token key of the loop has them."""
        table = self.table
        found: dict[tuple[int, int, int], tuple[Place, ...]] = {}
        for row in sorted(self.sequences, key=lambda row: key_order(table.keys[int(table.key[row])])):
            at = int(table.step[row]), int(table.rank[row]), int(table.micro_step[row])
            found[at] = tuple(place for place, _ in self.sequences[row])
        return found

    def place(self, row: int) -> Place:
        table = self.table
        return int(table.step[row]), int(table.rank[row]), int(table.micro_step[row]), table.ids[table.id[row]]

    def shape(self, row: int) -> tuple[int, ...] | None:
        at = int(self.table.shape[row])
        return None if at < 0 else self.table.shapes[at]


def numbers_held(column: NDArray[Any]) -> list[int]:
    """The steps or ranks that there are, sorted; a table without a folder for them has none."""
    held: list[int] = np.unique(column[column >= 0]).tolist()
    return held


def _ends(arrays: Sequence[Array]) -> list[int]:
    """Of every line of the tables [lines, positions] where its padding begins: the value that lines end with more than once."""
    last = np.concatenate([array[:, -1] for array in arrays])
    runs = np.concatenate([_run(array) for array in arrays])
    width = np.concatenate([np.full(len(array), array.shape[1]) for array in arrays])
    padding = np.unique(last[runs > 1])
    if len(padding) != 1:
        return []
    padded = (last == padding[0]) | ((last != last) & (padding[0] != padding[0]))
    ends: list[int] = np.where(padded, width - runs, width).tolist()
    return ends


def _run(array: Array) -> Array:
    """How often each line ends with its last value."""
    last = array[:, -1:]
    other = ((array != last) & ~((array != array) & (last != last)))[:, ::-1]
    runs: Array = np.where(other.any(axis=1), other.argmax(axis=1), array.shape[1])
    return runs


def _cut(sequences: Sequence[tuple[Place, int]], rows: Sequence[tuple[int, tuple[int, ...]]]) -> dict[int, list[tuple[Place, int]]]:
    if any(len(shape) != 2 for _, shape in rows) or sum(shape[0] for _, shape in rows) != len(sequences):
        return {}
    found, at = {}, 0
    for row, (batch, longest) in rows:
        found[row] = list(sequences[at : at + batch])
        if any(length > longest for _, length in found[row]):
            return {}
        at += batch
    return found


@dataclass(slots=True)
class Alignment:
    """Which entry of the left's lists (prompts, responses) is which of the right's. ``right_of``: where that is, for entries that lie
    elsewhere there; ``partners``: the same for all; an entry that is in neither has none. ``reordered``: the steps in which one moved."""

    partners: dict[Place, Place] = field(default_factory=dict)
    right_of: dict[Place, Place] = field(default_factory=dict)
    reordered: set[int] = field(default_factory=set)


Spots = Callable[[Iterable[Place], int], Mapping[Place, Place]]  # where the places of a side are to be met → the places themselves


def align_lists(left: Tables, right: Tables, spots: Spots) -> Alignment:
    """Pairs the entries of prompts and responses by content, each with one other: an asynchronous rollout returns them in any order.

    An entry goes with the one at its own place where prompt and response are equal; else with one of the same prompt and response anywhere
    in the step; else the same prompt at its place; else the same prompt anywhere; what is left goes with what is left at its place.
    """
    contents = _contents(left), _contents(right)
    places = tuple(spots(found, side) for side, found in enumerate(contents))
    steps: tuple[defaultdict[int, dict[Place, Content]], ...] = (defaultdict(dict), defaultdict(dict))
    for side in (0, 1):
        for spot, place in places[side].items():
            steps[side][spot[0]][spot] = contents[side][place]
    found = Alignment()
    for step in sorted(steps[0].keys() & steps[1].keys()):
        here, there = steps[0][step], steps[1][step]
        matched: dict[Place, Place] = {}
        if here == there:
            matched = {spot: spot for spot in here}
        else:
            for take in (_both_at_place, _both, _prompt_at_place, _prompt, _place):
                _match(here, there, take, matched)
        for a, b in matched.items():
            found.partners[places[0][a]] = places[1][b]
            if a != b:
                found.right_of[places[0][a]] = places[1][b]
                found.reordered.add(places[0][a][0])
    return found


Content = tuple[bytes, bytes]  # fingerprints of prompt and response; empty where there is none
Take = Callable[[Place, Content], Hashable]


def _both_at_place(place: Place, content: Content) -> Hashable:
    return place, content


def _both(place: Place, content: Content) -> Hashable:
    return content if content[1] else None


def _prompt_at_place(place: Place, content: Content) -> Hashable:
    return place, content[0]


def _prompt(place: Place, content: Content) -> Hashable:
    return content[0] or None


def _place(place: Place, content: Content) -> Hashable:
    return place


def _match(here: dict[Place, Content], there: dict[Place, Content], take: Take, found: dict[Place, Place]) -> None:
    waiting: defaultdict[Hashable, list[Place]] = defaultdict(list)
    for place in sorted(there, key=_ordered, reverse=True):
        waiting[take(place, there[place])].append(place)
    for place in sorted(here, key=_ordered):
        sign = take(place, here[place])
        if sign is not None and waiting[sign]:
            found[place] = waiting[sign].pop()
            del here[place], there[found[place]]


def _contents(side: Tables) -> dict[Place, Content]:
    prompts, responses = side.named(PROMPTS), side.named(RESPONSES)
    return {
        place: (_tokens(side.table, prompts.get(place, -1)), _tokens(side.table, responses.get(place, -1)))
        for place in sorted({*prompts, *responses}, key=_ordered)
    }


def _tokens(table: KeyData, row: int) -> bytes:
    """The fingerprint of a list of tokens, whatever number type they are stored as."""
    array = values(table, row) if row >= 0 else None
    return b"" if array is None else _fingerprint(array.astype(np.float64))


def _fingerprint(array: Array) -> bytes:
    head = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.blake2b(head + array.tobytes(), digest_size=16).digest()


def _ordered(place: Place) -> tuple[object, ...]:
    return *place[:3], *entry_order(place[3])


def _in_order(entry: tuple[Place, int]) -> tuple[object, ...]:
    return _ordered(entry[0])
