"""The rules of a mapping file, applied to the module names of two sides before anything is paired.

A pair rule gives the module of one side the canonical name of its partner, so that everything that follows (vocabulary, quantities, layer
numbers) sees two modules of one name; parts of a fused module meet it as the vocabulary's own do. A module that is set apart, or whose
name was given away, keeps its name and meets nobody. Works on distinct paths, never on records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compare.engine.align.canonical import canonical_path, entry_of, plain_class
from compare.engine.align.conventions import Convention, conventions, fill
from compare.engine.mapping.rules import ClassRule, MappingRules, Rule, is_pattern, is_record
from compare.engine.model import JsonObject


@dataclass(frozen=True, slots=True)
class SidePaths:
    """The distinct module paths of one side (all its ranks): ``canonical`` by own path (wrappers out, the side's own words), the plain
    ``classes`` of each own path.
    """

    canonical: Mapping[str, str]
    classes: Mapping[str, frozenset[str]]
    listed: bool
    convention: Convention | None

    def find(self, text: str) -> str | None:
        """The canonical path of a module by its own or its canonical name."""
        return self.canonical.get(text) or (text if text in self._known() else None)

    def _known(self) -> frozenset[str]:
        return frozenset(self.canonical.values())


@dataclass(frozen=True, slots=True)
class Remap:
    """What becomes of one side's canonical paths: new names, paths that meet nobody, and parts that meet a fused module."""

    rename: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    fused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotRule:
    """One slot of one side ↔ one of the other; ``left`` and ``right`` are a record's name or a canonical module path."""

    left: str
    left_slot: str
    right: str
    right_slot: str
    rule: int


@dataclass(frozen=True, slots=True)
class AppliedRules:
    """What the rules of a file mean for two sides.

    ``manual``: canonical names under which modules meet because a rule says so; ``unpaired``: names that a rule set apart (not those that
    only lost their name to another). ``unused`` and ``contradicted`` are rules as a person wrote them, with their lines. ``swapped``: the
    file was written with the sides the other way round.
    """

    sides: tuple[Remap, Remap] = (Remap(), Remap())
    manual: frozenset[str] = frozenset()
    unpaired: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    slots: Sequence[SlotRule] = ()
    rules: int = 0
    unused: Sequence[JsonObject] = ()
    contradicted: Sequence[JsonObject] = ()
    swapped: bool = False


NO_RULES = AppliedRules()


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Modules (canonical) that a rule puts together or sets apart."""

    rule: int
    left: tuple[str, ...]
    right: tuple[str, ...]
    pair: bool
    specific: bool
    descendants: bool
    joins: bool


def apply_rules(mapping: MappingRules, sides: tuple[SidePaths, SidePaths], namer: int) -> AppliedRules:
    """``namer``: the side whose names stand where the vocabulary knows neither (0 left, 1 right)."""
    if not mapping:
        return NO_RULES
    resolved = _Resolver(mapping, sides)
    swapped = False
    if resolved.unused():
        turned = _Resolver(mapping.swapped(), sides)
        swapped = mapping.roles == (None, None) and len(turned.unused()) < len(resolved.unused())
        resolved = turned if swapped else resolved
    return resolved.settle(namer, swapped=swapped)


class _Resolver:
    """Rules with their patterns filled in for two sides."""

    def __init__(self, mapping: MappingRules, sides: tuple[SidePaths, SidePaths]) -> None:
        self.sides = sides
        self.known = tuple(frozenset(side.canonical.values()) for side in sides)
        self.written: list[Rule | ClassRule] = [*mapping.classes, *mapping.rules]
        self.bundles: list[_Bundle] = []
        self.slots: list[SlotRule] = []
        self.used: set[int] = set()
        self._class_rules(mapping.classes)
        for place, rule in enumerate(mapping.rules, len(mapping.classes)):
            if rule.slots:
                self._slot_rule(place, rule)
            else:
                self._module_rule(place, rule)

    def unused(self) -> list[int]:
        return [place for place in range(len(self.written)) if place not in self.used]

    # --- modules ----------------------------------------------------------------------------------------------------------------------

    def _module_rule(self, place: int, rule: Rule) -> None:
        for left, right in self._filled(rule):
            found = tuple(
                tuple(dict.fromkeys(name for path in paths if (name := self._find(side, path)) is not None))
                for side, paths in enumerate((left, right))
            )
            complete = all(found) if rule.pair else any(found)
            if complete:
                self.used.add(place)
                self.bundles.append(
                    _Bundle(place, found[0], found[1], rule.pair, rule.specific and not rule.anywhere, rule.descendants, rule.joins)
                )

    def _find(self, side: int, text: str) -> str | None:
        own = canonical_path(text, listed=self.sides[side].listed)
        return self.sides[side].canonical.get(own) or next((name for name in (text, own) if name in self.known[side]), None)

    def _filled(self, rule: Rule) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """The rule with numbers and names for ``N`` and ``*``."""
        if rule.specific and not rule.anywhere:
            yield rule.left, rule.right
            return
        if rule.anywhere:
            yield from self._replaced(rule)
            return
        seen: set[tuple[str, ...]] = set()
        for begin, first in enumerate((rule.left, rule.right)):
            if not first or (rule.pair and begin):
                continue  # a pair is there only where its left end is
            shape = _pattern(first[0], listed=self.sides[begin].listed)
            for path in self._names(begin):
                match = shape.fullmatch(path)
                captured = match.groupdict() if match else {}
                number = captured.pop("n", None)
                if match is None or (rule.layers is not None and (number is None or int(number) not in rule.layers)):
                    continue
                key = (number or "", *captured.values())
                if key not in seen:
                    seen.add(key)
                    yield tuple([_put(one, number, [*captured.values()]) for one in side] for side in (rule.left, rule.right))  # type: ignore[misc]

    def _names(self, side: int) -> Iterable[str]:
        return dict.fromkeys([*self.sides[side].canonical, *self.known[side]])

    def _replaced(self, rule: Rule) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """Part of a path for part of a path, at its first place; a whole path is a part too."""
        old, new = (canonical_path(side[0], listed=self.sides[index].listed) for index, side in enumerate((rule.left, rule.right)))
        raw = (rule.left[0], rule.right[0])
        for path in self._names(0):
            for part, other in ((old, new), raw):
                at = f".{path}.".find(f".{part}.")
                if at >= 0:
                    replaced = (f".{path}."[:at] + f".{other}." + f".{path}."[at + len(part) + 2 :]).strip(".")
                    yield [path], [replaced]
                    break

    def _class_rules(self, rules: Sequence[ClassRule]) -> None:
        """Every left path walked from the root, its parts replaced where the class above has a word for them."""
        table: dict[str, dict[tuple[str, ...], tuple[str, int]]] = {}
        for place, rule in enumerate(rules):
            owner = "TopLayer" if rule.owner in ("TopLayer", "Cell") else plain_class(rule.owner)
            whole = owner == "TopLayer"
            child = canonical_path(rule.left, listed=self.sides[0].listed).split(".") if whole else _without_wrappers(rule.left)
            table.setdefault(owner, {})[tuple(child)] = (rule.right if whole else ".".join(_without_wrappers(rule.right)), place)
        for path in self.sides[0].canonical if rules else ():
            parts, mapped, at, words = path.split("."), [], 0, []
            while at < len(parts):
                above = ".".join(parts[:at])
                owners = {"TopLayer"} if at == 0 else self.sides[0].classes.get(above, frozenset())
                step = next(
                    (
                        (length, *table[owner][tuple(parts[at : at + length])])
                        for length in range(len(parts) - at, 0, -1)
                        for owner in sorted(owners)
                        if tuple(parts[at : at + length]) in table.get(owner, {})
                    ),
                    None,
                )
                if step is None:
                    mapped.append(parts[at])
                    at += 1
                else:
                    mapped.append(step[1])
                    words.append(step[2])
                    at += step[0]
            left, right = self._find(0, path), self._find(1, ".".join(part for part in mapped if part))
            if words and left is not None and right is not None:
                self.used.update(words)
                self.bundles.append(_Bundle(words[-1], (left,), (right,), True, False, False, True))

    # --- slots ------------------------------------------------------------------------------------------------------------------------

    def _slot_rule(self, place: int, rule: Rule) -> None:
        for left, right in self._filled(rule):
            ends = []
            for side, paths in enumerate((left, right)):
                ends.append([path if is_record(path) else self._find(side, path) for path in paths])
            for a in ends[0]:
                for b in ends[1]:
                    if a is not None and b is not None:
                        self.slots += [SlotRule(a, x, b, y, place) for x, y in rule.slots]

    # --- together ---------------------------------------------------------------------------------------------------------------------

    def settle(self, namer: int, *, swapped: bool) -> AppliedRules:
        kept, contradicted = self._without_contradictions()
        plan = _Plan(self.sides, self.known, namer)
        for bundle in kept:
            plan.add(bundle)
        remaps = plan.remaps()
        renamed = [
            SlotRule(remaps[0].rename.get(s.left, s.left), s.left_slot, remaps[1].rename.get(s.right, s.right), s.right_slot, s.rule)
            for s in self.slots
        ]
        slot_rules = {slot.rule for slot in self.slots}
        return AppliedRules(
            sides=remaps,
            manual=frozenset(plan.manual),
            unpaired=(frozenset(plan.cut[0]), frozenset(plan.cut[1])),
            slots=renamed,
            rules=len(self.written),
            unused=[self._told(place) for place in self.unused() if place not in slot_rules],
            contradicted=[self._told(place) for place in contradicted],
            swapped=swapped,
        )

    def _told(self, place: int) -> JsonObject:
        return {"line": self.written[place].line, "rule": self.written[place].text()}

    def _without_contradictions(self) -> tuple[list[_Bundle], list[int]]:
        """Rules for one module outdo patterns, and later rules earlier ones; the latter is a contradiction, which is told."""
        ordered = sorted(self.bundles, key=lambda bundle: bundle.specific)
        owner: dict[tuple[int, str], _Bundle] = {}
        contradicted: dict[int, None] = {}
        for bundle in ordered:
            members = [(0, name) for name in bundle.left] + [(1, name) for name in bundle.right]
            held = {id(owner[m]): owner[m] for m in members if m in owner}
            for other in held.values():
                if other.pair == bundle.pair and (other.left, other.right) == (bundle.left, bundle.right):
                    bundle = other if other.descendants else bundle
                    continue  # said twice
                if other.joins and bundle.joins and other.pair and (other.left == bundle.left or other.right == bundle.right):
                    bundle = _joined(other, bundle)
                    members = [(0, name) for name in bundle.left] + [(1, name) for name in bundle.right]
                elif other.specific == bundle.specific:
                    contradicted[other.rule] = None
                for member in [(0, name) for name in other.left] + [(1, name) for name in other.right]:
                    owner.pop(member, None)
            for member in members:
                owner[member] = bundle
        return list({id(bundle): bundle for bundle in owner.values()}.values()), list(contradicted)


def _joined(one: _Bundle, other: _Bundle) -> _Bundle:
    left, right = (tuple(dict.fromkeys([*a, *b])) for a, b in ((one.left, other.left), (one.right, other.right)))
    return _Bundle(other.rule, left, right, True, other.specific, False, True)


class _Plan:
    """New names, collected bundle by bundle."""

    def __init__(self, sides: tuple[SidePaths, SidePaths], known: tuple[frozenset[str], ...], namer: int) -> None:
        self.sides = sides
        self.known = known
        self.namer = namer
        self.rename: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.below: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.fused: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.cut: tuple[set[str], set[str]] = (set(), set())
        self.claimed: tuple[set[str], set[str]] = (set(), set())
        self.manual: set[str] = set()
        self.meets = [_fused_table(sides[side], sides[1 - side], known[1 - side]) for side in (0, 1)]

    def add(self, bundle: _Bundle) -> None:
        ends = (bundle.left, bundle.right)
        if not bundle.pair:
            for side in (0, 1):
                self.cut[side].update(ends[side])
                if bundle.descendants:
                    self.cut[side].update(name for name in self.known[side] if any(name.startswith(f"{path}.") for path in ends[side]))
            return
        met = {self.meets[side].get(name, name) for side in (0, 1) for name in ends[side]}
        for side in (0, 1):
            self.claimed[side].update(ends[side])
        if len(met) == 1:
            return  # the modules meet anyway
        if len(bundle.left) == len(bundle.right) == 1:
            self._one_to_one(bundle)
        else:
            whole = 0 if len(bundle.left) == 1 else 1
            name = ends[whole][0]
            self.fused[1 - whole].update(dict.fromkeys(ends[1 - whole], name))
            self.manual.add(name)

    def _one_to_one(self, bundle: _Bundle) -> None:
        names = (bundle.left[0], bundle.right[0])
        described = [_described(name) for name in names]
        namer = self.namer if described[0] == described[1] else described.index(True)
        other = 1 - namer
        self.rename[other][names[other]] = names[namer]
        self.manual.add(names[namer])
        if bundle.descendants:
            self.below[other][names[other]] = names[namer]

    def remaps(self) -> tuple[Remap, Remap]:
        found = []
        for side in (0, 1):
            rename = dict(self.rename[side])
            for old, new in self.below[side].items():
                for name in self.known[side]:
                    if name.startswith(f"{old}.") and name not in self.claimed[side]:
                        rename[name] = new + name[len(old) :]
                        self.manual.add(rename[name])
            given = {*rename.values(), *self.fused[side].values()}
            displaced = {name for name in self.known[side] if name in given and name not in rename and name not in self.fused[side]}
            # Where this side is fused into a module that a rule gave other parts, those the vocabulary knows meet nobody.
            wholes = {*self.fused[side].values()}
            displaced |= {part for part, whole in self.meets[side].items() if whole in wholes and part not in self.fused[side]}
            found.append(Remap(rename, frozenset(self.cut[side] | displaced), dict(self.fused[side])))
        return found[0], found[1]


def _described(path: str) -> bool:
    template = entry_of(path)
    return any(template in convention.tensors or template in convention.fused for convention in conventions())


def _fused_table(side: SidePaths, other: SidePaths, known_there: frozenset[str]) -> dict[str, str]:
    """Part → fused module of the other side, by the other side's vocabulary."""
    if other.convention is None or side.convention is other.convention:
        return {}
    table = {}
    for path in known_there:
        for part in other.convention.fused.get(entry_of(path), ()):
            table[fill(part, _layer(path), 0)] = path
    return table


def _layer(path: str) -> int:
    return next((int(part) for part in path.split(".") if part.isdigit()), -1)


def _without_wrappers(path: str) -> list[str]:
    """Components of a part of a path: wrappers out, nothing put in front."""
    name = canonical_path(f"(part).{path}")
    return name.split(".")[1:]


def _pattern(path: str, *, listed: bool) -> re.Pattern[str]:
    cleaned = canonical_path(path, listed=listed) if is_pattern(path) else path
    pieces, stars, numbered = [], 0, False
    for part in cleaned.split("."):
        if part == "N":
            pieces.append("(?P=n)" if numbered else "(?P<n>[0-9]{1,5})")
            numbered = True
        elif part == "*":
            pieces.append(f"(?P<s{stars}>[^.]+)")
            stars += 1
        else:
            pieces.append(re.escape(part))
    return re.compile(r"\.".join(pieces))


def _put(path: str, number: str | None, stars: list[str]) -> str:
    """The path with what ``N`` and each ``*`` stand for, in order."""
    filled, star = [], 0
    for part in path.split("."):
        if part == "N" and number is not None:
            filled.append(number)
        elif part == "*" and star < len(stars):
            filled.append(stars[star])
            star += 1
        else:
            filled.append(part)
    return ".".join(filled)
