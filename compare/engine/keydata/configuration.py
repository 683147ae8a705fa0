"""What a trainer was told: read from configurations.json, a YAML file or a verl log, flattened, and compared with another run's."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from compare.engine.keydata.places import CONFIGURATION, LOG
from compare.engine.keydata.tables import Stream
from compare.engine.model import Configuration, JsonObject

LARGEST_FILE = 4 << 20
"""Bytes of a configurations.json, and of a line of a log."""

LARGEST_YAML = 256 << 10
"""Bytes of a YAML file, which is read by a slow parser that no input can crash."""

LARGEST_LOG = 1 << 30
"""Bytes of a log that are looked through."""

LARGEST_PRINTED = 256 << 10
MOST_TRIES = 1_000
"""Bytes of a configuration in a log, and how often one may seem to end. verl prints 20,000 and 30 inner braces at the ends of lines."""

MOST_ENTRIES = 50_000
DEEPEST = 60
LONGEST_TEXT = 2_000
ANSI = re.compile(rb"\x1b\[[0-9;]*m")
# Ray prints the process before every line of its output.
RAY = re.compile(rb"^\([^()\n]{0,100}pid=[0-9]+[^()\n]{0,100}\) ?")
PRINTED = b"{'actor_rollout_ref'"
Value = str | int | float | bool | None | list[Any]
ABSENT = object()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A precondition: ``suffixes`` of paths, lower case, and the values that are as they should be."""

    code: str
    suffixes: tuple[str, ...]
    values: tuple[str, ...]
    text: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """``configuration.yaml``."""

    matters: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]
    ignored: tuple[re.Pattern[str], ...]
    known: frozenset[str]  # names at the top of a trainer's configuration
    preconditions: tuple[Wanted, ...]


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    document: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("configuration.yaml").read_text("utf-8"))
    return Knowledge(
        tuple((re.compile(rf"(?:.*/)?(?:{row['names']})"), {"en": row["en"], "zh": row["zh"]}) for row in document["matters"]),
        tuple(re.compile(pattern) for pattern in document["ignored"]),
        frozenset(document["top_level"]),
        tuple(
            Wanted(
                row["code"], tuple(row["paths"]), tuple(str(value).lower() for value in row["wanted"]), {"en": row["en"], "zh": row["zh"]}
            )
            for row in document["preconditions"]
        ),
    )


def read_configuration(path: str, stream: Stream) -> Configuration | None:
    """The configuration in a file, or None where there is none. Executes nothing; lets DumpError of the stream through."""
    if LOG.fullmatch(path):
        content = _printed(stream)
    else:
        text = _all(stream)
        content = None if text is None else _json(text) if CONFIGURATION.fullmatch(path) else _yaml(text)
    if not isinstance(content, dict) or not content:
        return None
    if not CONFIGURATION.fullmatch(path) and knowledge().known.isdisjoint(content):
        return None
    return Configuration(path, nested(content))


def nested(content: Mapping[Any, Any]) -> JsonObject:
    """The same as plain JSON. What is deeper or larger than anyone writes is cut off, which also ends what refers to itself."""
    left = MOST_ENTRIES

    def inside(value: object, depth: int) -> Any:
        nonlocal left
        left -= 1
        if isinstance(value, dict):
            if depth > DEEPEST or left < 0:
                return "{…}"
            return {str(name)[:LONGEST_TEXT]: inside(member, depth + 1) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return "[…]" if depth > DEEPEST or left < 0 else [inside(member, depth + 1) for member in value]
        return _scalar(value)

    return {str(name)[:LONGEST_TEXT]: inside(member, 1) for name, member in content.items()}


def flatten(content: Mapping[str, Any]) -> dict[str, Value]:
    """``{"rl": {"seed": 1}}`` → ``{"rl/seed": 1}``. Lists are leaves; at most MOST_ENTRIES entries."""
    flat: dict[str, Value] = {}
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting and len(flat) < MOST_ENTRIES:
        path, value = waiting.pop()
        if isinstance(value, dict) and (value or not path):
            waiting += [(f"{path}/{name}" if path else str(name), member) for name, member in reversed(value.items())]
        else:
            flat[path] = {} if isinstance(value, dict) else value  # type: ignore[assignment]
    return flat


def differences(left: Configuration | None, right: Configuration | None) -> list[JsonObject]:
    """What differs (``docs/formats.md``), what matters for train-inference consistency first; nothing where a side has no configuration."""
    if left is None or right is None:
        return []
    sides = flatten(left.content), flatten(right.content)
    rows: list[JsonObject] = []
    for path in dict.fromkeys([*sides[0], *sides[1]]):
        a, b = sides[0].get(path, ABSENT), sides[1].get(path, ABSENT)
        if any(pattern.search(path) for pattern in knowledge().ignored) or (a is not ABSENT and b is not ABSENT and same(a, b)):
            continue
        why = next((text for pattern, text in knowledge().matters if pattern.fullmatch(path.lower())), None)
        state = "right_only" if a is ABSENT else "left_only" if b is ABSENT else "differs"
        values = [None if value is ABSENT else value for value in (a, b)]
        rows.append({"path": path, "left": values[0], "right": values[1], "matters": why is not None, "state": state, "why": why})
    return sorted(rows, key=lambda row: (not row["matters"], row["path"]))


def same(a: object, b: object) -> bool:
    """Equal values; "0.50" is 0.5, "True" is true, "null" and "None" are null. A bool is no number."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    x, y = _meant(a), _meant(b)
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (x != x and y != y)
    return type(x) is type(y) and x == y


def preconditions(left: Configuration | None, right: Configuration | None) -> list[JsonObject]:
    """What two dumps need to be comparable, and what the configurations say of it; nothing where neither side has one."""
    if left is None and right is None:
        return []
    flat = [{path.lower(): (path, value) for path, value in flatten(side.content).items()} if side else {} for side in (left, right)]
    return [
        {
            "code": wanted.code,
            "text": dict(wanted.text),
            "wanted": " | ".join(wanted.values),
            "left": _detected(wanted, flat[0]),
            "right": _detected(wanted, flat[1]),
        }
        for wanted in knowledge().preconditions
    ]


def _detected(wanted: Wanted, flat: Mapping[str, tuple[str, Value]]) -> JsonObject:
    """The first path that is not as wanted, else the first that is."""
    found = [
        (path, value)
        for lower, (path, value) in flat.items()
        if any(lower == suffix or lower.endswith(f"/{suffix}") for suffix in wanted.suffixes)
    ]
    wrong = [(path, value) for path, value in found if not any(same(value, text) for text in wanted.values)]
    if not found:
        return {"state": "unknown", "path": None, "value": None}
    path, value = (wrong or found)[0]
    return {"state": "failed" if wrong else "ok", "path": path, "value": value}


def _meant(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _float(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "false"):
            return word == "true"
        if word in ("none", "null", "~", ""):
            return None
        try:
            return float(word)
        except ValueError:
            return value
    return json.dumps(value, sort_keys=True, default=str)


def _float(value: float) -> object:
    try:
        return value if isinstance(value, int) and float(value) != value else float(value)
    except OverflowError:
        return value


def _scalar(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else "…"
    return str(value)[:LONGEST_TEXT] if not isinstance(value, set) else "{…}"


def _all(stream: Stream) -> bytes | None:
    parts, size = [], 0
    while block := stream.read(1 << 18):
        size += len(block)
        if size <= LARGEST_FILE:
            parts.append(block)
    return b"".join(parts) if size <= LARGEST_FILE else None


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class _Loader(yaml.SafeLoader):
    """Without merge keys (<<), which a few lines can make grow without bound."""


_Loader.yaml_implicit_resolvers = {
    first: [rule for rule in rules if rule[0] != "tag:yaml.org,2002:merge"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _yaml(text: bytes) -> object:
    if len(text) > LARGEST_YAML:
        return None
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, UnicodeError, OverflowError):
        return None


def _printed(stream: Stream) -> object:
    """The last configuration that verl printed into a log: Python's way of writing it, literals only."""
    log, size, rest = _Log(), 0, b""
    while block := stream.read(1 << 18):
        size += len(block)
        if size > LARGEST_LOG:
            continue
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > LARGEST_FILE:
            rest = b""
        for line in lines:
            log.add(line)
    log.add(rest)
    return log.found


class _Log:
    """A log read line by line; ``found`` is the last configuration so far."""

    def __init__(self) -> None:
        self.found: object = None
        self.lines: list[bytes] = []  # of the one that is being read, empty between them
        self.size = self.tries = 0  # tries: of the whole log, so that no log can make many

    def add(self, line: bytes) -> None:
        line = RAY.sub(b"", ANSI.sub(b"", line.rstrip(b"\r")))
        at = line.find(PRINTED)
        if at >= 0:
            self.lines, self.size, line = [], 0, line[at:]
        elif not self.lines:
            return
        self.lines.append(line)
        self.size += len(line)
        if self.size > LARGEST_PRINTED or self.tries >= MOST_TRIES:
            self.lines = []
        elif line.rstrip().endswith(b"}"):
            self.tries += 1
            with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # an inner brace that ends a line: read on
                self.found, self.lines = ast.literal_eval(b"\n".join(self.lines).decode("utf-8", "replace")), []
