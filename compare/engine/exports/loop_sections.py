"""What a report says of an RL loop besides its dumps: settings, preconditions, key data, drift over the steps, each run's own checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from compare.engine.diagnose.words import number, percent
from compare.engine.exports.blocks import Block, Bullets, Code, Grid, Heading, Line, Mark, Paragraph
from compare.engine.exports.words import Language, word
from compare.engine.model import JsonObject


class LoopSections:
    """The sections of one report in one language; each is nothing where the document has nothing of it."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def say(self, key: str, **values: object) -> str:
        return word(key, self.language, **values)

    def preconditions(self, rows: Sequence[JsonObject]) -> Iterator[Block]:
        """Those that the configurations say something of: the value that is set, or the equation with the numbers put in."""
        marks = {"ok": "good", "failed": "bad", "unknown": "quiet"}
        lines: list[list[Line]] = []
        for row in rows:
            sides = (row["left"], row["right"])
            if any(side["state"] != "unknown" or "text" in side for side in sides):
                states: list[Line] = [[Mark(self.say(side["state"]), marks[side["state"]]), f" {self._set(side)}"] for side in sides]
                lines.append([[row["text"][self.language]], *states])
        if lines:
            yield Heading(2, self.say("preconditions"))
            yield Grid([self.say("what"), self.say("left"), self.say("right")], lines)

    def _set(self, side: JsonObject) -> str:
        if "text" in side:
            return str(side["text"][self.language])
        return "" if side["path"] is None else _value(side["value"])

    def configurations(self, rows: Sequence[JsonObject]) -> Iterator[Block]:
        if not rows:
            return
        yield Heading(2, self.say("configuration"))
        header = [self.say(name) for name in ("path", "left", "right", "matters")]
        lines: list[list[Line]] = [
            [[Code(str(row["path"]))], [_value(row["left"])], [_value(row["right"])], [self.say("yes" if row["matters"] else "no")]]
            for row in rows
        ]
        yield Grid(header, lines)

    def key_data(self, rows: Sequence[JsonObject], findings: Sequence[JsonObject]) -> Iterator[Block]:
        if not rows:
            return
        yield Heading(2, self.say("key_data"))
        yield from (Paragraph([finding["text"][self.language]]) for finding in findings if finding["code"] == "prompts_only")
        kinds = {"equal": "good", "padding": "good", "differs": "bad"}
        lines: list[list[Line]] = []
        for row in rows:
            first = row.get("first") or {}
            known = [name for name in ("step", "rank") if first.get(name) is not None]
            place = self.say("comma").join(self.say(f"{name}_number", number=first[name]) for name in known)
            word = "tables_not_compared" if row["state"] == "not_compared" else str(row["state"])
            state = Mark(self.say(word), kinds.get(row["state"], "quiet"))
            lines.append([[Code(str(row["key"]))], [state], [self._tables(row)], [place or "–"]])
        yield Grid([self.say("key"), self.say("state"), self.say("tables"), self.say("first")], lines)

    def _tables(self, row: JsonObject) -> str:
        """How many there are of a key, and of which kinds where not of one."""
        counts = {state: count for state, count in row["counts"].items() if count}
        if len(counts) < 2:
            return str(row["tables"])
        return self.say("comma").join(self.say("state_count", count=count, state=self.say(state)) for state, count in counts.items())

    def drift(self, rows: Sequence[JsonObject]) -> Iterator[Block]:
        """How each difference moves over the steps: the sentence says it, the numbers stand beside it."""
        lines: list[list[Line]] = []
        for row in rows:
            if row["kind"] == "none":
                continue
            name = row["key"] or row["stage"] or "–"
            said = row["text"][self.language].removeprefix(name).lstrip(":： ")
            shown = percent if row["measure"] == "norm_rel" else number
            most = self._steps_of(row)
            first: Line = [Code(name), *([f" ({self.say(row['side'])})"] if row.get("side") else [])]
            lines.append([first, [said], [self.say(row["measure"])], *([[shown(value)] for value in most])])
        if lines:
            yield Heading(2, self.say("drift"))
            header = [self.say(name) for name in ("key_or_stage", "over_the_steps", "measure", "first_step", "largest", "last_step")]
            yield Grid(header, lines, frozenset({3, 4, 5}))

    @staticmethod
    def _steps_of(row: JsonObject) -> tuple[float | None, float | None, float | None]:
        """The size of the difference in the first step, the largest, and that in the last; None where a step has none."""
        values = [as_float(value) for value in row["values"]]
        known = [value for value in values if value is not None and not math.isnan(value)]
        return values[0], max(known, default=None), values[-1]

    def checks(self, rows: Sequence[JsonObject]) -> Iterator[Block]:
        """What each run says of itself alone: how many checks hold; those that fail are among the findings."""
        sides = [[row for row in rows if row["side"] == side] for side in ("left", "right")]
        if not rows:
            return
        yield Heading(2, self.say("checks"))
        yield Bullets(
            [
                [self.say("checks_of", side=self.say(mine[0]["side"]), holding=sum(row["state"] == "ok" for row in mine), count=len(mine))]
                for mine in sides
                if mine
            ]
        )


def as_float(value: Any) -> float | None:
    """A number of a document, where NaN and infinities are words."""
    return None if value is None else float(value)


def _value(value: Any) -> str:
    return "–" if value is None else str(value)
