"""Units in the last place against numpy's nextafter, and which numbers a format can hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.measure.ulp import EXACT, representable, significand_bits, ulp
from tests.engine.build import bf16, next_bf16

NORMAL = st.floats(min_value=2.0**-14, max_value=6e4).flatmap(lambda value: st.sampled_from([value, -value]))


def one(value: float, bits: int) -> float:
    return float(ulp(np.array([value]), np.array([bits], np.int32))[0])


def held(value: float, bits: int) -> bool:
    return bool(representable(np.array([value]), np.array([bits], np.int32))[0])


@given(NORMAL)
def test_a_float32_ulp_is_the_distance_to_the_next_float32(value: float) -> None:
    stored = np.float32(abs(value))
    assert one(float(stored), 24) == float(np.nextafter(stored, np.float32(np.inf))) - float(stored)


@given(NORMAL)
def test_a_float64_ulp_is_the_distance_to_the_next_float64(value: float) -> None:
    assert one(value, 53) == math.ulp(value)


@given(st.floats(min_value=2.0**-14, max_value=3e4))
def test_a_float16_ulp_is_the_distance_to_the_next_float16(value: float) -> None:
    stored = np.float16(value)
    assert one(float(stored), 11) == float(np.nextafter(stored, np.float16(np.inf))) - float(stored)


@given(NORMAL)
def test_a_bfloat16_ulp_is_the_distance_to_the_next_bfloat16(value: float) -> None:
    stored = abs(bf16(value))
    assert one(stored, 8) == next_bf16(stored) - stored


@pytest.mark.parametrize(
    ("value", "expected"), [(79.0, 0.5), (63.25, 0.25), (1728.0, 8.0), (684.0, 4.0), (1.0, 2.0**-7), (255.0, 1.0), (256.0, 2.0)]
)
def test_bfloat16_ulps_by_hand(value: float, expected: float) -> None:
    assert one(value, 8) == one(-value, 8) == expected


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_numbers_without_a_size_have_no_ulp(value: float) -> None:
    assert one(value, 8) == 0.0
    assert held(value, 8)


@given(NORMAL)
def test_a_number_fits_a_format_when_rounding_to_it_changes_nothing(value: float) -> None:
    assert held(value, 24) == (float(np.float32(value)) == value)
    assert held(value, 11) == (float(np.float16(value)) == value)
    assert held(value, 8) == (bf16(value) == value)
    assert held(value, 53)


@given(NORMAL)
def test_a_rounded_number_fits_and_so_does_its_neighbour(value: float) -> None:
    stored = abs(bf16(value))
    assert held(stored, 8)
    assert held(next_bf16(stored), 8)
    assert not held(stored + one(stored, 8) / 2, 8)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("torch.bfloat16", 8),
        ("torch.float16", 11),
        ("torch.half", 11),
        ("torch.float32", 24),
        ("torch.float64", 53),
        ("torch.double", 53),
        ("BFloat16", 8),
        ("Float32", 24),
        ("Float16", 11),
        ("torch.float8_e4m3fn", 4),
        ("torch.float8_e5m2", 3),
        ("torch.int64", EXACT),
        ("torch.bool", EXACT),
        ("Int32", EXACT),
        ("torch.uint8", EXACT),
    ],
)
def test_every_dtype_has_its_precision(dtype: str, bits: int) -> None:
    assert significand_bits(dtype) == bits
