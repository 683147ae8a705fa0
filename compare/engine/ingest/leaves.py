"""One decoded leaf value, from either decoder, in the same normal form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from compare.engine.ingest.splitter import whole_characters

Number = TypeVar("Number")
Plain: TypeAlias = float | bool
Written: TypeAlias = float | bool | str

NOT_NUMBER = re.compile(rb'("(?:Max|Min|Mean|Norm)"[ \t\r\n]*:[ \t\r\n]*)(NaN|-?Infinity)')
# What stands for a bare NaN or infinity while a strict parser reads the text: numbers that it reads fast (15 digits, small exponents).
# TRACE is in all of them, however they are written, and in no text that is marked.
MARKS = {b"NaN": b"-918273645546372e9", b"-Infinity": b"-918273645546372e8", b"Infinity": b"918273645546372e8"}
MARKED_NUMBERS = tuple((float(mark), float(word)) for word, mark in MARKS.items())
STATISTICS = (b"Max", b"Min", b"Mean", b"Norm")
TRACE = b"18273645546372"
TENSOR_TYPES = frozenset({"torch.Tensor", "mindspore.Tensor", "numpy.ndarray"})
NUMBER_TYPES = frozenset({"int", "float", "bool", "complex"})
LARGEST_COUNT = 2**63 - 1  # elements of one tensor
ABSENT = frozenset({"", "none", "null", "n/a"})


class LeafValue(msgspec.Struct, Generic[Number], gc=False):
    """The members of a leaf that matter, named as the dumper writes them. No ``type`` means that the object was no leaf but a dict of them.

    msgspec decodes it with plain numbers, or with numbers that may be strings, which ``settle`` then reads; what is odder than that (shapes
    that are no shapes, numbers in other places) comes from ``from_json``.
    """

    type: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    maximum: Number | None = msgspec.field(default=None, name="Max")
    minimum: Number | None = msgspec.field(default=None, name="Min")
    mean: Number | None = msgspec.field(default=None, name="Mean")
    norm: Number | None = msgspec.field(default=None, name="Norm")
    md5: str | None = None
    tensor_stat_index: int | None = None
    md5_index: int | None = None
    value: Any = None
    format: str | None = None
    group_ranks: Any = None
    placements: Any = None
    data_name: str | None = None


class Unreadable(Exception):
    """A leaf holds something that is neither a number nor a text where one belongs; the message says what."""


def is_leaf(found: dict[str, Any]) -> bool:
    """Whether a parsed JSON object is a leaf and not a dict of them: it has a type, or else a bare dtype or shape, which no dict has."""
    return isinstance(found.get("type"), str) or isinstance(found.get("dtype"), str) or _is_bare_shape(found.get("shape"))


def odd_fields(found: dict[str, Any]) -> Iterator[str]:
    """The fields of a leaf that hold something else than they should, and are read as if they were not there."""
    if not isinstance(found.get("type"), str):
        yield "type"
    for name, reader in (
        ("dtype", _text), ("shape", _shape), ("md5", _text), ("tensor_stat_index", _index), ("md5_index", _index), ("format", _text),
    ):  # fmt: skip
        if found.get(name) is not None and reader(found[name]) is None:
            yield name


def is_possible(shape: tuple[int, ...]) -> bool:
    """Whether a tensor can have that shape: no negative size, and a number of elements that can be counted."""
    elements = 0 if 0 in shape else 1
    for size in shape:
        elements *= size
        if size < 0 or elements > LARGEST_COUNT:
            return False
    return True


def from_json(found: dict[str, Any]) -> LeafValue[Any]:
    """The leaf that a parsed JSON object stands for (``is_leaf``). Raises Unreadable."""
    return LeafValue(
        type=_text(found.get("type")),
        dtype=_text(found.get("dtype")),
        shape=_shape(found.get("shape")),
        maximum=_number(found.get("Max"), "Max"),
        minimum=_number(found.get("Min"), "Min"),
        mean=_number(found.get("Mean"), "Mean"),
        norm=_number(found.get("Norm"), "Norm"),
        md5=_text(found.get("md5")),
        tensor_stat_index=_index(found.get("tensor_stat_index")),
        md5_index=_index(found.get("md5_index")),
        value=found.get("value"),
        format=_text(found.get("format")),
        group_ranks=found.get("group_ranks"),
        placements=found.get("placements"),
        data_name=_text(found.get("data_name")),
    )


def settle(leaf: LeafValue[Any]) -> None:
    """Turn statistics that are strings into numbers, in place. Raises Unreadable."""
    if isinstance(leaf.maximum, str):
        leaf.maximum = _number(leaf.maximum, "Max")
    if isinstance(leaf.minimum, str):
        leaf.minimum = _number(leaf.minimum, "Min")
    if isinstance(leaf.mean, str):
        leaf.mean = _number(leaf.mean, "Mean")
    if isinstance(leaf.norm, str):
        leaf.norm = _number(leaf.norm, "Norm")


def quote_not_numbers(text: bytes) -> bytes:
    """JSON text with the bare NaN and Infinity of statistics put in quotes, so that a strict parser takes it.

    Only what stands behind a whole name such as "Max" is touched. Inside a string such a name would end in an escaped quote, so nothing
    that belongs to a string can be meant.
    """
    return NOT_NUMBER.sub(rb'\1"\2"', text)


def mark_not_numbers(text: bytes) -> bytes | None:
    """JSON text as the dumper writes it, with numbers (``MARKS``) for the bare NaN and infinities of statistics; None where it holds such
    a number itself.

    Only what stands behind a name that ends in Max, Min, Mean or Norm is touched; inside a string the quote would be an escaped one.
    """
    if TRACE in text:
        return None
    for word, mark in MARKS.items():
        if word in text:
            for name in STATISTICS:
                text = text.replace(b'%b": %b' % (name, word), b'%b": %b' % (name, mark))
    return text


def as_float(number: float) -> float:
    """A float64 for an int, bool or float. Raises Unreadable when it is beyond the range of float64."""
    try:
        return float(number)
    except OverflowError as error:
        raise Unreadable("a number beyond the range of float64") from error


def parse_float(text: str) -> float:
    """json's own reading of a number with a point or exponent, but 1e400 is refused: a dumper would have written Infinity."""
    number = float(text)
    if math.isinf(number):
        raise Unreadable(f"the number {text[:40]}, which is beyond the range of float64")
    return number


def written_number(text: str) -> float | None:
    """The number that a string such as "nan", "-Inf" or "1.5" holds, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def as_text(value: Any) -> str:
    """One line for a value that is compared as text: strings as they are, lists as Python prints lists of numbers."""
    if isinstance(value, str):
        return whole_characters(value)
    return whole_characters(json.dumps(value, ensure_ascii=False))


def _text(value: Any) -> str | None:
    return whole_characters(value) if isinstance(value, str) else None


def _index(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _shape(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(isinstance(size, int) and not isinstance(size, bool) for size in value):
        return tuple(value)
    return None


def _is_bare_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and _shape(value) is not None


def _number(value: Any, name: str) -> float | None:
    if value == "NaN":  # what nearly all strings for numbers are
        return math.nan
    if value is None:
        return None
    if isinstance(value, int | float):
        return as_float(value)
    if isinstance(value, str):
        number = written_number(value)
        if number is not None:
            return number
        if value.strip().lower() in ABSENT:
            return None
    raise Unreadable(f"a {name} that is no number")
