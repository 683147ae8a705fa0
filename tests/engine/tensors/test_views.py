"""Views of storages, in both byte orders, against plain Python; chunks and statistics against arrays."""

from __future__ import annotations

import io
import itertools
import math
import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.tensors import open_tensor, statistics
from tests.engine.tensors import writer


def opened(content: bytes):
    return open_tensor(io.BytesIO(content), "a.pt")


@st.composite
def views(draw):
    """dtype, byte order, the storage's numbers, shape, stride, offset of a view that stays within it."""
    dtype = draw(st.sampled_from(sorted(writer.STORAGES)))
    _, code, width = writer.STORAGES[dtype]
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    stride = [draw(st.integers(0, 6)) if length != 1 else draw(st.integers(0, 2**40)) for length in shape]
    offset = draw(st.integers(0, 3))
    reach = offset + sum((length - 1) * step for length, step in zip(shape, stride, strict=True) if length > 1) + 1
    elements = reach + draw(st.integers(0, 2)) if math.prod(shape) else draw(st.integers(0, 3))
    number = {
        "d": st.floats(width=64), "f": st.floats(width=32), "e": st.floats(width=16), "?": st.booleans(), "B": st.integers(0, 255),
        "q": st.integers(-(2**63), 2**63 - 1), "i": st.integers(-(2**31), 2**31 - 1), "h": st.integers(-(2**15), 2**15 - 1),
        "b": st.integers(-128, 127),
    }[code]  # fmt: skip
    numbers = draw(st.lists(number, min_size=elements * width, max_size=elements * width))
    return dtype, draw(st.sampled_from(["little", "big"])), numbers, shape, stride, offset


@settings(max_examples=400, deadline=None)
@given(views(), st.integers(1, 9), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_any_view_of_any_storage_is_what_element_arithmetic_says(view, elements, method):
    dtype, byte_order, numbers, shape, stride, offset = view
    _, code, width = writer.STORAGES[dtype]
    data = struct.pack(f"{'<' if byte_order == 'little' else '>'}{len(numbers)}{code}", *numbers)
    tensor = opened(writer.strided(dtype, data, shape, stride, offset, byte_order, method))
    expected = []
    for index in itertools.product(*map(range, shape)):
        at = offset + sum(i * step for i, step in zip(index, stride, strict=True))
        expected.append(complex(*numbers[2 * at : 2 * at + 2]) if width == 2 else numbers[at])
    array = tensor.array()
    assert array.shape == tuple(shape)
    np.testing.assert_array_equal(array.reshape(-1), np.array(expected, array.dtype.newbyteorder("=")))
    chunks = list(tensor.chunks(elements))
    assert all(chunk.size == elements for chunk in chunks[:-1])
    wide = np.complex128 if width == 2 else np.float64
    np.testing.assert_array_equal(np.concatenate([*chunks, np.array([], wide)]), np.array(expected, wide))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=300))
def test_statistics_are_those_of_exact_sums(numbers):
    found = statistics(opened(writer.contiguous("float32", numbers)))
    assert (found.max, found.min) == (max(numbers), min(numbers))
    scale = max(map(abs, numbers))
    assert abs(found.mean - math.fsum(numbers) / len(numbers)) <= 1e-13 * scale
    assert found.norm == pytest.approx(math.sqrt(math.fsum(n * n for n in numbers)), rel=1e-13)


def test_statistics_do_not_depend_on_where_chunks_end():
    numbers = np.random.default_rng(5).standard_normal(100_003).astype(np.float32)
    found = statistics(opened(writer.contiguous("float32", numbers.tolist())))
    wide = numbers.astype(np.float64)
    assert found == pytest.approx((wide.max(), wide.min(), math.fsum(wide) / wide.size, math.sqrt(math.fsum(wide * wide))), rel=1e-12)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1.0, math.nan, 2.0], (math.nan, math.nan, math.nan, math.nan)),
        ([1.0, math.inf], (math.inf, 1.0, math.inf, math.inf)),
        ([math.inf, -math.inf], (math.inf, -math.inf, math.nan, math.inf)),
        ([-3.0, 4.0], (4.0, -3.0, 0.5, 5.0)),
        ([-0.0], (0.0, 0.0, 0.0, 0.0)),
        ([], (math.nan, math.nan, math.nan, math.nan)),
    ],
)
def test_nan_infinities_and_nothing_in_statistics(numbers, expected):
    np.testing.assert_array_equal(statistics(opened(writer.contiguous("float32", numbers))), expected)


def test_a_nan_in_a_late_chunk_makes_all_statistics_nan():
    numbers = [1.0] * 70_000
    numbers[-1] = math.nan
    assert all(map(math.isnan, statistics(opened(writer.contiguous("float32", numbers)))))


def test_a_number_without_dimensions_has_itself_for_statistics():
    assert statistics(opened(writer.contiguous("float64", [-2.5], []))) == (-2.5, -2.5, -2.5, 2.5)


def test_bool_counts_as_zero_and_one_and_odd_bytes_are_true():
    tensor = opened(writer.strided("bool", b"\x00\x01\x02\xff", [4], [1]))
    assert tensor.array().tolist() == [False, True, True, True]
    assert statistics(tensor) == (1.0, 0.0, 0.75, math.sqrt(3))


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_bfloat16_is_the_upper_half_of_float32_in_either_byte_order(byte_order):
    halves = range(0, 65536, 7)
    data = struct.pack(f"{'<' if byte_order == 'little' else '>'}{len(halves)}H", *halves)
    described = writer.program(writer.tensor(writer.persistent("torch BFloat16Storage", "0", len(halves)), [len(halves)], [1]))
    tensor = opened(writer.pt(described, {"0": data}, byte_order.encode()))
    expected = [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    assert tensor.array().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(tensor.array().astype(np.float32), np.array(expected, np.float32))
    np.testing.assert_array_equal(np.concatenate(list(tensor.chunks(1000, np.float32))), np.array(expected, np.float32))


def test_two_views_share_one_storage_without_sharing_numbers_they_do_not_see():
    data = struct.pack("<6f", *range(6))
    assert opened(writer.strided("float32", data, [2], [1], 0)).array().tolist() == [0.0, 1.0]
    assert opened(writer.strided("float32", data, [2], [2], 3)).array().tolist() == [3.0, 5.0]


def test_a_missing_byte_order_is_little_as_before_torch_2_1():
    assert opened(writer.strided("float32", struct.pack("<f", 1.5), [1], [1], 0, None)).array().tolist() == [1.5]


def test_chunks_can_be_float32():
    chunks = list(opened(writer.contiguous("float64", [1.0, 1e300])).chunks(5, np.float32))
    assert chunks[0].dtype == np.float32
    assert chunks[0].tolist() == [1.0, math.inf]


def test_a_tensor_saved_on_an_npu_is_read():
    storage = writer.persistent("torch FloatStorage", "0", 2)
    layout = writer.name("torch_npu.npu._format Format") + writer.number(29) + b"\x85R"
    for last in (b"\x88", writer.number(2), layout):  # a flag, a layout's number, and a layout: three ages of torch_npu
        described = writer.tensor(storage, [2], [1], 0, "torch_npu.utils.storage _rebuild_npu_tensor", b"\x89}" + last)
        assert opened(writer.pt(writer.program(described), {"0": struct.pack("<2f", 1, 2)})).array().tolist() == [1.0, 2.0]


def test_pending_bits_are_applied_to_arrays_and_chunks():
    storage = writer.persistent("torch ComplexFloatStorage", "0", 1)
    bits = b"}(" + writer.text("conj") + b"\x88" + writer.text("neg") + b"\x88u"
    described = writer.tensor(storage, [1], [1], more=b"\x89}" + bits)
    tensor = opened(writer.pt(writer.program(described), {"0": struct.pack("<2f", 1, 2)}))
    assert tensor.array().tolist() == [-1 + 2j]
    assert next(tensor.chunks(1)).tolist() == [-1 + 2j]
