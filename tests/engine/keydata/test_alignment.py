from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.diagnose.run_reading import reading
from compare.engine.keydata.copies import check_copies, copies
from compare.engine.keydata.documents import table_document
from tests.engine.keydata.trees import array, compared, keys, states, tables

# Four sequences: two prompts, two responses each, of 3, 1, 2 and 3 tokens.
PROMPTS = [array(1, 2), array(1, 2), array(5, 6, 7), array(5, 6, 7)]
RESPONSES = [array(10, 11, 12), array(20), array(30, 31), array(40, 41, 42)]
LOG_PROBS = [array(-1, -2, -3), array(-4), array(-5, -6), array(-7, -8, -9)]


def batch(order: list[int], width: int, padding: float) -> np.ndarray:
    found = np.full((len(order), width), padding, np.float32)
    for line, at in enumerate(order):
        found[line, : len(LOG_PROBS[at])] = LOG_PROBS[at]
    return found


def loop(order: list[int], width: int = 3, padding: float = 0.0) -> dict[tuple[str, int, int, int], Any]:
    return {
        ("prompts", 0, 0, 0): [PROMPTS[at] for at in order],
        ("responses", 0, 0, 0): [RESPONSES[at] for at in order],
        ("log_prob", 0, 0, 0): batch(order[:2], width, padding),
        ("log_prob", 0, 0, 1): batch(order[2:], width, padding),
    }


def test_sequences_that_come_in_another_order_are_paired_by_their_content(tmp_path: Path) -> None:
    found = compared(loop([0, 1, 2, 3]), loop([2, 1, 3, 0]), tmp_path)
    assert states(found) == {"prompts": "equal", "responses": "equal", "log_prob": "equal"}
    assert found.alignment.reordered == {0}
    assert {pair.note for pair in keys(found)["log_prob"].pairs} == {"by_sequence"}
    right = [table_document(0, keys(found)["responses"], pair, found.sides)["right"] for pair in keys(found)["responses"].pairs]
    assert [None if place is None else place["id"] for place in right] == ["3", None, "0", "2"]
    (finding,) = [finding for finding in reading(found) if finding.code == "prompts_reordered"]
    assert "line by line" in finding.text["en"]


def test_padding_of_another_width_is_left_out_where_sequences_moved(tmp_path: Path) -> None:
    assert states(compared(loop([0, 1, 2, 3]), loop([3, 2, 1, 0], width=5, padding=-99), tmp_path))["log_prob"] == "equal"


def test_a_number_that_differs_is_found_in_another_order_too(tmp_path: Path) -> None:
    right = loop([1, 0, 3, 2])
    right["log_prob", 0, 0, 1][0, 2] = -10  # the last token of sequence 3
    found = compared(loop([0, 1, 2, 3]), right, tmp_path)
    assert states(found) == {"prompts": "equal", "responses": "equal", "log_prob": "differs"}
    (pair,) = keys(found)["log_prob"].differing
    assert pair.place == (0, 0, 1, "0")
    assert pair.numbers is not None
    assert pair.numbers.max_abs == 1


def test_sequences_that_stay_at_their_place_are_not_moved(tmp_path: Path) -> None:
    found = compared(loop([0, 1, 2, 3]), loop([0, 1, 2, 3]), tmp_path)
    assert not found.alignment.right_of
    right = loop([0, 1, 2, 3])
    right["responses", 0, 0, 0] = [*RESPONSES[:3], array(40, 41, 43)]
    found = compared(loop([0, 1, 2, 3]), right, tmp_path)
    assert not found.alignment.right_of
    assert states(found)["responses"] == "differs"


def test_only_positions_within_the_response_count_as_masked(tmp_path: Path) -> None:
    left, right = loop([0, 1, 2, 3], padding=0), loop([0, 1, 2, 3], padding=0)
    right["log_prob", 0, 0, 0][0, 1] = -2.5  # one of four real positions, of six
    (first, second) = keys(compared(left, right, tmp_path))["log_prob"].pairs
    assert first.numbers is not None
    assert first.masked is not None
    assert (first.numbers.same, first.numbers.compared) == (5, 6)
    assert (first.masked.same, first.masked.compared) == (3, 4)
    assert second.state == "equal"


def test_a_difference_in_padding_alone_says_so(tmp_path: Path) -> None:
    found = compared(loop([0, 1, 2, 3], padding=0), loop([0, 1, 2, 3], padding=1), tmp_path)
    assert {pair.note for pair in keys(found)["log_prob"].pairs} == {"padding_only"}
    assert "key_data_padding" in {finding.code for finding in reading(found)}


def replicated(step: int, rank: int) -> np.ndarray:
    return np.full((1, 2), -1.0 - step - rank // 2, np.float32)


def test_tensor_parallel_copies_are_told_and_counted_and_one_that_parts_is_found(tmp_path: Path) -> None:
    tree = {("log_prob", step, rank, 0): replicated(step, rank) for step in range(3) for rank in range(4)}
    tree |= {("loss", step, rank, 0): array(0.5) for step in range(3) for rank in range(4)}
    assert copies(tables(tree, tmp_path / "same")) == {"log_prob": 2, "loss": 2}
    assert not any(check.failed for check in check_copies(tables(tree, tmp_path / "same")))
    tree["loss", 1, 3, 0] = array(0.75)
    found = {check.key: check.failed for check in check_copies(tables(tree, tmp_path / "parts"))}
    assert found == {"log_prob": [], "loss": [(1, 2, 0, "0")]}
