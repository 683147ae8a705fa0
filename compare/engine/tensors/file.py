"""A tensor file that was understood: its numbers as an array, or in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from compare.engine.errors import DumpError
from compare.engine.tensors import limits, npy, pt
from compare.engine.tensors.description import ELEMENT_TYPES, Description
from compare.engine.tensors.memory import Memory, from_path, from_stream

# torch.save before torch 1.6 begins with a pickled magic number; every other pickle is as unwelcome.
LEGACY_STARTS = (b"\x80\x01", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class TensorFile:
    """One tensor. Nothing has to be closed: a mapped file is let go with the last array that looks at it."""

    description: Description
    place: str
    stored: Array
    """[*shape], the file's own bytes as unsigned integers or plain numbers in the file's byte order; read-only."""
    memory: Memory

    def array(self) -> Array:
        """[*shape], read-only, of dtype ``description.element.value`` (ml_dtypes for bfloat16 and fp8; complex64 for complex32).

        A view of the mapped file, of its byte order, wherever numpy can look at the bytes as they are; a copy of bool, complex32,
        conjugated, negated, and big-endian bfloat16.
        """
        array = np.asarray(self.decode(self.stored))  # arithmetic makes scalars of arrays without dimensions
        array.flags.writeable = False
        return array

    def chunks(self, elements: int, dtype: npt.DTypeLike = np.float64) -> Iterator[Array]:
        """The elements in row-major order of the shape, whatever the strides: 1-d, ``elements`` at a time, the last chunk shorter.

        ``dtype`` is float64 or float32; complex tensors come as the complex type of twice the width. NaN and Inf stay. int64 and uint64
        beyond 2⁵³ (2²⁴ in float32) are rounded, float64 beyond float32 is Inf. Chunks of two tensors of one size fit each other. Memory: a
        chunk. An empty tensor has no chunk. A chunk may share memory with the file and is not to be written to.
        """
        wide = np.dtype(dtype)
        if self.description.element.value.kind == "c":
            wide = np.dtype(f"c{2 * wide.itemsize}")
        size = self.description.size
        flat: Any = self.stored.reshape(-1) if self.stored.flags.c_contiguous else self.stored.flat
        released = 0
        for start in range(0, size, elements):
            stop = min(start + elements, size)
            yield self._widen(flat[start:stop], wide)
            if (stop - released) * self.description.element.width >= limits.RELEASE:
                self.memory.release()
                released = stop

    def decode(self, stored: Array) -> Array:
        """Part of ``stored`` as ``description.element.value``: a view of it wherever numpy can look at the bytes as they are."""
        element = self.description.element
        if element.name == "bool":
            return np.not_equal(stored, 0)  # bytes other than 0 and 1 must not become bools as they are
        values: Array = stored
        if element.name == "complex32":
            halves = np.ascontiguousarray(_native(stored)).view(np.float16).reshape(*stored.shape, 2)
            values = _pairs_to_complex(halves)
        elif element.stored[0] != element.value.kind:
            values = _native(stored).view(element.value)
        if self.description.conjugate:
            values = np.conjugate(values)
        if self.description.negative:
            values = np.negative(values)
        return values

    def _widen(self, stored: Array, dtype: np.dtype[Any]) -> Array:
        element = self.description.element
        if element.width == 1 and element.name.startswith("float8") and not self.description.negative:
            widened: Array = _float8_values(element.name).astype(dtype)[stored]
            return widened
        with np.errstate(over="ignore", invalid="ignore"):  # float64 beyond float32 is Inf, as said
            return self.decode(stored).astype(dtype, copy=False)


def open_tensor(source: Path | IO[bytes], place: str) -> TensorFile:
    """Understand a .pt or .npy file, told apart by its first bytes. Nothing in it is executed; no number is read but for the checksum.

    A file on disk is mapped. A stream is read to its end, into a temporary file where it is long, and can be closed afterwards. ``place``
    is what messages call it. Raises DumpError.
    """
    return open_memory(from_path(source, place) if isinstance(source, Path) else from_stream(source, place), place)


def open_memory(memory: Memory, place: str) -> TensorFile:
    """``open_tensor`` for bytes that are in memory or mapped already."""
    start = memory.read(0, len(npy.START))
    if start.startswith(pt.START):
        description, storage = pt.read_pt(memory, place)
    elif start.startswith(npy.START):
        description, storage = npy.read_npy(memory, place)
    elif start.startswith(LEGACY_STARTS):
        raise DumpError("tensor_legacy", place)
    elif any(mark.startswith(start) for mark in (pt.START, npy.START)):
        raise DumpError("tensor_truncated", place, size=len(memory))
    else:
        raise DumpError("tensor_unknown", place)
    return TensorFile(description, place, _view(description, storage), storage)


def _view(description: Description, storage: Memory) -> Array:
    """The storage's bytes by shape and strides, which ``check`` found to stay within it."""
    element = description.element
    dtype = np.dtype(element.stored).newbyteorder(description.byte_order)
    if description.size == 0:
        return np.empty(description.shape, dtype)
    # Strides along a single element are never walked; they may be of any size.
    strides = tuple(step * element.width if length > 1 else 0 for length, step in zip(description.shape, description.stride, strict=True))
    return np.ndarray(description.shape, dtype, storage.data, description.offset * element.width, strides)


def _native(stored: Array) -> Array:
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)


def _pairs_to_complex(halves: npt.NDArray[np.float16]) -> npt.NDArray[np.complex64]:
    values = np.empty(halves.shape[:-1], np.complex64)
    values.real, values.imag = halves[..., 0], halves[..., 1]
    return values


@lru_cache(maxsize=8)
def _float8_values(name: str) -> npt.NDArray[np.float64]:
    """[256], the value of every byte: several times faster than casting each element."""
    return np.arange(256, dtype=np.uint8).view(ELEMENT_TYPES[name].value).astype(np.float64)
