"""Fingerprints of tokens: what speaks for the same tokens, what against it, and what several passes come to together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.parts.same_tokens import Feed, same_tokens
from compare.engine.parts.tokens import Agreement, Tokens, agreement, together

PROMPT = Tokens(12, 23, 246, None, "torch.int64", 0, 11, (0.0654296875, -0.06201171875, 0.57421875), 768)
BF16_ULP = 2.0**-8  # of numbers from 0.5 to 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Agreement.LIKELY),
        ({"count": 11}, Agreement.COUNT),
        ({"most": 245}, Agreement.IDS),
        ({"least": 22}, Agreement.IDS),
        ({"embedding": (0.0654296875, -0.06201171875, 0.57421875 + BF16_ULP)}, Agreement.LIKELY),
        ({"embedding": (0.0654296875, -0.06201171875, 0.57421875 + 2 * BF16_ULP)}, Agreement.EMBEDDING),
        ({"embedding": (0.0654296875, -0.0634765625, 0.57421875)}, Agreement.EMBEDDING),
        ({"embedding": (9.0, -9.0, 9.0), "elements": 384}, Agreement.LIKELY),  # half of it, on a rank: says nothing
        ({"embedding": None}, Agreement.LIKELY),
        ({"least": None, "most": None}, Agreement.LIKELY),  # the embedding alone
        ({"least": None, "most": None, "embedding": None}, Agreement.UNKNOWN),
        ({"first": 40, "last": 51}, Agreement.LIKELY),  # positions counted from elsewhere: the comparison says so
        ({"checksum": "1cd1d9cf"}, Agreement.LIKELY),  # the other side has none
    ],
)
def test_everything_that_both_sides_know_must_agree(change: dict[str, object], expected: Agreement) -> None:
    other = replace(PROMPT, **change)  # type: ignore[arg-type]
    assert agreement(PROMPT, other) is expected
    assert agreement(other, PROMPT) is expected


def test_one_token_at_another_position_is_another_decode_step() -> None:
    one = Tokens(1, 7, 7, None, "torch.int64", 12, 12, (0.5, -0.5, 3.0), 64)
    assert agreement(one, one) is Agreement.LIKELY
    assert agreement(one, replace(one, first=15, last=15)) is Agreement.POSITIONS


def test_a_checksum_decides_alone_where_dtype_and_kind_agree() -> None:
    one = replace(PROMPT, checksum="1cd1d9cf")
    assert agreement(one, replace(one, embedding=(7.0, 7.0, 7.0))) is Agreement.EXACT  # the same ids: the weights differ
    assert agreement(one, replace(one, checksum="1cd1d9ce")) is Agreement.CHECKSUM
    assert agreement(one, replace(one, checksum="0a0b0c0d", dtype="torch.int32")) is Agreement.LIKELY  # other bytes for the same ids
    assert agreement(one, replace(one, checksum="0x00000000000000ff")) is Agreement.LIKELY  # another kind of checksum


def test_chunks_are_the_whole_prompt_together() -> None:
    left = Tokens(5, 23, 200, None, "torch.int64", 0, 4, (0.5, -0.25, 3.0), 320)
    right = Tokens(7, 40, 246, None, "torch.int64", 5, 11, (0.25, -0.75, 4.0), 448)
    assert together([left, right]) == Tokens(12, 23, 246, None, "torch.int64", 0, 11, (0.5, -0.75, 5.0), 768, pieces=2)
    assert together([left, replace(right, first=6, last=12)]) is None  # position 5 is missing
    assert together([right, left]) is None
    assert together([replace(left, embedding=None), right]) == Tokens(12, 23, 246, None, "torch.int64", 0, 11, None, 768, pieces=2)


def test_a_fingerprint_survives_the_inventory() -> None:
    for tokens in (PROMPT, Tokens(1), replace(PROMPT, checksum="ff", embedding=None)):
        assert Tokens.from_document(tokens.document()) == tokens


def feed(*passes: Tokens, lane: str = "a") -> Feed:
    return Feed(lane, passes)


def fed(ids: np.ndarray[Any, Any], table: np.ndarray[Any, Any], first: int) -> Tokens:
    """The fingerprint of a pass over these ids."""
    rows = table[ids]
    embedding = (float(rows.max()), float(rows.min()), float(np.linalg.norm(rows)))
    return Tokens(len(ids), int(ids.min()), int(ids.max()), None, "torch.int64", first, first + len(ids) - 1, embedding, rows.size)


def test_one_dump_pairs_with_the_only_one_that_fits() -> None:
    other = replace(PROMPT, most=211)
    found = same_tokens([feed(PROMPT), feed(other)], [feed(Tokens(1, 5, 5)), feed(other), feed(Tokens(1, 9, 9)), feed(PROMPT)])
    assert {at: run for at, (run, _) in found.pairs.items()} == {0: (3,), 1: (1,)}
    assert not found.several
    assert not found.refused


def test_nothing_is_chosen_among_several_that_fit() -> None:
    found = same_tokens([feed(PROMPT)], [feed(PROMPT), feed(PROMPT)])
    assert found.several == {0: [(0,), (1,)]}
    found = same_tokens([feed(PROMPT), feed(PROMPT)], [feed(PROMPT)])
    assert found.several == {0: [(0,)], 1: [(0,)]}
    assert not found.pairs


def test_a_checksum_decides_between_several_that_statistics_allow() -> None:
    known = replace(PROMPT, checksum="1cd1d9cf")
    found = same_tokens([feed(known)], [feed(PROMPT), feed(known)])
    assert found.pairs == {0: ((1,), Agreement.EXACT)}


def test_what_does_not_fit_is_refused_with_the_closest_and_the_reason() -> None:
    found = same_tokens(
        [feed(PROMPT)], [feed(Tokens(1, 5, 5)), feed(replace(PROMPT, most=9)), feed(replace(PROMPT, embedding=(0.1, -0.1, 0.7)))]
    )
    assert (found.refused[0].closest, found.refused[0].against) == (2, Agreement.EMBEDDING)
    found = same_tokens([feed(PROMPT)], [feed(Tokens(1, 5, 5)), feed(Tokens(10, 5, 5))])
    assert (found.refused[0].closest, found.refused[0].against) == (1, Agreement.COUNT)
    assert same_tokens([feed(PROMPT)], []).refused[0].closest is None
    assert same_tokens([feed()], [feed(PROMPT)]).refused[0].against is Agreement.UNKNOWN


def test_chunks_over_steps_of_one_lane_only() -> None:
    ids = np.random.default_rng(5).integers(1, 256, 12)
    embedding = np.random.default_rng(6).normal(size=(256, 8))

    def seen(begin: int, end: int, offset: int = 0) -> Tokens:
        return fed(ids[begin:end], embedding, begin + offset)

    whole, first, second = feed(seen(0, 12)), seen(0, 5), seen(5, 12)
    assert same_tokens([whole], [feed(first), feed(second)]).pairs == {0: ((0, 1), Agreement.LIKELY)}
    assert not same_tokens([whole], [feed(first), feed(second, lane="b")]).pairs
    assert not same_tokens([whole], [feed(second), feed(first)]).pairs
    assert same_tokens([whole], [feed(first, second, seen(11, 12, 1))]).pairs == {0: ((0,), Agreement.LIKELY)}  # all in one dump


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.integers(0, 2**32))
def test_a_prompt_cut_anywhere_is_found_again(widths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids, table = rng.integers(0, 1000, sum(widths)), rng.normal(size=(1000, 4))

    def seen(begin: int, end: int) -> Tokens:
        return fed(ids[begin:end], table, begin)

    ends = np.cumsum(widths).tolist()
    pieces = [seen(end - width, end) for end, width in zip(ends, widths, strict=True)]
    whole = together(pieces)
    assert whole is not None
    assert agreement(seen(0, len(ids)), whole).same
    assert whole.embedding is not None
    assert whole.embedding[:2] == (table[ids].max(), table[ids].min())
    assert math.isclose(whole.embedding[2], float(np.linalg.norm(table[ids])), rel_tol=1e-12)
