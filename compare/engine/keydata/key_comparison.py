"""What became of each key of two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compare.engine.keydata.alignment import Alignment, Tables
from compare.engine.keydata.table_pair import DIFFERS, EQUAL, LEFT_ONLY, NOT_READ, RIGHT_ONLY, STATES, TablePair
from compare.engine.loop import quantity

CONSEQUENCE, NOT_COMPARED = "consequence", "not_compared"
ALWAYS_COUNTED = (EQUAL, DIFFERS, LEFT_ONLY, RIGHT_ONLY, NOT_READ)


@dataclass(slots=True)
class KeyComparison:
    """One key. ``name`` is the left's, else the right's. ``first``: its first table that differs; ``own``: the first that does by itself.

    ``state``: equal (every table that both sides hold was compared and is); padding (or differs only beyond the responses' ends);
    differs; consequence; left_only and right_only (all of it); not_compared (some table of both sides was not, or no two tables met).
    ``causes``: for every position of ``pairs`` that differs as a consequence the keys that it is one of.
    """

    name: str
    names: tuple[str | None, str | None]
    kind: str
    pairs: Sequence[TablePair]
    steps: frozenset[int]  # on both sides
    copies: int
    state: str = EQUAL
    first: TablePair | None = None
    own: TablePair | None = None
    causes: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def differing(self) -> list[TablePair]:
        return [pair for pair in self.pairs if pair.state == DIFFERS]

    @property
    def caused_by(self) -> frozenset[str]:
        """Of a consequence: what its first table that differs follows from."""
        if self.state != CONSEQUENCE:
            return frozenset()
        return next((self.causes[at] for at, pair in enumerate(self.pairs) if pair is self.first), frozenset())

    def table_state(self, at: int) -> str:
        """Of a table what ``state`` is of the key."""
        return CONSEQUENCE if at in self.causes else self.pairs[at].state

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(pair.state for pair in self.pairs)
        return {state: found[state] for state in STATES if found[state] or state in ALWAYS_COUNTED}


@dataclass(frozen=True, slots=True)
class KeyDataComparison:
    """All keys in pipeline order. ``shift``: right rank − left rank."""

    keys: Sequence[KeyComparison]
    sides: tuple[Tables | None, Tables | None]
    alignment: Alignment = field(default_factory=Alignment)
    shift: int = 0

    @property
    def own(self) -> list[KeyComparison]:
        """The keys that part by themselves, the first first: by step, then in pipeline order; keys of no known name after all others."""
        found = [(quantity(key.name) is None, key.own.place[0], at) for at, key in enumerate(self.keys) if key.own is not None]
        return [self.keys[at] for *_, at in sorted(found)]

    @property
    def first(self) -> KeyComparison | None:
        return next(iter(self.own), None)
