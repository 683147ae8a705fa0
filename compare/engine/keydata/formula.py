"""Arithmetic over named numbers, as data can say it: ``train_batch_size / (micro_batch_size * dp) = 1``.

Names, numbers, ``+ - * /``, parentheses, and one comparison. There is nothing else to say in it, so there is nothing in it to run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+)|(?P<name>[a-z_][a-z0-9_]*)|(?P<sign>>=|<=|[-+*/()=<>]))")
SHOWN = {"*": "×", "-": "−", ">=": "≥", "<=": "≤"}


@dataclass(frozen=True, slots=True)
class Operation:
    sign: str
    left: Term
    right: Term


Term: TypeAlias = "Operation | Fraction | str"
"""A calculation, a number, or the name of one."""


@dataclass(frozen=True, slots=True)
class Equation:
    """``left sign right``; the sign is one of ``= > < >= <=``."""

    left: Term
    sign: str
    right: Term

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*names(self.left), *names(self.right)]))

    def holds(self, values: Mapping[str, Fraction]) -> bool:
        """Raises ZeroDivisionError, and KeyError for a name without a value."""
        left, right = value(self.left, values), value(self.right, values)
        return {"=": left == right, ">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}[self.sign]


def equation(text: str) -> Equation:
    """Raises ValueError for what is none."""
    tokens = _Tokens(text)
    left = _sum(tokens)
    sign = tokens.take("=", ">", "<", ">=", "<=")
    if sign is None:
        raise ValueError(f"no comparison: {text}")
    right = _sum(tokens)
    tokens.end()
    return Equation(left, sign, right)


def term(text: str) -> Term:
    """One side of an equation. Raises ValueError for what is none."""
    tokens = _Tokens(text)
    found = _sum(tokens)
    tokens.end()
    return found


def names(of: Term) -> Iterator[str]:
    if isinstance(of, Operation):
        yield from names(of.left)
        yield from names(of.right)
    elif isinstance(of, str):
        yield of


def value(of: Term, values: Mapping[str, Fraction]) -> Fraction:
    """Exact. Raises ZeroDivisionError, and KeyError for a name without a value."""
    if isinstance(of, Operation):
        left, right = value(of.left, values), value(of.right, values)
        if of.sign == "/":
            return left / right
        return left * right if of.sign == "*" else left + right if of.sign == "+" else left - right
    return values[of] if isinstance(of, str) else of


def written(of: Term, shown: Callable[[str], str]) -> str:
    """As a person writes it, ``shown`` saying what stands for a name: ``ppo_mini_batch_size 64 × n 8 / (…)``."""
    if isinstance(of, str):
        return shown(of)
    if isinstance(of, Fraction):
        return number(of)
    left, right = written(of.left, shown), written(of.right, shown)
    if of.sign in "*/":
        left = f"({left})" if _sign(of.left) in ("+", "-") else left
        right = f"({right})" if isinstance(of.right, Operation) else right
    elif of.sign == "-" and _sign(of.right) in ("+", "-"):
        right = f"({right})"
    return f"{left} {SHOWN.get(of.sign, of.sign)} {right}"


def number(of: Fraction) -> str:
    """Whole numbers as they are, others with four significant digits."""
    return str(of.numerator) if of.denominator == 1 else f"{float(of):.4g}"


def _sign(of: Term) -> str | None:
    return of.sign if isinstance(of, Operation) else None


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            match = TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise ValueError(f"cannot be read from {text[at:]!r} on: {text}")
            self.found.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()

    def take(self, *signs: str) -> str | None:
        """The next token if it is one of these."""
        if self.found and self.found[0][1] in signs:
            return self.found.pop(0)[1]
        return None

    def operand(self) -> Term:
        if not self.found:
            raise ValueError(f"ends too early: {self.text}")
        kind, text = self.found.pop(0)
        if kind == "sign":
            raise ValueError(f"a name or number is missing before {text!r}: {self.text}")
        return Fraction(text) if kind == "number" else text

    def end(self) -> None:
        if self.found:
            raise ValueError(f"{self.found[0][1]!r} is left over: {self.text}")


def _sum(tokens: _Tokens) -> Term:
    found = _product(tokens)
    while sign := tokens.take("+", "-"):
        found = Operation(sign, found, _product(tokens))
    return found


def _product(tokens: _Tokens) -> Term:
    found = _operand(tokens)
    while sign := tokens.take("*", "/"):
        found = Operation(sign, found, _operand(tokens))
    return found


def _operand(tokens: _Tokens) -> Term:
    if tokens.take("("):
        found = _sum(tokens)
        if tokens.take(")") is None:
            raise ValueError(f"a parenthesis stays open: {tokens.text}")
        return found
    return tokens.operand()
