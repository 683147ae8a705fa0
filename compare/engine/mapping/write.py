"""The mapping that was used → text: its own form as YAML or CSV, or one of msprobe's."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compare.engine.mapping.read import CSV_COLUMNS, FORMULA, JOINT
from compare.engine.mapping.rules import SCHEMA, MappingRules, Rule

_PLAIN = re.compile(r"[A-Za-z_(][A-Za-z0-9_.()-]*$")
_NUMBER = re.compile(r"(?<![\w-])[0-9]+(?!\w)")
_WORDS = {"true", "false", "yes", "no", "null", "on", "off", "n", "y", "~"}


@dataclass(frozen=True, slots=True)
class UsedPair:
    """Modules that stood beside each other: own paths (wrappers out), how, and why in words. ``compared`` says where the partner of its
    output lives, where that is another module.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    relation: str
    reason: str
    compared: str | None = None


@dataclass(frozen=True, slots=True)
class UsedMapping:
    """All that a file says: ``pairs`` in order of first appearance; ``given``: rules that were read in and name no pair of modules.
    ``cells`` and ``data``: raw names, for msprobe's files.
    """

    names: tuple[str, str]
    roles: tuple[str, str]
    pairs: Sequence[UsedPair]
    given: MappingRules = field(default_factory=MappingRules)
    layers: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)


def mapping_text(used: UsedMapping, name: str) -> str:
    """The text for a file called ``name``: ``….csv``; ``…layer_mapping.yaml``, ``…cell_mapping.yaml``, ``…data_mapping.yaml`` as msprobe
    reads them; else the product's own YAML.
    """
    stem = name.lower().rpartition(".")[0]
    if name.lower().endswith(".csv"):
        return _csv(used)
    if stem.endswith("layer_mapping"):
        return (
            "TopLayer:\n" + "".join(f"  {_scalar(a)}: {_scalar(b)}\n" for a, b in used.layers.items()) if used.layers else "TopLayer: {}\n"
        )
    if stem.endswith(("cell_mapping", "data_mapping")):
        flat = used.cells if stem.endswith("cell_mapping") else used.data
        return "".join(f"{_scalar(a)}: {_scalar(b)}\n" for a, b in flat.items()) or "{}\n"
    return _yaml(used)


def _yaml(used: UsedMapping) -> str:
    lines = [f"schema: {SCHEMA}"]
    for side, name, role in zip(("left", "right"), used.names, used.roles, strict=True):
        lines.append(f"{side}: {{name: {_scalar(name)}, role: {_scalar(role)}}}")
    entries = [_fields(row) for row in _rows(used)]
    for kind in ("pair", "unpaired"):
        lines.append("pairs:" if kind == "pair" else "unpaired:")
        rows = [fields for fields in entries if fields["rule"] == kind]
        lines += [
            "- {" + ", ".join(f"{key}: {_value(key, value)}" for key, value in fields.items() if key != "rule") + "}" for fields in rows
        ]
        if not rows:
            lines[-1] += " []"
    return "\n".join(lines) + "\n"


def _csv(used: UsedMapping) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in _rows(used):
        fields = _fields(row)
        cells: list[str] = []
        for column in CSV_COLUMNS:
            value = fields.get(column, "")
            if isinstance(value, str):
                cells.append(guarded(value))
            elif isinstance(value, bool):
                cells.append("true")
            else:
                cells.append(guarded(JOINT.join(value) if column != "slots" else "; ".join(f"{a}={b}" for a, b in value)))
        writer.writerow(cells)
    return out.getvalue()


def guarded(text: str) -> str:
    """Text for a spreadsheet: nothing of it is calculated."""
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


Row = tuple[Rule, str, str, str | None]  # rule, relation, reason, compared


def _rows(used: UsedMapping) -> list[Row]:
    rows: list[Row] = [
        (Rule(left, right, 0, layers=layers), pair.relation, pair.reason, pair.compared)
        for left, right, layers, pair in by_layer(used.pairs)
    ]
    # What was below a module, or had no partner, is in no pair: such rules are handed on as they were.
    return [(rule, "", "", None) for rule in used.given.rules if rule.slots or not rule.pair or rule.descendants] + rows


def _fields(row: Row) -> dict[str, Any]:
    rule, relation, reason, compared = row
    fields: dict[str, Any] = {"rule": "pair" if rule.pair else "unpaired"}
    if rule.left:
        fields["left"] = rule.left
    if rule.right:
        fields["right"] = rule.right
    if rule.layers is not None:
        fields["layers"] = _ranges(rule.layers)
    if rule.descendants:
        fields["descendants"] = True
    if rule.slots:
        fields["slots"] = rule.slots
    said = {"relation": relation, "reason": reason, "compared": compared}
    return fields | {key: text for key, text in said.items() if text}


def _value(key: str, value: Any) -> str:
    if key in ("left", "right") and isinstance(value, tuple | list):
        return _scalar(value[0]) if len(value) == 1 else "[" + ", ".join(map(_scalar, value)) + "]"
    if key == "slots" and isinstance(value, tuple | list):
        return "{" + ", ".join(f"{_scalar(a)}: {_scalar(b)}" for a, b in value) + "}"
    return "true" if value is True else _scalar(str(value))


def _scalar(text: str) -> str:
    """A YAML scalar on one line: plain where that is safe, else in double quotes."""
    return text if _PLAIN.match(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def by_layer(pairs: Sequence[UsedPair]) -> list[tuple[tuple[str, ...], tuple[str, ...], frozenset[int] | None, UsedPair]]:
    """Pairs that repeat in every layer as one line with ``N``; ``layers`` where they do not repeat in every layer that there is."""
    groups: dict[tuple[UsedPair, bool], list[tuple[UsedPair, int | None]]] = {}
    every: set[int] = set()
    for pair in pairs:
        numbers = {_number(path) for path in (*pair.left, *pair.right)}
        layer = numbers.pop() if len(numbers) == 1 else None
        if layer is not None:
            every.add(layer)
        general = pair if layer is None else _general(pair, layer)
        groups.setdefault((general, layer is None), []).append((pair, layer))
    found: list[tuple[tuple[str, ...], tuple[str, ...], frozenset[int] | None, UsedPair]] = []
    for (general, _), members in groups.items():
        pair = members[0][0]
        layers = frozenset(layer for _, layer in members if layer is not None)
        if not layers or (len(members) == 1 and len(every) > 1):
            found.append((pair.left, pair.right, None, pair))
            continue
        found.append((general.left, general.right, None if layers == every else layers, general))
    return found


def _number(path: str) -> int | None:
    return next((int(part) for part in path.split(".") if part.isdigit() and len(part) <= 5), None)


def _template(path: str) -> str:
    parts = path.split(".")
    for place, part in enumerate(parts):
        if part.isdigit() and len(part) <= 5:
            parts[place] = "N"
            break
    return ".".join(parts)


def _general(pair: UsedPair, layer: int) -> UsedPair:
    """The pair with ``N`` for its layer, in its paths and in what is said about it; ``N+1`` for the next layer's."""

    def said(text: str) -> str:
        numbers = {str(layer): "N", str(layer + 1): "N+1"}
        return _NUMBER.sub(lambda found: numbers.get(found[0], found[0]), text)

    sides = [tuple(map(_template, side)) for side in (pair.left, pair.right)]
    place = pair.compared and " ".join(said(word) if at == 1 else word for at, word in enumerate(pair.compared.split(" ")))
    return UsedPair(sides[0], sides[1], pair.relation, said(pair.reason), place)


def _ranges(numbers: Iterable[int]) -> str:
    """{0, 1, 2, 5} → ``0-2, 5``."""
    pieces: list[list[int]] = []
    for number in sorted(numbers):
        if pieces and number == pieces[-1][1] + 1:
            pieces[-1][1] = number
        else:
            pieces.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in pieces)
