"""Writes .pt files by hand: a pickle put together instruction by instruction, in a zip."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence

STORAGES = {
    # dtype: (class, struct code of one number, numbers an element has)
    "float64": ("DoubleStorage", "d", 1),
    "float32": ("FloatStorage", "f", 1),
    "float16": ("HalfStorage", "e", 1),
    "int64": ("LongStorage", "q", 1),
    "int32": ("IntStorage", "i", 1),
    "int16": ("ShortStorage", "h", 1),
    "int8": ("CharStorage", "b", 1),
    "uint8": ("ByteStorage", "B", 1),
    "bool": ("BoolStorage", "?", 1),
    "complex128": ("ComplexDoubleStorage", "d", 2),
    "complex64": ("ComplexFloatStorage", "f", 2),
}
REBUILD = "torch._utils _rebuild_tensor_v2"


def name(text: str) -> bytes:
    """GLOBAL: module and name with a space between."""
    module, _, attribute = text.rpartition(" ")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def number(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    width = (value.bit_length() + 8) // 8
    return b"\x8a" + bytes([width]) + value.to_bytes(width, "little", signed=True)


def numbers(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def persistent(storage: str, key: str, elements: int, device: str = "cpu") -> bytes:
    return b"(" + text("storage") + name(storage) + text(key) + text(device) + number(elements) + b"tQ"


def tensor(
    storage: bytes, shape: Sequence[int], stride: Sequence[int], offset: int = 0, function: str = REBUILD, more: bytes = b"\x89}"
) -> bytes:
    """A call of a rebuild function; ``more`` are the arguments after the stride (requires_grad, hooks)."""
    return name(function) + b"(" + storage + number(offset) + numbers(shape) + numbers(stride) + more + b"tR"


def program(value: bytes, protocol: int = 2) -> bytes:
    return b"\x80" + bytes([protocol]) + value + b"."


def pt(
    pickled: bytes,
    storages: dict[str, bytes],
    byte_order: bytes | None = b"little",
    method: int = zipfile.ZIP_STORED,
    more: Sequence[tuple[str | zipfile.ZipInfo, bytes]] = (),
) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("tensor/data.pkl", pickled)
        if byte_order is not None:
            archive.writestr("tensor/byteorder", byte_order)
        for key, data in storages.items():
            archive.writestr(f"tensor/data/{key}", data)
        archive.writestr("tensor/version", b"3\n")
        for record, data in more:
            archive.writestr(record, data)
    return target.getvalue()


def strided(
    dtype: str,
    data: bytes,
    shape: Sequence[int],
    stride: Sequence[int],
    offset: int = 0,
    byte_order: str | None = "little",
    method: int = 0,
) -> bytes:
    """A whole .pt file of one view of a storage."""
    storage, code, width = STORAGES[dtype]
    elements = len(data) // (struct.calcsize("<" + code) * width)
    described = program(tensor(persistent(f"torch {storage}", "0", elements), shape, stride, offset))
    return pt(described, {"0": data}, None if byte_order is None else byte_order.encode(), method)


def contiguous(dtype: str, values: Sequence[float], shape: Sequence[int] | None = None) -> bytes:
    """A whole .pt file of real numbers in a row."""
    shape = [len(values)] if shape is None else shape
    stride = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        stride[axis] = stride[axis + 1] * shape[axis + 1]
    return strided(dtype, struct.pack(f"<{len(values)}{STORAGES[dtype][1]}", *values), shape, stride)
