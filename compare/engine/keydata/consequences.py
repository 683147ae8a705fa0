"""Which differences follow from others: decided table by table, by what each is made of (``loop.yaml``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from compare.engine.keydata.alignment import Place, Tables
from compare.engine.keydata.key_comparison import CONSEQUENCE, NOT_COMPARED, KeyComparison
from compare.engine.keydata.table_pair import DIFFERS, EQUAL, LEFT_ONLY, NOT_COMPARABLE, NOT_READ, PADDING, RIGHT_ONLY, TablePair
from compare.engine.loop import Quantity, key_order, loop, made_of, quantity

UPDATE = "update"  # the stage that changes the weights, micro-step by micro-step
LOSS, TOKENS = "loss", "tokens"


def judge(keys: Sequence[KeyComparison], left: Tables | None) -> None:
    """Fills in what became of each key. ``left``: the side whose places the pairs have."""
    follow = _Consequences(keys, left)
    for key in keys:
        key.first = next(iter(key.differing), None)
        key.causes = {at: causes for at, pair in enumerate(key.pairs) if pair.state == DIFFERS and (causes := follow.of(key, pair))}
        key.own = next((pair for at, pair in enumerate(key.pairs) if pair.state == DIFFERS and at not in key.causes), None)
        key.state = DIFFERS if key.own else CONSEQUENCE if key.first else _without_difference({pair.state for pair in key.pairs})


def _without_difference(states: set[str]) -> str:
    if states & {NOT_READ, NOT_COMPARABLE} or states == {LEFT_ONLY, RIGHT_ONLY}:
        return NOT_COMPARED
    return next((state for state in (PADDING, EQUAL, LEFT_ONLY, RIGHT_ONLY) if state in states), EQUAL)


class _Places:
    """Where the tables of a key were compared, and where they differ."""

    def __init__(self, pairs: Iterable[TablePair]) -> None:
        self.compared: defaultdict[tuple[int, int], set[int]] = defaultdict(set)  # step, rank → micro-steps
        self.differing: set[Place] = set()
        for pair in pairs:
            if pair.compared:
                self.compared[pair.place[:2]].add(pair.place[2])
            if pair.state == DIFFERS:
                self.differing.add(pair.place)
        self.held = {step for step, _ in self.compared}
        self.steps = {place[0] for place in self.differing}
        self.ranks = {place[:2] for place in self.differing}
        self.micro_steps = {place[:3] for place in self.differing}


class _Consequences:
    def __init__(self, keys: Sequence[KeyComparison], left: Tables | None) -> None:
        self.left = left
        self.keys = {key.name: key for key in keys}
        self.places = {key.name: _Places(key.pairs) for key in keys}
        self.named: defaultdict[str, list[str]] = defaultdict(list)  # a key of the loop → the names that it has here
        for key in keys:
            known = quantity(key.name)
            if known is not None:
                self.named[known.key].append(key.name)
        known_names = [name for names in self.named.values() for name in names]
        self.into_update = {*made_of(LOSS, known_names), *self.named[LOSS]}
        self.known_names = set(known_names)

    def of(self, key: KeyComparison, pair: TablePair) -> frozenset[str]:
        """The keys whose differences explain that of a pair: those that it is made of, where they differ at its place; where trained
        weights stand between, everything that went into an update before it (in its own step what the loop makes before it).
        """
        known, step = quantity(key.name), pair.place[0]
        causes = self._made_of(known, key, pair)
        before = self.into_update - {key.name}
        if self._through_weights(known):
            causes |= {name for name in before if min(self.places[name].steps, default=step) < step}
        if self._through_weights(known, UPDATE):
            above = {name for name in before if key_order(name) < key_order(key.name)}
            causes |= {name for name in above if self._updated_before(name, pair.place)}
        return frozenset(causes)

    def _made_of(self, known: Quantity | None, key: KeyComparison, pair: TablePair) -> set[str]:
        """What is equal at the place hides what it is made of itself; what was not compared in the step hides nothing. A key of no known
        name may be made of any that has one.
        """
        if known is None:
            return {name for name in self.known_names if self._reaches(name, key, pair)}
        causes: set[str] = set()
        waiting = [(name, known.whole_step) for name in known.of]
        seen: set[tuple[str, bool]] = set()
        while waiting:
            name, whole_step = waiting.pop()
            if (name, whole_step) in seen:
                continue
            seen.add((name, whole_step))
            there = [own for own in self.named[name] if pair.place[0] in self.places[own].held]
            reaching = {own for own in there if self._reaches(own, key, pair, whole_step=whole_step)}
            causes |= reaching
            if reaching or not there:
                between = loop().of(name)
                waiting += [(above, whole_step or between.whole_step) for above in between.of]
        return causes - {key.name}

    def _reaches(self, name: str, key: KeyComparison, pair: TablePair, *, whole_step: bool = False) -> bool:
        """Whether a difference of ``name`` lies at the place of a pair, or in its step where that is all that counts: where all sequences
        of the step are mixed, or ``name`` was not compared at that rank."""
        its, (step, rank, micro_step, _) = self.places[name], pair.place
        if step not in its.steps or whole_step or (step, rank) not in its.compared:
            return step in its.steps
        tokens = TOKENS in (self.keys[name].kind, key.kind)
        sequences = self.left.sequences.get(pair.rows[0]) if self.left is not None and self.keys[name].kind == TOKENS else None
        if sequences is not None:
            return any(place in its.differing for place, _ in sequences)
        alike = not tokens and its.compared[step, rank] == self.places[key.name].compared[step, rank]
        return (step, rank, micro_step) in its.micro_steps if alike else (step, rank) in its.ranks

    def _updated_before(self, name: str, place: Place) -> bool:
        return any(at[0] == place[0] and at[2] < place[2] for at in self.places[name].micro_steps)

    def _through_weights(self, known: Quantity | None, stage: str | None = None) -> bool:
        """Whether weights that the loop trains (that ``stage`` has in use) stand between a key and what is known of the step."""
        if known is None:
            return stage is None
        if known.weights and stage in (None, known.stage):
            return True
        return any(self._through_weights(loop().of(name), stage) for name in known.of if not self.named[name])
