"""What goes up: a zip that any reader opens, the same each time, and any part of it on its own."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compare import push
from compare.push import Cursor, Member, Progress, Side, Stop, WholeFile, Zipped
from tests.rooms import CORPUS

STATISTICS = CORPUS / "q2_train_stat.zip"


def zipped(files: dict[str, bytes]) -> Zipped:
    parcel = Zipped("x.zip", [Member(name, len(content), lambda c=content: io.BytesIO(c)) for name, content in files.items()])
    parcel.prepare(Progress())
    return parcel


def unpacked(folder: Path) -> Path:
    zipfile.ZipFile(STATISTICS).extractall(folder)  # noqa: S202 - our own
    return folder


def names(side: Side) -> list[str]:
    return [entry.member.name for parcel in side.parcels for entry in getattr(parcel, "entries", [])]


FILES = st.dictionaries(
    st.text(st.characters(exclude_characters="/\\\0:", exclude_categories=["Cs"]), min_size=1, max_size=12).map(
        lambda name: name + (".json" if len(name) % 2 else ".pt")
    ),
    st.binary(max_size=2000),
    min_size=1,
    max_size=5,
)


@given(files=FILES, share=st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_any_reader_opens_the_zip_and_any_part_of_it_can_be_made_on_its_own(files, share):
    parcel = zipped(files)
    whole = b"".join(parcel.blocks(0))
    assert (len(whole), hashlib.sha256(whole).hexdigest()) == (parcel.length, parcel.sha256)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.testzip() is None
        assert {info.filename: archive.read(info) for info in archive.infolist()} == files
    offset = int(share * parcel.length)
    assert b"".join(parcel.blocks(offset)) == whole[offset:]


def test_every_offset_of_a_zip_continues_it():
    parcel = zipped({"a.json": b'{"x": 1}' * 50, "b.pt": os.urandom(300), "c.json": b"", "训练.npy": b"12345"})
    whole = b"".join(parcel.blocks(0))
    for offset in range(parcel.length + 1):
        assert b"".join(parcel.blocks(offset)) == whole[offset:], offset


@given(takes=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 400)), max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_on_and_going_back_give_the_same_bytes(takes):
    parcel = zipped({"a.json": b'{"x": 1}' * 50, "b.pt": bytes(range(256)) * 3})
    whole, cursor = b"".join(parcel.blocks(0)), Cursor(parcel)
    for offset, count in takes:
        count = max(0, min(count, parcel.length - offset))
        offset = min(offset, parcel.length)
        assert b"".join(cursor.take(offset, count)) == whole[offset : offset + count]


@given(files=FILES, share=st.floats(0, 1), big=st.integers(0, 500))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_lies_beyond_4_gigabytes_is_found(monkeypatch, files, share, big):
    """With the border lowered, so that the test need not write a tensor that large."""
    monkeypatch.setattr(push, "BIG", big)
    parcel = zipped(files)
    whole = b"".join(parcel.blocks(0))
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.testzip() is None
        assert {info.filename: archive.read(info) for info in archive.infolist()} == files
    offset = int(share * parcel.length)
    assert b"".join(parcel.blocks(offset)) == whole[offset:]


def test_more_files_than_an_old_zip_counts_are_all_there():
    files = {f"{number}.npy": b"" for number in range(66_000)}
    parcel = zipped(files)
    with zipfile.ZipFile(io.BytesIO(b"".join(parcel.blocks(0)))) as archive:
        assert archive.namelist() == list(files)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ["train/step0/rank0/construct.json", "train/step0/rank0/dump.json", "train/step0/rank0/stack.json"]),
        ("step0", ["step0/rank0/construct.json", "step0/rank0/dump.json", "step0/rank0/stack.json"]),
        ("step0/rank0", ["step0/rank0/construct.json", "step0/rank0/dump.json", "step0/rank0/stack.json"]),
        ("step0/rank0/dump.json", ["step0/rank0/dump.json", "step0/rank0/construct.json", "step0/rank0/stack.json"]),
    ],
)
def test_the_numbers_of_step_and_rank_are_kept_wherever_one_points(tmp_path, given, expected):
    assert names(Side(str(unpacked(tmp_path / "train") / given), tensors=False)) == expected


def test_tensors_stay_unless_asked_for_and_hidden_files_always_do(tmp_path):
    folder = unpacked(tmp_path / "train")
    for name in (
        "step0/rank0/dump_tensor_data/a.pt",
        ".git/config.json",
        "__MACOSX/dump.json",
        "data/loss/step0/rank0/micro_step0/loss.npy",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * 100)
    side = Side(str(folder), tensors=False)
    assert side.left_out == 100
    kept = [name.removeprefix("train/") for name in names(side)]
    assert "data/loss/step0/rank0/micro_step0/loss.npy" in kept, "the small tables of key data are read at once"
    assert not any("tensor" in name or name.startswith((".git", "__MACOSX")) for name in kept)
    assert "train/step0/rank0/dump_tensor_data/a.pt" in names(Side(str(folder), tensors=True))


def test_an_rl_run_goes_with_its_tables_logs_and_configuration_and_without_its_tensors(tmp_path):
    wanted = [
        "run/4711/dispatch_log.jsonl",
        "run/configurations.json",
        "run/data/loss/step0/rank0/loss.npy",
        "run/data/prompts/step_0/rank_0/micro_step_0/prompts.11.npy",
        "run/grpo.yaml",
        "run/prob_diff_step_3.npy",
    ]
    for name in (*wanted, "run/actor_update/step0/rank0/dump_tensor_data/a.npy", "run/weights.npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert sorted(names(Side(str(tmp_path / "run"), tensors=False))) == wanted
    for name in wanted[:2]:
        (tmp_path / name).unlink()
    assert sorted(names(Side(str(tmp_path / "run"), tensors=False))) == wanted[2:]


def test_an_archive_goes_as_it_is_unless_leaving_its_tensors_out_spares_much(tmp_path):
    (parcel,) = Side(str(STATISTICS), tensors=False).parcels
    assert isinstance(parcel, WholeFile)
    parcel.prepare(Progress())
    assert parcel.sha256 == hashlib.sha256(STATISTICS.read_bytes()).hexdigest()
    assert b"".join(parcel.blocks(100)) == STATISTICS.read_bytes()[100:]
    for kind in ("w", "w:gz"):
        heavy = tmp_path / "heavy.tar.gz"
        with tarfile.open(heavy, kind) as archive:
            archive.add(unpacked(tmp_path / "train"), "train")
            tensor = tarfile.TarInfo("train/step0/rank0/dump_tensor_data/a.pt")
            tensor.size = 3 << 20
            archive.addfile(tensor, io.BytesIO(os.urandom(tensor.size)))
        side = Side(str(heavy), tensors=False)
        assert side.left_out == 3 << 20
        (repacked,) = side.parcels
        repacked.prepare(Progress())
        with zipfile.ZipFile(io.BytesIO(b"".join(repacked.blocks(0)))) as archive, zipfile.ZipFile(STATISTICS) as original:
            for name in original.namelist():
                assert archive.read(f"train/{name}") == original.read(name)
        assert b"".join(repacked.blocks(repacked.length // 2)) == b"".join(repacked.blocks(0))[repacked.length // 2 :]
        assert isinstance(Side(str(heavy), tensors=True).parcels[0], WholeFile)


def test_archives_inside_a_folder_go_up_one_by_one(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.zip").write_bytes(STATISTICS.read_bytes())
    assert [parcel.name for parcel in Side(str(tmp_path), tensors=False).parcels] == [f"{tmp_path.name}/rank{n}.zip" for n in (0, 1)]


@pytest.mark.parametrize("what", ["nothing", "empty", "no json"])
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(tmp_path, what):
    folder = tmp_path / "folder"
    if what != "nothing":
        folder.mkdir()
    if what == "no json":
        (folder / "a.txt").write_text("x")
    with pytest.raises(Stop) as said:
        Side(str(folder), tensors=False)
    assert str(folder) in str(said.value)
    assert said.value.status == 2


@pytest.mark.parametrize("how", ["longer", "other"])
def test_a_dump_that_is_still_being_written_is_noticed(tmp_path, how):
    file = unpacked(tmp_path / "train") / "step0" / "rank0" / "dump.json"
    (parcel,) = Side(str(file), tensors=False).parcels
    parcel.prepare(Progress())
    content = file.read_bytes()
    file.write_bytes(content + b" " if how == "longer" else content[:-1] + b" ")
    os.utime(file, ns=(1, 1))
    with pytest.raises(Stop, match="changed while it was read"):
        list(parcel.blocks(0))


def test_a_graph_database_is_sent_where_no_dump_is_beside_it(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "build_1.vis.db").write_bytes(b"SQLite format 3\0")
    (tmp_path / "out" / "notes.txt").write_text("x")
    assert names(Side(str(tmp_path / "out"), tensors=False)) == ["out/build_1.vis.db"]
    (tmp_path / "out" / "dump.json").write_text("{}")
    assert names(Side(str(tmp_path / "out"), tensors=False)) == ["out/dump.json"]
