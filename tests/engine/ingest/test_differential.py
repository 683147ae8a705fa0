"""The columns hold exactly what a plain ``json.loads`` reader finds, whatever the dump, the block size or the decoder."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.ingest.records import read_dump
from compare.engine.ingest.tensor_files import no_tensors
from compare.engine.model import Dump, RecordTable
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CORPUS, dump_files

ARCHIVES = sorted(CORPUS.glob("*.zip"))


def as_dump(content: bytes, block_size: int, *, typed: bool) -> Dump:
    """The columns of a dump.json without its side files."""
    found = read_dump(io.BytesIO(content).read, "dump.json", block_size, typed=typed)
    rows = len(found.records)
    slot_start = np.array(found.records.slot_start, dtype=np.int64)
    nowhere = np.full(rows, -1, dtype=np.int32)
    kind, direction, path, class_name = found.records.columns()
    records = RecordTable(
        list(found.records.rows), kind, direction, np.array(found.records.call, dtype=np.int32), path, class_name,
        nowhere, np.ones(rows, dtype=np.bool_), slot_start, nowhere,
    )  # fmt: skip
    slots = found.slots
    return Dump(
        "dump.json", found.task, found.level, found.framework, None, None, None, False, False, records, slots.table(slot_start),
        no_tensors(), list(found.records.paths), list(found.records.classes), list(slots.names), list(slots.types), list(slots.dtypes),
        list(slots.shapes), list(slots.texts), [],
    )  # fmt: skip


def exact_columns(dump: Dump) -> dict[str, Any]:
    """Every column and every string table, comparable with ==; NaN as bytes."""
    told: dict[str, Any] = {name: getattr(dump, name) for name in ("slot_names", "types", "dtypes", "shapes", "texts", "paths", "classes")}
    for table in (dump.records, dump.slots):
        for name in type(table).__slots__:
            column = getattr(table, name)
            told[name] = column.tobytes() if isinstance(column, np.ndarray) else list(column)
    return told


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.stem)
def test_every_slot_of_every_real_dump_is_what_a_naive_reader_finds(archive: Path) -> None:
    side = read_side(paths_to_sources([archive]), archive.stem)
    with zipfile.ZipFile(archive) as files:
        dumps = {name: files.read(name) for name in files.namelist() if name.rpartition("/")[2] == "dump.json"}
    assert sorted(dump.place for dump in side.dumps) == sorted(f"{archive.name}/{name}" for name in dumps)
    for dump in side.dumps:
        assert naive.slots_of_columns(dump) == naive.slots_of_file(dumps[dump.place.removeprefix(f"{archive.name}/")])
        assert list(dump.records.name)[: int(dump.records.recorded.sum())] == list(naive.slots_of_columns(dump))


@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 64, 1000, 4096, 1 << 20])
@pytest.mark.parametrize("name", ["q2_infer_nan3_stat", "q2_shim_mix", "q2_train_stat"])
def test_block_size_and_decoder_change_nothing_in_a_real_dump(name: str, block_size: int) -> None:
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as files:
        content = files.read("step0/rank0/dump.json")
    content = content if block_size > 7 else json.dumps({"data": dict(list(json.loads(content)["data"].items())[:6])}).encode()
    expected = exact_columns(as_dump(content, 1 << 18, typed=False))
    assert exact_columns(as_dump(content, block_size, typed=True)) == expected
    assert exact_columns(as_dump(content, block_size, typed=False)) == expected


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(content=dump_files(), block_size=st.integers(1, 400))
def test_both_decoders_agree_with_the_naive_reader_on_any_dump(content: bytes, block_size: int) -> None:
    typed = as_dump(content, block_size, typed=True)
    assert naive.slots_of_columns(typed) == naive.slots_of_file(content)
    assert exact_columns(typed) == exact_columns(as_dump(content, 1 << 18, typed=False))
