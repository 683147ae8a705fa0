from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from compare.engine.keydata.numbers import measure, overlap
from tests.engine.keydata.trees import array

NAN, INF = float("nan"), float("inf")
arrays = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.float16]),
    hnp.array_shapes(min_dims=0, max_dims=2, max_side=6),
    elements=st.floats(width=16, allow_nan=True, allow_infinity=True),
)


def test_nan_equals_nan_and_is_counted() -> None:
    found = measure(array(1, NAN, NAN, 2), array(1, NAN, 3, NAN))
    assert (found.same, found.first_mismatch, found.nan) == (2, 2, (2, 2, 1))
    assert (found.max_abs, found.max_rel) == (0, 0)
    assert (found.within_tight, found.within_loose) == (2, 2)


def test_equal_infinities_are_equal_and_others_are_infinitely_far() -> None:
    found = measure(array(INF, -INF, INF), array(INF, -INF, -INF))
    assert (found.same, found.first_mismatch, found.inf) == (2, 2, (3, 3))
    assert (found.max_abs, found.max_rel) == (INF, INF)
    assert found.within_loose == 2
    assert measure(array(INF, 0), array(INF, 0)).max_abs == 0


@pytest.mark.parametrize(
    ("left", "right", "absolute", "relative", "tight", "loose"),
    [(0.0, 0.0, 0, 0, 1, 1), (0.0, 2.0, 2, 1, 0, 0), (1000.0, 1000.5, 0.5, 0.5 / 1000.5, 1, 1), (100.0, 100.5, 0.5, 0.5 / 100.5, 0, 1)],
)
def test_a_relative_error_is_over_the_larger_of_the_two(
    left: float, right: float, absolute: float, relative: float, tight: int, loose: int
) -> None:
    found = measure(np.array([left]), np.array([right]))
    assert (found.max_abs, found.within_tight, found.within_loose) == (absolute, tight, loose)
    assert found.max_rel == pytest.approx(relative)


def test_booleans_and_unsigned_numbers_do_not_wrap_around() -> None:
    assert measure(np.array([True, False]), np.array([False, False])).max_abs == 1
    assert measure(np.array([1, 200], np.uint8), np.array([2, 100], np.uint8)).max_abs == 100


def test_integers_beyond_float64_are_compared_exactly() -> None:
    assert measure(np.array([2**53], np.int64), np.array([2**53 + 1], np.int64)).same == 0


def test_nothing_has_nothing_to_say() -> None:
    found = measure(np.empty(0), np.empty(0))
    assert (found.compared, found.same, found.first_mismatch, found.max_abs) == (0, 0, None, 0)


def test_the_overlap_of_other_shapes_starts_at_the_beginning_of_every_axis() -> None:
    left, right = np.arange(6).reshape(2, 3), np.arange(8).reshape(4, 2)
    a, b = overlap(left, right)
    assert a.tolist() == [[0, 1], [3, 4]]
    assert b.tolist() == [[0, 1], [2, 3]]
    a, b = overlap(left, np.arange(4))
    assert (a.tolist(), b.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])


@given(arrays, st.randoms())
def test_comparing_is_symmetric_and_an_array_equals_itself(left: np.ndarray, random: object) -> None:
    right = left.copy()
    itself = measure(left, right)
    assert itself.same == itself.compared == left.size
    assert (itself.max_abs, itself.max_rel) == (0, 0)
    if right.size:
        right.reshape(-1)[random.randrange(right.size)] = 7  # type: ignore[attr-defined]
    there, back = measure(left, right), measure(right, left)
    assert (there.same, there.max_abs, there.max_rel, there.within_tight) == (back.same, back.max_abs, back.max_rel, back.within_tight)
    assert there.nan == (back.nan[1], back.nan[0], back.nan[2])
    assert there.same <= there.within_tight <= there.within_loose <= there.compared
