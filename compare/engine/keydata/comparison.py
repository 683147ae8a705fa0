"""The key data of two runs, table by table: what agrees, what differs, and what differs only because something before it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from compare.engine.keydata.alignment import Alignment, Place, Tables, align_lists
from compare.engine.keydata.copies import copies
from compare.engine.keydata.numbers import Array, Numbers, measure, overlap, values
from compare.engine.keydata.tables import entry_order
from compare.engine.loop import key_order, made_of, quantity
from compare.engine.model import KeyData
from compare.engine.pairing import rank_shift

EQUAL, DIFFERS, CONSEQUENCE, LEFT_ONLY, RIGHT_ONLY, NOT_READ = "equal", "differs", "consequence", "left_only", "right_only", "not_read"


@dataclass(frozen=True, slots=True)
class TablePair:
    """A table of the left run and its partner; a row is -1 where a side has none. ``place`` is the left's, else the right's.

    ``evidence``: values, statistics (only the .json is there on a side) or none. ``masked``: the numbers of the positions within the
    responses' lengths. ``note``: empty, not_read, padding_only (differs beyond the responses' ends only), by_sequence (each line with its
    own sequence, which lies elsewhere on the right).
    """

    place: Place
    right_place: Place | None
    rows: tuple[int, int]
    state: str
    evidence: str
    numbers: Numbers | None = None
    masked: Numbers | None = None
    note: str | None = None


@dataclass(slots=True)
class KeyComparison:
    """One key. ``name`` is the left's, else the right's. ``first``: its first table that differs."""

    name: str
    names: tuple[str | None, str | None]
    kind: str
    pairs: Sequence[TablePair]
    steps: frozenset[int]  # on both sides
    copies: int
    state: str = EQUAL
    first: TablePair | None = None
    caused_by: frozenset[str] = frozenset()

    @property
    def differing(self) -> list[TablePair]:
        return [pair for pair in self.pairs if self.counts_against(pair)]

    def counts_against(self, pair: TablePair) -> bool:
        """Differs, or is missing on one side in a step that both sides have."""
        return pair.state == DIFFERS or (pair.state in (LEFT_ONLY, RIGHT_ONLY) and pair.place[0] in self.steps)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(pair.state for pair in self.pairs)
        return {state: found[state] for state in (EQUAL, DIFFERS, LEFT_ONLY, RIGHT_ONLY, NOT_READ)}


@dataclass(frozen=True, slots=True)
class KeyDataComparison:
    """All keys in pipeline order. ``shift``: right rank − left rank."""

    keys: Sequence[KeyComparison]
    sides: tuple[Tables | None, Tables | None]
    alignment: Alignment = field(default_factory=Alignment)
    shift: int = 0

    @property
    def first(self) -> KeyComparison | None:
        """The key that parts first and not as a consequence: by step, then in pipeline order."""
        own = [key for key in self.keys if key.state == DIFFERS and key.first is not None]
        return min(own, key=lambda key: key.first.place[0] if key.first else 0, default=None)


def compare_key_data(
    left: KeyData | None,
    right: KeyData | None,
    steps: tuple[int | None, int | None] = (None, None),
    ranks: tuple[int | None, int | None] = (None, None),
) -> KeyDataComparison:
    """Compares every table that both runs hold and lists those that one holds. ``steps`` and ``ranks`` choose for each side."""
    sides = tuple(None if side is None else Tables(side, step=steps[at], rank=ranks[at]) for at, side in enumerate((left, right)))
    a, b = sides
    if a is None or b is None:
        return KeyDataComparison(_one_sided(a, b), (a, b))
    meeting = _Meeting(a, b, steps, ranks)
    alignment = align_lists(a, b) if meeting.plain else Alignment()
    keys: list[KeyComparison] = []
    for name, names in _keys(a, b):
        here, there = (side.by_key.get(own, {}) if own else {} for side, own in zip((a, b), names, strict=True))
        known = quantity(name)
        moved = alignment.right_of if known is not None and known.kind == "tokens" else {}
        pairs: list[TablePair] = []
        used: set[Place] = set()
        for place in here:
            partner = moved.get(place) or meeting.right(place)
            if partner in there:
                used.add(partner)
            row = there.get(partner, -1)
            moved_lines = None if row < 0 or place[0] not in alignment.reordered else _moved(a, b, here[place], names[1] or "", alignment)
            pairs.append(moved_lines or _pair(a, b, place, partner if row >= 0 else None, here[place], row))
        pairs += [TablePair(meeting.left(place), place, (-1, row), RIGHT_ONLY, "none") for place, row in there.items() if place not in used]
        pairs.sort(key=lambda pair: (*pair.place[:3], *entry_order(pair.place[3])))
        both = frozenset(meeting.right(place)[0] for place in here) & frozenset(place[0] for place in there)
        both = frozenset(place[0] for place in here if meeting.right(place)[0] in both)
        keys.append(
            KeyComparison(name, names, known.kind if known else "other", pairs, both, min(_copies(a, names[0]), _copies(b, names[1])))
        )
    _judge(keys)
    return KeyDataComparison(keys, (a, b), alignment, meeting.shift)


class _Meeting:
    """Where a left place lies on the right: another step or rank where they were chosen, other ranks where those are counted from
    elsewhere."""

    def __init__(self, left: Tables, right: Tables, steps: tuple[int | None, int | None], ranks: tuple[int | None, int | None]) -> None:
        columns = [np.asarray(side.table.rank)[side.rows] for side in (left, right)]
        self.shift = (
            ranks[1] - ranks[0] if ranks[0] is not None and ranks[1] is not None else rank_shift(columns[0].tolist(), columns[1].tolist())
        )
        self.step_shift = steps[1] - steps[0] if steps[0] is not None and steps[1] is not None else 0
        self.plain = not self.step_shift and not self.shift

    def right(self, place: Place) -> Place:
        return place[0] + self.step_shift, place[1] + self.shift, *place[2:]

    def left(self, place: Place) -> Place:
        return place[0] - self.step_shift, place[1] - self.shift, *place[2:]


def _keys(left: Tables, right: Tables) -> list[tuple[str, tuple[str | None, str | None]]]:
    """Every key with its name on either side: trainers call the same thing log_prob and log_probs."""
    names: dict[str, list[str | None]] = {}
    for at, side in enumerate((left, right)):
        for key in side.by_key:
            known = quantity(key)
            taken = names.get(known.key if known else key)
            if taken is not None and taken[at] is not None:  # one side has it under two names: each stands for itself
                names.setdefault(f"{key}", [None, None])[at] = key
            else:
                names.setdefault(known.key if known else key, [None, None])[at] = key
    found = [(own[0] or own[1] or "", (own[0], own[1])) for own in names.values()]
    return sorted(found, key=lambda entry: key_order(entry[0]))


def _one_sided(left: Tables | None, right: Tables | None) -> list[KeyComparison]:
    side, at = (left, 0) if left is not None else (right, 1)
    if side is None:
        return []
    state = (LEFT_ONLY, RIGHT_ONLY)[at]
    keys = []
    for name in sorted(side.by_key, key=key_order):
        known = quantity(name)
        pairs = [
            TablePair(place, place if at else None, (row, -1) if at == 0 else (-1, row), state, "none")
            for place, row in sorted(side.by_key[name].items(), key=lambda entry: (*entry[0][:3], *entry_order(entry[0][3])))
        ]
        names = (name, None) if at == 0 else (None, name)
        keys.append(KeyComparison(name, names, known.kind if known else "other", pairs, frozenset(), _copies(side, name), state))
    return keys


def _copies(side: Tables, name: str | None) -> int:
    return copies(side).get(name, 1) if name is not None else 1 << 30


def _pair(left: Tables, right: Tables, place: Place, partner: Place | None, a: int, b: int) -> TablePair:
    if partner is None:
        return TablePair(place, None, (a, -1), LEFT_ONLY, "none")
    arrays = values(left.table, a), values(right.table, b)
    if arrays[0] is None or arrays[1] is None:
        return _by_statistics(left.table, right.table, place, partner, a, b)
    x, y = overlap(arrays[0], arrays[1])
    shapes = arrays[0].shape == arrays[1].shape
    numbers = measure(x, y)
    same = shapes and numbers.same == numbers.compared
    masked = None
    lengths = left.lengths(a), right.lengths(b)
    if (
        shapes
        and lengths[0] is not None
        and lengths[1] is not None
        and np.array_equal(lengths[0], lengths[1])
        and (lengths[0] < x.shape[1]).any()
    ):
        mask = np.arange(x.shape[1]) < lengths[0][:, None]
        masked = measure(x[mask], y[mask])
    note = "empty" if not numbers.compared else "padding_only" if not same and masked and masked.same == masked.compared else None
    return TablePair(place, partner, (a, b), EQUAL if same else DIFFERS, "values", numbers, masked, note)


def _moved(left: Tables, right: Tables, row: int, right_name: str, alignment: Alignment) -> TablePair | None:
    """A per-token table whose sequences lie elsewhere on the right: line by line, each with its own sequence, padding left out. None where
    it is not known whose line is whose, or none has moved."""
    lines = moved_lines(left, right, row, right_name, alignment)
    if lines is None:
        return None
    place = lines[0][0]
    here, there = (np.concatenate([line[side][: min(len(line[1]), len(line[2]))] for line in lines]) for side in (1, 2))
    numbers = measure(here, there)
    same = numbers.same == numbers.compared and all(len(x) == len(y) for _, x, y in lines)
    target = right.lines[right_name, alignment.right_of.get(place, place)][0]
    table = left.table
    own = int(table.step[row]), int(table.rank[row]), int(table.micro_step[row]), table.ids[table.id[row]]
    return TablePair(own, own, (row, target), EQUAL if same else DIFFERS, "values", numbers, None, "by_sequence")


def moved_lines(left: Tables, right: Tables, row: int, right_name: str, alignment: Alignment) -> list[tuple[Place, Array, Array]] | None:
    """For every line of a table the place of its response and the tokens of both sides (see ``_moved``)."""
    sequences = left.sequences.get(row)
    here = values(left.table, row)
    if not sequences or here is None or not any(place in alignment.right_of for place, _ in sequences):
        return None
    found: list[tuple[Place, Array, Array]] = []
    for line, (place, length) in enumerate(sequences):
        target = alignment.right_of.get(place, place)
        at = right.lines.get((right_name, target))
        there = None if at is None else values(right.table, at[0])
        if at is None or there is None:
            return None
        found.append((place, here[line][:length], there[at[1]][: right.sequences[at[0]][at[1]][1]]))
    return found


def _by_statistics(left: KeyData, right: KeyData, place: Place, partner: Place, a: int, b: int) -> TablePair:
    """Without numbers on a side: maximum, minimum, mean, norm and shape as the .json has them. They prove less than the numbers."""
    both = int(left.present[a]) & int(right.present[b])
    if left.problem[a] >= 0 or right.problem[b] >= 0 or not both:
        return TablePair(place, partner, (a, b), NOT_READ, "none", note="not_read")
    known = [at for at in range(left.statistics.shape[1]) if both & 1 << at]
    x, y = left.statistics[a, known], right.statistics[b, known]
    shapes = [None if table.shape[row] < 0 else table.shapes[table.shape[row]] for table, row in ((left, a), (right, b))]
    same = shapes[0] == shapes[1] and bool(((x == y) | (np.isnan(x) & np.isnan(y))).all())
    return TablePair(place, partner, (a, b), EQUAL if same else DIFFERS, "statistics")


def _judge(keys: Sequence[KeyComparison]) -> None:
    """Fills in what became of each key.

    A key that differs is a consequence where something that it is made of differs in that step or where, in an earlier step, something
    went into an update of the weights that make it.
    """
    by_name = {key.name: key for key in keys}
    for key in keys:
        differing = key.differing
        key.first = differing[0] if differing else None
        states = {pair.state for pair in key.pairs}
        key.state = DIFFERS if differing else states.pop() if len(states) == 1 else EQUAL
        if key.state == NOT_READ:
            key.state = EQUAL
    parting = {key.name: key.first.place[0] for key in keys if key.first is not None}
    for key in keys:
        if key.first is None:
            continue
        step = key.first.place[0]
        causes = {name for name in made_of(key.name, by_name) if name in parting and step in _steps(by_name[name])}
        if _trained(key.name, by_name):
            causes |= {name for name, at in parting.items() if at < step and name != key.name}
        if key.state == DIFFERS and causes:
            key.state, key.caused_by = CONSEQUENCE, frozenset(causes)


def _trained(key: str, present: Mapping[str, object]) -> bool:
    """Whether weights that the loop trains stand between the key and what is known of the step."""
    known = quantity(key)
    if known is None or known.weights:
        return True
    there = {found.key for name in present if (found := quantity(name)) is not None}
    return any(_trained(name, present) for name in known.of if name not in there)


def _steps(key: KeyComparison) -> set[int]:
    return {pair.place[0] for pair in key.differing}


def was_compared(pair: TablePair) -> bool:
    """Whether both sides hold the table and its numbers, or at least its statistics, were compared."""
    return pair.evidence != "none"
