from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.diagnose.run_checks import check_document
from compare.engine.keydata.alignment import Tables
from compare.engine.keydata.checks import Check, check
from tests.engine.keydata.trees import array, side, tables

CORPUS = Path(__file__).parents[2] / "data" / "corpus"


def failed(tree: dict[tuple[str, int, int, int], Any], folder: Path) -> dict[tuple[str, str], Check]:
    return {(one.code, one.key): one for one in check(tables(tree, folder)) if one.failed}


def test_a_healthy_run_fails_nothing() -> None:
    table = side(CORPUS / "rl_run_a.zip").loop.key_data
    assert table is not None
    found = check(Tables(table))
    assert not [one for one in found if one.failed]
    assert {one.code for one in found} == {
        "nonfinite", "log_prob_positive", "kl_negative", "tokens_not_integral", "advantages_off_centre", "on_policy",
    }  # fmt: skip
    assert all(one.tables for one in found)


@pytest.mark.parametrize(
    ("key", "value", "code", "worst"),
    [
        ("log_prob", [[-1.0, 123.75]], "log_prob_positive", 123.75),
        ("ref_log_prob", [[0.5, -1.0]], "log_prob_positive", 0.5),
        ("kl_loss", -0.25, "kl_negative", -0.25),
        ("prompts", [1.0, 2.5], "tokens_not_integral", 1),
        ("responses", [1.0, -2.0], "tokens_not_integral", 1),
        ("loss", float("nan"), "nonfinite", 1),
        ("values", [[float("inf"), 1.0]], "nonfinite", 1),
    ],
)
def test_what_cannot_be_is_found_in_one_run_alone(key: str, value: Any, code: str, worst: float, tmp_path: Path) -> None:
    value = [np.array(value, np.float32)] if key in ("prompts", "responses") else np.array(value, np.float32)
    one = failed({(key, 3, 0, 0): value}, tmp_path)[code, key]
    assert (one.worst, one.first) == (worst, (3, 0, 0, "0"))
    document = check_document(one, "left")
    assert document["state"] == "failed"
    assert {"en", "zh"} == set(document["text"])


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("loss", [float("nan")], "loss: NaN or Inf, 1 in one table (1 of 1)"),
        ("loss", [float("inf")] * 12345, "loss: NaN or Inf, 12345 in one table (1 of 1)"),
        ("responses", [1.0, 2.5], "responses: tokens that are no whole numbers, or negative: 1 in one table (1 of 1)"),
    ],
)
def test_a_count_of_places_was_shown_as_the_worst_size(key: str, values: list[float], said: str, tmp_path: Path) -> None:
    """“NaN or Inf, 1 in one table … worst 1.000”."""
    array = np.array(values, np.float32)
    (one,) = failed({(key, 0, 0, 0): [array] if key == "responses" else array}, tmp_path).values()
    document = check_document(one, "left")
    assert (document["worst"], document["text"]["en"]) == (None, said)


def test_a_check_over_a_whole_step_named_a_micro_step_that_was_not_at_fault(tmp_path: Path) -> None:
    """Advantages of micro-step 1 are not centred; the step was said to fail in micro-step 0 of rank 0."""
    tree = {("advantages", 1, 0, micro): np.full((1, 3), value, np.float32) for micro, value in ((0, 0.1), (1, 2.0))}
    document = check_document(failed(tree, tmp_path)["advantages_off_centre", "advantages"], "right")
    assert document["first"] == {"step": 1, "rank": None, "micro_step": None, "id": "0"}
    assert document["worst"] == pytest.approx(1.05)


def test_rounding_above_zero_is_no_positive_log_probability(tmp_path: Path) -> None:
    assert not failed({("log_prob", 0, 0, 0): np.array([[1e-7, -1.0]], np.float32)}, tmp_path)


def test_old_and_new_log_probs_part_before_any_update(tmp_path: Path) -> None:
    tree = {("old_log_prob", 0, 0, micro): np.array([[-1.0, -2.0]], np.float32) for micro in (0, 1)}
    tree |= {("log_prob", 0, 0, 0): np.array([[-1.0, -2.0]], np.float32), ("log_prob", 0, 0, 1): np.array([[-1.0, -2.5]], np.float32)}
    assert not failed(tree, tmp_path / "later")  # after an update they may
    tree["log_prob", 0, 0, 0] = np.array([[-1.0, -2.25]], np.float32)
    assert failed(tree, tmp_path / "before")["on_policy", "log_prob"].worst == pytest.approx(0.25)


def test_advantages_that_are_not_centred_are_found_over_all_ranks_of_a_step(tmp_path: Path) -> None:
    centred = {("advantages", 0, rank, 0): np.full((1, 3), sign, np.float32) for rank, sign in ((0, 1.0), (1, -1.0))}
    assert not failed(centred, tmp_path / "centred")
    off = {("advantages", 2, rank, 0): np.full((1, 3), value, np.float32) for rank, value in ((0, 1.0), (1, 0.5))}
    assert failed(off, tmp_path / "off")["advantages_off_centre", "advantages"].worst == pytest.approx(0.75)


def test_padding_does_not_centre_advantages(tmp_path: Path) -> None:
    """Two sequences of 1 and 4 tokens: the mean over their tokens is 0, over the padded rows it is not."""
    tree = {
        ("responses", 0, 0, 0): [array(1), array(1, 2, 3, 4)],
        ("advantages", 0, 0, 0): np.array([[1, 0, 0, 0], [-1, -1, -1, -1]], np.float32),
    }
    assert not failed(tree, tmp_path)


def padded_with(number: float) -> dict[tuple[str, int, int, int], Any]:
    """Two responses of 1 and 3 tokens; what lies beyond the end of the first is ``number``."""
    lines = np.array([[-1, number, number], [-1, -2, -3]], np.float32)
    tree: dict[tuple[str, int, int, int], Any] = {("responses", 0, 0, 0): [array(1), array(1, 2, 3)]}
    tree |= {(key, 0, 0, 0): lines for key in ("ref_log_prob", "log_prob")}
    return tree | {("old_log_prob", 0, 0, 0): np.where(lines > 0, 0, lines)}


@pytest.mark.parametrize("number", [1.0, float("nan"), float("inf")])
def test_what_stands_in_padding_fails_no_check(number: float, tmp_path: Path) -> None:
    assert not failed(padded_with(number), tmp_path)


def test_positions_that_the_mask_of_probabilities_leaves_out_fail_no_check(tmp_path: Path) -> None:
    for name, lines in (("diff", np.array([[0.25, np.nan]])), ("mask", np.array([[True, False]]))):
        np.save(tmp_path / f"prob_{name}_step_0.npy", lines)
    table = side(tmp_path).loop.key_data
    assert table is not None
    assert not [one for one in check(Tables(table)) if one.failed]


def test_advantages_whitened_over_their_tokens_are_centred(tmp_path: Path) -> None:
    """PPO: 1 token of 1.5 and 6 of −0.25. Their mean is 0, that of the two sequences is 0.625."""
    tree = {
        ("responses", 0, 0, 0): [array(1), array(*range(6))],
        ("advantages", 0, 0, 0): np.array([[1.5, 0, 0, 0, 0, 0], [-0.25] * 6], np.float32),
    }
    assert not failed(tree, tmp_path)
