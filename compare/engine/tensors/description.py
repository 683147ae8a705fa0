"""What a tensor file holds, before any of its numbers is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from compare.engine.errors import DumpError
from compare.engine.tensors import limits

ByteOrder = Literal["little", "big"]
LARGEST_INT = 2**63 - 1
PRINTED_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class ElementType:
    """One type of element. ``stored`` is the numpy code of its bytes without byte order, ``value`` the dtype that arrays have."""

    name: str
    stored: str
    value: np.dtype[Any]

    @property
    def width(self) -> int:
        """Bytes of one element."""
        return int(self.stored[1:])


def _plain(name: str) -> ElementType:
    value = np.dtype(name)
    return ElementType(name, f"{value.kind}{value.itemsize}", value)


def _bits(name: str, value: Any) -> ElementType:
    dtype = np.dtype(value)
    return ElementType(name, f"u{dtype.itemsize}", dtype)


# The names are torch's, without "torch."; of plain types numpy has the same.
ELEMENT_TYPES: dict[str, ElementType] = {
    kind.name: kind
    for kind in (
        *map(_plain, ("float64", "float32", "float16", "complex128", "complex64")),
        *map(_plain, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
        ElementType("bool", "u1", np.dtype(np.bool_)),
        ElementType("complex32", "u4", np.dtype(np.complex64)),  # two float16, which numpy has no type for
        _bits("bfloat16", ml_dtypes.bfloat16),
        _bits("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
        _bits("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
        _bits("float8_e5m2", ml_dtypes.float8_e5m2),
        _bits("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
        _bits("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu),
    )
}


@dataclass(frozen=True, slots=True)
class Description:
    """A tensor as a view of a storage.

    ``dtype`` is a key of ELEMENT_TYPES; ``stride`` and ``offset`` count elements; ``storage`` is the key that the file keeps the storage
    under ("" in .npy) and ``storage_bytes`` its size. ``conjugate`` and ``negative`` say that the stored numbers are to be conjugated or
    negated, which torch puts off.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: str
    storage_bytes: int
    byte_order: ByteOrder = "little"
    conjugate: bool = False
    negative: bool = False

    @property
    def element(self) -> ElementType:
        return ELEMENT_TYPES[self.dtype]

    @property
    def size(self) -> int:
        """Number of elements; 1 of a tensor without dimensions."""
        return math.prod(self.shape)

    def check(self, place: str) -> None:
        """Refuse a view that leaves its storage, or that would be work without end. Python's integers do not overflow.

        Raises DumpError (tensor_shape, tensor_bounds, tensor_repeats).
        """
        shown = {"shape": printed(self.shape), "stride": printed(self.stride), "offset": printed(self.offset)}
        numbers = (*self.shape, *self.stride, self.offset)
        fits = len(self.shape) == len(self.stride) <= limits.MOST_DIMENSIONS
        without_zeros = math.prod(length or 1 for length in self.shape[: limits.MOST_DIMENSIONS])
        if not fits or min(numbers) < 0 or max(*numbers, without_zeros * self.element.width) > LARGEST_INT:
            raise DumpError("tensor_shape", place, **shown)
        held = self.storage_bytes // self.element.width
        if self.size == 0:
            return
        reach = self.offset + sum((length - 1) * step for length, step in zip(self.shape, self.stride, strict=True))
        if reach >= held:
            raise DumpError("tensor_bounds", place, **shown, reach=printed(reach + 1), held=held)
        if self.size > held and self.size > limits.MOST_REPEATED:
            raise DumpError("tensor_repeats", place, elements=self.size, held=held, limit=limits.MOST_REPEATED)


def contiguous_stride(shape: Sequence[int], *, columns_first: bool = False) -> tuple[int, ...]:
    """Strides in elements of an array without gaps, row-major or (``columns_first``) as Fortran lays it out."""
    strides: list[int] = []
    step = 1
    for length in shape if columns_first else reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(strides if columns_first else reversed(strides))


def printed(value: int | Sequence[int]) -> str:
    """A number or numbers for a message: ``2``, ``[2, 3]``, of bounded length."""
    if isinstance(value, int):
        return str(value) if abs(value) <= LARGEST_INT else "…"
    shown = [printed(number) for number in value[:PRINTED_DIMENSIONS]]
    return f"[{', '.join(shown)}{', …' if len(value) > PRINTED_DIMENSIONS else ''}]"
