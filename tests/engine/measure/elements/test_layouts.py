"""Whatever order the two sides keep their numbers in, the same number meets itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.measure.elements.compare import compared
from compare.engine.measure.elements.ends import End, How, Piece
from compare.engine.measure.elements.layout import Side, best, fits, layouts
from compare.engine.measure.elements.padding import UNPADDED, Rows
from tests.engine.measure.elements.tensors import chosen, side, tensor, whole


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(left: Side, right: Side) -> str:
    layout = chosen(left, right)
    a, b = whole(layout)
    np.testing.assert_array_equal(a, b)
    assert compared(layout).identical == a.size
    return layout.name


def test_a_batch_of_one_is_no_dimension() -> None:
    x = numbers(12, 64)
    assert same(side(x[None]), side(x)) == "same"
    assert same(side(x[:, None]), side(x[None])) == "same"
    assert same(side(x[0, :1]), side(x[0, 0])) == "same"


def test_two_prompts_in_one_row_are_packed_in_order() -> None:
    x = numbers(2, 6, 8)
    assert same(side(x), side(x.reshape(12, 8))) == "reshaped"


def test_sequence_first_is_turned_by_the_sizes() -> None:
    x = numbers(2, 6, 8)
    assert same(side(x), side(x.transpose(1, 0, 2).copy())) == "permuted"


def test_sequence_first_against_packed_rows_is_told_by_the_numbers() -> None:
    x = numbers(2, 6, 8)
    assert same(side(x.transpose(1, 0, 2).copy()), side(x.reshape(12, 8))) == "permuted"


def test_heads_before_tokens_are_turned() -> None:
    x = numbers(7, 4, 16)  # tokens, heads, width
    assert same(side(x.transpose(1, 0, 2)[None].copy()), side(x.reshape(7, 64))) == "permuted"


def test_parts_side_by_side_are_the_fused_output() -> None:
    q, k, v = numbers(1, 5, 8), numbers(1, 5, 4, seed=1), numbers(1, 5, 4, seed=2)
    assert same(side(q, k, v), side(np.concatenate([q, k, v], -1)[0])) == "same"


def test_weights_of_parts_lie_below_each_other() -> None:
    q, k = numbers(8, 16), numbers(4, 16, seed=1)
    assert same(side(q, k), side(np.concatenate([q, k]))) == "same"
    assert same(side(numbers(8), numbers(4, seed=1)), side(np.concatenate([numbers(8), numbers(4, seed=1)]))) == "same"


def fused_over_ranks(parts: list[Any], ranks: int, axis: int) -> list[Any]:
    split = [np.split(part, ranks, axis) for part in parts]
    return [np.concatenate([part[rank] for part in split], axis) for rank in range(ranks)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_fused_tensor_over_ranks_is_cut_into_its_parts(axis: int, ranks: int) -> None:
    shape = (lambda n: (n, 6)) if axis == 0 else (lambda n: (6, n))
    parts = [numbers(*shape(16)), numbers(*shape(8), seed=1), numbers(*shape(8), seed=2)]
    shards = fused_over_ranks(parts, ranks, axis)
    same(side(*parts), side(shards))
    same(side(shards), side(*parts))
    same(side(np.concatenate(parts, axis)), side(shards))  # fused on both sides: the numbers decide among the cuts of a decoder
    same(side(*[[*np.split(part, 2, axis)] for part in parts]), side(shards))


def test_rows_over_ranks_are_put_below_each_other() -> None:
    x = numbers(12, 8)
    assert same(side(x), side([x[:6], x[6:]])) == "same"


def test_padding_is_left_out_by_the_mask() -> None:
    tokens = numbers(5, 8)
    padded = np.full((2, 4, 8), 9.0, np.float32)
    mask = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])
    padded[mask.astype(bool)] = tokens
    rows = np.flatnonzero(mask)
    left = Side([[tensor(padded)]], Rows(rows, mask.size, UNPADDED))
    assert same(left, side(tokens)) == "unpadded"
    both = Side([[tensor(padded)], [tensor(padded * 2)]], Rows(rows, mask.size, UNPADDED))
    assert same(both, side(np.concatenate([tokens, tokens * 2], 1))) == "unpadded"


def test_shapes_without_a_common_order_are_not_compared() -> None:
    assert best(layouts(side(numbers(3, 4)), side(numbers(5, 4)))) is None
    assert best(layouts(side(numbers(3, 4), numbers(3, 5)), side(numbers(3, 8)))) is None


def test_a_sum_is_added_in_float32_and_rounded_once() -> None:
    a, b = np.array([[1.0, 2049.0]], np.float16), np.array([[2.0**-11, 1.0]], np.float16)
    end = End([Piece(tensor(a), None, 1), Piece(tensor(b), None, 1)], How.SUM)
    np.testing.assert_array_equal(end.block(0, 1, 0, 2), (a.astype(np.float32) + b.astype(np.float32)).astype(np.float16))


SHAPES = st.lists(st.integers(2, 5), min_size=1, max_size=4)


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4, unique=True), st.data())
def test_any_permutation_with_other_sizes_is_undone(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    x = numbers(*shape)
    same(side(x), side(x.transpose(order).copy()))


@given(SHAPES, st.integers(0, 3))
def test_every_fit_is_a_matrix_of_the_same_size_on_both_sides(shape: list[int], merged: int) -> None:
    other = tuple(shape[: len(shape) - 1 - merged % len(shape)])
    other = (*other, int(np.prod(shape[len(other) :])))
    found = list(fits(tuple(shape), other))
    assert found
    for fit in found:
        a, b = (
            End([Piece(tensor(numbers(*shape)), fit.left, fit.left_inner)]),
            End([Piece(tensor(numbers(*other)), fit.right, fit.right_inner)]),
        )
        assert a.shape == b.shape


@pytest.mark.parametrize("columns", [3, 10_000])
def test_a_matrix_of_many_blocks_is_read_whole(columns: int) -> None:
    x = numbers(40, columns)
    y = x.copy()
    y[17, columns - 1] += 1
    found = compared(chosen(side(x), side(y)))
    assert found.count == x.size
    assert found.identical == x.size - 1
    assert found.worst[0][1:3] == (17, columns - 1)
    assert np.argmax(found.along_rows.squares()) == 17
