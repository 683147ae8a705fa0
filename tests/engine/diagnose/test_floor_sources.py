"""Each limit says what decided it: the profile, what the pair has shown, that level frozen at a divergence, or a baseline."""

from __future__ import annotations

import numpy as np
import pytest

from compare.engine.diagnose.case import Case
from compare.engine.measure.grades import NO_FLOOR, FloorSource, Grade
from compare.engine.measure.noise import profile
from compare.engine.model import Group
from tests.engine.build import part


def only_case(left: str, right: str, **options: str) -> Case:
    (found,) = part(left, right, **options).cases
    return found


@pytest.mark.parametrize("form", ["stat", "tensor"])
def test_a_clean_pair_begins_with_the_profile_and_goes_on_with_what_it_measured(form: str) -> None:
    found = only_case(f"q2_train_{form}", f"q2_infer_{form}").grades
    sources = found.floor_source[found.floor_source != NO_FLOOR]
    assert sources[0] == FloorSource.PROFILE
    assert set(sources.tolist()) <= {FloorSource.PROFILE, FloorSource.MEASURED}
    assert FloorSource.MEASURED in sources


@pytest.mark.parametrize("form", ["stat", "tensor"])
def test_behind_the_first_divergence_the_level_is_frozen_and_nothing_is_measured_any_more(form: str) -> None:
    case = only_case(f"q2_train_{form}", f"q2_infer_down2_{form}")
    found = case.grades
    first = int(np.argmax(found.grade == Grade.DIVERGED))
    assert FloorSource.FROZEN not in found.floor_source[:first]
    assert FloorSource.MEASURED not in found.floor_source[first:]
    if form == "tensor":  # the statistics of so small a model never rise above what the profile grants
        assert FloorSource.FROZEN in found.floor_source[first:]


def test_weights_and_integers_have_no_floor() -> None:
    case = only_case("q2_train_stat", "q2_infer_stat")
    exact = (case.pairs.group == Group.PARAMETERS) | case.differences.exact | case.grades.argument
    assert exact.any()
    assert set(case.grades.floor_source[exact].tolist()) == {NO_FLOOR}


def test_a_determinism_check_applies_none() -> None:
    (case,) = part("q2_train_stat", "q2_train_stat", exact=True).cases
    assert set(case.grades.floor_source.tolist()) == {NO_FLOOR}


def test_a_limit_of_the_profile_is_one_unit_of_it() -> None:
    """The first pair with a floor has no pair before it: one unit, by the step that its statistic may rise."""
    found = only_case("q2_train_stat", "q2_infer_stat").grades
    first = int(np.argmax(found.floor_source == FloorSource.PROFILE))
    assert found.level[first].tolist() == [0, 0, 0]
    assert found.limit[first, 2] == profile().norm_jump
