"""Combining stored statistics, and what a difference is: null, NaN, Inf, integers, sizes, means near zero."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from compare.engine.align.pairs import Relation
from compare.engine.diagnose.case import Case
from compare.engine.measure.grades import Grade
from compare.engine.measure.statistics import MAX, MEAN, MIN, NORM, stored_bits
from compare.engine.measure.ulp import EXACT
from tests.engine.build import call, case, dump, integers, next_bf16, number, tensor

NAN, INF = math.nan, math.inf
REUSED = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def of(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """A float64 tensor leaf as a dumper would write it."""
    return {
        "type": "torch.Tensor",
        "dtype": "torch.float64",
        "shape": list(values.shape),
        "Max": float(values.max()),
        "Min": float(values.min()),
        "Mean": float(values.mean()),
        "Norm": float(np.linalg.norm(values)),
    }


def one(folder: Path, left: Any, right: Any, *, exact: bool = False) -> tuple[Case, int]:
    """Two calls of one module that put out ``left`` and ``right``; the pair of their outputs."""
    made = case(folder, {"Module.a.L.forward.0": call(output=[left])}, {"Module.a.L.forward.0": call(output=[right])}, exact=exact)
    assert len(made.pairs) == 1
    return made, 0


PARTS = st.lists(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(-1e3, 1e3)), min_size=3, max_size=3)


@given(parts=PARTS)
@REUSED
def test_statistics_of_parts_combine_to_those_of_the_concatenation(parts: list[Any], tmp_path: Path) -> None:
    attention = "Module.model.layers.0.self_attn"
    left = {f"{attention}.{name}_proj.Linear.forward.0": call(output=[of(part)]) for name, part in zip("qkv", parts, strict=True)}
    whole = np.concatenate([part.ravel() for part in parts])[:, None]
    made = case(tmp_path, left, {f"{attention}.qkv_proj.QKVParallelLinear.forward.0": call(output=[of(whole)])})
    row = next(row for row in range(len(made.pairs)) if made.pairs.relation[row] == Relation.CONCAT)
    combined = made.differences.sides[0]
    size = float(np.abs(whole).max()) or 1.0
    assert combined.elements[row] == whole.size
    assert combined.values[row, MAX] == whole.max()
    assert combined.values[row, MIN] == whole.min()
    assert combined.values[row, MEAN] == pytest.approx(whole.mean(), abs=1e-12 * size)
    assert combined.values[row, NORM] == pytest.approx(np.linalg.norm(whole), rel=1e-12, abs=1e-300)
    assert made.differences.equal[row]


def test_a_mean_whose_norm_underflowed_was_called_different_over_its_last_bit(tmp_path: Path) -> None:
    parts = [np.random.default_rng(1).normal(size=(7, 5)) * 1e-250 for _ in "qkv"]
    attention = "Module.model.layers.0.self_attn"
    left = {f"{attention}.{name}_proj.Linear.forward.0": call(output=[of(part)]) for name, part in zip("qkv", parts, strict=True)}
    made = case(tmp_path, left, {f"{attention}.qkv_proj.QKVParallelLinear.forward.0": call(output=[of(np.concatenate(parts))])})
    row = next(row for row in range(len(made.pairs)) if made.pairs.relation[row] == Relation.CONCAT)
    assert made.differences.sides[0].values[row, NORM] == 0  # the squares are below the smallest double
    assert made.differences.signed[row, MEAN] != 0
    assert made.differences.equal[row]


def test_combining_by_hand(tmp_path: Path) -> None:
    """Norms 3, 4 and 12 make 13; means 1, 2 and 5 over 2, 4 and 2 elements make 2.5."""
    attention = "Module.model.layers.0.self_attn"
    parts = [
        tensor(3.0, mean=1.0, largest=2.0, smallest=0.0, shape=(2, 1)),
        tensor(4.0, mean=2.0, largest=3.0, smallest=-1.0, shape=(4, 1)),
        tensor(12.0, mean=5.0, largest=9.0, smallest=-0.5, shape=(2, 1)),
    ]
    left = {f"{attention}.{name}_proj.Linear.forward.0": call(output=[part]) for name, part in zip("qkv", parts, strict=True)}
    right = {
        f"{attention}.qkv_proj.QKVParallelLinear.forward.0": call(output=[tensor(13.0, mean=2.5, largest=9.0, smallest=-1.0, shape=(8, 1))])
    }
    made = case(tmp_path, left, right)
    row = next(row for row in range(len(made.pairs)) if made.pairs.relation[row] == Relation.CONCAT)
    assert made.differences.sides[0].values[row].tolist() == [9.0, -1.0, 2.5, 13.0]
    assert made.differences.signed[row].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert made.grades.grade[row] == Grade.EQUAL


def test_a_null_among_the_parts_leaves_the_combined_statistic_out(tmp_path: Path) -> None:
    mlp = "Module.model.layers.0.mlp"
    left = {
        f"{mlp}.gate_proj.Linear.forward.0": call(output=[tensor()]),
        f"{mlp}.up_proj.Linear.forward.0": call(output=[tensor(mean=None)]),
    }
    made = case(
        tmp_path,
        left,
        {f"{mlp}.gate_up_proj.MergedColumnParallelLinear.forward.0": call(output=[tensor(shape=(1, 12, 128), norm=128.0**0.5)])},
    )
    row = next(row for row in range(len(made.pairs)) if made.pairs.relation[row] == Relation.CONCAT)
    assert made.differences.compared[row].tolist() == [True, True, False, True]


# --- what is compared -----------------------------------------------------------------------------------------------------------------


def test_null_on_both_sides_says_nothing_and_does_not_stop_equal(tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(None, mean=None), tensor(None, mean=None))
    assert made.differences.compared[row].tolist() == [True, True, False, False]
    assert made.grades.grade[row] == Grade.EQUAL


def test_null_on_one_side_leaves_that_statistic_out(tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(8.0, mean=0.5), tensor(None, mean=0.5))
    assert made.differences.compared[row].tolist() == [True, True, True, False]
    assert math.isnan(made.differences.signed[row, NORM])
    assert made.grades.grade[row] == Grade.EQUAL


def test_with_nothing_left_to_compare_a_pair_is_incomparable(tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(8.0, mean=0.0, largest=None, smallest=None), tensor(None, mean=None))
    assert not made.differences.compared[row].any()
    assert made.grades.grade[row] == Grade.INCOMPARABLE
    assert not made.grades.comparable[row]


def test_two_nulls_are_no_pair_to_compare_and_stop_nothing(tmp_path: Path) -> None:
    made, row = one(tmp_path, None, None)
    assert made.grades.nothing[row]
    assert not made.grades.comparable[row]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_the_same_nan_or_infinity_is_equal(value: float, tmp_path: Path) -> None:
    leaf = tensor(value, mean=value, largest=value, smallest=value)
    made, row = one(tmp_path, leaf, leaf)
    assert made.differences.equal[row]
    assert not made.differences.nonfinite[row]
    assert made.differences.signed[row].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert made.grades.grade[row] == Grade.EQUAL


@pytest.mark.parametrize(("left", "right"), [(1.0, NAN), (1.0, INF), (1.0, -INF), (INF, -INF), (NAN, INF)])
@pytest.mark.parametrize("swap", [False, True])
def test_another_kind_of_number_on_the_other_side_has_diverged(left: float, right: float, swap: bool, tmp_path: Path) -> None:
    leaves = [tensor(8.0, largest=value) for value in ((right, left) if swap else (left, right))]
    made, row = one(tmp_path, *leaves)
    assert made.differences.nonfinite[row]
    assert not made.differences.equal[row]
    assert made.grades.grade[row] == Grade.DIVERGED
    assert made.grades.over[row, MAX]
    assert not made.grades.over[row, [MIN, MEAN, NORM]].any()
    assert made.grades.ratio[row] == INF


def test_a_nan_beside_finite_statistics_that_differ_does_not_hide_them(tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(8.0, mean=NAN), tensor(16.0, mean=NAN))
    assert not made.differences.nonfinite[row]
    assert made.differences.signed[row, NORM] == 8.0
    assert made.grades.grade[row] == Grade.DIVERGED


def test_other_sizes_cannot_be_compared(tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(shape=(4, 6)), tensor(shape=(4, 7)))
    assert made.differences.size[row]
    assert made.grades.grade[row] == Grade.INCOMPARABLE
    assert math.isnan(made.grades.difference[row])


@pytest.mark.parametrize(("left", "right"), [((1, 12, 64), (12, 64)), ((12, 1, 64), (1, 12, 64)), ((12, 64), (768,))])
def test_shapes_of_as_many_elements_are_the_same_size(left: tuple[int, ...], right: tuple[int, ...], tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(shape=left), tensor(shape=right))
    assert not made.differences.size[row]
    assert made.grades.grade[row] == Grade.EQUAL


# --- how far apart --------------------------------------------------------------------------------------------------------------------


def test_differences_are_right_minus_left_each_against_its_own_scale(tmp_path: Path) -> None:
    """768 elements: RMS = 16/√768; extremes against the largest extreme of all."""
    made, row = one(tmp_path, tensor(15.5, mean=0.25, largest=2.0, smallest=-3.0), tensor(16.0, mean=0.125, largest=2.5, smallest=-4.0))
    found = made.differences
    assert found.signed[row, [MAX, MIN, MEAN, NORM]].tolist() == [0.5, -1.0, -0.125, 0.5]
    assert found.scale[row, [MAX, MIN, MEAN, NORM]].tolist() == pytest.approx([4.0, 4.0, 16 / math.sqrt(768), 16.0])
    assert found.relative[row, [MAX, MIN, MEAN, NORM]].tolist() == pytest.approx([0.125, 0.25, 0.125 * math.sqrt(768) / 16, 0.03125])


def test_ulps_are_signed_units_of_the_coarser_side(tmp_path: Path) -> None:
    made, row = one(tmp_path, tensor(79.0), tensor(next_bf16(79.0, 3)))
    assert made.differences.ulps[row, NORM] == 3.0
    made, row = one(tmp_path / "other", tensor(next_bf16(79.0, 3)), tensor(79.0))
    assert made.differences.ulps[row, NORM] == -3.0


def test_a_mean_near_zero_is_measured_against_the_rms(tmp_path: Path) -> None:
    """The mean changes its sign: 200 % of itself, 4e-5 of the RMS 8/√768 = 0.2887."""
    made, row = one(tmp_path, tensor(8.0, mean=2.0**-18), tensor(8.0, mean=-(2.0**-18)))
    assert made.differences.relative[row, MEAN] == pytest.approx(2.0**-17 / (8 / math.sqrt(768)))
    assert made.differences.relative[row, MEAN] < 1e-4
    assert made.grades.grade[row] <= Grade.NOISE


def test_the_same_mean_difference_on_a_small_tensor_of_the_same_numbers_is_large(tmp_path: Path) -> None:
    made, row = one(
        tmp_path,
        tensor(2.0**-12, mean=2.0**-18, largest=2.0**-16, smallest=0.0),
        tensor(2.0**-12, mean=2.0**-16, largest=2.0**-16, smallest=0.0),
    )
    assert made.differences.relative[row, MEAN] > 0.5
    assert made.grades.grade[row] == Grade.DIVERGED


def test_where_one_side_is_zero_the_difference_is_infinite_only_if_both_scales_are(tmp_path: Path) -> None:
    zero = tensor(0.0, mean=0.0, largest=0.0, smallest=0.0)
    made, row = one(tmp_path, zero, zero)
    assert made.grades.grade[row] == Grade.EQUAL
    assert made.differences.relative[row].tolist() == [0.0] * 4
    made, row = one(tmp_path / "other", zero, tensor(8.0))
    assert made.differences.relative[row, NORM] == 1.0
    assert made.grades.grade[row] == Grade.DIVERGED


def test_two_bf16_numbers_half_a_unit_of_rounding_apart_each_have_no_excess(tmp_path: Path) -> None:
    """The same tensor rounded twice may lie one unit apart."""
    made, row = one(tmp_path, tensor(79.0), tensor(79.5))
    assert made.differences.ulps[row, NORM] == 1.0
    assert made.differences.excess[row, NORM] == 0.0
    assert made.grades.grade[row] == Grade.ROUNDING
    made, row = one(tmp_path / "other", tensor(79.0), tensor(80.0))
    assert made.differences.excess[row, NORM] == 0.5


@pytest.mark.parametrize(
    ("left", "right", "equal"), [(11, 11, True), (11, 12, False), (2**40, 2**40 + 1, False), (2**52, 2**52 + 1, False)]
)
def test_integers_are_compared_exactly(left: int, right: int, equal: bool, tmp_path: Path) -> None:
    made, row = one(tmp_path, integers(left), integers(right))
    assert made.differences.exact[row]
    assert made.differences.equal[row] == equal
    assert made.grades.grade[row] == (Grade.EQUAL if equal else Grade.DIVERGED)


def test_int32_and_int64_with_the_same_numbers_are_equal(tmp_path: Path) -> None:
    made, row = one(tmp_path, integers(11), integers(11, dtype="torch.int32"))
    assert made.grades.grade[row] == Grade.EQUAL


def test_booleans_are_numbers_of_their_own(tmp_path: Path) -> None:
    mask = {"type": "torch.Tensor", "dtype": "torch.bool", "shape": [12], "Max": True, "Min": False, "Mean": None, "Norm": None}
    made, row = one(tmp_path, mask, mask | {"Min": True})
    assert made.differences.exact[row]
    assert made.grades.grade[row] == Grade.DIVERGED


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (number(1, "int"), number(1, "int"), True),
        (number(1, "int"), number(2, "int"), False),
        (number(1e-6), number(1e-6), True),
        (number(1e-6), number(1e-5), False),
        (number(True, "bool"), number(False, "bool"), False),
        ({"type": "str", "value": "sdpa"}, {"type": "str", "value": "sdpa"}, True),
        ({"type": "str", "value": "sdpa"}, {"type": "str", "value": "eager"}, False),
        ({"type": "str", "value": "1"}, number(1, "int"), False),
    ],
)
def test_arguments_are_compared_as_they_are_and_never_diverge_by_themselves(left: Any, right: Any, equal: bool, tmp_path: Path) -> None:
    made, row = one(tmp_path, left, right)
    assert made.grades.argument[row]
    assert made.differences.equal[row] == equal
    assert made.grades.grade[row] == (Grade.EQUAL if equal else Grade.INCOMPARABLE)


def test_an_argument_that_differs_diverges_in_a_determinism_check(tmp_path: Path) -> None:
    made, row = one(tmp_path, number(1, "int"), number(2, "int"), exact=True)
    assert made.grades.grade[row] == Grade.DIVERGED


# --- how finely a statistic was stored ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leaf", "bits"),
    [
        (tensor(8.0), 8),
        (tensor(8.001953125), 24),  # a bf16 tensor whose norm was taken in float32
        (tensor(8.1), 53),  # … in float64, or written with few digits
        (tensor(8.0, mean=0.2001953125, dtype="torch.float16"), 11),
        (tensor(float(np.float32(8.1)), dtype="torch.float16"), 24),
        (tensor(float(np.float32(8.1)), dtype="torch.float32"), 24),
        (tensor(8.1, dtype="torch.float32"), 53),
        (tensor(8.1, dtype="torch.float64"), 53),
        (tensor(NAN, mean=NAN, largest=NAN, smallest=NAN), 8),
        (tensor(INF), 8),
        (tensor(None, mean=None), 8),
        (integers(7), EXACT),
        (number(7, "int"), EXACT),
        (number(True, "bool"), EXACT),
        (number(0.1), 53),
    ],
)
def test_the_precision_of_stored_statistics_is_told_from_the_numbers(leaf: Any, bits: int, tmp_path: Path) -> None:
    assert stored_bits(dump(tmp_path, {"Module.a.L.forward.0": call(output=[leaf])})).tolist() == [bits]


@pytest.mark.parametrize(("fine", "grade"), [(79.3, Grade.ROUNDING), (79.0, Grade.NOISE)])
def test_the_coarser_side_sets_the_unit(fine: float, grade: Grade, tmp_path: Path) -> None:
    """One bf16 unit at 79.5 is 0.5: a float32 number up to half of that away may be the same tensor, one further away is not."""
    stored = float(np.float32(fine))
    made, row = one(tmp_path, tensor(stored, dtype="torch.float32"), tensor(79.5))
    assert made.differences.ulps[row, NORM] == pytest.approx((79.5 - fine) / 0.5, abs=1e-4)
    assert made.differences.tensor_bits[row] == 8
    assert made.grades.grade[row] == grade
