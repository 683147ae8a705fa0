from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.diagnose.run_reading import reading
from compare.engine.keydata.comparison import compare_key_data
from tests.engine.keydata.trees import array, compared, key_data, keys, states

STEP = {
    "prompts": [array(1, 2, 3), array(4, 5)],
    "responses": [array(7, 8), array(9, 9)],
    "ref_log_prob": [[-1.0, -2.0], [-1.5, -0.5]],
    "old_log_prob": [[-1.1, -2.1], [-1.6, -0.6]],
    "advantages": [[1.0, 1.0], [-1.0, -1.0]],
    "log_prob": [[-1.1, -2.1], [-1.6, -0.6]],
    "kl_loss": 0.01,
    "loss": 0.5,
}


def loop(steps: int = 3, **changed: dict[int, Any]) -> dict[tuple[str, int, int, int], Any]:
    """A loop of some steps; ``changed`` says for a key in which steps it holds something else."""
    tree = {}
    for step in range(steps):
        for key, value in STEP.items():
            own = changed.get(key, {}).get(step, value)
            tree[key, step, 0, 0] = own if isinstance(own, list) and isinstance(own[0], np.ndarray) else np.array(own, np.float32)
    return tree


def moved(value: Any) -> Any:
    return np.array(value, np.float32) + np.float32(0.25)


@pytest.mark.parametrize(
    ("key", "code", "phrase"),
    [
        ("responses", "key_data_responses", "rollout"),
        ("ref_log_prob", "key_data_reference", "reference model"),
        ("old_log_prob", "key_data_actor_forward", "forward pass of the actor"),
        ("advantages", "key_data_advantages", "reward or normalisation"),
        ("log_prob", "key_data_training_forward", "forward pass in training"),
        ("loss", "key_data_loss", "computation of the loss"),
    ],
)
def test_the_first_key_that_differs_names_the_place_to_look_at(key: str, code: str, phrase: str, tmp_path: Path) -> None:
    other = [array(7, 8), array(9, 1)] if key == "responses" else moved(STEP[key])
    found = compared(loop(), loop(**{key: {2: other}}), tmp_path)
    assert states(found) == {**dict.fromkeys(STEP, "equal"), key: "differs"}
    finding = reading(found)[0]
    assert finding.code == code
    assert phrase in finding.text["en"]
    assert f"{key} differs from step 2 on" in finding.text["en"]


def test_responses_that_stay_equal_are_said_before_the_reference_model(tmp_path: Path) -> None:
    found = compared(loop(), loop(ref_log_prob={1: moved(STEP["ref_log_prob"]), 2: moved(STEP["ref_log_prob"])}), tmp_path)
    text = reading(found)[0].text
    assert text["en"].startswith("responses equal, ref_log_prob differs from step 1 on: reference model")
    assert text["zh"].startswith("responses 一致，ref_log_prob 从第 1 步起不同：参考模型")


def test_a_difference_that_heals_names_its_steps(tmp_path: Path) -> None:
    found = compared(loop(), loop(ref_log_prob={1: moved(STEP["ref_log_prob"])}), tmp_path)
    assert "ref_log_prob differs at step 1: reference model" in reading(found)[0].text["en"]


def test_what_is_made_of_other_responses_differs_as_a_consequence(tmp_path: Path) -> None:
    changed = {key: {1: moved(STEP[key])} for key in ("ref_log_prob", "old_log_prob", "log_prob", "kl_loss")}
    found = compared(loop(), loop(responses={1: [array(7, 8), array(1, 1)]}, **changed), tmp_path)
    assert states(found) == {**dict.fromkeys(STEP, "equal"), "responses": "differs", **dict.fromkeys(changed, "consequence")}


def test_an_earlier_update_explains_the_actor_but_never_the_frozen_reference(tmp_path: Path) -> None:
    changed = {"loss": {0: 0.75}, "old_log_prob": {1: moved(STEP["old_log_prob"])}, "ref_log_prob": {1: moved(STEP["ref_log_prob"])}}
    found = compared(loop(), loop(**changed), tmp_path)
    assert states(found)["loss"] == "differs"
    assert states(found)["old_log_prob"] == "consequence"
    assert states(found)["ref_log_prob"] == "differs"
    assert found.first is not None
    assert found.first.name == "loss"


def test_log_probs_that_part_after_the_first_micro_step_speak_of_the_update(tmp_path: Path) -> None:
    left = {("log_prob", 0, 0, micro): np.array([[-1.0, -2.0]], np.float32) for micro in (0, 1)}
    found = compared(left, {**left, ("log_prob", 0, 0, 1): np.array([[-1.0, -2.5]], np.float32)}, tmp_path)
    assert reading(found)[0].code == "key_data_update_order"


def test_one_sided_keys_and_tables_are_listed_not_dropped(tmp_path: Path) -> None:
    left, right = loop(), loop(2)
    del left["kl_loss", 0, 0, 0], left["kl_loss", 1, 0, 0], left["kl_loss", 2, 0, 0]
    del right["loss", 1, 0, 0]
    found = compared(left, right, tmp_path)
    assert states(found)["kl_loss"] == "right_only"
    assert states(found)["prompts"] == "equal"  # a step that one run never came to is no difference
    assert keys(found)["prompts"].counts["left_only"] == 2
    assert keys(found)["loss"].counts == {"equal": 1, "differs": 0, "left_only": 2, "right_only": 0, "not_read": 0}
    texts = [finding.text["en"] for finding in reading(found) if finding.code == "key_data_one_sided"]
    assert any("loss (2)" in text and "left side only" in text for text in texts)
    assert any("kl_loss (2)" in text and "right side only" in text for text in texts)


def test_shapes_are_never_cropped_to_a_silent_agreement(tmp_path: Path) -> None:
    left, right = {("advantages", 0, 0, 0): np.ones((2, 4), np.float32)}, {("advantages", 0, 0, 0): np.ones((2, 3), np.float32)}
    found = compared(left, right, tmp_path)
    (pair,) = keys(found)["advantages"].pairs
    assert pair.state == "differs"
    assert pair.numbers is not None
    assert (pair.numbers.same, pair.numbers.compared) == (6, 6)
    assert "key_data_shapes" in {finding.code for finding in reading(found)}


def test_an_empty_table_is_there_and_equal(tmp_path: Path) -> None:
    found = compared({("extra", 0, 0, 0): np.empty((0, 3))}, {("extra", 0, 0, 0): np.empty((0, 3))}, tmp_path)
    (pair,) = keys(found)["extra"].pairs
    assert (pair.state, pair.note) == ("equal", "empty")


def test_entries_of_objects_keep_their_names(tmp_path: Path) -> None:
    left = {("extra", 0, 0, 0): {"mean": array(1), "std": array(2)}}
    found = compared(left, {("extra", 0, 0, 0): {"mean": array(1), "std": array(3)}}, tmp_path)
    assert [(pair.place[3], pair.state) for pair in keys(found)["extra"].pairs] == [("mean", "equal"), ("std", "differs")]


def test_without_micro_steps_the_json_beside_the_numbers_does_not_hide_them(tmp_path: Path) -> None:
    found = compared({("values", 0, 0, -1): array(1, 2)}, {("values", 0, 0, -1): array(1, 3)}, tmp_path)
    (pair,) = keys(found)["values"].pairs
    assert (pair.evidence, pair.state, pair.place) == ("values", "differs", (0, 0, -1, "0"))


def test_statistics_stand_for_numbers_that_are_missing(tmp_path: Path) -> None:
    trees = [key_data({("values", 0, 0, 0): array(1, 2)}, tmp_path / "left"), None]
    (tmp_path / "left/data/values/step0/rank0/micro_step0/values.npy").unlink()
    trees = [key_data({}, tmp_path / "left"), key_data({("values", 0, 0, 0): array(1, 3)}, tmp_path / "right")]
    (pair,) = compare_key_data(*trees).keys[0].pairs
    assert (pair.evidence, pair.state) == ("statistics", "differs")
    (pair,) = compare_key_data(trees[0], trees[0]).keys[0].pairs
    assert (pair.evidence, pair.state) == ("statistics", "equal")


def test_nan_at_the_same_place_is_no_difference(tmp_path: Path) -> None:
    left = {("values", 0, 0, 0): array(1, float("nan"), float("inf"))}
    found = compared(left, left, tmp_path)
    assert states(found) == {"values": "equal"}
    assert keys(found)["values"].pairs[0].numbers.nan == (1, 1, 1)  # type: ignore[union-attr]


def test_ranks_that_are_counted_from_elsewhere_meet(tmp_path: Path) -> None:
    left = {("loss", 0, rank, 0): array(rank) for rank in (0, 1)}
    right = {("loss", 0, rank, 0): array(rank - 4) for rank in (4, 5)}
    assert states(compared(left, right, tmp_path)) == {"loss": "equal"}


def test_trainers_that_call_the_same_thing_otherwise_are_compared(tmp_path: Path) -> None:
    found = compared({("log_prob", 0, 0, 0): array(-1)}, {("log_probs", 0, 0, 0): array(-1)}, tmp_path)
    assert states(found) == {"log_prob": "equal"}


def test_one_step_can_be_held_against_another(tmp_path: Path) -> None:
    tree = {("loss", step, 0, 0): array(step // 2) for step in range(4)}
    sides = key_data(tree, tmp_path / "left"), key_data(tree, tmp_path / "right")
    (key,) = compare_key_data(*sides, steps=(2, 3)).keys
    assert [(pair.place[0], pair.state) for pair in key.pairs] == [(2, "equal")]
    (key,) = compare_key_data(*sides, steps=(0, 2)).keys
    assert [(pair.place[0], pair.state) for pair in key.pairs] == [(0, "differs")]
