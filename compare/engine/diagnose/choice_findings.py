"""What was chosen of a side that holds something else, and only that: it was compared, and that is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compare.engine.diagnose.finding import Finding
from compare.engine.diagnose.words import Text, both

NAMES = {"stage": "阶段", "step": "步", "rank": "rank"}
SIDES = (("left", "左侧"), ("right", "右侧"))


@dataclass(frozen=True, slots=True)
class Instead:
    """``name``: stage, step or rank; ``held``: the only one there is."""

    name: str
    wanted: str
    held: str


def choice_findings(sides: Sequence[Sequence[Instead]]) -> Iterator[Finding]:
    """``sides``: of the left and of the right."""
    for (side, side_zh), instead in zip(SIDES, sides, strict=True):
        for choice in instead:
            yield Finding(
                "choice_not_held",
                "warning",
                both(
                    f"The {side} side has no {choice.name} {choice.wanted}: its only one, {choice.name} {choice.held}, was compared",
                    f"{side_zh}没有{NAMES[choice.name]} {choice.wanted}：参与比较的是其唯一的{NAMES[choice.name]} {choice.held}",
                ),
                evidence={"side": side, "name": choice.name, "wanted": choice.wanted, "held": choice.held},
            )


def choice_words(sides: Sequence[Sequence[Instead]]) -> Text:
    """What the headline adds: nothing where everything chosen is there."""
    tails = [
        both(
            f"; {choice.name} {choice.held} of the {side} side was compared, it has no {choice.wanted}",
            f"；{side_zh}参与比较的是{NAMES[choice.name]} {choice.held}，它没有 {choice.wanted}",
        )
        for (side, side_zh), instead in zip(SIDES, sides, strict=True)
        for choice in instead
    ]
    return both("".join(tail["en"] for tail in tails), "".join(tail["zh"] for tail in tails))
