from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.errors import DumpError
from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.places import table_place
from compare.engine.keydata.tables import TableReader
from compare.engine.keydata.workbook import COLUMNS, write_workbook
from tests.engine.keydata.trees import key_data, side, write

PLACE = "data/values/step0/rank0/micro_step0/values.npy"


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def objects() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], object), allow_pickle=True)
    return stream.getvalue()


def declared(shape: str) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "file_empty"),
        (b"{}", "tensor_unknown"),
        (objects(), "npy_objects"),
        (pickle.dumps(1), "tensor_legacy"),
        (npy(np.zeros(4))[:-1], "tensor_truncated"),
        (npy(np.zeros(4)) + b"x", "tensor_storage"),
        (declared("(1099511627776,)"), "tensor_truncated"),
        (declared("(-1,)"), "tensor_shape"),
        (npy(np.array(["a"])), "tensor_dtype"),
        (npy(np.zeros(2, np.complex64)), "tensor_dtype"),
    ],
)
def test_a_table_that_cannot_be_read_spoils_itself_only(content: bytes, code: str, tmp_path: Path) -> None:
    root = write({("loss", 0, 0, 0): np.float32(1), ("values", 0, 0, 0): np.float32(2)}, tmp_path / "run")
    (root / PLACE).write_bytes(content)
    found = side(root)
    table = found.loop.key_data
    assert table is not None
    assert json.loads(table.problems[0])["code"] == code
    assert [left.reason for left in found.left_aside] == ["key_data_not_read"]
    values, loss = compare_key_data(table, table).keys
    assert (values.pairs[0].state, loss.pairs[0].state) == ("not_read", "equal")


@pytest.mark.parametrize("text", ["", "[", '{"data": 1}', '{"data": {"max": "x"}}', "[" * 100_000, '{"data": [{"shape": [-1, 1e9]}]}'])
def test_statistics_that_are_none_do_not_stop_the_numbers(text: str, tmp_path: Path) -> None:
    root = write({("values", 0, 0, 0): np.float32(2)}, tmp_path / "run")
    (root / PLACE).with_suffix(".json").write_text(text)
    table = side(root).loop.key_data
    assert table is not None
    assert compare_key_data(table, table).keys[0].pairs[0].state == "equal"


@given(
    st.text(max_size=60)
    | st.from_regex(r"(data/)?[a-z_.=]{1,5}/step_?[0-9]{1,3}/(rank_?[0-9]?/)?(micro_step[0-9]/)?[a-z_.=0-9]{1,8}\.(npy|json)")
)
def test_any_name_is_a_place_or_none(name: str) -> None:
    place = table_place(name)
    if place is not None:
        assert place.step >= 0
        assert place.key


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    reader = TableReader()
    place = table_place(PLACE)
    assert place is not None
    reader.add(place, "x", io.BytesIO(content))
    statistics = table_place(PLACE.replace(".npy", ".json"))
    assert statistics is not None
    reader.add(statistics, "x", io.BytesIO(content))
    reader.finish()


def test_other_trees_with_steps_and_ranks_are_no_key_data() -> None:
    for name in (
        "data/actor_update/step0/rank0/dump.json",
        "actor_update/step0/rank0/dump_tensor_data/a.npy",
        "actor_update/step0/rank0/construct.json",
        "out/step0/rank0/other.npy",
    ):
        assert table_place(name) is None, name


def test_names_may_stand_with_and_without_underscores_ranks_and_micro_steps() -> None:
    for name, folder in {
        "run/data/loss/step_2/rank_3/micro_step_4/loss.npy": ("loss", 2, 3, 4),
        "data/loss/step2/rank/loss.npy": ("loss", 2, 0, -1),
        "loss/step2/rank3/loss.npy": ("loss", 2, 3, -1),
        "data/loss/step2/loss.npy": ("loss", 2, -1, -1),
        "data/loss/step2/proc17/loss.npy": ("loss", 2, -1, -1),
        "x/prob_diff_step_5.npy": ("prob_diff", 5, -1, -1),
    }.items():
        place = table_place(name)
        assert place is not None, name
        assert place.folder == folder
    entries = {
        "x.npy": "0",
        "x.11.npy": "11",
        "x_7.npy": "7",
        "x.mean.npy": "mean",
        "x.a.b.npy": "a.b",
        "other.npy": "other",
        "x.json": None,
    }
    for file, entry in entries.items():
        place = table_place(f"data/x/step0/rank0/{file}")
        assert place is not None, file
        assert place.id == entry


@pytest.mark.parametrize("packed", ["zip", "tar.gz"])
def test_tables_are_read_from_archives(packed: str, tmp_path: Path) -> None:
    root = write({("loss", 0, 0, 0): np.float32(1.5), ("prompts", 0, 0, 0): [np.arange(3.0), np.arange(2.0)]}, tmp_path / "run")
    files = [path for path in root.rglob("*") if path.is_file()]
    target = tmp_path / f"run.{packed}"
    if packed == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(root))
    else:
        with tarfile.open(target, "w:gz") as archive:
            for path in files:
                archive.add(path, str(path.relative_to(root)))
    found, plain = side(target).loop.key_data, side(root).loop.key_data
    assert found is not None
    assert plain is not None
    assert (found.keys, found.ids, found.data.tolist()) == (plain.keys, plain.ids, plain.data.tolist())


def test_two_trees_of_tables_in_one_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write({("loss", 0, 0, 0): np.float32(1.5)}, tmp_path / "run" / name)
    with pytest.raises(DumpError) as refusal:
        side(tmp_path / "run")
    assert refusal.value.code == "two_roots"


def test_no_name_becomes_a_formula_or_breaks_the_workbook(tmp_path: Path) -> None:
    names = ["=1+1", "[a]:*?/\\b", "x" * 200, "x" * 201, "History", "''", "=cmd|' /C calc'!A0"]
    row = {"step": 0, "rank": None, "micro_step": None, "id": "=2+2", "right": None, "state": "differs", "note": None, "evidence": "values"}
    row |= {"left_shape": [1], "right_shape": None, "cropped": False, "nan": None, "inf": None, "masked": None}
    row |= dict.fromkeys(("same", "first_mismatch", "max_rel", "within_1e_3", "within_1e_2")) | {"max_abs": float("inf")}
    target = tmp_path / "book.xlsx"
    write_workbook([{"key": name, "tables": [row]} for name in names], target)
    with zipfile.ZipFile(target) as book:
        sheets = [book.read(name) for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
    assert len(sheets) == len(names)
    assert not any(b"<f>" in sheet or b"hyperlink" in sheet for sheet in sheets)
    assert all("=2+2" in sheet.decode() and COLUMNS[6] in sheet.decode() for sheet in sheets)


def test_a_run_may_hold_key_data_alone(tmp_path: Path) -> None:
    assert len(key_data({("loss", 0, 0, 0): np.float32(1)}, tmp_path)) == 1


@pytest.mark.parametrize("name", ["__MACOSX/data/values/step0/rank0/micro_step0/._values.npy", PLACE.replace("values.npy", "._values.npy")])
def test_what_macos_adds_to_an_archive_is_no_key_data(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as packed:
        packed.writestr(PLACE, npy(np.ones(2, np.float32)))
        packed.writestr(name, b"\0\5\x16\7")
    found = side(tmp_path / "run.zip")
    assert found.loop.key_data is not None
    assert (len(found.loop.key_data), list(found.loop.key_data.keys)) == (1, ["values"])
    assert [(left.path, left.reason) for left in found.left_aside] == [(name, "system_file")]


@pytest.mark.parametrize("name", ["dump", "debug", "stack", "construct"])
@pytest.mark.parametrize("micro_step", [0, -1])
def test_a_key_may_be_called_like_a_file_of_a_dump(name: str, micro_step: int, tmp_path: Path) -> None:
    found = side(write({(name, 0, 0, micro_step): np.ones(2, np.float32), ("loss", 0, 0, 0): np.ones(1)}, tmp_path))
    assert found.loop.key_data is not None
    assert sorted(found.loop.key_data.keys) == sorted(["loss", name])
    assert not found.left_aside
    assert (found.loop.key_data.present != 0).all()  # with the statistics of the .json


def test_a_dump_below_a_folder_data_is_a_dump() -> None:
    assert table_place("data/dump/step0/rank0/dump.json") is None
    assert table_place("data/dump/step0/rank0/construct.json") is None
