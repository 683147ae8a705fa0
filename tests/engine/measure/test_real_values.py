"""Numbers of real dumps: those that msprobe's own compare prints, and grades that were checked by eye against the statistics."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from compare.engine.diagnose.case import Case
from compare.engine.measure.grades import Grade
from compare.engine.measure.statistics import MAX, MEAN, MIN, NORM
from tests.engine.build import pairs, part

# `msprobe compare` on the perturbed pair: module, slot, and its columns Max, Min, Mean and L2norm diff (left − right).
MSPROBE = [
    ("layers.1.self_attn.o_proj", "output.0", -0.015625, 0.0, -0.00048828125, 0.0),
    ("layers.1.self_attn", "output.0", -0.015625, 0.0, -0.00048828125, 0.0),
    ("layers.1.post_attention_layernorm", "input.0", 0.0, 0.0, -0.0005340576171875, 0.0),
    ("layers.1.post_attention_layernorm", "output.0", 0.0, 0.0, -0.000347137451171875, 0.0),
    ("layers.1.mlp.gate_proj", "output.0", -0.015625, 0.015625, 0.00048828125, 0.0),
    ("layers.1.mlp.up_proj", "output.0", 0.015625, 0.0, -0.000244140625, 0.0),
    ("layers.1.mlp.down_proj", "input.0", 0.0, 0.0, -0.0006103515625, 0.0),
    ("layers.2.self_attn.k_proj", "output.0", 0.0, 0.0, 0.0, -0.0625),
    ("layers.2.mlp.up_proj", "output.0", 0.015625, 0.0, 0.0009765625, 0.25),
    ("layers.2.mlp.down_proj", "input.0", 0.046875, 0.0, 0.0001220703125, 0.0),
    ("layers.2.mlp.down_proj", "output.0", -0.0234375, 0.0, -0.0007476806640625, 0.0),
    ("layers.2", "output.0", 0.0, 0.0, -0.00048828125, 0.0),
    ("layers.3.self_attn.o_proj", "output.0", 0.0, -0.03125, 0.0, 0.25),
    ("layers.3", "output.0", 0.0625, 0.03125, -0.0009765625, 0.0),
    ("norm", "output.0", 0.015625, 0.015625, -0.00048828125, 0.0),
]
FORWARD_ROWS_THAT_DIFFER = 65


@cache
def perturbed() -> Case:
    return part("q2_shim_pert1_stat", "q2_shim_stat").cases[0]


def row_of(case: Case, module: str, slot: str) -> int:
    wanted = f"model.{module}"
    for row in range(len(case.pairs)):
        node = int(case.pairs.node[row])
        if case.nodes.names[int(case.nodes.path[node])] == wanted and case.slot_name(row, 0) == slot and case.pairs.direction[row] == 0:
            return row
    raise KeyError(module)


@pytest.mark.parametrize(("module", "slot", "largest", "smallest", "mean", "norm"), MSPROBE)
def test_differences_are_those_that_msprobe_prints(
    module: str, slot: str, largest: float, smallest: float, mean: float, norm: float
) -> None:
    case = perturbed()
    signed = -case.differences.signed[row_of(case, module, slot)]
    assert signed[[MAX, MIN, MEAN, NORM]].tolist() == [largest, smallest, mean, norm]


def test_as_many_forward_slots_differ_as_msprobe_finds() -> None:
    case = perturbed()
    forward = case.pairs.direction == 0
    moved = (np.nan_to_num(case.differences.signed) != 0).any(axis=1)
    assert int((forward & moved).sum()) == FORWARD_ROWS_THAT_DIFFER
    assert int((forward & ~case.differences.equal).sum()) == FORWARD_ROWS_THAT_DIFFER


def test_everything_before_the_perturbation_is_equal() -> None:
    case = perturbed()
    first = row_of(case, "layers.1.self_attn.o_proj", "output.0")
    assert (case.grades.grade[:first] == Grade.EQUAL).all()


def test_equal_dumps_have_no_difference_anywhere() -> None:
    case = part("q2_shim_stat", "q2_shim_stat_again").cases[0]
    assert set(np.unique(case.grades.grade[case.grades.comparable])) == {Grade.EQUAL}
    assert not np.nan_to_num(case.differences.signed).any()
    assert not case.grades.over.any()


def test_the_wrong_epsilon_moves_the_first_norm_by_three_units() -> None:
    """eps 1e-5 for 1e-6: Norm 27.875 → 27.5, three units of 0.125; the mean does not tell."""
    case = part("q2_train_stat", "q2_infer_eps_stat").cases[0]
    row = row_of(case, "layers.0.input_layernorm", "output.0")
    assert case.differences.ulps[row, NORM] == -3.0
    assert case.grades.grade[row] == Grade.DIVERGED
    assert case.grades.over[row, NORM]


def test_the_wrong_rotation_moves_the_mean_where_the_norm_moves_by_one_unit() -> None:
    """Attention result of layer 0: ΔMean 0.27–0.41 % of the RMS, Norm within one unit."""
    case = part("q2_train_stat", "q2_infer_rope_stat").cases[0]
    row = next(
        row
        for row, (_, right) in enumerate(pairs(case))
        if right == {("Module.model.layers.0.self_attn.attn.Attention.forward.0", "output.0")}
    )
    assert abs(case.differences.ulps[row, NORM]) <= 1
    assert 0.0027 <= case.differences.relative[row, MEAN] <= 0.0041
    assert case.grades.over[row, MEAN]
    assert not case.grades.over[row, NORM]


def test_combined_float32_weights_are_equal_although_their_sums_are_not_reproduced() -> None:
    """Norm and Mean of a fused float32 weight carry another order of summation (up to 3.3 units); Max and Min are exact."""
    case = part("q2f32_train_stat", "q2f32_infer_stat").cases[0]
    fused = [row for row, (left, right) in enumerate(pairs(case)) if len(left) > 1 and case.pairs.group[row] == 1]
    assert len(fused) == 12  # four layers: qkv weight and bias, gate_up weight
    assert (case.differences.signed[fused][:, [MAX, MIN]] == 0).all()
    assert (case.differences.signed[fused][:, [MEAN, NORM]] != 0).any()
    assert not case.grades.weight[fused].any()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("q2_train_stat", "q2_infer_stat"),
        ("q05_train_stat", "q05_infer_clean_stat"),
        ("q2f32_train_stat", "q2f32_infer_stat"),
        ("q2b_train_stat", "q2b_infer_clean_stat"),
        ("q2_train_high", "q2_infer_high"),
        ("seed24_train", "seed24_infer"),
    ],
)
def test_no_honest_pair_is_beyond_its_limit(left: str, right: str) -> None:
    case = part(left, right).cases[0]
    assert not (case.grades.grade == Grade.DIVERGED).any()
    assert case.grades.ratio.max() <= 1


@pytest.mark.parametrize(
    "pair", [("q2_train_stat", "q2_infer_down2_stat"), ("q2_train_stat", "q2_infer_stat"), ("q2_train_stat", "q2_infer_nan3_stat")]
)
def test_grades_follow_from_what_they_say_they_follow_from(pair: tuple[str, str]) -> None:
    """equal: nothing moved; rounding: no excess; what is shown as over its limit is over it; a floor is no difference."""
    case = part(*pair).cases[0]
    grades, differences = case.grades, case.differences
    compared = grades.comparable & ~grades.argument
    equal = compared & (grades.grade == Grade.EQUAL)
    assert differences.equal[equal].all()
    rounding = compared & (grades.grade == Grade.ROUNDING)
    assert not np.nan_to_num(differences.excess[rounding]).any()
    assert not grades.over[grades.grade != Grade.DIVERGED].any()
    shown = compared & (grades.grade == Grade.DIVERGED) & (case.pairs.group != 1) & ~differences.nonfinite
    assert (grades.difference[shown] > grades.floor[shown]).all()
    quiet = compared & (grades.grade < Grade.DIVERGED) & (case.pairs.group != 1)
    assert (grades.difference[quiet] <= grades.floor[quiet]).all()


def test_an_exact_check_calls_diverged_whatever_is_not_equal() -> None:
    case = part("q2_shim_pert1_stat", "q2_shim_stat", exact=True).cases[0]
    unequal = case.grades.comparable & ~case.differences.equal
    assert unequal.any()
    assert (case.grades.grade[unequal] == Grade.DIVERGED).all()
    assert (case.grades.grade[case.grades.comparable & ~unequal] == Grade.EQUAL).all()
