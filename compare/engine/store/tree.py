"""The tree on the wire (``docs/formats.md``): a small JSON header and aligned little-endian columns."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.model import JsonObject

MAGIC = b"PWTREE\x00\x01"
FORMAT = 1
ALIGN = 8

DTYPES = {
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


def encode_tree(columns: Mapping[str, NDArray[Any]], strings: Sequence[str], facts: JsonObject) -> bytes:
    """``columns`` holds every column of DTYPES, equally long."""
    rows = len(columns["parent"])
    layout, buffers, offset = {}, [], 0
    for name, dtype in DTYPES.items():
        data = np.ascontiguousarray(columns[name], dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
        layout[name] = {"dtype": dtype, "offset": offset, "length": rows}
        padded = data + b"\0" * (-len(data) % ALIGN)
        buffers.append(padded)
        offset += len(padded)
    header = {"format": FORMAT, "rows": rows, "columns": layout, "strings": list(strings), **facts}
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(len(MAGIC) + 4 + len(text)) % ALIGN)
    return MAGIC + struct.pack("<I", len(text)) + text + b"".join(buffers)


def compress(tree: bytes) -> bytes:
    """Deterministic gzip: the same tree gives the same bytes."""
    return gzip.compress(tree, compresslevel=6, mtime=0)
