"""Reads one side of a comparison: all dumps of one run."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.errors import DumpError, os_error, printable
from compare.engine.ingest import construct as constructs
from compare.engine.ingest.archive import Expander
from compare.engine.ingest.layout import CONSTRUCT, DATABASE, STACK, Place, arrange, reason
from compare.engine.ingest.loop_files import LoopFiles, claim, read_loop
from compare.engine.ingest.member import Member, Reading, new_digest
from compare.engine.ingest.notes import Notes
from compare.engine.ingest.records import read_dump, tables
from compare.engine.ingest.source import Meter, Progress, Source
from compare.engine.ingest.stacks import read_stacks
from compare.engine.ingest.tensor_files import with_tensors
from compare.engine.ingest.visdb import read_database
from compare.engine.model import Dump, LeftAside, Side, UnreadableDump

STRUCTURE = "structure"  # the task of dumps without values: construct.json is all they hold


def read_side(sources: Sequence[Source], name: str, progress: Progress | None = None, kept: Path | None = None) -> Side:
    """Every dump that the sources hold, as columns; one streaming pass a file. Tensor files are found, not read; ``kept`` is where those
    are copied that cannot be read in place later (``kept.Keeper``), None: they count as missing.

    Raises DumpError for what cannot be read (``docs/errors.md``), and lets through what ``progress`` raises (errors.Cancelled).
    """
    meter = Meter(progress)
    shown = printable(name) or "–"
    if not sources:
        raise DumpError("no_dump", shown)
    with Expander(meter, kept) as expander:
        expander.add(sources)
        found = claim(expander.members)
        places, no_dump = _places(found, expander.left_aside, shown)
        size = sum(member.size for place in places for member in place.files.values())
        meter.phase(size + sum(member.size for member in found.members), until=1.0)
        digest = new_digest()
        dumps, unreadable = _all_dumps(places, meter, digest)
        unused = (member for place in places for member in place.tensors.values())
        expander.left_aside.extend(LeftAside(printable(member.path), reason(member)) for member in unused)
        loop = read_loop(found, lambda member: opened(member, meter, digest), expander.left_aside)
        if no_dump is not None and loop.configuration is None:
            raise no_dump
        left_aside = sorted(expander.left_aside, key=lambda left: (left.path, left.reason))
    if unreadable and not dumps and loop.key_data is None:
        raise DumpError.of(unreadable[0].error)
    if dumps and loop.key_data is None and not any(len(dump.records) for dump in dumps):
        raise DumpError("empty_side", dumps[0].place)
    meter.report()
    return Side(name=name, dumps=dumps, unreadable=unreadable, left_aside=left_aside, digest=digest.hexdigest(), loop=loop)


def _all_dumps(places: Sequence[Place], meter: Meter, digest: Any) -> tuple[list[Dump], list[UnreadableDump]]:
    """One broken dump does not hide the others of its run. What is wrong with the machine is not the dump's fault, and raised."""
    dumps: list[Dump] = []
    unreadable: list[UnreadableDump] = []
    for place in places:
        try:
            dumps += [with_tensors(dump, place.tensors) for dump in _dumps(place, meter, digest)]
        except DumpError as error:
            if error.is_of_the_machine:
                raise
            unreadable.append(UnreadableDump(place.where, place.stage, place.step, place.rank, error.document))
    return dumps, unreadable


def _places(found: LoopFiles, left_aside: list[LeftAside], name: str) -> tuple[list[Place], DumpError | None]:
    """The dumps, and the refusal that is due without any: a configuration alone may be compared, which shows only when it is read."""
    try:
        return arrange(found.others, left_aside, name, optional=bool(found.tables)), None
    except DumpError as error:
        if error.code != "no_dump" or not found.configurations:
            raise
        return arrange(found.others, left_aside, name, optional=True), error


def _dumps(place: Place, meter: Meter, digest: Any) -> Iterator[Dump]:
    main = place.main
    if main is None:
        return
    if DATABASE in place.files:
        with opened(main, meter, digest) as reading:
            yield from read_database(reading.read, main.place, meter)
    else:
        yield _read(place, main, meter, digest)


def _read(place: Place, dump_file: Member, meter: Meter, digest: Any) -> Dump:
    with opened(dump_file, meter, digest) as reading:
        found = read_dump(reading.read, dump_file.place)
    records = found.records
    construct = constructs.Construct(records)
    if CONSTRUCT in place.files:
        with opened(place.files[CONSTRUCT], meter, digest) as reading:
            construct.read(reading.read, place.files[CONSTRUCT].place)
    if found.task == STRUCTURE and not len(records):
        construct.record_all()
    recorded = len(records)
    parent = constructs.parents(records, construct)
    rows = len(records)
    stack, stacks, stack_notes = np.full(rows, -1, dtype=np.int32), list[str](), Notes("")
    if STACK in place.files:
        stack_notes.place = place.files[STACK].place
        with opened(place.files[STACK], meter, digest) as reading:
            stack, stacks = read_stacks(reading.read, stack_notes.place, records.rows, rows, stack_notes)
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
        **tables(records, found.slots, parent, recorded, stack, found.notes, construct.notes, stack_notes),
        stacks=stacks,
    )


@contextmanager
def opened(member: Member, meter: Meter, digest: Any) -> Iterator[Reading]:
    with ExitStack() as opened:
        try:
            stream = opened.enter_context(member.open())
        except OSError as error:
            raise os_error(error, member.place) from error
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
            raise DumpError("archive_damaged", member.place, detail=str(error) or type(error).__name__) from error
        yield Reading(member, stream, meter, digest)
