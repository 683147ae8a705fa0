"""Reads a dump.json: its members into plain values, its records into columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

import msgspec
import numpy as np

from compare.engine.errors import DumpError, printable
from compare.engine.ingest import leaves
from compare.engine.ingest.columns import Interned, Odd, SlotColumns, SlotNames
from compare.engine.ingest.leaves import LeafValue, Unreadable
from compare.engine.ingest.limits import BLOCK, MOST_RECORDS
from compare.engine.ingest.names import SAVED, parse, split_call
from compare.engine.ingest.notes import Notes
from compare.engine.ingest.splitter import Entry, Run, split, whole_characters
from compare.engine.ingest.tensor_files import no_tensors
from compare.engine.model import Int32, RecordKind, RecordTable, UInt8

GRADIENTS, OTHER = int(RecordKind.PARAMETERS_GRAD), int(RecordKind.OTHER)

READ_LEVELS = frozenset({"L0", "L1", "mix", "debug"})


class CallValue(msgspec.Struct, Generic[leaves.Number], gc=False):
    """A forward or backward call where all of it has the usual shape."""

    input_args: list[LeafValue[leaves.Number] | list[LeafValue[leaves.Number] | None] | None] | None = None
    input_kwargs: dict[str, LeafValue[leaves.Number] | list[LeafValue[leaves.Number] | None] | None] | None = None
    input: list[LeafValue[leaves.Number] | list[LeafValue[leaves.Number] | None] | None] | None = None
    output: list[LeafValue[leaves.Number] | list[LeafValue[leaves.Number] | None] | None] | None = None
    parameters: dict[str, LeafValue[leaves.Number] | None] | None = None


GradientsValue: TypeAlias = dict[str, list[LeafValue[leaves.Number] | None] | LeafValue[leaves.Number] | bool | None]

# Numbers as JSON has them: what nearly all runs of records hold, NaN marked. Then numbers that may be in quotes, for another writer's run.
decode_plain_calls = msgspec.json.Decoder(dict[str, CallValue[leaves.Plain] | bool]).decode
decode_written_calls = msgspec.json.Decoder(dict[str, CallValue[leaves.Written] | bool]).decode
decode_call = msgspec.json.Decoder(CallValue[leaves.Written] | bool).decode
decode_gradients = msgspec.json.Decoder(GradientsValue[leaves.Written]).decode
parse_json = json.JSONDecoder(parse_float=leaves.parse_float).decode


class RecordColumns:
    """The records of one dump, in the order they come; the columns that depend on the name are made by ``finish``."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}  # record name → row
        self.paths: Interned[str] = Interned()
        self.classes: Interned[str] = Interned()
        # What a name says besides its call number is the same for many: kind, direction, path, class.
        self.stems: dict[str, dict[str, int]] = {"": {}, "forward": {}, "backward": {}}
        self.stem_parts: list[tuple[int, int, int, int]] = []
        self.stem = array("i")
        self.call = array("i")
        self.slot_start = array("q", [0])

    def __len__(self) -> int:
        return len(self.call)

    def add(self, name: str) -> int:
        """Append a row and return its RecordKind, or -1 when the name has a row already."""
        rows = self.rows
        if name in rows:
            return -1
        rows[name] = len(rows)
        stem, direction, call = split_call(name)
        stems = self.stems[direction]
        index = stems.get(stem, -1) if call >= 0 else -1
        if index < 0:
            parts = parse(name)
            index = len(self.stem_parts)
            class_name = -1 if parts.class_name is None else self.classes[parts.class_name]
            self.stem_parts.append((int(parts.kind), int(parts.direction), self.paths[parts.path], class_name))
            if call >= 0 and parts.kind != RecordKind.OTHER:
                stems[stem] = index
            call = parts.call
        self.stem.append(index)
        self.call.append(call)
        return self.stem_parts[index][0]

    def columns(self) -> tuple[UInt8, UInt8, Int32, Int32]:
        """Kind, direction, path and class of every row."""
        parts = np.array(self.stem_parts or [(0, 0, 0, 0)], dtype=np.int32)[np.frombuffer(self.stem, dtype=np.int32) if self.stem else []]
        return parts[:, 0].astype(np.uint8), parts[:, 1].astype(np.uint8), parts[:, 2].copy(), parts[:, 3].copy()


@dataclass(frozen=True, slots=True)
class DumpFile:
    """What dump.json holds."""

    task: str
    level: str
    framework: str
    records: RecordColumns
    slots: SlotColumns
    notes: Notes


def tables(
    records: RecordColumns, slots: SlotColumns, parent: Int32, recorded: int, stack: Int32, notes: Notes, *others: Notes
) -> dict[str, Any]:
    """The members of a ``model.Dump`` that come from the columns: its tables, the lists that they refer to, and what was noted of the
    file and of those beside it.
    """
    kind, direction, path, class_name = records.columns()
    slot_start = np.array(records.slot_start, dtype=np.int64)
    held: dict[str, Any] = {
        "records": RecordTable(
            name=list(records.rows),
            kind=kind,
            direction=direction,
            call=np.array(records.call, dtype=np.int32),
            path=path,
            class_name=class_name,
            parent=parent,
            recorded=np.arange(len(records)) < recorded,
            slot_start=slot_start,
            stack=stack,
        ),
        "slots": slots.table(slot_start),
        "tensors": no_tensors(),
        "paths": list(records.paths),
        "classes": list(records.classes),
        "slot_names": list(slots.names),
        "types": list(slots.types),
        "dtypes": list(slots.dtypes),
        "shapes": list(slots.shapes),
        "texts": list(slots.texts),
    }
    _note_impossible_shapes(held, notes)
    return held | {"notes": [note for noted in (notes, *others) for note in noted.notes()]}


def _note_impossible_shapes(held: dict[str, Any], notes: Notes) -> None:
    """Note the shapes that no tensor has, in the tables of a dump: their number of elements is unknown."""
    slots, records, shapes = held["slots"], held["records"], held["shapes"]
    odd = [index for index, shape in enumerate(shapes) if not leaves.is_possible(shape)]
    if odd:
        rows = np.flatnonzero(np.isin(slots.shape, odd))
        first = int(rows[0])
        name, slot = records.name[int(slots.record[first])], held["slot_names"][int(slots.name[first])]
        notes.odd_value(name, slot, "shape", shapes[int(slots.shape[first])], len(rows))


def read_dump(read: Callable[[int], bytes], place: str, block_size: int = BLOCK, *, typed: bool = True) -> DumpFile:
    """Stream one dump.json into columns. ``typed=False`` reads every record the slow way: the tests hold both against each other.

    Raises DumpError: what ``splitter.split`` raises; not_a_dump, bad_record, duplicate_key, too_many_records, level_unsupported.
    """
    return _Reader(place, typed=typed).read(split(read, place, "data", block_size))


class _Reader:
    def __init__(self, place: str, *, typed: bool) -> None:
        self.place = place
        self.typed = typed
        self.notes = Notes(place)
        self.record = ""  # the one that is read member by member
        self.marks = False  # the last runs held bare NaN or infinities
        self.records = RecordColumns()
        self.slots = SlotColumns()
        names = self.slots.names
        self.inputs = SlotNames(names, "input")
        self.outputs = SlotNames(names, "output")
        self.parameters = SlotNames(names, "parameters")
        self.gradients = SlotNames(names, "parameters_grad")

    def read(self, runs: Iterator[Run]) -> DumpFile:
        members: dict[str, Any] = {}
        for run in runs:
            if run.inner:
                self._records(run)
                continue
            for key, value, offset in run:
                if key in members:
                    raise DumpError("duplicate_key", self.place, key=printable(key), offset=offset)
                members[key] = self._parsed(key, value, offset)
                _refuse_what_is_not_read(members, self.place)
        if not isinstance(members.get("data"), dict):
            raise DumpError("not_a_dump", self.place)
        return DumpFile(
            task=self._word(members, "task", "statistics"),
            level=self._word(members, "level", "L0"),
            framework=self._word(members, "framework", "pytorch"),
            records=self.records,
            slots=self.slots,
            notes=self.notes,
        )

    def _word(self, members: dict[str, Any], name: str, usual: str) -> str:
        found = members.get(name)
        if isinstance(found, str) and found:
            return whole_characters(found)
        if found is not None:
            self.notes.odd_value("", "", name, found)
        return usual

    def _records(self, run: Run) -> None:
        """Add the records of a run: all decoded at once where that can be, else one by one."""
        calls, written = self._decoded(run)
        if len(calls) == len(run):
            pairs: Iterable[tuple[str, CallValue[Any] | bool | None]] = calls.items()
        else:  # also where a name occurs twice
            pairs, written = ((name, self._call(name, value, offset)) for name, value, offset in run), True
        records, slots = self.records, self.slots
        add_record, add_start, packed, held = records.add, records.slot_start.append, slots.packed, slots.name_list
        for index, (name, call) in enumerate(pairs):
            if call is True or call is False:
                continue  # an old flag such as is_recompute
            kind = add_record(name)
            slots.owner = name
            if kind < 0:
                raise DumpError("duplicate_key", self.place, key=printable(name), offset=run[index][2])
            try:
                if call is None or kind == GRADIENTS or (kind == OTHER and name.endswith(SAVED)) or not self._typed(call, written=written):
                    self._one(run[index], kind)
            except Unreadable as error:
                raise DumpError("bad_record", self.place, record=printable(name), offset=run[index][2], detail=str(error)) from error
            add_start(packed + len(held))
        if len(records) > MOST_RECORDS:
            raise DumpError("too_many_records", self.place, limit=MOST_RECORDS)
        slots.pack()

    def _decoded(self, run: Run) -> tuple[dict[str, CallValue[Any] | bool], bool]:
        """All records of a run, empty where they must be read one by one, and whether numbers in them may be in quotes."""
        if self.typed:
            text = run.as_object()
            if not self.marks:
                with suppress(msgspec.DecodeError):
                    return decode_plain_calls(text), False
            marked = leaves.mark_not_numbers(text)
            if marked is not None:
                with suppress(msgspec.DecodeError):
                    found = decode_plain_calls(marked)
                    self.marks = self.slots.marked = True
                    return found, False
            with suppress(msgspec.DecodeError):
                return decode_written_calls(leaves.quote_not_numbers(text)), True
        return {}, True

    def _call(self, name: str, value: bytes, offset: int) -> CallValue[Any] | bool | None:
        """The record where the typed decoder can read it, None where it must be read member by member."""
        if self.typed:
            with suppress(msgspec.DecodeError):
                return decode_call(leaves.quote_not_numbers(value))
        found = self._parsed(name, value, offset)
        return found if isinstance(found, bool) else None

    def _typed(self, call: CallValue[Any], *, written: bool) -> bool:
        """Add the slots of a decoded call; False when it holds more than the decoder kept, and its slots must be forgotten."""
        add = self._add_written if written else self.slots.add_typed
        try:
            if call.input_args:
                add(self.inputs, enumerate(call.input_args))
            if call.input_kwargs:
                add(self.inputs, call.input_kwargs.items())
            if call.input:
                add(self.inputs, enumerate(call.input))
            if call.parameters:
                add(self.parameters, call.parameters.items())
            if call.output:
                add(self.outputs, enumerate(call.output))
        except Odd:
            return False
        return True

    def _add_written(self, names: SlotNames, arguments: Iterable[tuple[int | str, LeafValue[Any] | list[Any] | None]]) -> None:
        """``SlotColumns.add_typed`` for leaves whose numbers may be in quotes."""
        settled = list(arguments)
        for _, argument in settled:
            if isinstance(argument, list):
                for leaf in argument:
                    if leaf is not None:
                        leaves.settle(leaf)
            elif argument is not None:
                leaves.settle(argument)
        self.slots.nan_held = True
        self.slots.add_typed(names, settled)

    def _one(self, entry: Entry, kind: int) -> None:
        """Add the slots of a record that was not added with the others of its run."""
        before = self.records.slot_start[-1]
        self.slots.forget(before)
        if kind == GRADIENTS and self.typed and self._typed_gradients(entry[1]):
            return
        self.slots.forget(before)
        self.slots.nan_held = True
        self.record = whole_characters(entry[0])
        found = self._parsed(*entry)
        if kind == OTHER and entry[0].endswith(SAVED):
            self._walk("output", found)  # a value that the user saved: it may be of any form
        elif not isinstance(found, dict):
            raise Unreadable("no object")
        elif kind == GRADIENTS:
            self._untyped_gradients(found)
        else:
            self._untyped(found)

    def _typed_gradients(self, value: bytes) -> bool:
        """``_typed`` for a ``parameters_grad`` record, whose members are the parameters' names."""
        try:
            for key, found in decode_gradients(leaves.quote_not_numbers(value)).items():
                if isinstance(found, list):
                    self._add_written(self.gradients, ((key if index == 0 else f"{key}.{index}", leaf) for index, leaf in enumerate(found)))
                elif not isinstance(found, bool):
                    self._add_written(self.gradients, ((key, found),))
        except (msgspec.DecodeError, Odd):
            return False
        return True

    def _parsed(self, key: str, value: bytes, offset: int) -> Any:
        try:
            return parse_json(value.decode("utf-8"))
        except json.JSONDecodeError as error:
            offset += len(error.doc[: error.pos].encode("utf-8"))
            raise DumpError("not_json", self.place, offset=offset, detail=f"{printable(key)} holds no JSON value") from error
        except UnicodeDecodeError as error:
            raise DumpError("not_utf8", self.place, offset=offset + error.start) from error
        except (ValueError, Unreadable) as error:  # ValueError: an integer of more than 4,300 digits
            detail = str(error) if isinstance(error, Unreadable) else "a number of thousands of digits"
            raise DumpError("bad_record", self.place, record=printable(key), offset=offset, detail=detail) from error

    def _untyped_gradients(self, found: dict[str, Any]) -> None:
        for key, gradient in found.items():
            slot = f"parameters_grad.{whole_characters(key)}"
            if isinstance(gradient, list):
                for index, inner in enumerate(gradient):
                    self._walk(slot if index == 0 else f"{slot}.{index}", inner)
            elif not isinstance(gradient, bool):
                self._walk(slot, gradient)

    def _untyped(self, found: dict[str, Any]) -> None:
        for member, group in (
            ("input_args", "input"),
            ("input_kwargs", "input"),
            ("input", "input"),
            ("parameters", "parameters"),
            ("output", "output"),
        ):
            arguments = found.get(member)
            if arguments is not None and not isinstance(arguments, bool):
                self._walk(group, arguments)

    def _walk(self, name: str, value: Any) -> None:
        if isinstance(value, dict):
            if leaves.is_leaf(value):
                for field in leaves.odd_fields(value):
                    self.notes.odd_value(self.record, name, field, value.get(field))
                self.slots.add(self.slots.names[name], leaves.from_json(value))
            else:
                inner = dict(value)
                if isinstance(inner.get("class_type"), str) and "tensor" in inner:  # P2POp: its tensor stands for it
                    del inner["class_type"]
                    self._walk(name, inner.pop("tensor"))
                for key, item in inner.items():
                    self._walk(f"{name}.{whole_characters(key)}", item)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._walk(f"{name}.{index}", item)
        elif value is None:
            self.slots.add(self.slots.names[name], None)
        else:  # a bare value where a leaf was expected: kept as if the dumper had wrapped it
            self.slots.add(self.slots.names[name], LeafValue[Any](type=type(value).__name__, value=value))


def _refuse_what_is_not_read(members: dict[str, Any], place: str) -> None:
    """Refuse as soon as the members say so, which in real dumps is before the first record."""
    level = members.get("level")
    if isinstance(level, str) and level not in READ_LEVELS:
        raise DumpError("level_unsupported", place, level=printable(level))
