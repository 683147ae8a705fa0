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


PRINTED = b"(TaskRunner pid=7) {'actor_rollout_ref': {'actor': {'lr': %d}},\n(TaskRunner pid=7)  'trainer': {'nnodes': 1}}\n"
NOISE = b"(TaskRunner pid=7) step:1 - actor/loss:0.25 - timing_s/gen:1.5\n" * 16_000  # a megabyte


def contents(side: Side) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for parcel in side.parcels:
        parcel.prepare(Progress())
        with zipfile.ZipFile(io.BytesIO(b"".join(parcel.blocks(0)))) as archive:
            found |= {name: archive.read(name) for name in archive.namelist()}
    return found


def test_logs_go_along_where_verl_printed_its_configuration_into_them(tmp_path):
    run = unpacked(tmp_path / "run")
    (run / "logs" / "worker").mkdir(parents=True)
    files = {
        "train.log": b"starting\n" + PRINTED % 1,
        "logs/worker/0.TXT": PRINTED % 2,
        "notes.txt": b"actor_rollout_ref",
        "step.log": b"1",
    }
    for name, content in files.items():
        (run / name).write_bytes(content)
    side = Side(str(run), tensors=False)
    sent = contents(side)
    assert sent["run/train.log"] == files["train.log"]
    assert sent["run/logs/worker/0.TXT"] == files["logs/worker/0.TXT"]
    assert not {"run/notes.txt", "run/step.log"} & set(sent)
    assert any(name.endswith("dump.json") for name in sent)
    assert side.left_out == 0
    assert list(side.logs.said())[-1] == "2 logs hold no configuration that verl printed, and stay here"
    assert len(contents(Side(str(run), tensors=True))) == len(sent)


def test_of_a_large_log_its_beginning_and_the_last_configurations_are_sent(tmp_path):
    log = tmp_path / "run.log"
    runs = b"".join(PRINTED % rate + (NOISE if rate != 5 else b"") for rate in range(1, 7))
    log.write_bytes(b"+ export PROMPTS_ONLY=1\n" + NOISE + runs)
    side = Side(str(log), tensors=False)
    (text,) = contents(side).values()
    assert side.name == "run.log"
    assert len(text) < 3 << 20 < log.stat().st_size
    assert text.startswith(b"+ export PROMPTS_ONLY=1\n")
    assert [rate for rate in range(1, 7) if b"\n" + PRINTED % rate in text] == [3, 4, 5, 6]
    assert text.count(b"'actor_rollout_ref'") == 4
    (said,) = side.logs.said()
    assert said == f"run.log: {push.size(len(text))} of {push.size(log.stat().st_size)}: its beginning and the configuration in it"


def test_a_log_that_training_still_writes_is_sent_as_it_was(tmp_path):
    log = tmp_path / "train.log"
    log.write_bytes(PRINTED % 1)
    side = Side(str(log), tensors=False)
    with log.open("ab") as file:
        file.write(b"step:2\n")
    assert contents(side) == {"train.log": PRINTED % 1}


@pytest.mark.parametrize("before", [push.BLOCK - 1, push.BLOCK - 10, push.BLOCK - 18, push.BLOCK, 2 * push.BLOCK - 5])
def test_a_configuration_is_found_across_blocks(before):
    log = io.BytesIO(b"x" * (before - 1) + b"\n" + push.PRINTED + b": 1}\n")
    assert push.configurations_in(log) == [before]


def test_a_log_alone_without_a_configuration_is_refused_and_an_unreadable_one_beside_a_dump_is_not_missed(tmp_path):
    (tmp_path / "a.log").write_text("step:1")
    with pytest.raises(Stop, match="no configuration in it that verl printed"):
        Side(str(tmp_path / "a.log"), tensors=False)
    logs = push.Logs()

    def gone() -> io.BytesIO:
        raise PermissionError

    assert logs.member(Member("b.log", 10, gone)) is None
    assert list(logs.said()) == ["1 log unreadable or too large to look through: left here"]
    assert logs.member(Member("c.log", 3 << 30, lambda: io.BytesIO(PRINTED % 1))) is not None
    assert logs.member(Member("d.log", 2 << 30, gone)) is None
    assert logs.unread == 2


def test_of_an_archive_that_is_packed_again_the_logs_are_cut_down_too(tmp_path):
    archive = tmp_path / "run.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, content in (
            ("run/dump.json", b"{}"), ("run/dump_tensor_data/a.pt", os.urandom(2 << 20)), ("run/train.log", NOISE + PRINTED % 1 + NOISE),
            ("run/other.log", b"step:1"),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    side = Side(str(archive), tensors=False)
    sent = contents(side)
    assert set(sent) == {"run/dump.json", "run/train.log"}
    assert PRINTED % 1 in sent["run/train.log"]
    assert len(sent["run/train.log"]) < 700_000
    assert side.left_out == 2 << 20


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
