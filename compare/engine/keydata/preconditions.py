"""What a train and an inference dump need to be comparable, and what the configurations say of it. What is asked for is data:
``preconditions.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from compare.engine.keydata.formula import SHOWN, Equation, equation, written
from compare.engine.keydata.named_numbers import (
    ROLES,
    Number,
    Places,
    Text,
    check_names,
    found_row,
    number_of,
    setting_name,
)
from compare.engine.keydata.settings import Settings, normal_path, same
from compare.engine.model import Configuration, JsonObject

SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Condition:
    """Settings, by the ends of their paths, and the values that are right."""

    paths: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Precondition:
    code: str
    text: Text
    either: tuple[Condition, ...]
    equations: tuple[Equation, ...]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """``preconditions.yaml``."""

    numbers: Mapping[str, Number]
    preconditions: tuple[Precondition, ...]


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    return known(yaml.safe_load(Path(__file__).with_name("preconditions.yaml").read_text("utf-8")))


def known(document: Mapping[str, Any]) -> Knowledge:
    """Raises ValueError and KeyError for what the file must not say."""
    numbers = {name: number_of(row) for name, row in document["numbers"].items()}
    rows = tuple(_precondition(row) for row in document["preconditions"])
    for one in rows:
        for asked in one.equations:
            check_names(asked.names, numbers)
    return Knowledge(numbers, rows)


def _precondition(row: Mapping[str, Any]) -> Precondition:
    either = row.get("either", [row] if "paths" in row else [])
    conditions = (
        Condition(tuple(normal_path(path) for path in one["paths"]), tuple(str(text).lower() for text in one["wanted"])) for one in either
    )
    equations = tuple(equation(text) for text in row.get("equations", ()))
    return Precondition(row["code"], {"en": row["en"], "zh": row["zh"]}, tuple(conditions), equations)


def preconditions(
    left: Configuration | None, right: Configuration | None, roles: tuple[str | None, str | None] = (None, None)
) -> list[JsonObject]:
    """One row a precondition (``docs/formats.md``); nothing where neither side has a configuration.

    ``roles``: train or infer. Where one side is each, what belongs to training is looked for on the train side first, and what belongs to
    the engine on the inference side: the equations across the two then say the same on both.
    """
    if left is None and right is None:
        return []
    settings = tuple(Settings(side.content if side else {}) for side in (left, right))
    crossed = sorted(role or "" for role in roles) == sorted(ROLES)
    places = [Places(knowledge().numbers, settings, at, roles if crossed else (None, None)) for at in range(len(SIDES))]
    rows = []
    for one in knowledge().preconditions:
        states = [_state(one, settings[at], places[at], has=side is not None) for at, side in enumerate((left, right))]
        rows.append(
            {
                "code": one.code,
                "text": dict(one.text),
                "wanted": _wanted(one, [asked for _, asked in states]),
                **{side: states[at][0] for at, side in enumerate(SIDES)},
            }
        )
    return rows


def holding(rows: Sequence[JsonObject], code: str) -> list[str]:
    """The sides whose configuration says that a precondition holds."""
    return [side for row in rows if row["code"] == code for side in SIDES if row[side]["state"] == "ok"]


def _state(one: Precondition, settings: Settings, places: Places, *, has: bool) -> tuple[JsonObject, Equation | None]:
    """A side's row, and the equation that it speaks of. ``has``: without a configuration of its own a side says nothing."""
    if not has:
        return found_row(), None
    wrong: JsonObject | None = None
    for condition in one.either:
        found = _detected(condition, settings)
        if found["state"] == "ok":
            return found, None
        wrong = wrong or (found if found["state"] == "failed" else None)
    asked = [(places.solve(equation), equation) for equation in one.equations]
    decided = next(((answer.row, equation) for answer, equation in asked if answer.row["state"] != "unknown"), None)
    if decided is not None:
        return decided
    if wrong is not None:
        return wrong, None
    # Nothing decides it: what is said is why the equation cannot be, of which most is known.
    closest, equation = max(asked, key=lambda pair: pair[0].known, default=(None, None))
    return (closest.row, equation) if closest is not None and closest.known else (found_row(), None)


def _detected(condition: Condition, settings: Settings) -> JsonObject:
    """The first path that is not as wanted, else the first that is. null is not set."""
    found = {path: value for end in condition.paths for path, value in settings.at(end) if value is not None}
    if not found:
        return found_row()
    wrong = [path for path, value in found.items() if not any(same(value, text) for text in condition.values)]
    path = wrong[0] if wrong else next(iter(found))
    return found_row(path, found[path], "failed" if wrong else "ok")


def _wanted(one: Precondition, asked: Sequence[Equation | None]) -> str:
    """The values that are right; of equations those that a side is told about, else the first."""
    if len(one.either) == 1 and not one.equations:
        return " | ".join(one.either[0].values)
    told = list(dict.fromkeys(equation for equation in asked if equation is not None)) or list(one.equations[:1])
    conditions = [f"{setting_name(condition.paths[0])} = {condition.values[0]}" for condition in one.either]
    return " | ".join([*conditions, *(_equation(equation) for equation in told)])


def _equation(asked: Equation) -> str:
    numbers = knowledge().numbers
    left, right = (written(side, lambda name: numbers[name].label["en"]) for side in (asked.left, asked.right))
    return f"{left} {SHOWN.get(asked.sign, asked.sign)} {right}"
