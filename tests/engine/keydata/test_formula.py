from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.keydata.formula import Operation, Term, equation, number, term, value, written

numbers = st.integers(0, 9)
terms = st.recursive(
    numbers.map(Fraction) | st.sampled_from(["a", "b_2", "c"]),
    lambda inner: st.builds(Operation, st.sampled_from("+-*/"), inner, inner),
    max_leaves=12,
)
VALUES = {"a": Fraction(7), "b_2": Fraction(3), "c": Fraction(0)}


def result(of: Term) -> Fraction | None:
    try:
        return value(of, VALUES)
    except ZeroDivisionError:
        return None


@given(terms)
def test_what_is_written_is_read_again_as_the_same_calculation(of: Term) -> None:
    text = written(of, str).replace("×", "*").replace("−", "-")
    assert written(term(text), str) == written(of, str)
    assert result(term(text)) == result(of)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4", 14), ("(2 + 3) * 4", 20), ("20 / 5 / 2", 2), ("20 / (5 / 2)", 8), ("9 - 3 - 2", 4), ("9 - (3 - 2)", 8),
        ("1 / 3 * 3", 1), ("a * b_2 - c", 21), ("a/(b_2*2)", Fraction(7, 6)),
    ],
)  # fmt: skip
def test_points_come_before_lines_and_what_is_left_first(text: str, expected: Fraction) -> None:
    assert value(term(text), VALUES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a = 7", True), ("a > b_2", True), ("a > 7", False), ("a >= 7", True), ("b_2 <= c", False), ("c < 1", True)],
)
def test_an_equation_holds_or_does_not(text: str, expected: bool) -> None:
    assert equation(text).holds(VALUES) is expected


@pytest.mark.parametrize(
    "text",
    ["", "a", "a = ", "= a", "a = b = c", "(a = b", "a) = b", "a ** 2 = 1", "a b = 1",
     "a.b = 1", "__import__('os') = 1", "a = 'x'", "a == 1", "-a = 1", "A = 1"],
)  # fmt: skip
def test_nothing_else_can_be_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        equation(text)


def test_a_number_is_written_whole_or_with_four_digits() -> None:
    assert [number(Fraction(8)), number(Fraction(1, 3)), number(Fraction(-5, 2))] == ["8", "0.3333", "-2.5"]
