"""The dumps of several ranks as one: their tables one after the other, with what is said of each record once a rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from compare.engine.model import Dump, Int32, RecordTable, SlotTable, TensorTable

# Column → the table of names it points into.
RECORD_NAMES = {"path": "paths", "class_name": "classes", "stack": "stacks"}
SLOT_NAMES = {
    "name": "slot_names",
    "type_name": "types",
    "dtype": "dtypes",
    "shape": "shapes",
    "text": "texts",
    "checksum": "texts",
    "data_name": "texts",
}
TABLES = ("paths", "classes", "slot_names", "types", "dtypes", "shapes", "texts")


def joined(dumps: Sequence[Dump]) -> Dump:
    """One dump with the records of all; names are shared, stacks are those of the first rank (the others' are the same code)."""
    if len(dumps) == 1:
        return dumps[0]
    merged: dict[str, list[object]] = {}
    moves: list[dict[str, Int32]] = []
    for dump in dumps:
        moves.append({name: _merge(merged.setdefault(name, []), getattr(dump, name)) for name in TABLES})
        moves[-1]["stacks"] = np.full(len(dump.stacks) + 1, -1, np.int32)
    moves[0]["stacks"] = np.append(np.arange(len(dumps[0].stacks)), -1).astype(np.int32)
    records, slots = _records(dumps, moves), _slots(dumps, moves)
    first = dumps[0]
    return Dump(
        place=first.place,
        task=first.task,
        level=first.level,
        framework=first.framework,
        stage=first.stage,
        step=first.step,
        rank=first.rank,
        has_construct=all(dump.has_construct for dump in dumps),
        has_stack=all(dump.has_stack for dump in dumps),
        records=records,
        slots=slots,
        tensors=_tensors(dumps),
        stacks=first.stacks,
        notes=[note for dump in dumps for note in dump.notes],
        **merged,  # type: ignore[arg-type]
    )


def _merge(known: list[object], names: Sequence[object]) -> Int32:
    """Where each name of one dump stands in the shared table; the last entry is that of -1."""
    index = {name: place for place, name in enumerate(known)}
    found = []
    for name in names:
        place = index.setdefault(name, len(known))
        if place == len(known):
            known.append(name)
        found.append(place)
    return np.array([*found, -1], np.int32)


def _records(dumps: Sequence[Dump], moves: Sequence[dict[str, Int32]]) -> RecordTable:
    begins = np.cumsum([0, *(len(dump.records) for dump in dumps)])
    columns: dict[str, object] = {"name": [name for dump in dumps for name in dump.records.name]}
    for column in (field.name for field in fields(RecordTable) if field.name not in ("name", "slot_start", "parent")):
        parts = [getattr(dump.records, column) for dump in dumps]
        table = RECORD_NAMES.get(column)
        columns[column] = np.concatenate([move[table][part] if table else part for part, move in zip(parts, moves, strict=True)])
    columns["parent"] = np.concatenate(
        [
            np.where(dump.records.parent >= 0, dump.records.parent + begin, -1).astype(np.int32)
            for dump, begin in zip(dumps, begins, strict=False)
        ]
    )
    slot_begins = np.cumsum([0, *(len(dump.slots) for dump in dumps)])
    starts = [dump.records.slot_start[:-1] + begin for dump, begin in zip(dumps, slot_begins, strict=False)]
    columns["slot_start"] = np.concatenate([*starts, [slot_begins[-1]]]).astype(np.int64)
    return RecordTable(**columns)  # type: ignore[arg-type]


def _slots(dumps: Sequence[Dump], moves: Sequence[dict[str, Int32]]) -> SlotTable:
    begins = np.cumsum([0, *(len(dump.records) for dump in dumps)])
    columns = {}
    for column in (field.name for field in fields(SlotTable) if field.name not in ("record", "file")):
        parts = [getattr(dump.slots, column) for dump in dumps]
        table = SLOT_NAMES.get(column)
        columns[column] = np.concatenate([move[table][part] if table else part for part, move in zip(parts, moves, strict=True)])
    files = np.cumsum([0, *(len(dump.tensors) for dump in dumps)])
    columns["file"] = np.concatenate(
        [
            np.where(dump.slots.file >= 0, dump.slots.file + begin, dump.slots.file).astype(np.int32)
            for dump, begin in zip(dumps, files, strict=False)
        ]
    )
    columns["record"] = np.concatenate([(dump.slots.record + begin).astype(np.int32) for dump, begin in zip(dumps, begins, strict=False)])
    return SlotTable(**columns)


def _tensors(dumps: Sequence[Dump]) -> TensorTable:
    return TensorTable(**{f.name: np.concatenate([getattr(dump.tensors, f.name) for dump in dumps]) for f in fields(TensorTable)})
