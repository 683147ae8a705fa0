"""The vocabulary files as objects: what each code base calls the tensors of a decoder, and how quantities combine."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from msgspec import yaml

from compare.engine.align.canonical import VOCABULARY

CONDITIONS = ("inputs", "outputs", "beside")
_INDEX = re.compile(r"<(n|layers|e)([+-]1)?>")


@dataclass(frozen=True, slots=True)
class Variant:
    """The slots of one module for one number of floating-point inputs and outputs (None: any). ``beside``: only where the dump has that
    module too."""

    inputs: int | None
    outputs: int | None
    beside: str | None
    slots: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # (alternative slots, alternative quantities)


@dataclass(frozen=True, slots=True)
class Convention:
    """How one code base lays out a decoder: see vocabulary/README.md."""

    name: str
    path_signs: tuple[re.Pattern[str], ...]
    class_signs: tuple[re.Pattern[str], ...]
    prefixes: Mapping[str, str]
    local_layers: bool
    rename: Mapping[str, str]
    fused: Mapping[str, tuple[str, ...]]
    tensors: Mapping[str, tuple[Variant, ...]]
    lacks: Mapping[str, str]

    def variant(self, template: str, floats: tuple[int, int], layer: int, own: Container[str]) -> Variant | None:
        """The first that fits: ``floats`` are the numbers of floating-point inputs and outputs, ``own`` the module paths of the dump."""
        for variant in self.tensors.get(template, ()):
            fits = variant.inputs in (None, floats[0]) and variant.outputs in (None, floats[1])
            if fits and (variant.beside is None or fill(variant.beside, layer, 0) in own):
                return variant
        return None


@dataclass(frozen=True, slots=True)
class Quantity:
    """One named tensor of a decoder. ``noise`` is its row of the noise profile, ``by`` the module that makes it out of the quantities
    ``sources``; ``en`` and ``zh`` name it in a sentence."""

    noise: str
    en: str
    zh: str
    by: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decoder:
    """``vocabulary/decoder.yaml``. Quantities are keyed by pattern (``stream.<n>``), but for those that one layer makes differently
    (``stream.0``).
    """

    quantities: Mapping[str, Quantity]
    concat: Mapping[str, tuple[str, ...]]
    overlapping: frozenset[str]
    padded: frozenset[str]
    summed: frozenset[str]
    router: str
    layer_output: str

    def quantity(self, name: str) -> Quantity:
        return self.quantities.get(name) or self.quantities[pattern_of(name)[0]]

    def made_by(self, name: str, layers: int, known: Container[str] = ()) -> str | None:
        """The canonical module that makes a quantity: ``stream.4`` → ``model.layers.3``; of alternatives one that is ``known``, else the
        first.
        """
        by = self.quantity(name).by
        if by is None:
            return None
        makers = _alternatives(fill(by, pattern_of(name)[1], layers))
        return next((maker for maker in makers if maker in known), makers[0])

    def made_from(self, name: str, layers: int) -> tuple[tuple[str, ...], ...]:
        """The quantities that it is made of, each with its alternatives: ``stream.4`` → (``middle.3``,), (``mlp_output.3``,). One that a
        model may do without (``?``) has an empty text as its last alternative."""
        return tuple(_alternatives(fill(source, pattern_of(name)[1], layers).replace("?", "|")) for source in self.quantity(name).sources)

    def parts_of(self, name: str) -> tuple[str, ...]:
        """The quantities that lie side by side in it: ``gate_up.3`` → ``gate.3``, ``up.3``."""
        pattern, layer = pattern_of(name)
        return tuple(fill(part, layer, 0) for part in self.concat.get(pattern, ()))

    def whole_of(self, name: str) -> str | None:
        """The quantity in which it lies beside others: ``gate.3`` → ``gate_up.3``."""
        pattern, layer = pattern_of(name)
        return next((fill(whole, layer, 0) for whole, parts in self.concat.items() if pattern in parts), None)


def fill(pattern: str, layer: int, layers: int, inner: int = -1) -> str:
    """``stream.<n+1>`` in layer 3 → ``stream.4``; ``<e>`` is the second number of a path (an expert), ``inner``."""

    def number(match: re.Match[str]) -> str:
        base = {"n": layer, "layers": layers, "e": inner}[match.group(1)]
        return str(base + int(match.group(2) or 0))

    return _INDEX.sub(number, pattern)


def pattern_of(quantity: str) -> tuple[str, int]:
    """``stream.4`` → (``stream.<n>``, 4); ``final_hidden`` → (``final_hidden``, -1)."""
    head, _, tail = quantity.rpartition(".")
    return (f"{head}.<n>", int(tail)) if head and tail.isdigit() else (quantity, -1)


def _alternatives(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


def _variants(entry: Any) -> tuple[Variant, ...]:
    found = []
    for one in entry if isinstance(entry, list) else [entry]:
        slots = tuple((_alternatives(slot), _alternatives(quantity)) for slot, quantity in one.items() if slot not in CONDITIONS)
        found.append(Variant(one.get("inputs"), one.get("outputs"), one.get("beside"), slots))
    return tuple(found)


def _quantity(entry: dict[str, Any]) -> Quantity:
    return Quantity(entry["noise"], entry["en"], entry["zh"], entry.get("by"), tuple(entry.get("from", ())))


@lru_cache(maxsize=1)
def decoder() -> Decoder:
    document: dict[str, Any] = yaml.decode((VOCABULARY / "decoder.yaml").read_bytes())
    quantities = {name: _quantity(entry) for name, entry in document["quantities"].items()}
    first = document["first_stream"]
    plain = quantities[pattern_of(first["quantity"])[0]]
    quantities[first["quantity"]] = replace(plain, by=first["by"], sources=tuple(first["from"]))
    return Decoder(
        quantities=quantities,
        concat={name: tuple(parts) for name, parts in document["concat"].items()},
        overlapping=frozenset(document["overlapping"]),
        padded=frozenset(document["padded"]),
        summed=frozenset(document["summed"]),
        router=document["router"],
        layer_output=document["layer_output"],
    )


def _siblings(module: str, names: Sequence[str]) -> tuple[str, ...]:
    parent = module.rpartition(".")[0]
    return tuple(f"{parent}.{name}" for name in names)


@lru_cache(maxsize=1)
def conventions() -> tuple[Convention, ...]:
    """All vocabulary files; one that extends another comes after it."""
    documents = [yaml.decode(file.read_bytes()) for file in sorted(VOCABULARY.glob("*.yaml"))]
    found: dict[str, Convention] = {}
    for document in sorted((document for document in documents if "convention" in document), key=lambda document: "extends" in document):
        found[document["convention"]] = _convention(document, found.get(document.get("extends", "")))
    return tuple(found.values())


def _convention(document: dict[str, Any], base: Convention | None) -> Convention:
    """``base``: the convention that this one extends; what both say is this one's word."""
    fused = {module: _siblings(module, names) for module, names in document.get("fused", {}).items()}
    tensors = {module: _variants(entry) for module, entry in document.get("tensors", {}).items()}
    signs = {kind: tuple(re.compile(sign) for sign in document["signs"].get(kind, ())) for kind in ("paths", "classes")}
    return Convention(
        name=document["convention"],
        path_signs=(base.path_signs if base else ()) + signs["paths"],
        class_signs=(base.class_signs if base else ()) + signs["classes"],
        prefixes={**(base.prefixes if base else {}), **document.get("prefixes", {})},
        local_layers=document.get("layer_numbers") == "local",
        rename={**(base.rename if base else {}), **document.get("rename", {})},
        fused={**(base.fused if base else {}), **fused},
        tensors={**(base.tensors if base else {}), **tensors},
        lacks={**(base.lacks if base else {}), **document.get("lacks", {})},
    )


def tell(paths: Sequence[str], classes: Sequence[str]) -> Convention | None:
    """The convention most of whose signs the dump shows, wrappers aside; None when it shows no path sign of any (an unknown family).

    ``paths`` are canonical, ``classes`` plain; both distinct. Signs are counted once each, so that a deep model weighs no more than a
    small one.
    """

    def shown(convention: Convention) -> tuple[int, int]:
        by_path = sum(any(sign.search(path) for path in paths) for sign in convention.path_signs)
        by_class = sum(any(sign.search(name) for name in classes) for sign in convention.class_signs)
        return by_path, by_class

    scored = [(sum(shown(convention)), shown(convention)[0], convention) for convention in conventions()]
    _, by_path, best = max(scored, key=lambda entry: entry[:2])
    return best if by_path else None
