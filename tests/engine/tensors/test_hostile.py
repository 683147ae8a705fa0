"""Broken and hostile .pt files: always a refusal with code and place, nothing executed, little memory, little time."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.errors import DumpError
from compare.engine.tensors import limits, memory, open_tensor, statistics
from tests.engine.tensors import writer
from tests.engine.tensors.refusals import FLOATS, GOOD, SHORTEST, refusal
from tests.engine.tensors.test_torch import FILES
from tests.engine.tensors.writer import persistent, program, pt, tensor


def entry(filename: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(filename)
    info.external_attr = mode << 16
    return info


def test_a_link_among_the_records_is_refused():
    error = refusal(pt(program(GOOD), {}, more=[(entry("tensor/data/0", 0o120777), FLOATS)]))
    assert (error.code, "is a link" in str(error)) == ("tensor_damaged", True)


def test_a_record_that_is_there_twice_is_refused():
    with warnings.catch_warnings(action="ignore"):
        content = pt(program(GOOD), {"0": FLOATS}, more=[("tensor/data/0", bytes(24))])
    assert refusal(content).code == "tensor_record_twice"
    assert refusal(pt(program(GOOD), {"0": FLOATS}, more=[("other/data/0", bytes(24))])).code == "tensor_record_twice"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(method):
    assert f"method {method}" in str(refusal(pt(program(GOOD), {"0": FLOATS}, method=method)))


def test_an_encrypted_record_is_refused():
    content = bytearray(SHORTEST)
    content[6] |= 1
    assert "encrypted" in str(refusal(bytes(content)))


def test_programs_in_torchscript_are_refused():
    assert refusal(pt(program(GOOD), {"0": FLOATS}, more=[("tensor/code/__torch__.py", b"")])).code == "tensor_script"
    assert refusal(pt(program(GOOD), {"0": FLOATS}, more=[("tensor/constants.pkl", b"")])).code == "tensor_script"


def test_an_unknown_byte_order_is_refused():
    error = refusal(pt(program(GOOD), {"0": FLOATS}, b"mi\x1bddle"))
    assert (error.code, error.params["order"]) == ("tensor_byte_order", "mi\ufffdddle")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "file_empty"),
        (b"P", "tensor_truncated"),
        (b"\x93NUM", "tensor_truncated"),
        (b"hello", "tensor_unknown"),
        (bytes(1000), "tensor_unknown"),
        (b'{"data": {}}', "tensor_unknown"),
        (pickle.dumps({"a": 1}), "tensor_legacy"),
        (b"PK\x05\x06" + bytes(18), "tensor_unknown"),
        (b"PK\x03\x04" + bytes(5000), "tensor_truncated"),
        (b"PK\x03\x04" + b"PK\x05\x06" + b"\xff" * 18, "tensor_damaged"),
        (pt(program(GOOD), {}), "tensor_record_missing"),
    ],
)  # fmt: skip
def test_what_is_no_tensor_file_is_told_by_its_bytes(content, code):
    assert refusal(content).code == code


def test_a_zip_of_other_things_is_refused():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.npy", b"x")
    assert refusal(target.getvalue()).params == {"record": "data.pkl"}


def test_too_many_records_are_refused():
    more = [(f"tensor/x{i}", b"") for i in range(limits.MOST_RECORDS)]
    assert "records" in str(refusal(pt(program(GOOD), {"0": FLOATS}, more=more)))


def test_a_directory_too_large_to_hold_is_not_read():
    more = [(f"tensor/{'x' * 60_000}{i}", b"") for i in range(20)]
    assert "directory" in str(refusal(pt(program(GOOD), {"0": FLOATS}, more=more)))


def test_a_file_cut_at_any_byte_is_refused():
    for content in (SHORTEST, FILES["bfloat16"]):
        for length in range(len(content)):
            assert refusal(content[:length]).code in {"file_empty", "tensor_truncated", "tensor_damaged"}


def test_a_larger_file_cut_at_every_kilobyte_is_refused():
    content = writer.contiguous("float32", [0.5] * 16_000)
    for length in range(1024, len(content), 1024):
        assert refusal(content[:length]).code == "tensor_truncated"


@pytest.mark.parametrize("name", ["bfloat16", "windows"])
def test_every_single_flipped_bit_is_refused_or_changes_nothing(name):
    content = FILES[name]
    good = open_tensor(io.BytesIO(content), "a")
    refused = 0
    for position in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            try:
                tensor = open_tensor(io.BytesIO(bytes(flipped)), "a")
            except DumpError:
                refused += 1
            else:
                assert tensor.description == good.description
                np.testing.assert_array_equal(tensor.array(), good.array())
    assert refused > 8 * (152 + 48)  # the description and the numbers at the least


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SHORTEST) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_wrong_bytes_in_the_zip_are_refused_or_harmless(flips):
    content = bytearray(SHORTEST)
    for position, value in flips:
        content[position] = value
    with contextlib.suppress(DumpError):
        statistics(open_tensor(io.BytesIO(bytes(content)), "a"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"\x80\x02"]))
def test_noise_is_refused(noise, start):
    with pytest.raises(DumpError):
        open_tensor(io.BytesIO(start + noise), "a")


def test_a_flipped_bit_among_packed_numbers_is_refused():
    packed = writer.strided("float32", np.random.default_rng(1).bytes(4000), [1000], [1], method=zipfile.ZIP_DEFLATED)
    at = packed.index(b"tensor/data/0") + 1000
    assert refusal(packed[:at] + bytes([packed[at] ^ 4]) + packed[at + 1 :]).code in {"tensor_damaged", "tensor_checksum"}


def lying_zip(size: int) -> bytes:
    """A packed storage of a mebibyte of zeros whose headers and description say ``size`` bytes."""
    zeros = 1 << 20
    described = program(tensor(persistent("torch ByteStorage", "0", size), [size], [1]))
    content = pt(described, {"0": bytes(zeros)}, method=zipfile.ZIP_DEFLATED)
    return content.replace(struct.pack("<I", zeros), struct.pack("<I", size))


def test_a_record_that_unpacks_to_more_or_less_than_it_says_is_refused():
    assert open_tensor(io.BytesIO(lying_zip(1 << 20)), "a").array().size == 1 << 20
    for size in (1000, (1 << 20) - 1, (1 << 20) + 1, 1 << 30):
        assert refusal(lying_zip(size)).code == "tensor_damaged"


def test_what_unpacks_to_more_than_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_UNPACKED", 100_000)
    with pytest.raises(DumpError) as refused:
        memory.inflate(memory.Memory(np.frombuffer(zlib.compress(bytes(1 << 20), wbits=-15), np.uint8), None), 1 << 20, "a")
    assert refused.value.code == "tensor_too_large"
    with pytest.raises(DumpError) as refused:
        open_tensor(io.BytesIO(bytes(100_001)), "a")
    assert refused.value.code == "tensor_too_large"


def test_a_full_disk_is_told_and_leaves_nothing_open(monkeypatch):
    class Full(io.FileIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    opened = []

    def full(**_):
        opened.append(Full("/dev/null", "w"))
        return opened[-1]

    monkeypatch.setattr(memory.tempfile, "TemporaryFile", full)
    assert refusal(bytes(limits.IN_MEMORY + 1)).code == "disk_full"
    assert opened[0].closed


def test_a_stream_that_breaks_is_the_archives_fault():
    class Broken(io.RawIOBase):
        def read(self, _=-1):
            raise zipfile.BadZipFile("Bad CRC-32 for file 'a.pt'")

    with pytest.raises(DumpError) as refused:
        open_tensor(Broken(), "a.zip/a.pt")
    assert refused.value.code == "archive_damaged"


def test_files_that_are_none_are_refused_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "empty.pt").touch()
    codes = {
        "pipe.pt": "file_unreadable",
        "empty.pt": "file_empty",
        "missing.pt": "file_missing",
        "nul\0.pt": "file_missing",
        ".": "file_unreadable",
    }
    for file, code in codes.items():
        with pytest.raises(DumpError) as refused:
            open_tensor(tmp_path / file, file)
        assert refused.value.code == code
    with pytest.raises(DumpError) as refused:
        open_tensor(Path("/dev/zero"), "zero")
    assert refused.value.code == "file_unreadable"


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_tensor_is_never_held_in_memory(tmp_path, packed):
    """300 MB of numbers, mapped or as a packed stream: what the process grows by stays far below."""
    path = tmp_path / "large.pt"
    size = 300 << 20
    storage = persistent("torch FloatStorage", "0", size // 4)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED, compresslevel=1) as archive:
        archive.writestr("a/data.pkl", program(tensor(storage, [size // 4], [1])))
        with archive.open("a/data/0", "w") as record:
            for _ in range(size >> 20):
                record.write(struct.pack("<f", 1.5) * (1 << 18))
    script = f"""
import resource
from pathlib import Path
from compare.engine.tensors import open_tensor, statistics
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
path = Path({str(path)!r})
found = statistics(open_tensor(path.open("rb") if {packed} else path, "a"))
assert found[:3] == (1.5, 1.5, 1.5), found
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    grown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert int(grown.stdout) < 100, f"grew by {grown.stdout} MB"
