"""The rules of a mapping file, as they were written: nothing here knows a dump."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

SCHEMA = "probe-web/mapping/1"
GRADIENTS = "parameters_grad."
_RECORD = re.compile(r"^(?:Module|Cell)\.(?P<path>.*?)\.?[A-Za-z_][A-Za-z0-9_]*\.(?:forward|backward)\.\d+$")


@dataclass(frozen=True, slots=True)
class Rule:
    """``left`` and ``right`` are module paths; one side may list several, which together are the one module of the other side. A component
    may be ``N`` (a number, the same one on both sides) or ``*`` (any one component, the same on both sides).

    ``pair`` False sets the modules apart: they have no partner. ``descendants``: what lies below goes along. ``layers``: the numbers that
    ``N`` may be, None = any. ``slots``: pairs of slots instead of whole modules; then a path may be a record's full name. ``joins``: rules
    that name the same module of one side belong together (msprobe's files list the parts of a fused module one by one). ``anywhere``: the
    paths are parts of a path.
    """

    left: Sequence[str]
    right: Sequence[str]
    line: int
    pair: bool = True
    descendants: bool = False
    layers: frozenset[int] | None = None
    slots: Sequence[tuple[str, str]] = ()
    joins: bool = False
    anywhere: bool = False

    @property
    def specific(self) -> bool:
        """Names one module a side, no pattern."""
        return not any(is_pattern(path) for path in (*self.left, *self.right))

    def swapped(self) -> Rule:
        return replace(self, left=self.right, right=self.left, slots=tuple((b, a) for a, b in self.slots))

    def text(self) -> str:
        """How a sentence calls the rule."""
        sides = [" + ".join(side) for side in (self.left, self.right) if side]
        return (" ↔ " if self.pair else " | ").join(sides)


@dataclass(frozen=True, slots=True)
class ClassRule:
    """msprobe's layer mapping: inside any module of class ``owner``, the child at path ``left`` is called ``right`` on the other side."""

    owner: str
    left: str
    right: str
    line: int

    def swapped(self) -> ClassRule:
        return replace(self, left=self.right, right=self.left)

    def text(self) -> str:
        return f"{self.owner}: {self.left} ↔ {self.right}"


@dataclass(frozen=True, slots=True)
class MappingRules:
    """All rules of a file in order. ``roles``: which side was train and which infer when it was written, None where it does not say."""

    rules: Sequence[Rule] = ()
    classes: Sequence[ClassRule] = ()
    roles: tuple[str | None, str | None] = (None, None)
    names: tuple[str, str] = field(default=("", ""))

    def __bool__(self) -> bool:
        return bool(self.rules or self.classes)

    def swapped(self) -> MappingRules:
        return MappingRules(
            [rule.swapped() for rule in self.rules],
            [rule.swapped() for rule in self.classes],
            (self.roles[1], self.roles[0]),
            (self.names[1], self.names[0]),
        )

    def facing(self, roles: tuple[str, str]) -> MappingRules:
        """The same rules for a comparison whose sides have these roles: swapped where the file was written the other way round."""
        written = self.roles
        if {*written} == {"train", "infer"} and written == (roles[1], roles[0]):
            return self.swapped()
        return self


def is_pattern(path: str) -> bool:
    return not {"N", "*"}.isdisjoint(path.split("."))


def module_path(text: str) -> str:
    """A record's full name → its module path; anything else as it is."""
    found = _RECORD.match(text)
    return found["path"] if found else text


def is_record(text: str) -> bool:
    return ".forward" in text or ".backward" in text or ".parameters_grad" in text


def slot_name(record: str, slot: str) -> str:
    """The full name of a slot as msprobe's tables and data mappings have it; a gradient's record says already what it is."""
    return f"{record}.{slot.removeprefix(GRADIENTS)}"
