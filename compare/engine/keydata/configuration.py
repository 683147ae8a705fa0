"""What a trainer was told: read from configurations.json, a YAML file or a verl log, and flattened."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from compare.engine.keydata.places import CONFIGURATION, LOG
from compare.engine.keydata.printed import read_log
from compare.engine.keydata.tables import Stream
from compare.engine.model import Configuration, JsonObject

LARGEST_FILE = 4 << 20
"""Bytes of a configurations.json."""

LARGEST_YAML = 256 << 10
"""Bytes of a YAML file, which is read by a slow parser that no input can crash."""

MOST_ENTRIES = 50_000
DEEPEST = 60
LONGEST_TEXT = 2_000
# Where an object of no known form lay in memory: another place in every run.
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+\b")
Value = str | int | float | bool | None | list[Any]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """``configuration.yaml``."""

    matters: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]
    ignored: tuple[re.Pattern[str], ...]
    texts: tuple[re.Pattern[str], ...]  # settings whose numbers are none: versions
    known: frozenset[str]  # names at the top of a trainer's configuration
    environment: tuple[str, ...]  # variables that are looked for in logs


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    document: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("configuration.yaml").read_text("utf-8"))
    return Knowledge(
        tuple((re.compile(rf"(?:.*/)?(?:{row['names']})"), {"en": row["en"], "zh": row["zh"]}) for row in document["matters"]),
        tuple(re.compile(pattern) for pattern in document["ignored"]),
        tuple(re.compile(pattern) for pattern in document["texts"]),
        frozenset(document["top_level"]),
        tuple(document["environment"]),
    )


def read_configuration(path: str, stream: Stream) -> Configuration | None:
    """The configuration in a file, or None where there is none. Executes nothing; lets DumpError of the stream through."""
    if LOG.fullmatch(path):
        content: object = read_log(stream, knowledge().environment)
    else:
        text = _all(stream)
        content = None if text is None else _json(text) if CONFIGURATION.fullmatch(path) else _yaml(text)
    if not isinstance(content, dict) or not content:
        return None
    if not CONFIGURATION.fullmatch(path) and knowledge().known.isdisjoint(str(name).lower().replace("-", "_") for name in content):
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


def _scalar(value: object) -> str | int | float | bool | list[str] | None:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    if isinstance(value, set | frozenset):
        return sorted(_text(str(member)) for member in value)
    return _text(f"{value:#x}" if isinstance(value, int) else str(value))


def _text(text: str) -> str:
    """As it is; of a long one the beginning and a sum of all of it, so that two that differ further on are still two."""
    text = ADDRESS.sub("at 0x…", text)
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text)}, {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]})"


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
