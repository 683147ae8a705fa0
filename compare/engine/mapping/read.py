"""A mapping file → rules. Hostile text: no tags, no aliases, bounded size; whatever is wrong is refused with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from compare.engine.errors import DumpError, printable
from compare.engine.mapping.rules import GRADIENTS, SCHEMA, ClassRule, MappingRules, Rule, is_record, module_path

MOST_BYTES = 4_000_000
MOST_LAYERS = 30_000
CSV_COLUMNS = ("rule", "left", "right", "layers", "descendants", "slots", "relation", "reason", "compared")
INFORMATION = ("relation", "reason", "compared")  # written for the reader of the file, not read back
JOINT = " + "
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would calculate
WHERE = "mapping"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SPLIT = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_RANGE = re.compile(r"(\d{1,5})(?:\s*[-–]\s*(\d{1,5}))?$")
_SLOT = re.compile(
    r"^(?P<record>.*\.(?:forward|backward)(?:\.[0-9]+)?)\.(?P<slot>(?:input|output|parameters)\..+)$"
    r"|^(?P<gradients>.*\.parameters_grad(?:\.[0-9]+)?)\.(?P<parameter>[^.]+)$"
)


def read_mapping(text: str) -> MappingRules:
    """The rules of one file, or of several one after the other with ``---`` between them; each may have another form.

    Raises DumpError ``mapping_malformed``, ``mapping_shape``, ``mapping_key``, ``mapping_value``, ``mapping_version`` (with ``line``) or
    ``mapping_too_large``.
    """
    if len(text) > MOST_BYTES:
        raise DumpError("mapping_too_large", WHERE, limit=MOST_BYTES // 1_000_000)
    rules: list[Rule] = []
    classes: list[ClassRule] = []
    roles: tuple[str | None, str | None] = (None, None)
    names = ("", "")
    begin = 0
    for piece in _SPLIT.split(text.lstrip("\ufeff")):
        found = _read_csv(piece, begin) if _is_csv(piece) else _read_yaml(piece, begin)
        rules += found.rules
        classes += found.classes
        if roles == (None, None):
            roles, names = found.roles, found.names
        begin += piece.count("\n")
    return MappingRules(rules, classes, roles, names)


# --- YAML -------------------------------------------------------------------------------------------------------------------------------


def _read_yaml(text: str, begin: int) -> MappingRules:
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise _wrong("mapping_malformed", begin + _mark(event.start_mark), detail="anchors and aliases are not read")
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = min(_mark(error.problem_mark), text.rstrip().count("\n") + 1)  # the end of the file is no line of it
        raise _wrong("mapping_malformed", begin + mark, detail=error.problem or "not YAML") from None
    except (yaml.YAMLError, RecursionError) as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise _wrong("mapping_malformed", begin + line, detail="not YAML") from None
    if root is None:
        return MappingRules()
    entries = [(key, _line(node, begin), value) for key, node, value in _members(root, begin)]
    if any(key in ("schema", "pairs", "unpaired") for key, _, _ in entries):
        return _own_form(entries, begin)
    if entries and all(isinstance(value, yaml.MappingNode) for _, _, value in entries):
        return MappingRules(classes=list(_layer_form(entries, begin)))
    rows = [(key, line, _scalar(value, key, begin)) for key, line, value in entries]
    if any(is_record(key) for key, _, _ in rows):
        return MappingRules(list(_data_form(rows)))
    return MappingRules(list(_cell_form(rows)))


def _own_form(entries: Sequence[tuple[str, int, yaml.Node]], begin: int) -> MappingRules:
    rules: list[Rule] = []
    roles: dict[str, str | None] = {"left": None, "right": None}
    names = {"left": "", "right": ""}
    for key, line, value in entries:
        if key == "schema":
            schema = _scalar(value, key, begin)
            if schema != SCHEMA:
                raise _wrong("mapping_version", line, found=printable(schema), known=SCHEMA)
        elif key in roles:
            for fact, _, node in _members(value, begin):
                said = _scalar(node, fact, begin)
                if fact == "role":
                    roles[key] = said
                elif fact == "name":
                    names[key] = said
        elif key in ("pairs", "unpaired"):
            if not isinstance(value, yaml.SequenceNode):
                if isinstance(value, yaml.ScalarNode) and value.value in ("", "null", "~"):
                    continue
                raise _wrong("mapping_value", line, key=key)
            rules += [_own_rule(node, key == "pairs", begin) for node in value.value]
        else:
            raise _wrong("mapping_key", line, key=printable(key))
    return MappingRules(rules, (), (roles["left"], roles["right"]), (names["left"], names["right"]))


def _own_rule(node: yaml.Node, pair: bool, begin: int) -> Rule:
    at = _line(node, begin)
    found: dict[str, Any] = {"left": (), "right": (), "pair": pair, "line": at}
    for key, key_node, value in _members(node, begin):
        line = _line(key_node, begin)
        if key in ("left", "right"):
            listed = value.value if isinstance(value, yaml.SequenceNode) else [value]
            found[key] = tuple(
                module_path(_scalar(one, key, begin)) if not _is_slot_rule(node) else _scalar(one, key, begin) for one in listed
            )
        elif key == "descendants":
            found[key] = _truth(_scalar(value, key, begin), line)
        elif key == "layers":
            found[key] = _layers(_scalar(value, key, begin), line)
        elif key == "slots" and pair:
            found[key] = tuple((a, _scalar(b, key, begin)) for a, _, b in _members(value, begin))
        elif key in INFORMATION:
            _scalar(value, key, begin)
        else:
            raise _wrong("mapping_key", line, key=printable(key))
    return _checked(Rule(**found))


def _is_slot_rule(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and any(getattr(key, "value", "") == "slots" for key, _ in node.value)


def _checked(rule: Rule) -> Rule:
    sides = [rule.left, rule.right]
    empty = any(not path for side in sides for path in side)
    if empty or (not all(sides) if rule.pair else not any(sides)):
        raise _wrong("mapping_value", rule.line, key="left" if not rule.left else "right")
    if rule.pair and (len(rule.left) > 1) and (len(rule.right) > 1):
        raise _wrong("mapping_value", rule.line, key="right")
    if rule.pair and {*_wild(rule.left)} != {*_wild(rule.right)}:
        raise _wrong("mapping_value", rule.line, key="right")
    return rule


def _wild(paths: Sequence[str]) -> Iterator[tuple[str, int]]:
    for path in paths:
        parts = path.split(".")
        yield "N", int("N" in parts)
        yield "*", parts.count("*")


def _layer_form(entries: Sequence[tuple[str, int, yaml.Node]], begin: int) -> Iterator[ClassRule]:
    """``ClassName: {child: child of the other side}``; a remark in brackets after the value is left out."""
    for owner, _, node in entries:
        for child, child_node, value in _members(node, begin):
            right = _scalar(value, child, begin).partition("(")[0].strip()
            if not right:
                raise _wrong("mapping_value", _line(child_node, begin), key=printable(child))
            yield ClassRule(owner, child, right, _line(child_node, begin))


def _cell_form(rows: Sequence[tuple[str, int, str]]) -> Iterator[Rule]:
    """``path.Class: path.Class``, or parts of such texts."""
    for key, line, value in rows:
        left, right = _without_class(key), _without_class(value)
        if not left or not right:
            raise _wrong("mapping_value", line, key=printable(key))
        yield Rule((left,), (right,), line, joins=True, anywhere=True)


def _data_form(rows: Sequence[tuple[str, int, str]]) -> Iterator[Rule]:
    """``record.slot: record.slot``."""
    for key, line, value in rows:
        left, right = _SLOT.match(key), _SLOT.match(value)
        if left is None or right is None:
            raise _wrong("mapping_value", line, key=printable(key))
        records = [end["record"] or end["gradients"] for end in (left, right)]
        slots = [end["slot"] or f"{GRADIENTS}{end['parameter']}" for end in (left, right)]
        yield Rule((records[0],), (records[1],), line, slots=((slots[0], slots[1]),), joins=True)


def _without_class(text: str) -> str:
    path, _, last = module_path(text).rpartition(".")
    return path if last[:1].isupper() else module_path(text)


def _members(node: yaml.Node, begin: int) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise _wrong("mapping_shape", _line(node, begin))
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _wrong("mapping_shape", _line(key, begin))
        yield key.value, key, value


def _scalar(node: yaml.Node, key: str, begin: int) -> str:
    if not isinstance(node, yaml.ScalarNode) or "\0" in node.value:
        raise _wrong("mapping_value", _line(node, begin), key=printable(key))
    return str(node.value).strip()


def _mark(mark: Any) -> int:
    return int(mark.line) + 1 if mark else 1


def _line(node: yaml.Node, begin: int) -> int:
    return begin + int(node.start_mark.line) + 1


# --- CSV --------------------------------------------------------------------------------------------------------------------------------


def _is_csv(text: str) -> bool:
    head = text.lstrip().partition("\n")[0].strip()
    return head.split(",")[:3] == list(CSV_COLUMNS[:3])


def _read_csv(text: str, begin: int) -> MappingRules:
    blank = len(text) - len(text.lstrip())
    begin += text[:blank].count("\n")
    reader = csv.DictReader(io.StringIO(text.lstrip(), newline=""), strict=True)
    rules = []
    try:
        for row in reader:
            line = begin + reader.line_num
            if None in row or any(value is None for value in row.values()):
                raise _wrong("mapping_malformed", line, detail="another number of columns than the header")
            said = {name: _unguarded(value.strip()) for name, value in row.items()}
            kind = said["rule"]
            if kind not in ("pair", "unpaired"):
                raise _wrong("mapping_value", line, key="rule")
            slots = [slot.partition("=") for slot in said.get("slots", "").split(";") if slot.strip()]
            sides = [tuple(path for path in said[side].split(JOINT) if path) for side in ("left", "right")]
            paths = sides if slots else [tuple(module_path(path) for path in side) for side in sides]
            rules.append(
                _checked(
                    Rule(
                        paths[0],
                        paths[1],
                        line,
                        pair=kind == "pair",
                        descendants=_truth(said.get("descendants") or "false", line),
                        layers=_layers(said.get("layers", ""), line),
                        slots=tuple((a.strip(), b.strip()) for a, _, b in slots),
                    )
                )
            )
    except csv.Error as error:
        raise _wrong("mapping_malformed", begin + reader.line_num, detail=str(error)) from None
    return MappingRules(rules)


def _unguarded(text: str) -> str:
    """Takes back the apostrophe that keeps a spreadsheet from calculating."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA) else text


def _truth(text: str, line: int) -> bool:
    known = {"true": True, "yes": True, "false": False, "no": False}
    if text.lower() not in known:
        raise _wrong("mapping_value", line, key="descendants")
    return known[text.lower()]


def _layers(text: str, line: int) -> frozenset[int] | None:
    """``0-3, 7`` → {0, 1, 2, 3, 7}."""
    if not text.strip():
        return None
    found: set[int] = set()
    for piece in text.split(","):
        match = _RANGE.match(piece.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < MOST_LAYERS:
            raise _wrong("mapping_value", line, key="layers")
        found.update(range(first, last + 1))
    return frozenset(found)


def _wrong(code: str, line: int, **params: Any) -> DumpError:
    return DumpError(code, WHERE, line=line, **params)
