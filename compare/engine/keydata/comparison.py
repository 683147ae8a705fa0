"""The key data of two runs, table by table: what agrees, what differs, and what differs only because something before it does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from compare.engine.keydata.alignment import Place, Tables, align_lists
from compare.engine.keydata.by_sequence import Sequences
from compare.engine.keydata.consequences import judge
from compare.engine.keydata.copies import copies
from compare.engine.keydata.key_comparison import KeyComparison, KeyDataComparison
from compare.engine.keydata.meeting import Chosen, Meeting
from compare.engine.keydata.table_pair import LEFT_ONLY, RIGHT_ONLY, TablePair, pair_at_place
from compare.engine.keydata.tables import entry_order
from compare.engine.loop import key_order, quantity
from compare.engine.model import KeyData


def compare_key_data(
    left: KeyData | None,
    right: KeyData | None,
    steps: Chosen = (None, None),
    ranks: Chosen = (None, None),
) -> KeyDataComparison:
    """Compares every table that both runs hold and lists those that one holds. ``steps`` and ``ranks`` choose for each side."""
    sides = tuple(None if side is None else Tables(side, step=steps[at], rank=ranks[at]) for at, side in enumerate((left, right)))
    a, b = sides
    if a is None or b is None:
        keys = _one_sided(a, b)
        judge(keys, a)
        return KeyDataComparison(keys, (a, b))
    meeting = Meeting(a, b, steps, ranks)
    alignment = align_lists(a, b, meeting.spots)
    sequences = Sequences(a, b, alignment)
    copied = copies(a), copies(b)
    keys = []
    for name, names in paired_names(a.by_key, b.by_key):
        known = quantity(name)
        kind = known.kind if known else "other"
        here, there = (side.by_key.get(own, {}) if own else {} for side, own in zip((a, b), names, strict=True))
        pairs = _pairs(meeting, here, there, alignment.partners if kind == "tokens" else None)
        if names[1] is not None and kind == "per_token":
            pairs = sequences.settle(pairs, names[1])
        elif kind == "scalar":
            pairs = sequences.settle_batches(pairs)
        pairs.sort(key=lambda pair: (*_in_order(pair.place), pair.rows[0] < 0))
        both = frozenset(place[0] for place in here) & frozenset(meeting.left(place)[0] for place in there)
        alike = min(copied[side].get(own, 1) for side, own in enumerate(names) if own is not None)
        keys.append(KeyComparison(name, names, kind, pairs, both, alike))
    judge(keys, a)
    return KeyDataComparison(keys, (a, b), alignment, meeting.shift)


def _pairs(
    meeting: Meeting, here: Mapping[Place, int], there: Mapping[Place, int], partners: Mapping[Place, Place] | None
) -> list[TablePair]:
    """The tables of one key as they meet at their places; entries of lists as they were aligned (``partners``)."""
    spots = meeting.spots(here, 0), meeting.spots(there, 1)
    found: list[TablePair] = []
    met: set[Place] = set()
    for spot, place in spots[0].items():
        partner = spots[1].get(spot) if partners is None else partners.get(place)
        if partner is not None and partner in there:
            met.add(partner)
            found.append(pair_at_place(meeting.sides, (place, partner), (here[place], there[partner])))
        else:
            found.append(TablePair(place, None, (here[place], -1), LEFT_ONLY, "none"))
    found += [TablePair(meeting.left(place), place, (-1, row), RIGHT_ONLY, "none") for place, row in there.items() if place not in met]
    return found


def paired_names(left: Iterable[str], right: Iterable[str]) -> list[tuple[str, tuple[str | None, str | None]]]:
    """Every key with its name on either side, in pipeline order. Equal names go together; of what is left, where each side has one name for
    the same thing (log_prob and log_probs), those two do."""
    sides = set(left), set(right)
    names: list[tuple[str | None, str | None]] = [(name, name) for name in sides[0] & sides[1]]
    alone: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for at, side in enumerate(sides):
        for name in side - sides[1 - at]:
            known = quantity(name)
            alone[f"known {known.key}" if known else f"other {name}"][at].append(name)
    for a, b in alone.values():
        names += [(a[0], b[0])] if len(a) == len(b) == 1 else [*((name, None) for name in a), *((None, name) for name in b)]
    found = [(own[0] or own[1] or "", own) for own in names]
    return sorted(found, key=lambda entry: (key_order(entry[0]), entry[1][0] is None))


def _one_sided(left: Tables | None, right: Tables | None) -> list[KeyComparison]:
    side, at = (left, 0) if left is not None else (right, 1)
    if side is None:
        return []
    keys = []
    for name in sorted(side.by_key, key=key_order):
        known = quantity(name)
        pairs = [
            TablePair(place, None if at == 0 else place, (row, -1) if at == 0 else (-1, row), (LEFT_ONLY, RIGHT_ONLY)[at], "none")
            for place, row in sorted(side.by_key[name].items(), key=lambda entry: _in_order(entry[0]))
        ]
        names = (name, None) if at == 0 else (None, name)
        keys.append(KeyComparison(name, names, known.kind if known else "other", pairs, frozenset(), copies(side).get(name, 1)))
    return keys


def _in_order(place: Place) -> tuple[object, ...]:
    return *place[:3], *entry_order(place[3])
