"""A small tensor to spoil, and what a file is refused with."""

from __future__ import annotations

import io
import struct

import orjson
import pytest

from compare.engine.errors import DumpError
from compare.engine.tensors import open_tensor
from tests.engine.tensors import writer
from tests.engine.tensors.writer import persistent, program, pt, tensor

FLOATS = struct.pack("<6f", *range(6))
STORAGE = persistent("torch FloatStorage", "0", 6)
GOOD = tensor(STORAGE, [2, 3], [3, 1])
SHORTEST = writer.contiguous("float32", range(6), [2, 3])


def refusal(content: bytes) -> DumpError:
    with pytest.raises(DumpError) as refused:
        open_tensor(io.BytesIO(content), "step0/a.pt")
    assert refused.value.where == "step0/a.pt"
    assert str(refused.value).startswith("step0/a.pt: ")
    assert len(str(refused.value)) < 1000
    assert orjson.loads(orjson.dumps(refused.value.params)) == refused.value.params  # as the HTTP face sends them
    return refused.value


def described(value: bytes, **storages: bytes) -> bytes:
    return pt(program(value), {"0": FLOATS, **storages})
