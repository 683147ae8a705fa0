"""Raw module paths → canonical paths, and the layer they belong to.

Works on the distinct paths of a dump (a few thousand at most), never on its records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import yaml

ROOT = "(root)"
VOCABULARY = Path(__file__).with_name("vocabulary")
_NUMBER = re.compile(r"[0-9]+")
MOST_LAYERS = 30_000  # a larger number in a path is no layer


@dataclass(frozen=True, slots=True)
class Naming:
    """``vocabulary/names.yaml``: which components of a path are wrappers, which prefixes of a class name a variant."""

    anywhere: frozenset[str]
    around: frozenset[str]
    leading: frozenset[str]
    sequences: tuple[tuple[str, ...], ...]
    inside: frozenset[str]
    adapters: frozenset[str]
    class_prefixes: tuple[str, ...]
    roots: dict[str, str]
    list_members: frozenset[str]


@lru_cache(maxsize=1)
def naming() -> Naming:
    document: dict[str, Any] = yaml.decode((VOCABULARY / "names.yaml").read_bytes())
    wrappers = document["wrappers"]
    return Naming(
        anywhere=frozenset(wrappers["anywhere"]),
        around=frozenset(wrappers["around"]),
        leading=frozenset(wrappers["leading"]),
        sequences=tuple(tuple(s) for s in wrappers["sequences"]),
        inside=frozenset(wrappers["inside"]),
        adapters=frozenset(document["adapters"]),
        class_prefixes=tuple(document["class_prefixes"]),
        roots=dict(document["roots"]),
        list_members=frozenset(document["list_members"]),
    )


def is_list_of_models(paths: Iterable[str]) -> bool:
    """Whether the paths of a dump all begin with a position in a list (``start(model=[...])``), and not with that in a sequence of
    layers.
    """
    parts = [path.split(".", 2) for path in paths if path]
    members = naming().list_members
    return bool(parts) and all(_NUMBER.fullmatch(part[0]) for part in parts) and any(len(part) > 1 and part[1] in members for part in parts)


def canonical_path(raw: str, *, listed: bool = False) -> str:
    """``_fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.mlp`` → ``model.layers.0.mlp``; nothing but wrappers → ``(root)``.

    ``listed``: the path begins with a position in a list of models (``is_list_of_models``), which is taken out.
    """
    names = naming()
    parts = [part for part in raw.split(".") if part and part not in names.anywhere]
    parts = [part for place, part in enumerate(parts) if part not in names.around or place == len(parts) - 1 > 0]
    if listed and parts and _NUMBER.fullmatch(parts[0]):
        parts = parts[1:]
    trimmed = True
    while trimmed and parts:
        trimmed = False
        if parts[0] in names.leading:
            parts, trimmed = parts[1:], True
        for sequence in names.sequences:
            if tuple(parts[: len(sequence)]) == sequence:
                parts, trimmed = parts[len(sequence) :], True
    parts = [part for part in parts if part not in names.inside]
    if not parts:
        return ROOT
    if parts[0] in names.roots:
        parts = [*names.roots[parts[0]].split("."), *parts[1:]]
    return ".".join(parts)


def is_inside_wrapper(raw: str) -> bool:
    """Whether the path names the module inside a wrapper (``q_proj.base_layer``), which shares its canonical path with the wrapper."""
    return not naming().inside.isdisjoint(raw.split("."))


def plain_class(name: str) -> str:
    """A class name without the prefix of a kernel variant or sharding: ``FSDPQwen2RMSNorm`` → ``Qwen2RMSNorm``."""
    for prefix in naming().class_prefixes:
        if name.startswith(prefix) and name[len(prefix) : len(prefix) + 1].isupper():
            return name[len(prefix) :]
    return name


def layer_of(path: str) -> int:
    """The layer number in a canonical path, -1 outside the layers: the first component that is a number."""
    for part in path.split("."):
        if _is_layer(part):
            return int(part)
    return -1


def _is_layer(part: str) -> bool:
    return len(part) <= 5 and _NUMBER.fullmatch(part) is not None and int(part) < MOST_LAYERS


def with_layer(path: str, layer: int) -> str:
    """The same path in another layer: how a shared module is named by the layer that called it."""
    parts = path.split(".")
    for position, part in enumerate(parts):
        if _is_layer(part):
            parts[position] = str(layer)
            return ".".join(parts)
    return path


def inner_of(path: str) -> int:
    """The second number in a canonical path, -1 where there is none: the expert of ``model.layers.3.mlp.experts.7.gate_proj``."""
    numbers = [int(part) for part in path.split(".") if _is_layer(part)]
    return numbers[1] if len(numbers) > 1 else -1


@lru_cache(maxsize=1 << 16)
def template_of(path: str) -> str:
    """``model.layers.3.mlp`` → ``model.layers.<n>.mlp``."""
    parts = path.split(".")
    for position, part in enumerate(parts):
        if _is_layer(part):
            parts[position] = "<n>"
            break
    return ".".join(parts)


@lru_cache(maxsize=1 << 16)
def entry_of(path: str) -> str:
    """The key of a vocabulary file: the template, with a second number as ``<e>`` (``model.layers.<n>.mlp.experts.<e>.gate_proj``)."""
    head, sign, tail = template_of(path).partition("<n>")
    return head + sign + template_of(tail).replace("<n>", "<e>")
