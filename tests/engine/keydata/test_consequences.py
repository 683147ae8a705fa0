"""What follows from what is decided where a table lies: its step, its rank, its micro-step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compare.engine.diagnose.run_reading import reading
from tests.engine.keydata.loops import Loop, copy, loop, moved
from tests.engine.keydata.trees import compared, keys, states


def test_other_responses_of_other_ranks_explain_no_reference_model(tmp_path: Path) -> None:
    """Responses differ on rank 1, ref_log_prob on rank 0, whose responses are equal."""
    right = moved(loop(), "ref_log_prob", (1, 0, 0), (1, 0, 1))
    right["responses", 1, 1, 0][0][0] += 1
    found = compared(loop(), right, tmp_path)
    assert (states(found)["responses"], states(found)["ref_log_prob"]) == ("differs", "differs")
    assert [key.name for key in found.own] == ["responses", "ref_log_prob"]


def test_other_responses_explain_the_tables_that_hold_them_and_no_others(tmp_path: Path) -> None:
    right = moved(loop(), "ref_log_prob", (1, 0, 0), (1, 0, 1))
    right["responses", 1, 0, 0][0][0] += 1  # of micro-step 0
    found = compared(loop(), right, tmp_path)
    key = keys(found)["ref_log_prob"]
    differing = [(pair.place[2], key.table_state(at)) for at, pair in enumerate(key.pairs) if pair.state == "differs"]
    assert differing == [(0, "consequence"), (1, "differs")]
    assert key.own is not None
    assert key.own.place == (1, 0, 1, "0")


def test_a_reference_model_that_differs_on_one_rank_explains_the_kl_loss_of_that_rank(tmp_path: Path) -> None:
    right = moved(moved(loop(), "ref_log_prob", (1, 1, 0)), "kl_loss", (1, 1, 0))
    assert states(compared(loop(), right, tmp_path / "same"))["kl_loss"] == "consequence"
    right = moved(moved(loop(), "ref_log_prob", (1, 1, 0)), "kl_loss", (1, 0, 0))
    assert states(compared(loop(), right, tmp_path / "other"))["kl_loss"] == "differs"


def test_advantages_mix_the_sequences_of_all_ranks(tmp_path: Path) -> None:
    right = moved(moved(loop(), "ref_log_prob", (1, 1, 0)), "advantages", (1, 0, 1))
    assert states(compared(loop(), right, tmp_path))["advantages"] == "consequence"


def test_an_update_within_the_step_explains_the_forward_passes_after_it(tmp_path: Path) -> None:
    """Advantages differ in micro-step 0, so the weights do from then on; alone, a later micro-step speaks of the update itself."""
    right = moved(moved(loop(), "advantages", (1, 0, 0)), "log_prob", (1, 1, 1))
    assert states(compared(loop(), right, tmp_path / "after"))["log_prob"] == "consequence"
    assert states(compared(loop(), moved(loop(), "log_prob", (1, 1, 1)), tmp_path / "alone"))["log_prob"] == "differs"


def test_an_update_of_an_earlier_step_explains_every_rank(tmp_path: Path) -> None:
    right = moved(moved(loop(), "loss", (0, 0, 0)), "old_log_prob", (1, 1, 0))
    assert states(compared(loop(), right, tmp_path))["old_log_prob"] == "consequence"


def timed(tree: Loop, by: float) -> Loop:
    found = copy(tree)
    found |= {("elapsed_ms", step, 0, 0): np.float32(10 + step + by) for step in range(2)}
    return found


def test_a_key_of_no_known_name_explains_nothing_and_does_not_lead(tmp_path: Path) -> None:
    """elapsed_ms differs in every step, the actor's forward pass in step 1."""
    found = compared(timed(loop(), 0), timed(moved(loop(), "old_log_prob", (1, 0, 0)), 1.5), tmp_path)
    assert found.first is not None
    assert found.first.name == "old_log_prob"
    assert [key.name for key in found.own] == ["old_log_prob", "elapsed_ms"]
    assert [finding.severity for finding in reading(found)[:2]] == ["error", "warning"]


def test_a_key_of_no_known_name_leads_where_nothing_else_differs(tmp_path: Path) -> None:
    found = compared(timed(loop(), 0), timed(loop(), 1.5), tmp_path)
    assert found.first is not None
    assert found.first.name == "elapsed_ms"
