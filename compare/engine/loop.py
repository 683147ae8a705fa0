"""What a step of a reinforcement-learning loop consists of (``loop.yaml``): stages and key data, each in pipeline order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Stage:
    kind: str
    words: frozenset[str]
    also: frozenset[str]  # one of these must be there too, where there are any
    prevails: bool
    takes: tuple[str, ...]

    def knows(self, words: set[str]) -> bool:
        return not self.words.isdisjoint(words) and (not self.also or not self.also.isdisjoint(words))


@dataclass(frozen=True, slots=True)
class Quantity:
    """One key of the key data. ``of``: the keys it is made of within a step; ``whole_step``: of all their sequences at once."""

    key: str
    kind: str
    stage: str | None
    of: tuple[str, ...]
    weights: bool
    whole_step: bool


@dataclass(frozen=True, slots=True)
class Loop:
    stages: tuple[Stage, ...]
    stage_words: frozenset[str]
    train_infer: tuple[tuple[str, str], ...]
    quantities: tuple[Quantity, ...]
    names: dict[str, int]  # every name of a key, and where it stands

    def of(self, name: str) -> Quantity:
        """The key of a name that the file itself uses."""
        return self.quantities[self.names[name]]


@lru_cache(maxsize=1)
def loop() -> Loop:
    document: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("loop.yaml").read_text("utf-8"))
    stages = tuple(
        Stage(row["kind"], frozenset(row["words"]), frozenset(row.get("with", ())), row.get("prevails", False), tuple(row.get("takes", ())))
        for row in document["stages"]
    )
    quantities = tuple(
        Quantity(row["key"], row["kind"], row.get("stage"), tuple(row["of"]), row.get("weights", False), row.get("whole_step", False))
        for row in document["key_data"]
    )
    names = {name: at for at, row in enumerate(document["key_data"]) for name in (row["key"], *row.get("names", ()))}
    words = frozenset().union(*(stage.words for stage in stages)) - set(document["sides"])
    return Loop(stages, words, tuple((a, b) for a, b in document["train_infer"]), quantities, names)


def is_stage(folder: str) -> bool:
    return not loop().stage_words.isdisjoint(_words(folder))


def stage_kind(stage: str | None) -> str | None:
    """generate, decode, reference, reward, values, old_log_prob, critic_update, update; None for a folder of another name."""
    found = _stage(stage)
    return None if found is None else loop().stages[found].kind


def stage_order(stage: str | None) -> int:
    """Where a stage stands in the pipeline; those of no known name stand last."""
    found = _stage(stage)
    return len(loop().stages) if found is None else found


def _stage(stage: str | None) -> int | None:
    if stage is None:
        return None
    words = set(_words(stage))
    knowing = [at for at, known in enumerate(loop().stages) if known.knows(words)]
    return next((at for at in knowing if loop().stages[at].prevails), knowing[0] if knowing else None)


def _words(folder: str) -> list[str]:
    return re.split(r"[^a-z]+", folder.lower())


def quantity(key: str) -> Quantity | None:
    """What is known of a key, under any of its names."""
    at = loop().names.get(key.lower())
    return None if at is None else loop().quantities[at]


def key_order(key: str) -> tuple[int, str]:
    """Sorts keys in pipeline order, those of no known name last."""
    return loop().names.get(key.lower(), len(loop().quantities)), key


def stage_moment(stage: str | None) -> tuple[int, int]:
    """When a stage's work is over within a step, to be held against ``key_moment``: after the last key that it makes or takes; for a stage
    without any, when that of the stage before it is. A stage of no known name is over when the step is.
    """
    found = _stage(stage)
    if found is None:
        return len(loop().quantities), 1
    return next((max(keys) for known in range(found, -1, -1) if (keys := _keys_of(known))), -1), 1


def _keys_of(stage: int) -> list[int]:
    known = loop().stages[stage]
    return [at for at, one in enumerate(loop().quantities) if one.stage == known.kind or one.key in known.takes]


def key_moment(key: str) -> tuple[int, int]:
    """When a key is made within a step, to be held against ``stage_moment``: a key comes before the end of the stage that makes it."""
    return key_order(key)[0], 0


def made_of(key: str, keys: Iterable[str]) -> set[str]:
    """Which of ``keys`` the key is made of within one step, directly or through others. A key of no known name may be made of any."""
    known = quantity(key)
    present = set(keys) - {key}
    if known is None:
        return {other for other in present if quantity(other) is not None}
    reached: set[str] = set()
    waiting = list(known.of)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += loop().of(name).of
    return {other for other in present if (found := quantity(other)) is not None and found.key in reached}
