"""API calls in sequence: an inserted call costs one unmatched row, and the alignment is as long as any can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.align.sequence import MOST_EDITS, align, align_with_anchors

TOKENS = st.lists(st.sampled_from("abcd"), max_size=24)
LONG = st.lists(st.sampled_from("ab"), max_size=60)


def longest(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of a longest common subsequence, by the textbook table."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def assert_alignment(left: Sequence[str], right: Sequence[str], found: list[tuple[int, int]]) -> None:
    assert all(left[i] == right[j] for i, j in found)
    for (i, j), (k, m) in pairwise(found):
        assert i < k
        assert j < m


@given(TOKENS, TOKENS)
@settings(max_examples=300)
def test_an_alignment_is_as_long_as_the_longest_common_subsequence(left: list[str], right: list[str]) -> None:
    found = align(left, right)
    assert_alignment(left, right, found)
    assert len(found) == longest(left, right)


@given(LONG, LONG)
@settings(max_examples=50)
def test_so_it_is_for_long_sequences_of_few_names(left: list[str], right: list[str]) -> None:
    assert len(align(left, right)) == longest(left, right)


@given(TOKENS)
def test_equal_sequences_match_one_to_one(tokens: list[str]) -> None:
    assert align(tokens, tokens) == [(i, i) for i in range(len(tokens))]


@given(TOKENS, TOKENS)
def test_swapping_the_sides_matches_as_many(left: list[str], right: list[str]) -> None:
    assert len(align(left, right)) == len(align(right, left))


@given(TOKENS, st.data())
def test_an_inserted_call_costs_one_unmatched_row(tokens: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(tokens)))
    longer = [*tokens[:place], data.draw(st.sampled_from("abcdx")), *tokens[place:]]
    assert len(align(tokens, longer)) == len(align(longer, tokens)) == len(tokens)


def test_an_inserted_call_of_a_new_name_leaves_every_other_with_its_own() -> None:
    left = ["linear", "mul", "add", "linear", "mul", "add"]
    right = ["linear", "mul", "contiguous", "add", "linear", "mul", "add"]
    assert align(left, right) == [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 6)]


@pytest.mark.parametrize(("left", "right"), [([], []), ([], ["a"]), (["a"], []), (["a"], ["b"])])
def test_nothing_in_common_matches_nothing(left: list[str], right: list[str]) -> None:
    assert align(left, right) == []


def test_sequences_that_share_hardly_anything_are_matched_by_occurrence_in_bounded_time() -> None:
    left = [f"l{i}" for i in range(MOST_EDITS)] + ["shared"]
    right = ["shared"] + [f"r{i}" for i in range(MOST_EDITS)]
    assert align(left, right) == [(len(left) - 1, 0)]


def test_beyond_the_edit_limit_the_matches_still_increase_on_both_sides() -> None:
    left = [name for i in range(300) for name in (f"l{i}", "a", "b")]
    right = [name for i in range(300) for name in ("b", f"r{i}", "a")]
    found = align(left, right)
    assert_alignment(left, right, found)
    assert found


def test_calls_that_agree_to_the_last_bit_anchor_the_alignment() -> None:
    """Of two adds on the left only the second has the numbers of the one on the right."""
    names = (["add", "add"], ["add"])
    assert align(*names)[0] in [(0, 0), (1, 0)]
    assert align_with_anchors(names, ([("add", 1), ("add", 2)], [("add", 2)])) == [(1, 0)]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=14),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=14),
)
def test_anchored_matches_are_an_alignment_by_name_that_keeps_the_most_exact_ones(
    left: list[tuple[str, int]], right: list[tuple[str, int]]
) -> None:
    names = ([name for name, _ in left], [name for name, _ in right])
    found = align_with_anchors(names, (left, right))
    assert_alignment(*names, found)
    assert sum(left[i] == right[j] for i, j in found) >= longest(left, right)  # type: ignore[arg-type]
