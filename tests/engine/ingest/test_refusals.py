"""Every broken or foreign file gets one sentence with file and place, and never a traceback."""

from __future__ import annotations

import errno
import io
import json
import os
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.errors import MESSAGES, DumpError
from compare.engine.ingest import Source, limits, paths_to_sources, read_side
from compare.engine.ingest.construct import Construct
from compare.engine.ingest.notes import Notes
from compare.engine.ingest.records import RecordColumns, read_dump
from compare.engine.ingest.stacks import read_stacks
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CALL, CORPUS, TENSOR, call, dump_json, outcome, read, read_one, tar_bytes, write, zip_bytes
from tests.engine.ingest.test_differential import as_dump

DEEP = 100_000
ONE = "Module.model.fc.Linear.forward.0"


def record(argument: str) -> bytes:
    return b'{"task": "statistics", "level": "L0", "data": {"%b": {"input_args": [%b]}}}' % (ONE.encode(), argument.encode())


FILES: dict[str, tuple[bytes, str, str]] = {
    # name: content, code, what the sentence must say
    "an empty file": (b"", "file_empty", "empty"),
    "nothing but spaces": (b"  \n ", "json_truncated", "byte 4"),
    "words": (b"not json at all", "not_json", "byte 0"),
    "zeros, as a crashed disk leaves them": (bytes(5000), "not_json", "byte 0"),
    "a list": (b"[1, 2]", "not_json", "a list begins"),
    "a number": (b"12", "not_json", "byte 0"),
    "null": (b"null", "not_json", "byte 0"),
    "another JSON document": (b'{"a": 1}', "not_a_dump", "data"),
    "data that is a list": (b'{"data": [1]}', "not_a_dump", "data"),
    "data that is null": (b'{"data": null}', "not_a_dump", "data"),
    "something before the records": (b'{"data": x{}}', "not_json", "byte 9"),
    "an object that goes on": (dump_json() + b"{}", "not_json", "follows"),
    "an object closed twice": (b'{"data": {}}}', "not_json", "byte 12"),
    "a trailing comma": (b'{"data": {"a": {},}}', "not_json", "byte 18"),
    "a leading comma": (b'{, "data": {}}', "not_json", "byte 1"),
    "a missing comma between members": (b'{"data": {} "task": "statistics"}', "not_json", "comma"),
    "a missing comma between records": (b'{"data": {"a": {} "b": {}}}', "not_json", "byte 18"),
    "a missing colon": (b'{"data": {"a" {}}}', "not_json", '"name": value'),
    "single quotes": (b"{'data': {}}", "not_json", "byte 1"),
    "brackets that do not fit": (b'{"data": {"a": {"input_args": [}}}', "not_json", "byte 31"),
    "data closed by the wrong bracket": (b'{"data": {"a": {}]}', "not_json", "]"),
    "a word for a value": (record('{"type": "int", "value": nil}'), "not_json", ONE),
    "a number with a plus": (record('{"type": "int", "value": +1}'), "not_json", ONE),
    "a control character in a name": (b'{"data": {"a\x01": {}}}', "not_json", "byte 11"),
    "a broken escape in a name": (b'{"data": {"a\\x": {}}}', "not_json", "escape"),
    "Latin-1 in a name": (b'{"data": {"caf\xe9": {}}}', "not_utf8", "Byte 14"),
    "half a UTF-8 character": (b'{"data": {"a": {"z": "\xe5\xb1"}}}', "not_utf8", "Byte 22"),
    "UTF-16 with a byte-order mark": (dump_json().decode().encode("utf-16"), "other_encoding", "UTF-16"),
    "UTF-16 without one": (dump_json().decode().encode("utf-16-be"), "other_encoding", "UTF-16"),
    "UTF-32": (dump_json().decode().encode("utf-32"), "other_encoding", "UTF-32"),
    "a record that is a number": (b'{"data": {"a": 1}}', "bad_record", "a"),
    "a record that is null": (b'{"data": {"a": null}}', "bad_record", "no object"),
    "two records of one name": (b'{"data": {"a": {}, "b": {}, "a": {}}}', "duplicate_key", "byte 33"),
    "two records of one name, one escaped": (b'{"data": {"a": {}, "\\u0061": {}}}', "duplicate_key", "a occurs twice"),
    "two members called data": (b'{"data": {}, "data": {}}', "duplicate_key", "data"),
    "a statistic that is a word": (record('{"type": "torch.Tensor", "shape": [1], "Max": "big"}'), "bad_record", "a Max that is no number"),
    "a statistic that is a list": (record('{"type": "torch.Tensor", "shape": [1], "Norm": []}'), "bad_record", "a Norm that is no number"),
    "1e400": (record('{"type": "torch.Tensor", "shape": [1], "Max": 1e400}'), "bad_record", "1e400"),
    "an integer beyond float64": (record('{"type": "torch.Tensor", "shape": [1], "Max": %s}' % 10**400), "bad_record", "float64"),
    "an integer of 5,000 digits": (record('{"type": "int", "value": %s}' % ("1" * 5000)), "bad_record", "digits"),
    "a list 100,000 deep": (b"[" * DEEP, "too_deep", "400"),
    "objects 100,000 deep": (b'{"a":' * DEEP, "too_deep", "400"),
    "an argument 100,000 deep": (record("[" * DEEP + "]" * DEEP), "too_deep", "400"),
    "a kernel dump": (dump_json(level="L2"), "level_unsupported", "L2"),
    "a structure dump without construct.json": (dump_json({}, task="structure"), "empty_side", "no records"),
    "a kernel dump that says so at its end": (b'{"data": {"A.b.0.forward": {}}, "level": "L2"}', "level_unsupported", "L2"),
    "1e400 among NaN": (record('{"type": "torch.Tensor", "shape": [1], "Max": NaN, "Min": 1e400}'), "bad_record", "1e400"),
    "a truncated number": (b'{"data": {"a": {"input_args": [{"type": "int", "value": 1', "json_truncated", "byte 57"),
    "a dump without records": (dump_json({}), "empty_side", "no records"),
}


@pytest.mark.parametrize(("content", "code", "said"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_dump_is_refused_with_its_name_and_place(tmp_path: Path, content: bytes, code: str, said: str) -> None:
    refused = outcome(lambda: read_one(tmp_path, content))
    assert isinstance(refused, DumpError)
    assert refused.code == code
    assert refused.where == "dump.json"
    assert said in str(refused)
    assert "\n" not in str(refused)
    if len(content) < 20_000 and code != "empty_side":  # only a whole side can be empty
        in_pieces = outcome(lambda: as_dump(content, 5, typed=True))
        assert isinstance(in_pieces, DumpError)
        assert (in_pieces.code, in_pieces.params) == (refused.code, refused.params)


SIDE_FILES: dict[str, tuple[str, bytes, str, str]] = {
    "construct that is cut off": ("construct", b'{"%b": nul' % ONE.encode(), "json_truncated", "construct.json"),
    "construct that is a list": ("construct", b"[]", "not_json", "construct.json"),
    "construct with a list for a parent": ("construct", b'{"%b": ["a", "b", "c"]}' % ONE.encode(), "bad_construct", ONE),
    "construct with a number for a parent": ("construct", b'{"%b": 7}' % ONE.encode(), "bad_construct", ONE),
    "construct with an object for a parent": ("construct", b'{"%b": {}}' % ONE.encode(), "bad_construct", ONE),
    "construct that names a child twice": (
        "construct",
        b'{"%b": null, "x": "y", "%b": "x"}' % (ONE.encode(), ONE.encode()),
        "duplicate_key",
        ONE,
    ),
    "construct that names an unrecorded child twice": ("construct", b'{"x": null, "x": null}', "duplicate_key", "x"),
    "stack that is cut off": ("stack", b'{"0": [["a"], ["File', "json_truncated", "stack.json"),
    "stack with a number for frames": ("stack", b'{"%b": 3}' % ONE.encode(), "bad_stack", ONE),
    "stack with one list only": ("stack", b'{"0": [["a"]]}', "bad_stack", "0"),
    "stack of Latin-1": ("stack", b'{"a": ["caf\xe9"]}', "not_utf8", "stack.json"),
}


@pytest.mark.parametrize(("file", "content", "code", "said"), SIDE_FILES.values(), ids=SIDE_FILES)
def test_a_broken_side_file_is_refused_by_name(tmp_path: Path, file: str, content: bytes, code: str, said: str) -> None:
    with pytest.raises(DumpError) as refused:
        read_one(tmp_path, dump_json(), **{file: content})
    assert refused.value.code == code
    assert refused.value.where == f"{file}.json"
    assert said in str(refused.value)


def test_a_dump_cut_off_at_any_byte_is_refused_or_still_whole() -> None:
    nan = TENSOR | {"Max": float("nan")}
    whole = dump_json({ONE: call(TENSOR, None, 'te"xt\\'), "Tensor.add.0.forward": call(nan), "x": {"is_recompute": True}}) + b" \n"
    expected = naive.slots_of_file(whole)
    assert expected
    for length in range(len(whole) + 1):
        content = whole[:length]
        found = outcome(partial(as_dump, content, 64, typed=True))
        if isinstance(found, DumpError):
            assert found.code in ("json_truncated", "file_empty"), (length, found)
            with pytest.raises(json.JSONDecodeError):
                json.loads(content)
        else:
            assert naive.slots_of_columns(found) == expected, length


def test_a_truncated_dump_names_its_last_complete_record() -> None:
    whole = dump_json({ONE: CALL, "Tensor.add.0.forward": CALL, "Tensor.mul.0.forward": CALL})
    cut = whole[: whole.index(b"Tensor.mul") + 40]
    with pytest.raises(DumpError) as refused:
        as_dump(cut, 100, typed=True)
    assert refused.value.params == {"offset": len(cut), "record": "Tensor.add.0.forward"}


@settings(max_examples=200, deadline=None)
@given(position=st.integers(0, 2000), byte=st.integers(0, 255), block_size=st.integers(1, 300))
def test_a_dump_with_one_wrong_byte_is_refused_or_read_as_json_reads_it(position: int, byte: int, block_size: int) -> None:
    content = bytearray(dump_json({ONE: CALL, "Tensor.add.0.forward": call(TENSOR, {"type": "int", "value": 3})}))
    content[position % len(content)] = byte
    found = outcome(lambda: as_dump(bytes(content), block_size, typed=True))
    if not isinstance(found, DumpError):
        assert naive.slots_of_columns(found) == naive.slots_of_file(bytes(content))


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200) | st.text(alphabet='{}[]":,\\ \n01aeNn', max_size=80).map(str.encode), block_size=st.integers(1, 64))
def test_no_bytes_at_all_escape_as_anything_but_a_refusal(content: bytes, block_size: int) -> None:
    outcome(lambda: read_dump(io.BytesIO(content).read, "dump.json", block_size))


def test_one_string_larger_than_an_entry_may_be_is_refused_without_being_held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("compare.engine.ingest.splitter.LARGEST_ENTRY", 1 << 20)
    content = b'{"task": "statistics", "data": {"a": {"x": "' + b"A" * (3 << 20) + b'"}}}'
    with pytest.raises(DumpError) as refused:
        read_one(tmp_path, content)
    assert refused.value.code == "entry_too_large"
    assert refused.value.params["limit"] == 1


GIGABYTE = 1 << 30
BIG_STRINGS: dict[str, tuple[str, bytes]] = {
    # where the string stands: the file, what comes before it
    "a member": ("dump.json", b'{"note": "'),
    "the name of a member": ("dump.json", b'{"'),
    "the name of a record": ("dump.json", b'{"data": {"'),
    "a value in a record": ("dump.json", b'{"data": {"Module.a.A.forward.0": {"input_args": [{"type": "str", "value": "'),
    "a parent": ("construct.json", b'{"%b": "' % ONE.encode()),
    "a frame": ("stack.json", b'{"0": [["%b"], ["' % ONE.encode()),
}


class Endless:
    """A file of one gigabyte that is nowhere: its beginning, then one letter."""

    def __init__(self, begin: bytes) -> None:
        self.begin = begin
        self.given = 0

    def read(self, size: int) -> bytes:
        block = (self.begin + b"A" * size)[:size] if not self.given else b"A" * min(size, GIGABYTE - self.given)
        self.given += len(block)
        return block


@pytest.mark.parametrize(("file", "begin"), BIG_STRINGS.values(), ids=BIG_STRINGS)
def test_a_gigabyte_of_one_string_is_refused_early_and_in_little_memory(file: str, begin: bytes) -> None:
    endless = Endless(begin)
    records = RecordColumns()
    records.add(ONE)
    readers = {
        "dump.json": lambda: read_dump(endless.read, file),
        "construct.json": lambda: Construct(records).read(endless.read, file),
        "stack.json": lambda: read_stacks(endless.read, file, records.rows, 1, Notes(file)),
    }
    tracemalloc.start()
    try:
        refused = outcome(readers[file])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(refused, DumpError)
    assert (refused.code, refused.where) == ("entry_too_large", file)
    assert endless.given <= limits.LARGEST_ENTRY + (1 << 20)
    assert peak < 3 * limits.LARGEST_ENTRY


def test_more_records_than_a_dump_may_hold_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("compare.engine.ingest.records.MOST_RECORDS", 10)
    with pytest.raises(DumpError) as refused:
        read_one(tmp_path, dump_json({f"Tensor.add.{number}.forward": {} for number in range(11)}))
    assert refused.value.code == "too_many_records"


def test_names_with_control_characters_markup_and_ten_thousand_letters_are_read_and_told_on_one_line(tmp_path: Path) -> None:
    names = ["a\n\x1b[31mb", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "x" * 10_000, "\u202eevil"]
    dump = read_one(tmp_path, dump_json(dict.fromkeys(names, CALL)))
    assert list(dump.records.name) == names
    with pytest.raises(DumpError) as refused:
        read_one(tmp_path, dump_json({"a\n\x1b[31mb" + "x" * 10_000: 3}))
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 700


def test_halves_of_surrogate_pairs_become_replacement_characters(tmp_path: Path) -> None:
    dump = read_one(tmp_path, b'{"data": {"A\\ud800.b.0.forward": {"input_kwargs": {"k\\udfff": {"type": "str", "value": "\\ud800x"}}}}}')
    assert list(dump.records.name) == ["A\ufffd.b.0.forward"]
    assert list(dump.slot_names) == ["input.k\ufffd"]
    assert list(dump.texts) == ["\ufffdx"]


def test_a_byte_order_mark_of_utf_8_is_passed_over(tmp_path: Path) -> None:
    assert len(read_one(tmp_path, b"\xef\xbb\xbf" + dump_json()).records) == 1


def test_missing_forbidden_and_empty_inputs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def code(sources: list[Source]) -> str:
        with pytest.raises(DumpError) as refused:
            read_side(sources, "left")
        return refused.value.code

    assert code([]) == "no_dump"
    assert code([Source(tmp_path / "gone", "dump.json")]) == "file_missing"
    assert code([Source(tmp_path, "dump.json")]) == "file_unreadable"
    with pytest.raises(DumpError) as refused:
        paths_to_sources([tmp_path / "gone"])
    assert refused.value.code == "file_missing"

    (tmp_path / "dump.json").write_bytes(dump_json())

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    assert code([Source(tmp_path / "dump.json", "dump.json")]) == "file_forbidden"


@pytest.mark.skipif(os.geteuid() != 0, reason="LEFT OUT: only root can become somebody who may not read a file")
@pytest.mark.parametrize("closed", ["dump.json", "a.zip", "folder", "construct.json"])
def test_a_file_or_folder_that_its_reader_may_not_open_is_refused_by_name(tmp_path: Path, closed: str) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)
    write(tmp_path / "side", {"dump.json": dump_json(), "construct.json": b"{}", "a.zip": zip_bytes({"dump.json": dump_json()})})
    given = tmp_path / "side" / ("" if closed == "folder" else "dump.json" if closed == "construct.json" else closed)
    (tmp_path / "side" if closed == "folder" else tmp_path / "side" / closed).chmod(0)
    os.seteuid(65534)
    try:
        refused = outcome(lambda: read_side(paths_to_sources([given]), "left"))
    finally:
        os.seteuid(0)
        (tmp_path / "side").chmod(0o755)
    assert isinstance(refused, DumpError)
    assert refused.code == "file_forbidden"
    assert refused.where.endswith("side" if closed == "folder" else closed)


def test_other_json_files_are_named_for_what_they_are(tmp_path: Path) -> None:
    for files, code in (
        ({"debug.json": b'{"data": {}}'}, "empty_side"),
        ({"debug.json": b'{"data": {"x.0.debug": {"type": "int", "value": 1e400}}}'}, "bad_record"),
        ({"readme.txt": b"hello"}, "no_dump"),
        ({"construct.json": b"{}", "stack.json": b"{}"}, "no_dump"),
        ({"a.json": b"{}", "b.json": b"{}"}, "no_dump"),
        ({"some.json": b'{"x": 1}'}, "not_a_dump"),
        ({"some.json": b"oops"}, "not_json"),
        ({"x.zip": zip_bytes({"readme.md": b"hello"})}, "no_dump"),
    ):
        with pytest.raises(DumpError) as refused:
            read(tmp_path, files)
        assert refused.value.code == code, files


def test_the_limits_are_far_from_what_dumps_hold() -> None:
    assert limits.LARGEST_ENTRY >= 32 << 20
    assert limits.MOST_RECORDS >= 1_000_000
    assert limits.DEEPEST_NESTING == 400


def test_every_refusal_of_reading_has_an_english_sentence_and_stands_in_the_documentation() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "errors.md").read_text("utf-8")
    used = {part.split('"')[0] for path in Path("compare/engine/ingest").glob("*.py") for part in path.read_text().split('DumpError("')[1:]}
    assert used
    for code in used:
        assert code in MESSAGES, code
        assert f"`{code}`" in documented, code


def test_a_real_dump_cut_off_at_every_kilobyte_is_refused_with_its_last_complete_record() -> None:
    with zipfile.ZipFile(CORPUS / "q2_infer_stat.zip") as files:
        whole = files.read("step0/rank0/dump.json")
    names = list(json.loads(whole)["data"])
    for length in range(0, len(whole), 1024):
        refused = outcome(partial(as_dump, whole[:length], 1 << 18, typed=True))
        assert isinstance(refused, DumpError)
        assert refused.code == ("json_truncated" if length else "file_empty")
        if length > 4096:
            assert refused.params["record"] in names


@pytest.mark.parametrize("byte", [0x00, 0x1F, 0x22, 0x2C, 0x3A, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D, 0x80, 0xC3, 0xFF], ids=hex)
def test_every_class_of_byte_at_every_place_is_refused_or_read_as_json_reads_it(byte: int) -> None:
    whole = dump_json({ONE: call(TENSOR | {"Max": float("nan")}, "x")})
    for position in range(len(whole)):
        content = whole[:position] + bytes([byte]) + whole[position + 1 :]
        found = outcome(partial(as_dump, content, 1 << 18, typed=True))
        if not isinstance(found, DumpError):
            assert naive.slots_of_columns(found) == naive.slots_of_file(content), position


def test_arguments_nested_as_deep_as_the_dumper_goes_are_read_and_one_more_is_refused() -> None:
    around = len(["file", "data", "record", "input_args", "leaf", "shape"])
    for depth, fits in ((limits.DEEPEST_NESTING - around, True), (limits.DEEPEST_NESTING - around + 1, False)):
        content = record("[" * depth + json.dumps(TENSOR) + "]" * depth)
        found = outcome(partial(as_dump, content, 1 << 18, typed=True))
        if fits:
            assert not isinstance(found, DumpError)
            assert naive.slots_of_columns(found) == naive.slots_of_file(content)
        else:
            assert isinstance(found, DumpError)
            assert found.code == "too_deep"


def test_a_full_disk_is_said_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("compare.engine.ingest.archive._copy", full)
    monkeypatch.setattr("compare.engine.ingest.archive.tempfile.tempdir", str(tmp_path))
    for files in (
        {"a.tar.gz": tar_bytes({"dump.json": dump_json()}, "w:gz")},
        {"a.zip": zip_bytes({"b.zip": zip_bytes({"dump.json": b""})})},
    ):
        refused = outcome(partial(read, tmp_path, files))
        assert isinstance(refused, DumpError)
        assert refused.code == "disk_full"
    assert not list(tmp_path.glob("probe-web-*"))
