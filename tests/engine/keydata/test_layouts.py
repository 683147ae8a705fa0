"""Sequences in another order, on other ranks or in other micro-batches: what is the same, and what is not, is found where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.diagnose.run_loop import loop_document
from compare.engine.diagnose.run_reading import reading
from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.key_comparison import KeyDataComparison
from compare.engine.keydata.published import KeyDataReader
from compare.engine.options import Options
from compare.engine.pipeline import Source, compare_runs, read_run, silent
from tests.engine.keydata.loops import LENGTHS, PER_TOKEN, SCALARS, Loop, copy, loop, moved, permuted, without
from tests.engine.keydata.trees import compared, in_memory, keys, states, write

ALL = ("prompts", "responses", *PER_TOKEN, *SCALARS)
EQUAL = dict.fromkeys(ALL, "equal")


def both_ways(left: Loop, right: Loop, folder: Path) -> tuple[KeyDataComparison, KeyDataComparison]:
    return compared(left, right, folder / "there"), compared(right, left, folder / "back")


def said(found: KeyDataComparison) -> dict[str, Any]:
    return loop_document(found, (None, None), [])


def codes(found: KeyDataComparison) -> set[str]:
    return {finding.code for finding in reading(found)}


def test_lists_in_another_order_leave_tables_alone_that_are_equal_in_place(tmp_path: Path) -> None:
    for found in both_ways(loop(), permuted(loop(), [2, 3, 0, 1], tables=False), tmp_path):
        assert states(found) == EQUAL
        assert said(found)["verdict"] == "identical"
        assert "prompts_reordered" in codes(found)


def test_one_number_that_differs_does_not_move_the_other_tables_of_its_step(tmp_path: Path) -> None:
    """Micro-batches of one sequence: the line that differs agrees neither in place nor by sequence."""
    tree = loop(batch=1)
    right = moved(permuted(tree, [2, 3, 0, 1], tables=False), "ref_log_prob", (1, 0, 2))
    for found in both_ways(tree, right, tmp_path):
        assert states(found) == EQUAL | {"ref_log_prob": "differs"}
        (pair,) = keys(found)["ref_log_prob"].differing
        assert pair.place == (1, 0, 2, "0")
        assert pair.numbers is not None
        assert pair.numbers.max_abs == pytest.approx(0.25)


def test_micro_batches_of_the_same_sequences_are_held_against_each_other(tmp_path: Path) -> None:
    right = permuted(loop(), [2, 3, 0, 1])
    for key, step, rank, micro in loop():
        if key in SCALARS:
            right[key, step, rank, micro] = loop()[key, step, rank, 1 - micro]
    for found in both_ways(loop(), right, tmp_path / "same"):
        assert states(found) == EQUAL
    for found in both_ways(loop(), moved(right, "kl_loss", (1, 0, 0)), tmp_path / "other"):
        assert states(found) == EQUAL | {"kl_loss": "differs"}
        assert keys(found)["kl_loss"].counts["differs"] == 1


def test_losses_of_micro_batches_of_other_sequences_are_not_comparable(tmp_path: Path) -> None:
    right = permuted(loop(), [0, 2, 1, 3])
    for key, step, rank, micro in loop():
        if key in SCALARS:
            right[key, step, rank, micro] = np.float32(5)
    for found in both_ways(loop(), right, tmp_path):
        assert states(found) == EQUAL | dict.fromkeys(SCALARS, "not_compared")
        assert keys(found)["loss"].counts["not_comparable"] == 8
        assert said(found)["verdict"] == "consistent"
        assert "16 tables not compared" in said(found)["beside"]["en"]


def test_micro_batches_of_another_size_are_compared_by_sequence(tmp_path: Path) -> None:
    right = copy(loop(batch=4))
    for key, step, rank, micro in list(right):
        if key in SCALARS:
            right[key, step, rank, micro] = np.float32(5)
    for found in both_ways(loop(), right, tmp_path):
        assert states(found) == EQUAL | dict.fromkeys(SCALARS, "not_compared")
    for found in both_ways(loop(), moved(right, "old_log_prob", (1, 1, 0)), tmp_path / "other"):
        assert states(found)["old_log_prob"] == "differs"
        assert states(found)["ref_log_prob"] == "equal"


@pytest.mark.parametrize("copies", [1, 2])
def test_a_rank_that_one_run_lacks_is_named_and_nothing_differs(copies: int, tmp_path: Path) -> None:
    tree = loop(ranks=4, copies=copies)
    there, back = both_ways(tree, without(tree, rank=3), tmp_path)
    assert states(there) == states(back) == EQUAL
    assert said(there)["verdict"] == "consistent"
    assert said(there)["beside"]["en"] == "40 tables only on the left (rank 3)"
    assert said(back)["beside"]["zh"] == "仅右侧有 40 个表（rank 3）"


def test_ranks_that_overlap_are_not_shifted_against_each_other(tmp_path: Path) -> None:
    """The left lacks rank 3 of four with data of their own, the right rank 0: as many ranks, at a constant distance."""
    tree = loop(ranks=4)
    found = compared(without(tree, rank=3), without(tree, rank=0), tmp_path)
    assert states(found) == EQUAL
    assert found.shift == 0
    assert said(found)["beside"]["en"] == "40 tables only on the left (rank 0), 40 tables only on the right (rank 3)"


def test_ranks_that_are_counted_from_one_meet_and_the_shift_is_said(tmp_path: Path) -> None:
    right = {(key, step, rank + 1, micro): value for (key, step, rank, micro), value in loop(ranks=3).items()}
    found = compared(loop(ranks=3), right, tmp_path)
    assert states(found) == EQUAL
    assert "key_data_ranks_shifted" in codes(found)


def test_one_tensor_parallel_rank_stands_against_two(tmp_path: Path) -> None:
    for found in both_ways(loop(ranks=2), loop(ranks=4, copies=2), tmp_path):
        assert states(found) == EQUAL
        assert "(ranks 1, 3)" in said(found)["beside"]["en"]


def test_data_parallel_ranks_that_changed_places_are_compared_with_their_own(tmp_path: Path) -> None:
    tree = loop(ranks=4, copies=2)
    right = {(key, step, (rank + 2) % 4, micro): value for (key, step, rank, micro), value in tree.items()}
    for found in both_ways(tree, right, tmp_path):
        assert states(found) == EQUAL


def test_a_sequence_that_was_lost_is_on_one_side_only_whichever_side_that_is(tmp_path: Path) -> None:
    right = copy(loop())
    for key in ("prompts", "responses"):
        right[key, 1, 0, 0] = right[key, 1, 0, 0][1:]
    there, back = both_ways(loop(), right, tmp_path)
    for found, state in ((there, "left_only"), (back, "right_only")):
        assert states(found) == EQUAL
        for key in ("prompts", "responses"):
            assert {name: count for name, count in keys(found)[key].counts.items() if count} == {"equal": 15, state: 1}
    rows = [pair.rows[1] for pair in keys(there)["prompts"].pairs if pair.rows[1] >= 0]
    assert len(rows) == len(set(rows))


def test_values_of_sequences_that_moved_are_shown_side_by_side(tmp_path: Path) -> None:
    right = moved(permuted(loop(), [0, 2, 1, 3]), "ref_log_prob", (1, 0, 1))  # line 0 there is sequence 1, the second line of micro-step 0
    runs = []
    for name, tree in (("left", loop()), ("right", right)):
        root = write(tree, tmp_path / name)
        runs.append(tmp_path / f"{name} columns")
        read_run([Source(path, str(path.relative_to(root))) for path in sorted(root.rglob("*.*"))], name, runs[-1], silent)
    compare_runs(*runs, Options(), tmp_path / "result", silent, lambda _: None)
    reader = KeyDataReader(tmp_path / "result", *runs)
    shown = reader.table(2, 4, 1, 0)
    assert (shown["key"], shown["table"]["note"], shown["table"]["state"]) == ("ref_log_prob", "by_sequence", "differs")
    assert (shown["table"]["step"], shown["table"]["rank"], shown["table"]["micro_step"]) == (1, 0, 0)
    assert [row["valid"] for row in shown["rows"]] == [4, 2]
    assert shown["difference"] == [pytest.approx(-0.25), 0.0]


def test_a_batch_that_the_trainer_shuffled_is_not_taken_for_padding(tmp_path: Path) -> None:
    """The tables hold the sequences in another order than the lists: the last line is of the longest, its last position no padding."""
    left = permuted(loop(), [1, 3, 2, 0], lists=False)
    right = copy(left)
    right["ref_log_prob", 1, 0, 1][1, 3] -= np.float32(0.5)
    assert states(compared(left, right, tmp_path)) == EQUAL | {"ref_log_prob": "differs"}


ORDERS = st.permutations(range(len(LENGTHS)))
PLANTS = st.none() | st.tuples(st.sampled_from(PER_TOKEN), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))


@given(ORDERS, st.booleans(), st.booleans(), PLANTS)
@settings(deadline=None, max_examples=30)
def test_whatever_the_order_a_number_that_differs_is_found_and_nothing_else(
    order: list[int], lists: bool, tables: bool, plant: tuple[str, int, int, int] | None
) -> None:
    """Lists, tables or both in another order: tables reordered without their lists differ, all else but what was planted is the same."""
    left, right = loop(), permuted(loop(), order, lists=lists, tables=tables)
    if plant is not None:
        right = moved(right, plant[0], plant[1:])
    there, back = (compare_key_data(*(in_memory(tree) for tree in sides)) for sides in ((left, right), (right, left)))
    assert states(there) == states(back)
    if tables and not lists and order != sorted(order):
        return
    wanted = EQUAL if plant is None else EQUAL | {plant[0]: "differs"}
    known = {key: state for key, state in states(there).items() if key not in SCALARS}
    assert known == {key: state for key, state in wanted.items() if key not in SCALARS}
    if plant is not None:
        assert there.first is not None
        assert (there.first.name, there.first.own.place[:2]) == (plant[0], plant[1:3])  # type: ignore[union-attr]
    assert not any(keys(there)[key].counts["differs"] for key in SCALARS if not tables or order == sorted(order))
