"""The arithmetic of one pass, by hand and against a plain computation over the whole."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from compare.engine.measure.elements.metrics import POINTS, ULP_EDGES, Metrics, Profile
from compare.engine.tensors.description import ELEMENT_TYPES

NAN, INF = float("nan"), float("inf")


def metrics(left: Any, right: Any, dtype: str = "float32", blocks: int = 1) -> Metrics:
    """Two matrices, taken in so many blocks of rows."""
    value = ELEMENT_TYPES[dtype].value
    ends = [np.atleast_2d(np.asarray(end, np.float64)).astype(value) for end in (left, right)]
    found = Metrics(*ends[0].shape, ELEMENT_TYPES[dtype], True)
    bounds = np.linspace(0, len(ends[0]), blocks + 1).astype(int)
    for start, stop in itertools.pairwise(bounds):
        if stop > start:
            found.add(np.ascontiguousarray(ends[0][start:stop]), np.ascontiguousarray(ends[1][start:stop]), int(start), 0)
    return found


def test_two_numbers_by_hand() -> None:
    found = metrics([3.0, 4.0], [3.0, 5.0])
    assert found.cosine == pytest.approx((9 + 20) / (5 * math.sqrt(34)), rel=1e-15)
    assert found.relative_l2 == pytest.approx(1 / 5)
    assert (found.euclidean, found.largest, found.largest_relative) == (1.0, 1.0, pytest.approx(0.2))
    assert (found.identical, found.within) == (1, [1, 1])
    assert found.worst == [(1.0, 0, 1, 4.0, 5.0)]


def test_the_typical_row_does_not_see_the_one_that_is_altogether_different() -> None:
    """Rows apart by 0, 0.25 and 20 beside a left side of RMS 5: the middle one is 5 % off, the whole 231 %."""
    left = np.full((3, 4), 5.0)
    found = metrics(left, left + np.array([[0.0], [0.25], [20.0]]))
    assert found.typical_l2 == pytest.approx(0.05)
    assert found.relative_l2 == pytest.approx(math.sqrt((0.25**2 + 20**2) / 75))


def test_a_share_counts_what_is_below_and_not_at_the_limit() -> None:
    found = metrics([1.0, 1.0009, 1.004, 1.006], [1.0, 1.0, 1.0, 1.0], "float64")
    assert found.within == [2, 3]


def test_over_a_zero_reference_the_relative_error_is_large_and_finite() -> None:
    """As in msprobe: both sides are moved by the machine epsilon of float32."""
    found = metrics([1.0, 0.0], [0.0, 0.0])
    assert found.largest_relative == pytest.approx(1 / float(np.finfo(np.float32).eps), rel=1e-6)
    assert found.within == [1, 1]


def test_the_same_nan_is_equal_and_another_is_never() -> None:
    same = metrics([NAN, INF, 1.0], [NAN, INF, 1.0])
    assert (same.identical, same.misplaced, same.nan, same.infinite) == (3, 0, [1, 1], [1, 1])
    assert (same.cosine, same.relative_l2, same.within) == (1.0, 0.0, [3, 3])
    other = metrics([NAN, 1.0, -INF, 2.0], [1.0, NAN, INF, 2.0])
    assert (other.identical, other.same_value, other.misplaced) == (1, 1, 3)
    assert (other.nan, other.infinite, other.within) == ([1, 1], [1, 1], [1, 1])
    assert other.largest == 0.0  # of what can be compared


def test_nan_beside_an_honest_difference_leaves_the_others_measured() -> None:
    found = metrics([NAN, 3.0, 4.0], [NAN, 3.0, 5.0])
    assert (found.misplaced, found.largest, found.identical) == (0, 1.0, 2)
    assert found.relative_l2 == pytest.approx(1 / 5)
    assert int(found.ulps.sum()) == 3


def test_all_zeros_against_something_is_infinitely_far() -> None:
    assert metrics([0.0, 0.0], [0.0, 1.0]).relative_l2 == INF
    assert math.isnan(metrics([0.0, 0.0], [0.0, 1.0]).cosine)
    assert metrics([0.0, 0.0], [0.0, 0.0]).cosine == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 17])
def test_a_distance_in_ulps_is_the_number_of_steps_between(dtype: str, steps: int) -> None:
    value = ELEMENT_TYPES[dtype].value
    here = np.array([1.0], value)
    for _ in range(steps):
        here = np.nextafter(here, np.array([2.0], value), dtype=value)
    found = metrics([[1.0]], [[float(here[0])]], dtype)
    place = next(place for place, edge in enumerate(ULP_EDGES) if steps <= edge)
    assert found.ulps[place] == 1


def test_ulps_are_counted_across_zero_and_minus_zero_is_zero() -> None:
    least = float(np.finfo(np.float16).smallest_subnormal)
    assert metrics([[-least]], [[least]], "float16").ulps[2] == 1
    assert metrics([[-0.0]], [[0.0]], "float16").ulps[0] == 1
    assert metrics([[-0.0]], [[0.0]], "float16").identical == 0  # other bits all the same


def test_sides_of_other_types_are_compared_in_steps_of_the_coarser() -> None:
    found = Metrics(1, 2, ELEMENT_TYPES["bfloat16"], False)
    found.add(np.array([[1.001, 2.0]], np.float32), np.array([[1.0, 2.0]], ml_dtypes.bfloat16), 0, 0)
    assert (found.ulps[0], found.identical) == (2, 1)  # equal once rounded; one of them equal without


NUMBERS = st.one_of(
    st.floats(-1e6, 1e6, width=32), st.sampled_from([0.0, -0.0, 1.0, NAN, INF, -INF, 1e-40, 3.4e38]), st.floats(-1, 1, width=32)
)
MATRIX = arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=NUMBERS)


@given(st.data())
def test_blocks_add_up_to_the_whole(data: st.DataObject) -> None:
    left = data.draw(MATRIX)
    right = np.where(
        data.draw(arrays.arrays(np.bool_, left.shape)), left, data.draw(arrays.arrays(np.float32, left.shape, elements=NUMBERS))
    )
    whole, parts = metrics(left, right), metrics(left, right, blocks=data.draw(st.integers(2, 5)))
    for name in ("count", "identical", "same_value", "within", "nan", "infinite", "misplaced", "largest", "largest_relative"):
        assert getattr(whole, name) == getattr(parts, name), name
    assert (whole.ulps == parts.ulps).all()
    assert int(whole.ulps.sum()) == whole.count - whole.misplaced
    for name in ("squares", "left_squares", "right_squares"):
        assert getattr(whole, name) == pytest.approx(getattr(parts, name), rel=1e-12), name
    assert [entry[0] for entry in whole.worst] == [entry[0] for entry in parts.worst]
    np.testing.assert_allclose(whole.along_rows.squares(), parts.along_rows.squares(), rtol=1e-12)
    np.testing.assert_allclose(whole.along_columns.squares(), parts.along_columns.squares(), rtol=1e-12)


@given(st.data())
def test_the_metrics_are_those_of_a_plain_computation(data: st.DataObject) -> None:
    finite = st.floats(-1e3, 1e3, width=32)
    left = data.draw(arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=finite))
    right = data.draw(arrays.arrays(np.float32, left.shape, elements=finite))
    found = metrics(left, right)
    a, b = left.astype(np.float64).ravel(), right.astype(np.float64).ravel()
    assert found.largest == np.abs(a - b).max()
    assert found.squares == pytest.approx(float(((a - b) ** 2).sum()), rel=1e-12)
    assert found.products == pytest.approx(float(a @ b), rel=1e-9, abs=1e-9)
    assert found.identical == int((left.view(np.uint32) == right.view(np.uint32)).sum())
    size, row, column, there, here = found.worst[0] if found.worst else (0.0, 0, 0, left[0, 0], right[0, 0])
    assert (float(left[row, column]), float(right[row, column])) == (there, here)
    assert abs(there - here) == size == found.largest


@pytest.mark.parametrize("length", [1, 7, POINTS, POINTS + 1, 3000, 200_000])
def test_a_profile_has_at_most_so_many_points_and_loses_nothing(length: int) -> None:
    profile = Profile(length)
    values = np.arange(length, dtype=np.float64)
    for start in range(0, length, 999):
        profile.add(start, values[start : start + 999])
    assert len(profile.squares()) <= POINTS
    assert profile.squares().sum() == pytest.approx(values.sum())
    assert profile.counts().sum() == length
    assert profile.squares()[0] == pytest.approx(values[: profile.width].sum())
