"""How a difference moves over the steps, in words that have to be right. Series by hand, and properties of the rules behind them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.diagnose.run_drift import Drift, stage_drifts
from compare.engine.diagnose.trend import grows, growth, level_change, rising_order, standing_out
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.keydata.trees import Tree, array, write

SLOWLY = np.linspace(0.011, 0.036, 20).tolist()


def drift(values: Sequence[float | None], without_size: dict[int, str] | None = None) -> Drift:
    return Drift("loss", None, "max_abs", range(len(values)), values, None, without_size or {})


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (SLOWLY, "growing", "grows from step 0 on (0.011 → 0.036)"),
        ([0.1, 0.2, 0.3], "growing", "grows from step 0 on (0.1 → 0.3, 3 steps only)"),
        ([0.3], "from_start", "0.3 in step 0, the only one compared"),
        ([0.3, 0.9], "from_start", "there from step 0 on (0.3 → 0.9); so few steps do not say how it moves"),
        ([0, 0.9], "late", "nothing before step 1, then 0.9"),
        ([0.5, 0], "at_times", "only in step 0, up to 0.5, and not in the step after"),
        ([0.5, 0, 0, 0], "at_times", "only in step 0, up to 0.5, and not in the 3 steps after"),
        ([0.5, 0, 0.4, 0, 0.5], "at_times", "in 3 of 5 steps (0, 2, 4), up to 0.5, and not in between"),
        ([0.001, 0.001, 0.3, 0.001, 0.001], "at_times", "0.3 in step 2, at most 0.001 in the others"),
        ([1e-8] * 3 + [1.0] * 3, "late", "at most 1e-08 before step 3, at least 1 from there on"),
        ([0.011, 0.012, 0.011, 0.2, 0.21, 0.19, 0.2], "late", "at most 0.012 before step 3, at least 0.19 from there on"),
        ([0, 0, 0.01, 0.02, 0.04, 0.08], "growing", "nothing before step 2, grows from step 2 on (0.01 → 0.08)"),
        ([0.5, 0.51, 0.5, 0.52, 0.49, 0.5], "from_start", "there from step 0 on and not growing (0.5 → 0.5): configuration"),
        ([0.5, 0.52, 0.55, 0.57, 0.6], "from_start", "there from step 0 on and growing by less than half (0.5 → 0.6)"),
        ([0.5, 0.4, 0.3, 0.2, 0.1], "from_start", "there from step 0 on and not growing (0.5 → 0.1)"),
    ],
)
def test_a_series_is_read_as_a_person_reads_it(values: list[float], kind: str, said: str) -> None:
    found = drift(values)
    assert found.kind == kind
    assert found.text["en"].startswith(f"loss: {said}")
    assert found.text["zh"].startswith("loss：")


@pytest.mark.parametrize("values", [[0.3], [0.3, 0.9], [0.9, 0.3], [0, 0.4], [0.4, 0]])
def test_one_or_two_steps_say_nothing_of_growth(values: list[float]) -> None:
    text = drift(values).text["en"]
    assert "grow" not in text
    assert "configuration" not in text


def test_a_step_that_differs_without_a_number_is_named_and_not_taken_for_zero() -> None:
    found = drift([None, 0.1, 0.1, 0.1], {0: "shapes"})
    assert found.kind == "from_start"
    assert found.text["en"].endswith("; step 0: other shapes")
    alone = drift([None, None], {0: "nonfinite", 1: "statistics"})
    assert alone.kind == "from_start"
    assert alone.text["en"] == "loss: in every step from step 0 on; step 0: NaN or Inf on one side; step 1: compared by statistics alone"
    assert drift([0, 0, None], {2: "statistics"}).kind == "late"
    late = drift([0, math.nan, 0.2])
    assert (late.kind, late.document()["without_size"]) == ("late", [{"step": 1, "reason": "nonfinite"}])


def test_a_key_of_which_a_side_is_nan_or_has_another_shape_is_not_said_to_agree(tmp_path: Path) -> None:
    tree: dict[tuple[str, int, int, int], object] = {("values", step, 0, 0): array(1, 2, 3) for step in range(4)}
    other: Tree = {**tree, ("values", 1, 0, 0): array(1, math.nan, 3), ("values", 2, 0, 0): array(1, 2)}
    left, right = write(tree, tmp_path / "left"), write(other, tmp_path / "right")
    for sides in ((left, right), (right, left)):
        document: JsonObject = compare_paths([sides[0]], [sides[1]], Options()).document
        (row,) = document["drift"]
        assert (row["steps"], row["values"], row["kind"]) == ([0, 1, 2, 3], [0, None, None, 0], "at_times")
        assert row["without_size"] == [{"step": 1, "reason": "nonfinite"}, {"step": 2, "reason": "shapes"}]
        assert "no difference" not in row["text"]["en"]
        json.dumps(document, allow_nan=False)


def test_the_norm_of_a_stage_is_said_in_percent_as_the_figure_beside_it_is() -> None:
    rows = [{"n": n, "step": n, "stage": "actor_update", "verdict": word} for n, word in enumerate(("identical", "diverged"))]
    documents: dict[int, JsonObject] = {n: {"layers": [{"norm_rel": size}]} for n, size in enumerate((0.0, 0.00390625))}
    (found,) = stage_drifts(rows, documents)
    assert found.text["en"] == "actor_update: nothing before step 1, then 0.391 %: something that happened in that step"
    assert found.text["zh"] == "actor_update：第 1 步之前没有，之后为 0.391 %：是该步发生的问题"


def test_a_stage_that_diverged_where_no_norm_tells_is_not_said_to_agree() -> None:
    rows = [{"n": n, "step": n, "stage": "actor_update", "verdict": word} for n, word in enumerate(("identical", "diverged", "identical"))]
    documents: dict[int, JsonObject] = {n: {"layers": [{"norm_rel": 0.0}]} for n in range(3)}
    (found,) = stage_drifts(rows, documents)
    assert (found.kind, found.values) == ("at_times", [0, None, 0])
    documents[1]["layers"] = [{"norm_rel": "Infinity"}]
    (found,) = stage_drifts(rows, documents)
    assert found.without_size == {1: "nonfinite"}


def test_the_probabilities_of_a_step_that_are_nan_are_named(tmp_path: Path) -> None:
    for step, size in enumerate((0.01, math.nan, 0.02)):
        np.save(tmp_path / f"prob_diff_step_{step}.npy", np.array([[size, size]], np.float32))
    document = compare_paths([tmp_path], [tmp_path], Options()).document
    said = next(finding["text"]["en"] for finding in document["findings"] if finding["code"].startswith("probabilities_"))
    assert "0.02 apart on average in step 2, the worst" in said
    assert "step 1: NaN or Inf" in said


def test_the_order_test_and_the_line_are_those_of_their_authors() -> None:
    """Four rising values: S = 6, variance 4 · 3 · 13 / 18, z = 5 / √8.667. A tie takes 2 · 1 · 9 / 18 off the variance and 1 off S."""
    assert rising_order([1, 2, 3, 4]) == pytest.approx(5 / math.sqrt(156 / 18))
    assert rising_order([4, 3, 2, 1]) == pytest.approx(-5 / math.sqrt(156 / 18))
    assert rising_order([1, 2, 2, 3]) == pytest.approx(4 / math.sqrt((156 - 18) / 18))
    assert growth([0, 1, 2, 10], [1, 2, 3, 11]) == pytest.approx(10)  # a slope of 1 per step, also where steps are missing
    assert growth([0, 1, 2, 3, 4], [1, 2, 90, 4, 5]) == pytest.approx(4)  # one wild step does not turn the line


SIZES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30)


@given(SIZES, st.floats(1e-3, 1e3), st.integers(0, 500))
def test_units_and_the_number_of_the_first_step_change_no_reading(sizes: list[float], unit: float, begin: int) -> None:
    moved = Drift("loss", None, "max_abs", range(begin, begin + len(sizes)), [size * 2.0 ** round(math.log2(unit)) for size in sizes])
    assert moved.kind == drift(sizes).kind


@given(st.floats(1e-6, 1e3), st.integers(4, 60), st.floats(1.6, 50))
def test_what_grows_by_more_than_half_is_growing_and_backwards_is_not(begin: float, steps: int, times: float) -> None:
    line = np.linspace(begin, begin * times, steps).tolist()
    assert grows(range(steps), line)
    assert not grows(range(steps), line[::-1])
    assert drift(line[::-1]).kind != "growing"


@given(st.floats(1e-6, 1e3), st.integers(3, 60))
def test_what_stays_the_same_is_there_from_the_start(size: float, steps: int) -> None:
    assert drift([size] * steps).kind == "from_start"


@given(st.floats(1e-6, 1.0), st.integers(1, 20), st.integers(2, 20), st.floats(3.5, 1e6))
def test_two_levels_are_told_at_the_step_between_them(low: float, before: int, after: int, times: float) -> None:
    series = [low] * before + [low * times] * after
    assert level_change(series) == before
    assert drift(series).kind == "late"
    assert f"before step {before}," in drift(series).text["en"]


@given(SIZES)
def test_a_series_of_noise_has_one_of_the_known_kinds_and_both_languages(sizes: list[float]) -> None:
    found = drift(sizes)
    assert found.kind in ("from_start", "growing", "late", "at_times")
    assert all(found.text.values())
    assert (len(sizes) - 1) not in standing_out(sizes)


def test_noise_around_a_constant_is_seldom_called_growing() -> None:
    random = np.random.default_rng(7)
    series = np.exp(random.normal(0, 0.3, (400, 12)))
    assert sum(drift(row.tolist()).kind == "growing" for row in series) <= 20  # the test's own 5 %
