"""Reads one side of a comparison: all dumps of one run."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from compare.engine.errors import DumpError
from compare.engine.ingest import construct as constructs
from compare.engine.ingest.archive import Expander
from compare.engine.ingest.layout import CONSTRUCT, DUMP, STACK, Place, arrange
from compare.engine.ingest.member import Member, Reading, new_digest
from compare.engine.ingest.records import read_dump
from compare.engine.ingest.source import Meter, Progress, Source, os_error, printable
from compare.engine.ingest.stacks import read_stacks
from compare.engine.model import Dump, RecordTable, Side


def read_side(sources: Sequence[Source], name: str, progress: Progress | None = None) -> Side:
    """Every dump that the sources hold, as columns; one streaming pass a file.

    Raises DumpError for what cannot be read (``docs/errors.md``), and lets through what ``progress`` raises (errors.Cancelled).
    """
    meter = Meter(progress)
    shown = printable(name) or "–"
    if not sources:
        raise DumpError("empty_side", shown)
    with Expander(meter) as expander:
        expander.add(sources)
        places = arrange(expander.members, expander.left_aside, shown)
        meter.phase(sum(member.size for place in places for member in place.files.values()), until=1.0)
        digest = new_digest()
        dumps = [_read(place, meter, digest) for place in places]
        left_aside = sorted(expander.left_aside, key=lambda left: (left.path, left.reason))
    if not any(len(dump.records) for dump in dumps):
        raise DumpError("empty_side", dumps[0].place)
    meter.report()
    return Side(name=name, dumps=dumps, left_aside=left_aside, digest=digest.hexdigest())


def _read(place: Place, meter: Meter, digest: Any) -> Dump:
    dump_file = place.files[DUMP]
    with _opened(dump_file, meter, digest) as reading:
        found = read_dump(reading.read, dump_file.place)
    records = found.records
    recorded = len(records)
    construct = constructs.Construct(records)
    if CONSTRUCT in place.files:
        with _opened(place.files[CONSTRUCT], meter, digest) as reading:
            construct.read(reading.read, place.files[CONSTRUCT].place)
    parent = constructs.parents(records, construct)
    rows = len(records)
    stack, stacks = np.full(rows, -1, dtype=np.int32), list[str]()
    if STACK in place.files:
        with _opened(place.files[STACK], meter, digest) as reading:
            stack, stacks = read_stacks(reading.read, place.files[STACK].place, records.rows, rows)
    kind, direction, path, class_name = records.columns()
    slot_start = np.array(records.slot_start, dtype=np.int64)
    slots = found.slots.table(slot_start)
    return Dump(
        place=dump_file.place,
        task=found.task,
        level=found.level,
        framework=found.framework,
        stage=place.stage,
        step=place.step,
        rank=place.rank,
        has_construct=construct.entries > 0,
        has_stack=bool(stacks),
        records=RecordTable(
            name=list(records.rows),
            kind=kind,
            direction=direction,
            call=np.array(records.call, dtype=np.int32),
            path=path,
            class_name=class_name,
            parent=parent,
            recorded=np.arange(rows) < recorded,
            slot_start=slot_start,
            stack=stack,
        ),
        slots=slots,
        paths=list(records.paths),
        classes=list(records.classes),
        slot_names=list(found.slots.names),
        types=list(found.slots.types),
        dtypes=list(found.slots.dtypes),
        shapes=list(found.slots.shapes),
        texts=list(found.slots.texts),
        stacks=stacks,
    )


@contextmanager
def _opened(member: Member, meter: Meter, digest: Any) -> Iterator[Reading]:
    with ExitStack() as opened:
        try:
            stream = opened.enter_context(member.open())
        except OSError as error:
            raise os_error(error, member.place) from error
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
            raise DumpError("archive_damaged", member.place, detail=str(error) or type(error).__name__) from error
        yield Reading(member, stream, meter, digest)
