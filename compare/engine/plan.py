"""What comparing two runs comes to: which parts there are, before any of them is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compare.engine.diagnose.choice_findings import Instead
from compare.engine.diagnose.verdict import SideFacts
from compare.engine.errors import DumpError
from compare.engine.keydata.alignment import numbers_held
from compare.engine.keydata.requests import same_requests
from compare.engine.mapping.read import read_mapping
from compare.engine.mapping.rules import MappingRules
from compare.engine.model import KeyData
from compare.engine.options import Options
from compare.engine.parts.forming import chosen, left_out, names_of, parts_of
from compare.engine.parts.pairing import Pairing, Part
from compare.engine.runs import Run


@dataclass(frozen=True, slots=True)
class Plan:
    """Which parts a comparison is made of, known from the two inventories alone: no column is opened for it."""

    sides: tuple[Run, Run]
    pairing: Pairing
    facts: tuple[SideFacts, SideFacts]
    options: Options
    baseline: Run | None = None  # a second dump of the left side
    mapping: MappingRules | None = None

    @property
    def parts(self) -> Sequence[Part]:
        return self.pairing.parts

    @property
    def compared(self) -> Sequence[Part]:
        """The parts that both sides hold."""
        return [part for part in self.parts if part.only is None]

    @property
    def roles(self) -> tuple[str, str]:
        return self.facts[0].role, self.facts[1].role

    @property
    def looped(self) -> bool:
        """Whether a side holds key data or a configuration, which ``compare_loop`` compares."""
        return any(side.looped for side in self.sides)

    @property
    def tables(self) -> tuple[KeyData | None, KeyData | None]:
        """The key data of both sides; none where stages were chosen, for key data belong to no stage."""
        return (None, None) if self.options.stage is not None else (self.sides[0].loop().key_data, self.sides[1].loop().key_data)

    @property
    def primary(self) -> int:
        """The side whose order of execution counts."""
        return 1 if self.facts[1].role == "infer" and self.facts[0].role != "infer" else 0

    @property
    def namer(self) -> int:
        """The side whose names stand where only a rule of the mapping brings modules together."""
        return 1 if self.facts[1].role == "train" and self.facts[0].role != "train" else 0


def _refuse_unheld(sides: tuple[Run, Run], options: Options) -> None:
    """A step or rank that neither the dumps nor the key data of a side hold: DumpError ``no_such_choice``."""
    for name in ("step", "rank"):
        for at, (side, wanted) in enumerate(zip(sides, options.numbers(name), strict=True)):
            table = None if wanted is None else side.loop().key_data
            if table is None or any(getattr(entry, name) == wanted for entry in side.entries):
                continue
            held = numbers_held(table.step if name == "step" else table.rank)
            if len(held) > 1 and wanted not in held:
                raise DumpError("no_such_choice", ("left", "right")[at], name=name, value=wanted, held=", ".join(map(str, held)))


def _instead(side: Run, options: Options, at: int) -> list[Instead]:
    """What was chosen of a side that holds one other alone: that is compared."""
    found = []
    for name in ("stage", "step", "rank"):
        wanted = options.each(name)[at]
        held = {one for entry in side.entries for one in names_of(entry, name)}
        if not held and name != "stage" and (table := side.loop().key_data) is not None:
            held = {str(number) for number in numbers_held(table.step if name == "step" else table.rank)}
        if wanted is not None and held and wanted not in held:
            found.append(Instead(name, wanted, ", ".join(sorted(held))))
    return found


def plan_of(sides: tuple[Run, Run], options: Options, baseline: Run | None) -> Plan:
    roles = (options.left_role or sides[0].role, options.right_role or sides[1].role)
    entries = (sides[0].entries, sides[1].entries)
    requests: list[tuple[int, int]] = []
    if any(side.logged for side in sides):
        logs = sides[0].loop().requests, sides[1].loop().requests
        requests = same_requests(entries, (chosen(entries[0], options, 0), chosen(entries[1], options, 1)), logs)
    pairing = parts_of(*entries, options, requests, roles)
    if options.stage is None:
        _refuse_unheld(sides, options)
    facts = tuple(
        SideFacts(side.name, roles[i], left_out(entries[i], options, pairing.parts, i), _instead(side, options, i))
        for i, side in enumerate(sides)
    )
    mapping = read_mapping(options.mapping).facing(roles) if options.mapping else None
    return Plan(sides, pairing, (facts[0], facts[1]), options, baseline, mapping)
