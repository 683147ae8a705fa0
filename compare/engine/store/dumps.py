"""A Dump as a folder of columns."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from compare.engine.model import Dump, Note, RecordTable, SlotTable, TensorTable
from compare.engine.store.columns import Columns, write_columns

TEXTS = ("paths", "classes", "slot_names", "types", "dtypes", "texts", "stacks")
FACTS = ("place", "task", "level", "framework", "stage", "step", "rank", "has_construct", "has_stack")


def write_dump(dump: Dump, folder: Path) -> None:
    arrays = {}
    for prefix, table in (("records", dump.records), ("slots", dump.slots), ("tensors", dump.tensors)):
        for column in fields(table):
            values = getattr(table, column.name)
            if isinstance(values, np.ndarray):
                arrays[f"{prefix}.{column.name}"] = values
    strings = {name: getattr(dump, name) for name in TEXTS}
    strings["records.name"] = dump.records.name
    strings["shapes"] = [",".join(map(str, shape)) for shape in dump.shapes]
    facts = {name: getattr(dump, name) for name in FACTS}
    write_columns(folder, arrays, strings, {"kind": "dump", **facts, "notes": [asdict(note) for note in dump.notes]})


def read_dump(folder: Path) -> Dump:
    """The dump that ``write_dump`` wrote; arrays are memory-mapped."""
    columns = Columns(folder)

    def table(prefix: str, names: list[str]) -> dict[str, object]:
        return {name: columns.array(f"{prefix}.{name}") for name in names}

    record_names = [f.name for f in fields(RecordTable) if f.name != "name"]
    records = RecordTable(name=columns.strings("records.name"), **table("records", record_names))  # type: ignore[arg-type]
    slots = SlotTable(**table("slots", [f.name for f in fields(SlotTable)]))  # type: ignore[arg-type]
    tensors = TensorTable(**table("tensors", [f.name for f in fields(TensorTable)]))  # type: ignore[arg-type]
    texts = {name: list(columns.strings(name)) if name != "stacks" else columns.strings(name) for name in TEXTS}
    shapes = [tuple(int(n) for n in text.split(",")) if text else () for text in columns.strings("shapes")]
    notes = [Note(**note) for note in columns.meta["notes"]]
    facts = {name: columns.meta[name] for name in FACTS}
    return Dump(records=records, slots=slots, tensors=tensors, shapes=shapes, notes=notes, **texts, **facts)  # type: ignore[arg-type]
