"""A .pt file as torch.save writes it since torch 1.6: a zip of a small pickle and of storages."""

from __future__ import annotations

from dataclasses import replace

from compare.engine.errors import DumpError, printable
from compare.engine.tensors import limits
from compare.engine.tensors.description import ByteOrder, Description
from compare.engine.tensors.memory import Memory
from compare.engine.tensors.opcodes import interpret, kind_of
from compare.engine.tensors.records import Records

START = b"PK\x03\x04"
PROGRAM = "data.pkl"
BYTE_ORDER = "byteorder"  # missing in files before torch 2.1, which are little-endian
SCRIPT = "constants.pkl"
BYTE_ORDERS: dict[bytes, ByteOrder] = {b"little": "little", b"big": "big"}


def read_pt(memory: Memory, place: str) -> tuple[Description, Memory]:
    """The tensor of a .pt file and its storage, whose checksum was compared. Raises DumpError."""
    records = Records(memory, place)
    if SCRIPT in records.records or any(name.startswith("code/") for name in records.records):
        raise DumpError("tensor_script", place)
    described = interpret(records.read(PROGRAM, limits.LARGEST_PROGRAM), place)
    if not isinstance(described, Description):
        raise DumpError("tensor_content", place, found=kind_of(described))
    description = replace(described, byte_order=_byte_order(records))
    record = f"data/{description.storage}"
    if records.size(record) != description.storage_bytes:
        expected = description.storage_bytes
        raise DumpError("tensor_storage", place, record=printable(record), expected=expected, held=records.size(record))
    description.check(place)
    return description, records.look(record)


def _byte_order(records: Records) -> ByteOrder:
    if BYTE_ORDER not in records.records:
        return "little"
    written = records.read(BYTE_ORDER, limit=64)
    if written not in BYTE_ORDERS:
        raise DumpError("tensor_byte_order", records.place, order=printable(written.decode("latin-1")))
    return BYTE_ORDERS[written]
