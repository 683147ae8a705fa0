""".npy files: numpy's own come back, everything else is refused."""

from __future__ import annotations

import contextlib
import io
import struct

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from compare.engine.errors import DumpError
from compare.engine.tensors import limits, open_tensor, statistics

DTYPES = [
    f"{order}{code}"
    for order in "<>"
    for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?")
]  # fmt: skip


def saved(array: np.ndarray) -> bytes:
    target = io.BytesIO()
    np.save(target, array, allow_pickle=True)
    return target.getvalue()


def with_header(header: bytes, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", len(header)) + header + data


def refusal(content: bytes) -> DumpError:
    with pytest.raises(DumpError) as refused:
        open_tensor(io.BytesIO(content), "a.npy")
    assert refused.value.where == "a.npy"
    assert orjson.loads(orjson.dumps(refused.value.params)) == refused.value.params  # as the HTTP face sends them
    return refused.value


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(DTYPES).flatmap(lambda code: npst.arrays(code, npst.array_shapes(min_dims=0, min_side=0, max_side=5))), st.booleans()
)
def test_what_numpy_saved_comes_back(array, columns_first):
    array = np.asfortranarray(array) if columns_first else array
    tensor = open_tensor(io.BytesIO(saved(array)), "a.npy")
    np.testing.assert_array_equal(tensor.array(), array)
    assert tensor.array().dtype == array.dtype
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    chunks = [*tensor.chunks(4), np.array([], wide)]
    np.testing.assert_array_equal(np.concatenate(chunks), array.reshape(-1, order="C").astype(wide))


def test_a_file_on_disk_is_mapped(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12.0).reshape(3, 4))
    tensor = open_tensor(path, "a.npy")
    assert not tensor.array().flags.owndata
    assert statistics(tensor).mean == 5.5


@pytest.mark.parametrize(
    "array",
    [np.array([{"a": 1}, None], dtype=object), np.array([object], dtype="O")],
)
def test_python_objects_are_refused_and_not_unpickled(array):
    assert refusal(saved(array)).code == "npy_objects"


@pytest.mark.parametrize("dtype", ["<M8[s]", "<U3", "S4", "V2", [("a", "<f4")], "<f16", "<c32"], ids=str)
def test_other_types_are_refused_by_name(dtype):
    if dtype in ("<f16", "<c32"):
        assert refusal(with_header(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': (0,), }}\n".encode())).code == "tensor_dtype"
    else:
        assert refusal(saved(np.zeros(2, dtype))).code == "tensor_dtype"


def test_versions_2_and_3_of_the_header_are_read():
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n"
    for version in (b"\x02\x00", b"\x03\x00"):
        assert open_tensor(io.BytesIO(with_header(header, struct.pack("<f", 2.5), version)), "a").array().tolist() == [2.5]


HEADERS = {
    "code": b"__import__('os').system('true')",
    "code in the shape": b"{'descr': '<f4', 'fortran_order': False, 'shape': (print(1),)}",
    "a missing key": b"{'descr': '<f4', 'shape': (1,)}",
    "another key": b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
    "a key that cannot be hashed": b"{[]: 1}",
    "a list": b"[1]",
    "a negative length": b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
    "two negative lengths": b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1)}",
    "a length that is no number": b"{'descr': '<f4', 'fortran_order': False, 'shape': ('1',)}",
    "a length that is a bool": b"{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
    "an order that is no bool": b"{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}",
    "a shape as a list": b"{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
    "deep nesting": b"(" * 9000,
    "deep minus signs": b"-" * 9000 + b"1",
    "a long number": b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"9" * 9000 + b",)}",
    "a long number in base 16": b"{'descr': '<f4', 'fortran_order': False, 'shape': (0x" + b"f" * 9000 + b",)}",
    "a type that is a long number": b"{'descr': 0x" + b"f" * 9000 + b", 'fortran_order': False, 'shape': (1,)}",
    "65 dimensions": b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1," * 65 + b")}",
    "NULs": bytes(100),
    "nothing": b"",
    "absurd": b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}",
    "absurd and empty": b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4611686018427387904)}",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_that_is_none_is_refused(header):
    codes = {"npy_header", "tensor_dtype", "tensor_shape", "tensor_truncated", "tensor_storage"}
    assert refusal(with_header(header, bytes(4))).code in codes


def test_a_huge_header_is_not_read():
    length = limits.LONGEST_HEADER + 1
    assert refusal(with_header(b" " * length)).code == "npy_header"
    assert refusal(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100)).code == "npy_header"


def test_an_unknown_version_is_refused():
    assert refusal(with_header(b"{}", version=b"\x09\x00")).code == "npy_header"


def test_bytes_after_the_array_are_no_silence():
    assert refusal(saved(np.zeros(3)) + b"\0").code == "tensor_storage"


def test_a_file_cut_anywhere_is_refused():
    content = saved(np.arange(30, dtype=np.float32))
    codes = {refusal(content[:length]).code for length in range(len(content))}
    assert codes <= {"file_empty", "tensor_truncated", "npy_header"}


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 127), st.integers(0, 255)), min_size=1, max_size=4))
def test_wrong_bytes_in_the_header_are_refused_or_harmless(flips):
    content = bytearray(saved(np.arange(6, dtype=np.float32)))
    for position, value in flips:
        content[position] = value
    with contextlib.suppress(DumpError):
        tensor = open_tensor(io.BytesIO(bytes(content)), "a.npy")
        assert tensor.array().nbytes == 24
        statistics(tensor)
