"""Which tensor file belongs to which slot: the names in dump.json against the files beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compare.engine.ingest.kept import Extent
from compare.engine.ingest.member import Member
from compare.engine.model import FILE_MISSING, NO_FILE, Dump, TensorTable


def no_tensors() -> TensorTable:
    return table_of([])


def table_of(extents: list[Extent]) -> TensorTable:
    return TensorTable(
        source=np.array([extent.source for extent in extents], np.int32),
        offset=np.array([extent.offset for extent in extents], np.int64),
        packed=np.array([extent.packed for extent in extents], np.int64),
        size=np.array([extent.size for extent in extents], np.int64),
        packing=np.array([extent.packing for extent in extents], np.uint8),
    )


def with_tensors(dump: Dump, files: dict[str, Member]) -> Dump:
    """The dump with ``slots.file`` and ``tensors`` filled in. Takes the files that a slot names out of ``files``."""
    named = np.flatnonzero(dump.slots.data_name >= 0)
    if not len(named):
        return dump
    column = np.full(len(dump.slots), NO_FILE, np.int32)
    column[named] = FILE_MISSING
    rows: dict[str, int] = {}
    extents: list[Extent] = []
    for slot in named.tolist():
        name = dump.data_name(slot)
        if name is None:
            continue
        if name not in rows:
            member = files.get(name)
            if member is None or member.extent is None:
                continue
            rows[name] = len(extents)
            extents.append(member.extent)
        column[slot] = rows[name]
    for name in rows:
        del files[name]
    return replace(dump, slots=replace(dump.slots, file=column), tensors=table_of(extents))
