"""A .npy file as numpy.save writes it: a short header and one array. Arrays of Python objects are refused, never unpickled."""

from __future__ import annotations

import ast
import re
import struct
from functools import lru_cache

from compare.engine.errors import DumpError, printable
from compare.engine.tensors import limits
from compare.engine.tensors.description import ELEMENT_TYPES, ByteOrder, Description, contiguous_stride
from compare.engine.tensors.memory import Memory

START = b"\x93NUMPY"
PREFIX = {1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: struct.Struct("<I")}  # major version → length of the header
KEYS = {"descr", "fortran_order", "shape"}
TYPE = re.compile(r"([<>|=]?)([a-zA-Z?])(\d{0,4})")
BYTE_ORDERS: dict[str, ByteOrder] = {"<": "little", ">": "big"}
CODES = {"b1": "bool", "?": "bool"} | {
    element.stored: name for name, element in ELEMENT_TYPES.items() if element.stored[0] == element.value.kind
}


def read_npy(memory: Memory, place: str) -> tuple[Description, Memory]:
    """The array of a .npy file as a view, and its bytes. Raises DumpError."""
    version = memory.read(len(START), 2)
    prefix = PREFIX.get(version[0]) if len(version) == 2 else None
    if prefix is None:
        raise _not_one(place, f"format {'.'.join(map(str, version))}")
    start = len(START) + 2 + prefix.size
    if len(memory) < start:
        raise DumpError("tensor_truncated", place, size=len(memory))
    length = prefix.unpack(memory.read(start - prefix.size, prefix.size))[0]
    if length > limits.LONGEST_HEADER:
        raise _not_one(place, f"{length} characters")
    header = memory.read(start, length)
    if len(header) < length:
        raise DumpError("tensor_truncated", place, size=len(memory))
    data = memory.slice(start + length, len(memory))
    return _describe(header.decode("latin-1"), len(data), place), data


@lru_cache(maxsize=256)
def _fields(header: str) -> tuple[object, bool, tuple[int, ...]]:
    """Type, order and shape. The thousands of tables of a run have few headers between them. Raises ValueError."""
    try:
        fields = ast.literal_eval(header.strip())  # literals only: nothing is called
    except (TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError from error
    if not isinstance(fields, dict) or set(fields) != KEYS:
        raise ValueError
    shape, columns_first = fields["shape"], fields["fortran_order"]
    if not isinstance(columns_first, bool) or not isinstance(shape, tuple) or any(type(length) is not int for length in shape):
        raise ValueError
    return fields["descr"], columns_first, shape


def _describe(header: str, held: int, place: str) -> Description:
    try:
        code, columns_first, shape = _fields(header)
    except ValueError as error:
        raise _not_one(place, printable(header[:80])) from error
    dtype, byte_order = _type(code, place)
    description = Description(
        dtype=dtype,
        shape=shape,
        stride=contiguous_stride(shape, columns_first=columns_first),
        offset=0,
        storage="",
        storage_bytes=held,
        byte_order=byte_order,
    )
    # Strides of an array without gaps may be huge where it is empty; what is checked is that shape and file agree.
    expected = description.size * description.element.width
    if min(shape, default=0) >= 0 and expected != held:
        if 0 <= held < expected:
            raise DumpError("tensor_truncated", place, size=held)
        raise DumpError("tensor_storage", place, record="the array", expected=expected, held=held)
    description.check(place)
    return description


def _type(code: object, place: str) -> tuple[str, ByteOrder]:
    if not isinstance(code, str):  # numpy writes records as a list of their fields
        raise DumpError("tensor_dtype", place, dtype=type(code).__name__)
    found = TYPE.fullmatch(code)
    if found is None:
        raise DumpError("tensor_dtype", place, dtype=printable(code))
    order, kind, width = found.groups()
    if kind == "O":
        raise DumpError("npy_objects", place)
    name = CODES.get(kind + width)
    if name is None:
        raise DumpError("tensor_dtype", place, dtype=printable(code))
    return name, BYTE_ORDERS.get(order, "little")


def _not_one(place: str, detail: str) -> DumpError:
    return DumpError("npy_header", place, detail=detail)
