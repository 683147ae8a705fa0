"""Archives are read member by member whatever their order and kind, and hostile or broken ones are refused."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from compare.engine.errors import DumpError
from compare.engine.ingest import Source, archive, limits, paths_to_sources, read_side
from tests.engine.ingest.dumps import CORPUS, dump_json, outcome, read, tar_bytes, zip_bytes

TREE = {
    "run/step0/rank0/stack.json": b'{"0": [["Module.model.fc.Linear.forward.0"], ["File a.py, line 1"]]}',
    "run/step0/rank0/construct.json": b'{"Module.model.fc.Linear.forward.0": null}',
    "run/step0/rank0/dump_tensor_data/x.pt": bytes(300_000),
    "run/step0/rank0/dump.json": dump_json(),
}
PACKERS = {
    "zip": zip_bytes,
    "tar": tar_bytes,
    "tar.gz": lambda files: tar_bytes(files, "w:gz"),
    "tgz": lambda files: tar_bytes(files, "w:gz"),
}


def refusal(tmp_path: Path, content: bytes, name: str = "dump.zip") -> DumpError:
    with pytest.raises(DumpError) as refused:
        read(tmp_path, {name: content})
    assert str(refused.value).startswith(name)
    return refused.value


@pytest.mark.parametrize("kind", PACKERS)
def test_every_kind_of_archive_gives_the_same_side(tmp_path: Path, kind: str) -> None:
    loose = read(tmp_path, TREE)
    packed = read(tmp_path, {f"left.{kind}": PACKERS[kind](TREE)})
    assert packed.digest == loose.digest
    assert packed.dumps[0].place == f"left.{kind}/run/step0/rank0/dump.json"
    assert (packed.dumps[0].step, packed.dumps[0].rank) == (0, 0)
    assert packed.dumps[0].has_construct
    assert list(packed.dumps[0].stacks) == ["File a.py, line 1"]
    assert [(left.path, left.reason) for left in packed.left_aside] == [("run/step0/rank0/dump_tensor_data/x.pt", "tensor_without_slot")]


def test_a_real_dump_is_the_same_from_zip_tar_and_tar_gz(tmp_path: Path) -> None:
    with zipfile.ZipFile(CORPUS / "q2_infer_tp2_stat.zip") as files:
        members = {name: files.read(name) for name in files.namelist()}
    digests = {read(tmp_path, {"a": pack(members)}).digest for pack in PACKERS.values()}
    assert digests == {read_side(paths_to_sources([CORPUS / "q2_infer_tp2_stat.zip"]), "x").digest}


def test_an_archive_is_known_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    assert len(read(tmp_path, {"left": tar_bytes(TREE)}).dumps) == 1
    assert len(read(tmp_path, {"left.tar": zip_bytes(TREE)}).dumps) == 1
    assert refusal(tmp_path, b"hello").code == "archive_damaged"
    assert refusal(tmp_path, b"").code == "archive_damaged"
    assert refusal(tmp_path, b"7z\xbc\xaf\x27\x1crest", "left.7z").code == "archive_kind"
    assert refusal(tmp_path, b"Rar!\x1a\x07\x01\x00", "left.rar").code == "archive_kind"


def test_a_loose_tensor_file_is_no_archive_although_torch_writes_zips(tmp_path: Path) -> None:
    side = read(tmp_path, {"step0/rank0/dump.json": dump_json(), "step0/rank0/dump_tensor_data/a.pt": zip_bytes({"data/0": b"1234"})})
    assert [left.reason for left in side.left_aside] == ["tensor_without_slot"]


@pytest.mark.parametrize(
    "name",
    ["../dump.json", "a/../../dump.json", "/etc/dump.json", "C:/dump.json", "c:dump.json", "\\\\host\\dump.json", "a\\..\\..\\dump.json"],
)
def test_a_member_that_would_leave_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path, zip_bytes({name: dump_json()})).code == "archive_climbs"
    assert refusal(tmp_path, tar_bytes({name: dump_json()}), "x.tar").code == "archive_climbs"
    assert refusal(tmp_path, tar_bytes({name: dump_json()}, "w:gz"), "x.tgz").code == "archive_climbs"
    with pytest.raises(DumpError) as refused:
        read(tmp_path, {name: dump_json()})
    assert refused.value.code == "archive_climbs"


def link(kind: bytes, name: str, target: str) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as packed:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        packed.addfile(info)
        content = dump_json()
        info = tarfile.TarInfo("step0/rank0/dump.json")
        info.size = len(content)
        packed.addfile(info, io.BytesIO(content))
    return held.getvalue()


@pytest.mark.parametrize(
    ("kind", "target", "climbs"),
    [
        (tarfile.SYMTYPE, "/etc/passwd", True),
        (tarfile.SYMTYPE, "../../../etc/passwd", True),
        (tarfile.SYMTYPE, "../rank0", False),
        (tarfile.SYMTYPE, "dump.json", False),
        (tarfile.LNKTYPE, "../secret", True),
        (tarfile.LNKTYPE, "step0/rank0/dump.json", False),
    ],
)
def test_links_in_a_tar_are_never_followed_and_refused_when_they_climb(tmp_path: Path, kind: bytes, target: str, climbs: bool) -> None:
    content = link(kind, "step0/latest", target)
    if climbs:
        assert refusal(tmp_path, content, "x.tar").code == "archive_climbs"
    else:
        side = read(tmp_path, {"x.tar": content})
        assert [(left.path, left.reason) for left in side.left_aside] == [("step0/latest", "link")]


def test_devices_and_pipes_in_a_tar_are_left_aside(tmp_path: Path) -> None:
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
        side = read(tmp_path, {"x.tar": link(kind, "step0/rank0/zero", "")})
        assert [(left.path, left.reason) for left in side.left_aside] == [("step0/rank0/zero", "special_file")]


@pytest.mark.parametrize(
    "name", ["CON", "nul.json", "COM1/dump.json", "aux.txt", "step0/rank0/LPT1", "a:b/dump.json", "x/\\.\\PhysicalDrive0"]
)
def test_names_of_devices_are_names_like_others_and_nothing_is_opened_under_them(tmp_path: Path, name: str) -> None:
    """Nothing is written or opened under a name from an archive, so that not even Windows' devices mean anything."""
    before = set(tmp_path.parent.rglob("*"))
    for pack in (zip_bytes, tar_bytes):
        found = outcome(lambda pack=pack: read(tmp_path, {"a": pack({"run/step0/rank1/dump.json": dump_json(), name: dump_json()})}))
        if isinstance(found, DumpError):
            assert found.code in {"archive_climbs", "two_roots", "rank_twice"}
        else:
            assert [dump.rank for dump in found.dumps][-1] == 1
    assert {path.name for path in set(tmp_path.parent.rglob("*")) - before} <= {"0.bin"}


def test_a_climbing_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    for target, code in (("../../etc/passwd", "archive_climbs"), ("/etc/passwd", "archive_climbs"), ("dump.json", None)):
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w") as packed:
            packed.writestr("step0/rank0/dump.json", dump_json())
            info = zipfile.ZipInfo("step0/latest")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            packed.writestr(info, target)
        if code:
            assert refusal(tmp_path, held.getvalue()).code == code
        else:
            assert [left.reason for left in read(tmp_path, {"x.zip": held.getvalue()}).left_aside] == ["link"]


def test_a_zip_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    content = zip_bytes({"step0/rank0/dump.json": dump_json()})
    for length in range(4, len(content)):
        assert refusal(tmp_path, content[:length]).code == "archive_damaged", length


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_cut_off_anywhere_is_refused(tmp_path: Path, mode: str) -> None:
    content = tar_bytes({"step0/rank0/dump.json": dump_json(), "step0/rank1/dump.json": dump_json()}, mode)
    end = len(content) if mode == "w:gz" else len(content.rstrip(b"\0")) + 1
    lengths = range(2, end) if mode == "w:gz" else [*range(300, end, 97), end]
    for length in lengths:
        error = refusal(tmp_path, content[:length], "x.tar" if mode == "w" else "x.tgz")
        assert error.code == "archive_damaged", (length, error)


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_any_wrong_byte_in_an_archive_is_refused_or_harmless(tmp_path: Path, kind: str) -> None:
    files = {"step0/rank0/dump.json": dump_json()}
    content = PACKERS[kind](files)
    whole = read(tmp_path, {f"x.{kind}": content}).digest
    for position in range(0, min(len(content), 1200), 3 if kind == "tar" else 1):
        broken = bytearray(content)
        broken[position] ^= 0xFF
        try:
            side = read(tmp_path, {f"x.{kind}": bytes(broken)})
        except DumpError:
            continue
        assert kind == "tar" or side.digest == whole, position  # a plain tar has no checksum over its contents


def test_a_member_that_is_not_what_it_declares_is_refused(tmp_path: Path) -> None:
    content = bytearray(zip_bytes({"step0/rank0/dump.json": dump_json()}))
    central = content.rindex(b"PK\x01\x02")
    size = struct.unpack_from("<L", content, central + 24)[0]
    for declared in (size - 10, size + 10):
        struct.pack_into("<L", content, central + 24, declared)
        assert refusal(tmp_path, bytes(content)).code in ("archive_damaged", "json_truncated")


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    content = bytearray(zip_bytes({"step0/rank0/dump.json": dump_json()}))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    error = refusal(tmp_path, bytes(content))
    assert error.code == "archive_encrypted"
    assert "password" in str(error)


def test_a_zip_method_that_is_not_read_is_named(tmp_path: Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("dump.json", dump_json())
    assert refusal(tmp_path, held.getvalue()).code == "archive_kind"


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path, kind: str) -> None:
    error = refusal(tmp_path, PACKERS[kind]({"step0/rank0/dump.json": dump_json() + b" " * (80 << 20)}), f"x.{kind}")
    assert error.code == "archive_bomb"


def test_a_tar_gz_of_zeros_beside_the_json_is_no_reason_to_unpack_gigabytes(tmp_path: Path) -> None:
    files = {"step0/rank0/dump_tensor_data/zeros.pt": bytes(100 << 20), "step0/rank0/dump.json": dump_json()}
    assert refusal(tmp_path, tar_bytes(files, "w:gz"), "x.tgz").code == "archive_bomb"


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_MEMBERS", 20)
    files = {f"step0/rank0/{number}.json": b"{}" for number in range(30)}
    for kind, pack in PACKERS.items():
        assert refusal(tmp_path, pack(files), f"x.{kind}").code == "archive_too_many"
    monkeypatch.setattr(limits, "LARGEST_DIRECTORY", 100)
    assert refusal(tmp_path, zip_bytes(files)).code == "archive_too_many"


def test_more_json_than_may_be_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_JSON", 1000)
    files = {"step0/rank0/dump.json": dump_json() + b" " * 2000}
    for kind in ("zip", "tar.gz"):
        assert refusal(tmp_path, PACKERS[kind](files), f"x.{kind}").code == "archive_too_large"


def test_a_tar_header_that_asks_for_gigabytes_is_refused_before_they_are_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 3 << 30
    content = info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)
    assert refusal(tmp_path, content, "x.tar").code == "archive_damaged"
    assert refusal(tmp_path, gzip.compress(content), "x.tgz").code == "archive_damaged"


def test_the_same_member_twice_is_refused(tmp_path: Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as packed:
        packed.writestr("dump.json", dump_json())
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("dump.json", dump_json())
    assert refusal(tmp_path, held.getvalue()).code == "member_twice"


@pytest.mark.parametrize("outer", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("inner", ["zip", "tar", "tar.gz"])
def test_an_archive_inside_an_archive_is_a_folder_of_its_name(tmp_path: Path, outer: str, inner: str) -> None:
    flat = {name.rpartition("/")[2]: content for name, content in TREE.items()}
    ranks = {f"run/step0/rank{rank}.{inner}": PACKERS[inner](flat) for rank in (0, 1)}
    side = read(tmp_path, {f"x.{outer}": PACKERS[outer](ranks | {"run/notes.md": b"x"})})
    assert [(dump.step, dump.rank, dump.has_construct, len(dump.stacks)) for dump in side.dumps] == [(0, 0, True, 1), (0, 1, True, 1)]
    assert side.dumps[1].place == f"x.{outer}/run/step0/rank1.{inner}/dump.json"
    assert ("run/step0/rank0/x.pt", "tensor_without_slot") in [(left.path, left.reason) for left in side.left_aside]


def test_archives_two_deep_are_left_aside_and_two_trees_in_one_are_refused(tmp_path: Path) -> None:
    deep = zip_bytes(TREE | {"more.zip": zip_bytes(TREE)})
    side = read(tmp_path, {"x.zip": zip_bytes({"inner.zip": deep})})
    assert ("inner/more.zip", "nested_archive") in [(left.path, left.reason) for left in side.left_aside]
    assert refusal(tmp_path, zip_bytes(TREE | {"run/more.zip": zip_bytes(TREE)})).code == "two_roots"


def test_more_archives_inside_one_than_files_may_be_open(tmp_path: Path) -> None:
    ranks = {f"rank{rank}.zip": zip_bytes({"dump.json": dump_json()}) for rank in range(1100)}
    assert len(read(tmp_path, {"x.zip": zip_bytes(ranks)}).dumps) == 1100


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        (b"hello", "archive_damaged"),
        (b"", "archive_damaged"),
        (zip_bytes(TREE)[:-30], "archive_damaged"),
        (tar_bytes(TREE)[:-12_000], "archive_damaged"),
        (b"Rar!\x1a\x07\x01\x00", "archive_kind"),
        (zip_bytes({"../dump.json": b"{}"}), "archive_climbs"),
        (tar_bytes({"/etc/dump.json": b"{}"}), "archive_climbs"),
        (zip_bytes({"a.json": b"{}", "./a.json": b"{}"}), "member_twice"),
    ],
)
def test_a_bad_archive_inside_an_archive_is_refused_by_its_place(tmp_path: Path, inner: bytes, code: str) -> None:
    for outer in ("zip", "tar", "tar.gz"):
        refused = refusal(tmp_path, PACKERS[outer]({"ranks/rank1.zip": inner}), f"x.{outer}")
        assert refused.code == code
        assert code == "member_twice" or refused.where.startswith(f"x.{outer}/ranks/rank1.zip")


def test_bombs_inside_archives_are_refused_and_limits_count_over_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BOMB_FROM", 1 << 20)
    bomb = zip_bytes({"dump.json": bytes(4 << 20)})
    assert refusal(tmp_path, zip_bytes({"inner.zip": bomb})).code == "archive_bomb"
    monkeypatch.setattr(limits, "MOST_NESTED", 2)
    assert refusal(tmp_path, zip_bytes({f"{n}.zip": zip_bytes(TREE) for n in range(3)})).code == "archive_too_many"
    monkeypatch.setattr(limits, "MOST_NESTED", 9)
    monkeypatch.setattr(limits, "MOST_MEMBERS", 8)
    assert refusal(tmp_path, zip_bytes({f"{n}.zip": zip_bytes(TREE) for n in range(3)})).code == "archive_too_many"
    monkeypatch.setattr(limits, "MOST_MEMBERS", 100)
    monkeypatch.setattr(limits, "LARGEST_JSON", 4000)
    assert refusal(tmp_path, zip_bytes({f"{n}.zip": zip_bytes(TREE) for n in range(3)})).code == "archive_too_large"


def test_a_full_disk_while_unpacking_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    assert refusal(tmp_path, tar_bytes(TREE, "w:gz"), "x.tgz").code == "disk_full"


def test_nothing_stays_open_or_on_disk_after_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    path = tmp_path / "x.tgz"
    path.write_bytes(tar_bytes({"step0/rank0/dump.json": b'{"data": {'}, "w:gz"))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DumpError):
        read_side([Source(path, "x.tgz")], "left")
    assert sorted(tmp_path.iterdir()) == before
    assert archive.LOOSE == 0


def test_a_member_without_a_name_is_passed_over(tmp_path: Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as packed:
        packed.writestr(zipfile.ZipInfo(""), b"")
        packed.writestr("dump.json", dump_json())
    assert len(read(tmp_path, {"x.zip": held.getvalue()}).dumps) == 1


@pytest.mark.parametrize("kind", PACKERS)
def test_what_macos_adds_to_an_archive_is_no_dump(tmp_path: Path, kind: str) -> None:
    clean = read(tmp_path, {f"run.{kind}": PACKERS[kind](TREE)})
    added = {"__MACOSX/run/step0/rank0/dump.json": b"\0\5\x16\7", "run/step0/rank0/._dump.json": b"\0\5", "__MACOSX/._run.zip": b"PK"}
    found = read(tmp_path, {f"run.{kind}": PACKERS[kind](TREE | added)})
    assert found.digest == clean.digest
    assert {left.path for left in found.left_aside if left.reason == "system_file"} == set(added)


def test_what_macos_adds_to_a_folder_is_no_archive(tmp_path: Path) -> None:
    found = read(tmp_path, TREE | {"run/._copy.zip": b"\0\5\x16\7"})
    assert [left.path for left in found.left_aside if left.reason == "system_file"] == ["run/._copy.zip"]
