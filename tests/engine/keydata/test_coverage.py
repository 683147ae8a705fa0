"""What was not compared never passes for equal, and is said in the same words wherever a state is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.diagnose.run_chain import chain_lines
from compare.engine.diagnose.run_loop import loop_document
from compare.engine.options import Options
from compare.engine.pipeline import DumpError, compare_paths
from tests.engine.keydata.loops import PER_TOKEN, SCALARS, Loop, copy, loop, moved, without
from tests.engine.keydata.trees import compared, keys, side, states, write

EQUAL = dict.fromkeys(("prompts", "responses", *PER_TOKEN, *SCALARS), "equal")


def document(left: Loop, right: Loop, folder: Path, **options: str) -> dict[str, Any]:
    paths = [write(tree, folder / name) for name, tree in (("left", left), ("right", right))]
    return compare_paths(paths[:1], paths[1:], Options(**options)).document


def test_steps_that_never_met_are_not_equal(tmp_path: Path) -> None:
    """Left steps 0 and 1, right steps 5 and 6."""
    left = loop()
    right = {(key, step + 5, rank, micro): value for (key, step, rank, micro), value in left.items()}
    found = document(left, right, tmp_path)
    assert found["verdict"] == "not_comparable"
    assert {row["state"] for row in found["key_data"]} == {"not_compared"}
    tables = 2 * 2 * (4 + 4 + 4 * 2 + 2 * 2)
    assert f"{tables} tables only on the left (steps 0–1), {tables} tables only on the right (steps 5–6)" in found["headline"]["en"]


def test_a_key_without_a_common_step_is_not_equal_beside_keys_that_are(tmp_path: Path) -> None:
    """Loss of step 0 on the left, of step 1 on the right."""
    found = document(without(loop(), "loss", 1), without(loop(), "loss", 0), tmp_path)
    assert found["verdict"] == "consistent"
    assert {row["key"]: row["state"] for row in found["key_data"]} == EQUAL | {"loss": "not_compared"}
    assert "loss ? (4 only left, 4 only right)" in " ".join(chain_lines(found))


def test_tables_of_one_side_are_not_counted_as_compared(tmp_path: Path) -> None:
    found = document(loop(), without(loop(), "kl_loss"), tmp_path)
    compared_ones = 2 * 2 * (4 + 4 + 4 * 2 + 2)
    assert found["verdict"] == "consistent"
    assert found["headline"] == {
        "en": f"Consistent — {compared_ones} key-data tables compared, no number differs; key data: 8 tables only on the left (kl_loss)",
        "zh": f"一致 — 比较了 {compared_ones} 个关键数据表，没有不同的数值；关键数据：仅左侧有 8 个表（kl_loss）",
    }


def test_a_key_that_lacks_a_step_on_one_side_says_how_many_tables(tmp_path: Path) -> None:
    found = document(loop(), without(loop(), "loss", 1), tmp_path)
    assert found["verdict"] == "consistent"
    assert {row["key"]: row["state"] for row in found["key_data"]} == EQUAL
    assert "loss = (4 only left)" in " ".join(chain_lines(found))


def test_a_table_that_cannot_be_read_is_not_equal_and_has_no_other_shape(tmp_path: Path) -> None:
    write(loop(), tmp_path / "left")
    write(loop(), tmp_path / "right")
    broken = tmp_path / "right/data/loss/step1/rank0/micro_step0/loss.npy"
    broken.write_bytes(b"\x93NUMPY")
    found = compare_paths([tmp_path / "left"], [tmp_path / "right"], Options()).document
    assert found["verdict"] == "consistent"
    assert {row["key"]: row["state"] for row in found["key_data"]} == EQUAL | {"loss": "not_compared"}
    assert "1 table not compared" in found["headline"]["en"]
    assert "key_data_shapes" not in {finding["code"] for finding in found["findings"]}


def test_key_data_of_one_run_alone_keep_two_runs_from_being_identical(tmp_path: Path) -> None:
    corpus = Path(__file__).parents[2] / "data" / "corpus" / "q2_train_stat.zip"
    write(loop(), tmp_path / "left")
    sides = [[corpus, tmp_path / "left"], [corpus]]
    found = compare_paths(*sides, Options()).document
    assert found["verdict"] == "consistent"
    assert "only on the left" in found["headline"]["en"]


@pytest.mark.parametrize("beyond", ["other numbers", "wider"])
def test_what_differs_only_in_padding_does_not_differ(beyond: str, tmp_path: Path) -> None:
    right = copy(loop())
    for (key, step, rank, micro), value in loop().items():
        if key in PER_TOKEN and beyond == "wider":
            right[key, step, rank, micro] = np.pad(value, ((0, 0), (0, 3)), constant_values=-7.5)
        elif key in PER_TOKEN:
            right[key, step, rank, micro] = np.where(value == 0, np.float32(-7.5), value)
    found = document(loop(), right, tmp_path)
    assert found["verdict"] == "consistent"
    assert found["first"] is None
    assert {row["key"]: row["state"] for row in found["key_data"]} == EQUAL | dict.fromkeys(PER_TOKEN, "padding")
    assert "only padding differs in" in found["headline"]["en"]
    assert "仅填充不同" in found["headline"]["zh"]
    assert all(drift["kind"] == "none" or not drift["key"] for drift in found["drift"])


def test_padding_does_not_hide_a_number_that_differs(tmp_path: Path) -> None:
    right = moved(loop(), "ref_log_prob", (1, 1, 0))
    right["ref_log_prob", 0, 0, 1] = np.where(right["ref_log_prob", 0, 0, 1] == 0, np.float32(9), right["ref_log_prob", 0, 0, 1])
    found = document(loop(), right, tmp_path)
    assert (found["first"]["key_data"], found["first"]["step"], found["first"]["rank"]) == ("ref_log_prob", 1, 1)


def test_positions_that_the_mask_of_probabilities_leaves_out_do_not_differ(tmp_path: Path) -> None:
    mask = np.array([[True, True, False]])
    for name, padding in (("left", 99.0), ("right", -5.0)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "prob_diff_step_0.npy", np.array([[0.25, 0.5, padding]], np.float32))
        np.save(tmp_path / name / "prob_mask_step_0.npy", mask)
    found = compare_paths([tmp_path / "left"], [tmp_path / "right"], Options()).document
    assert {row["key"]: row["state"] for row in found["key_data"]} == {"prob_mask": "equal", "prob_diff": "padding"}


def test_padding_of_unknown_length_differs(tmp_path: Path) -> None:
    left, right = without(loop(), "responses"), without(loop(), "responses")
    right["log_prob", 0, 0, 0] = np.where(right["log_prob", 0, 0, 0] == 0, np.float32(-1), right["log_prob", 0, 0, 0])
    assert states(compared(left, right, tmp_path))["log_prob"] == "differs"


def test_statistics_of_one_side_are_held_against_the_numbers_of_the_other(tmp_path: Path) -> None:
    write(loop(), tmp_path / "left")
    write(loop(), tmp_path / "right")
    write(moved(loop(), "ref_log_prob", (1, 0, 0)), tmp_path / "other")
    for path in tmp_path.glob("left/**/*.npy"):
        path.unlink()
    for path in [*tmp_path.glob("right/**/*.json"), *tmp_path.glob("other/**/*.json")]:
        path.unlink()
    found = compare_paths([tmp_path / "left"], [tmp_path / "right"], Options()).document
    assert found["verdict"] == "identical"
    found = compare_paths([tmp_path / "left"], [tmp_path / "other"], Options()).document
    assert (found["verdict"], found["first"]["key_data"], found["first"]["step"]) == ("diverged", "ref_log_prob", 1)


def test_statistics_that_were_rounded_to_bfloat16_still_agree_with_the_numbers(tmp_path: Path) -> None:
    numbers = (np.arange(1, 65, dtype=np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    folder = write({("values", 0, 0, 0): numbers}, tmp_path / "right") / "data/values/step0/rank0/micro_step0"
    (folder / "values.json").unlink()
    folder = write({("values", 0, 0, 0): numbers}, tmp_path / "left") / "data/values/step0/rank0/micro_step0"
    (folder / "values.npy").unlink()
    written = json.loads((folder / "values.json").read_text())
    for name in ("mean", "norm"):
        bits = np.array([written["data"][name]], np.float32).view(np.uint32) + np.uint32(0x8000)
        written["data"][name] = float((bits & np.uint32(0xFFFF0000)).view(np.float32)[0])
    (folder / "values.json").write_text(json.dumps(written))
    found = compare_paths([tmp_path / "left"], [tmp_path / "right"], Options()).document
    assert found["verdict"] == "identical"


@pytest.mark.parametrize(("name", "value"), [("step", "9"), ("rank", "9"), ("step", "0:9"), ("rank", "9:1")])
def test_a_step_or_rank_that_no_table_has_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(DumpError) as refused:
        document(loop(), loop(), tmp_path, **{name: value})
    assert refused.value.code == "no_such_choice"
    assert refused.value.params["value"] == 9


def test_a_chosen_step_that_the_dumps_hold_leaves_the_key_data_of_others_out(tmp_path: Path) -> None:
    found = document(loop(), moved(loop(), "loss", (0, 0, 0)), tmp_path, step="1")
    assert found["verdict"] == "identical"


def test_names_that_both_runs_use_go_together_before_names_for_the_same_thing(tmp_path: Path) -> None:
    """The left has rm_scores besides; token_level_rewards are equal, whatever side is the left."""
    right: Loop = {(key, 0, 0, 0): np.ones(2, np.float32) for key in ("token_level_rewards", "token_level_scores")}
    left: Loop = right | {("rm_scores", 0, 0, 0): np.zeros(2, np.float32)}
    both = {"token_level_rewards": "equal", "token_level_scores": "equal"}
    assert states(compared(left, right, tmp_path / "there")) == both | {"rm_scores": "left_only"}
    assert states(compared(right, left, tmp_path / "back")) == both | {"rm_scores": "right_only"}


def test_a_tree_without_micro_steps_stands_for_the_first_of_each(tmp_path: Path) -> None:
    right = {(key, step, rank, -1): value for (key, step, rank, micro), value in loop().items() if micro == 0}
    found = compared(loop(), right, tmp_path)
    assert states(found) == EQUAL
    assert not found.alignment.reordered
    assert keys(found)["loss"].counts["left_only"] == 4  # of micro-step 1


def test_the_document_of_a_loop_says_how_many_tables_it_compared(tmp_path: Path) -> None:
    found = loop_document(compared(loop(), without(loop(), "loss"), tmp_path), (None, None), [])
    assert found["tables"] == sum(row["counts"]["equal"] for row in found["key_data"])
    assert found["beside"] == {"en": "8 tables only on the left (loss)", "zh": "仅左侧有 8 个表（loss）"}


def test_what_macos_adds_is_no_table(tmp_path: Path) -> None:
    write(loop(1, 1), tmp_path)
    (tmp_path / "data/loss/step0/rank0/micro_step0/._loss.npy").write_bytes(b"\0\5")
    found = side(tmp_path).loop.key_data
    assert found is not None
    assert len(found) == 4 + 4 + 4 * 2 + 2 * 2
