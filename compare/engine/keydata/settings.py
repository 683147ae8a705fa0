"""The settings of configurations: found by the ends of their paths, and two side by side: what differs, and what of it matters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from compare.engine.keydata.configuration import Value, flatten, knowledge
from compare.engine.model import Configuration, JsonObject

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)")
WHOLE = re.compile(r"[+-]?[0-9]+")
WORDS = {"true": True, "false": False, "none": None, "null": None, "~": None, "": None}


class Settings:
    """The settings of one configuration. Paths are compared in lower case, with _ for -."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.paths: dict[str, tuple[str, Value]] = {normal_path(path): (path, value) for path, value in flatten(content).items()}
        self.ends: dict[str, list[str]] = {}  # by the last name of a path
        for path in self.paths:
            self.ends.setdefault(path.rpartition("/")[2], []).append(path)

    def at(self, end: str) -> list[tuple[str, Value]]:
        """Path and value of what is set at a path that ends so; with / in front it is the whole path."""
        if end.startswith("/"):
            return [self.paths[end[1:]]] if end[1:] in self.paths else []
        ending = self.ends.get(end.rpartition("/")[2], ())
        return [self.paths[path] for path in ending if path == end or path.endswith(f"/{end}")]


def normal_path(path: str) -> str:
    return path.lower().replace("-", "_")


def differences(left: Configuration | None, right: Configuration | None) -> list[JsonObject]:
    """What differs (``docs/formats.md``), what matters for train-inference consistency first; nothing where a side has no configuration.

    A setting that is null is one that is not set.
    """
    if left is None or right is None:
        return []
    sides = flatten(left.content), flatten(right.content)
    rows: list[JsonObject] = []
    for path in dict.fromkeys([*sides[0], *sides[1]]):
        values = sides[0].get(path), sides[1].get(path)
        lower = path.lower()
        as_text = any(pattern.search(lower) for pattern in knowledge().texts)
        if any(pattern.search(lower) for pattern in knowledge().ignored) or same(*values, as_text=as_text):
            continue
        why = next((text for pattern, text in knowledge().matters if pattern.fullmatch(lower)), None)
        unset = [meant(value) is None for value in values]
        state = "right_only" if unset[0] else "left_only" if unset[1] else "differs"
        rows.append({"path": path, "left": values[0], "right": values[1], "matters": why is not None, "state": state, "why": why})
    return sorted(rows, key=lambda row: (not row["matters"], row["path"]))


def same(a: object, b: object, *, as_text: bool = False) -> bool:
    """Equal values; "0.50" is 0.5, "True" is true, "null" and "None" are null. A bool is no number. Lists are equal in their order.

    ``as_text``: numbers in two texts are no numbers (version 1.10 is not 1.1).
    """
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, as_text=as_text) for x, y in zip(a, b, strict=True))
    if as_text and isinstance(a, str) and isinstance(b, str):
        return a.strip() == b.strip()
    x, y = meant(a), meant(b)
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (x != x and y != y)
    return type(x) is type(y) and x == y


def meant(value: object) -> object:
    """What a value stands for: a float (an int where a float would not be exact), a bool, None, or a text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _float(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in WORDS:
            return WORDS[word]
        if NUMBER.fullmatch(word):
            return _float(int(word) if WHOLE.fullmatch(word) else float(word))
        return value
    return json.dumps(value, sort_keys=True, default=str)


def _float(value: float) -> object:
    try:
        return value if isinstance(value, int) and float(value) != value else float(value)
    except OverflowError:
        return value
