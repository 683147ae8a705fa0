"""Reads a dump.json: its members into plain values, its records into columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from compare.engine.errors import DumpError
from compare.engine.ingest import leaves
from compare.engine.ingest.columns import FLUSH, Interned, SlotColumns
from compare.engine.ingest.leaves import LeafValue, Unreadable
from compare.engine.ingest.limits import BLOCK, MOST_RECORDS
from compare.engine.ingest.names import parse
from compare.engine.ingest.source import printable
from compare.engine.ingest.splitter import Entry, split, whole_characters
from compare.engine.model import RecordKind

READ_TASKS = frozenset({"statistics", "tensor"})
READ_LEVELS = frozenset({"L0", "mix"})


class CallValue(msgspec.Struct, gc=False):
    """A forward or backward call where all of it has the usual shape."""

    input_args: list[LeafValue | list[LeafValue | None] | None] | None = None
    input_kwargs: dict[str, LeafValue | list[LeafValue | None] | None] | None = None
    input: list[LeafValue | list[LeafValue | None] | None] | None = None
    output: list[LeafValue | list[LeafValue | None] | None] | None = None
    parameters: dict[str, LeafValue | None] | None = None


GradientsValue: TypeAlias = dict[str, list[LeafValue | None] | LeafValue | bool | None]

decode_call = msgspec.json.Decoder(CallValue).decode
decode_gradients = msgspec.json.Decoder(GradientsValue).decode
parse_json = json.JSONDecoder(parse_float=leaves.parse_float).decode


class _Odd(Exception):
    """The record holds what the typed decoder does not keep; it must be read member by member."""


class RecordColumns:
    """The records of one dump, in the order they come."""

    def __init__(self) -> None:
        self.rows: Interned[str] = Interned()  # record name → row
        self.paths: Interned[str] = Interned()
        self.classes: Interned[str] = Interned()
        self.kind = array("B")
        self.direction = array("B")
        self.call = array("i")
        self.path = array("i")
        self.class_name = array("i")
        self.slot_start = array("q", [0])
        self.recorded = 0

    def __len__(self) -> int:
        return len(self.kind)

    def add(self, name: str) -> RecordKind:
        """Append a row for a name that has none yet."""
        parts = parse(name)
        self.rows[name]  # noqa: B018  (gives the row)
        self.kind.append(parts.kind)
        self.direction.append(parts.direction)
        self.call.append(parts.call)
        self.path.append(self.paths[parts.path])
        self.class_name.append(-1 if parts.class_name is None else self.classes[parts.class_name])
        return parts.kind


@dataclass(frozen=True, slots=True)
class DumpFile:
    """What dump.json holds."""

    task: str
    level: str
    framework: str
    records: RecordColumns
    slots: SlotColumns


class _Prefixed(dict[Any, int]):
    """Slot-name indices by their last component, so that ``input.0`` is put together once a dump."""

    def __init__(self, names: Interned[str], prefix: str) -> None:
        super().__init__()
        self.names = names
        self.prefix = prefix

    def __missing__(self, key: object) -> int:
        index = self[key] = self.names[f"{self.prefix}.{key}"]
        return index


def read_dump(read: Callable[[int], bytes], place: str, block_size: int = BLOCK, *, typed: bool = True) -> DumpFile:
    """Stream one dump.json into columns. ``typed=False`` reads every record the slow way: the tests hold both against each other.

    Raises DumpError: what ``splitter.split`` raises; not_a_dump, bad_record, duplicate_record, too_many_records, task_unsupported, level_l1,
    level_unsupported.
    """
    return _Reader(place, typed=typed).read(split(read, place, "data", block_size))


class _Reader:
    def __init__(self, place: str, *, typed: bool) -> None:
        self.place = place
        self.typed = typed
        self.records = RecordColumns()
        self.slots = SlotColumns()
        names = self.slots.names
        self.inputs = _Prefixed(names, "input")
        self.outputs = _Prefixed(names, "output")
        self.parameters = _Prefixed(names, "parameters")
        self.gradients = _Prefixed(names, "parameters_grad")

    def read(self, entries: Iterator[Entry]) -> DumpFile:
        members: dict[str, Any] = {}
        for entry in entries:
            if entry.inner:
                self._record(entry)
                continue
            if entry.key in members:
                raise DumpError("duplicate_key", self.place, key=printable(entry.key), offset=entry.offset)
            members[entry.key] = self._parsed(entry)
            _refuse_what_is_not_read(members, self.place)
        if not isinstance(members.get("data"), dict):
            raise DumpError("not_a_dump", self.place)
        self.records.recorded = len(self.records)
        return DumpFile(
            task=str(members.get("task") or "statistics"),
            level=str(members.get("level") or "L0"),
            framework=str(members.get("framework") or "pytorch"),
            records=self.records,
            slots=self.slots,
        )

    def _record(self, entry: Entry) -> None:
        name = entry.key
        if name in self.records.rows:
            raise DumpError("duplicate_key", self.place, key=printable(name), offset=entry.offset)
        if len(self.records) >= MOST_RECORDS:
            raise DumpError("too_many_records", self.place, limit=MOST_RECORDS)
        if entry.value.strip() in (b"true", b"false"):
            return  # an old flag such as is_recompute
        gradients = self.records.add(name) == RecordKind.PARAMETERS_GRAD
        slots = self.slots
        before = len(slots)
        try:
            if not (self.typed and self._typed(entry.value, gradients=gradients)):
                slots.forget(before)
                self._untyped(entry, gradients=gradients)
                slots.note_not_numbers(before)
        except Unreadable as error:
            raise DumpError("bad_record", self.place, record=printable(name), offset=entry.offset, detail=str(error)) from error
        after = len(slots)
        self.records.slot_start.append(after)
        if after - slots.packed >= FLUSH:
            slots.pack()

    def _typed(self, value: bytes, *, gradients: bool) -> bool:
        """Whether the record was added by way of the typed decoder; False leaves slots to forget."""
        try:
            if gradients:
                self._typed_gradients(decode_gradients(value))
            else:
                self._typed_call(decode_call(value))
        except (msgspec.DecodeError, _Odd):
            return False
        return True

    def _typed_call(self, call: CallValue) -> None:
        add = self._add
        if call.input_args:
            for index, argument in enumerate(call.input_args):
                add(self.inputs, index, argument)
        if call.input_kwargs:
            for key, argument in call.input_kwargs.items():
                add(self.inputs, key, argument)
        if call.input:
            for index, argument in enumerate(call.input):
                add(self.inputs, index, argument)
        if call.parameters:
            for key, argument in call.parameters.items():
                add(self.parameters, key, argument)
        if call.output:
            for index, argument in enumerate(call.output):
                add(self.outputs, index, argument)

    def _typed_gradients(self, gradients: GradientsValue) -> None:
        for key, found in gradients.items():
            if isinstance(found, list):
                for index, leaf in enumerate(found):
                    self._add(self.gradients, key if index == 0 else f"{key}.{index}", leaf)
            elif not isinstance(found, bool):
                self._add(self.gradients, key, found)

    def _add(self, group: _Prefixed, key: int | str, argument: LeafValue | list[Any] | None) -> None:
        if isinstance(argument, LeafValue):
            if argument.type is None:
                raise _Odd
            self.slots.add(group[key], argument)
        elif argument is None:
            self.slots.add(group[key], None)
        else:
            for index, inner in enumerate(argument):
                self._add(group, f"{key}.{index}", inner)

    def _parsed(self, entry: Entry) -> Any:
        try:
            return parse_json(entry.value.decode("utf-8"))
        except json.JSONDecodeError as error:
            offset = entry.offset + len(error.doc[: error.pos].encode("utf-8"))
            raise DumpError("not_json", self.place, offset=offset, detail=f"{printable(entry.key)} holds no JSON value") from error
        except UnicodeDecodeError as error:
            raise DumpError("not_utf8", self.place, offset=entry.offset + error.start, encoding="UTF-8 with a wrong byte") from error
        except (ValueError, Unreadable) as error:  # ValueError: an integer of more than 4,300 digits
            detail = str(error) if isinstance(error, Unreadable) else "a number of thousands of digits"
            raise DumpError("bad_record", self.place, record=printable(entry.key), offset=entry.offset, detail=detail) from error

    def _untyped(self, entry: Entry, *, gradients: bool) -> None:
        found = self._parsed(entry)
        if not isinstance(found, dict):
            raise Unreadable("no object")
        if gradients:
            for key, value in found.items():
                if isinstance(value, bool):
                    continue
                name = f"parameters_grad.{whole_characters(key)}"
                if isinstance(value, list):
                    for index, inner in enumerate(value):
                        self._walk(name if index == 0 else f"{name}.{index}", inner)
                else:
                    self._walk(name, value)
            return
        for member, group in (
            ("input_args", "input"),
            ("input_kwargs", "input"),
            ("input", "input"),
            ("parameters", "parameters"),
            ("output", "output"),
        ):
            value = found.get(member)
            if value is not None and not isinstance(value, bool):
                self._walk(group, value)

    def _walk(self, name: str, value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                self.slots.add(self.slots.names[name], leaves.from_json(value))
            else:
                inner = dict(value)
                if isinstance(inner.pop("class_type", None), str) and "tensor" in inner:  # P2POp: its tensor stands for it
                    self._walk(name, inner.pop("tensor"))
                for key, item in inner.items():
                    self._walk(f"{name}.{whole_characters(key)}", item)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._walk(f"{name}.{index}", item)
        elif value is None:
            self.slots.add(self.slots.names[name], None)
        else:  # a bare value where a leaf was expected: kept as if the dumper had wrapped it
            self.slots.add(self.slots.names[name], LeafValue(type=type(value).__name__, value=value))


def _refuse_what_is_not_read(members: dict[str, Any], place: str) -> None:
    """Refuse as soon as the members say so, which in real dumps is before the first record."""
    level, task = members.get("level"), members.get("task")
    if level == "L1":
        raise DumpError("level_l1", place)
    if isinstance(task, str) and task not in READ_TASKS:
        raise DumpError("task_unsupported", place, task=printable(task))
    if isinstance(level, str) and level not in READ_LEVELS:
        raise DumpError("level_unsupported", place, level=printable(level))
