"""A decoder of ``tree.bin`` written after docs/formats.md with the standard library alone."""

from __future__ import annotations

import array
import gzip
import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

TYPES = {"int32": "i", "uint8": "B", "int16": "h", "float32": "f"}
COLUMNS = {
    "parent": "int32",
    "size": "int32",
    "depth": "uint8",
    "kind": "uint8",
    "name": "int32",
    "right_name": "int32",
    "module": "int32",
    "left_class": "int32",
    "right_class": "int32",
    "left_count": "uint8",
    "right_count": "uint8",
    "direction": "uint8",
    "call": "int32",
    "layer": "int16",
    "role": "uint8",
    "grade": "uint8",
    "difference": "float32",
    "floor": "float32",
    "worst": "float32",
    "growth": "float32",
    "inside_origin": "int32",
    "inside_inherited": "int32",
    "inside_amplified": "int32",
    "order": "int32",
    "origin": "int16",
    "reason": "uint8",
}
ORIGIN, INHERITED, AMPLIFIED, HEALED, LEFT_ONLY, RIGHT_ONLY, NO_DATA, NOT_COMPARABLE = range(1, 9)
SECTION, MODULE, API, PART, CONTAINER = range(5)
DIVERGED, INCOMPARABLE, NO_PAIR = 3, 4, 255


class Tree:
    """The columns of one tree; ``tree.columns["parent"][row]``."""

    def __init__(self, data: bytes) -> None:
        assert sys.byteorder == "little"
        assert data[:8] == b"PWTREE\x00\x01"
        (length,) = struct.unpack("<I", data[8:12])
        assert (12 + length) % 8 == 0
        self.header: dict[str, Any] = json.loads(data[12 : 12 + length], parse_constant=bare)
        assert self.header["format"] == 1
        self.rows: int = self.header["rows"]
        self.strings: list[str] = self.header["strings"]
        assert {name: column["dtype"] for name, column in self.header["columns"].items()} == COLUMNS
        self.columns: dict[str, array.array[Any]] = {}
        end = 12 + length
        for name, column in sorted(self.header["columns"].items(), key=lambda item: item[1]["offset"]):
            values: array.array[Any] = array.array(TYPES[column["dtype"]])
            begin = 12 + length + column["offset"]
            assert column["offset"] % 8 == 0
            assert begin >= end
            assert column["length"] == self.rows
            end = begin + column["length"] * values.itemsize
            values.frombytes(data[begin:end])
            self.columns[name] = values
        assert len(data) - end < 8

    @classmethod
    def of(cls, file: Path) -> Tree:
        return cls(gzip.decompress(file.read_bytes()))

    def string(self, column: str, row: int) -> str | None:
        index = self.columns[column][row]
        return None if index < 0 else self.strings[index]

    def descendants(self, row: int) -> range:
        return range(row + 1, row + self.columns["size"][row])


def bare(name: str) -> None:
    raise AssertionError(f"bare {name}")


def known(value: float) -> bool:
    return not math.isnan(value)
