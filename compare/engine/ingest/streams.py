"""Streams within streams: what tarfile may read from, and a stretch of another stream."""

from __future__ import annotations

import io
import tarfile
from typing import IO, Protocol

from compare.engine.errors import DumpError
from compare.engine.ingest import limits
from compare.engine.ingest.source import Meter


class Readable(Protocol):
    """Something to copy from."""

    def read(self, size: int, /) -> bytes: ...


class Guarded(io.RawIOBase):
    """What tarfile may read from: no header may ask for much at once, and packed bytes may not grow beyond measure."""

    def __init__(self, stream: IO[bytes], packed: IO[bytes] | None = None, where: str = "", meter: Meter | None = None) -> None:
        self.stream = stream
        self.packed = packed
        self.where = where
        self.meter = meter
        self.counted = 0
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > limits.LARGEST_HEADER:
            raise tarfile.ReadError("a header of an impossible size")
        self.last = self.stream.read(size)
        self._check_growth()
        return self.last

    def seek(self, offset: int, whence: int = 0) -> int:
        while self.packed is not None and whence == 0 and offset - self.stream.tell() > limits.BLOCK:
            before = self.stream.tell()
            if self.stream.seek(before + limits.BLOCK) == before:
                break  # its end
            self._check_growth()
        return self.stream.seek(offset, whence)

    def tell(self) -> int:
        return self.stream.tell()

    def _check_growth(self) -> None:
        if self.packed is None:
            return
        grown, packed = self.stream.tell(), self.packed.tell()
        if grown > limits.BOMB_FROM and grown > limits.BOMB_RATIO * packed:
            raise DumpError("archive_bomb", self.where, size=grown, packed=packed)
        if self.meter is not None:
            self.meter.add(packed - self.counted)
            self.counted = packed


class Slice(io.RawIOBase):
    """The bytes ``offset`` … ``offset + size`` of a stream."""

    def __init__(self, stream: IO[bytes], offset: int, size: int) -> None:
        self.stream = stream
        self.at = offset
        self.left = size

    def read(self, size: int = -1) -> bytes:
        self.stream.seek(self.at)  # others read the same stream
        block = self.stream.read(self.left if size < 0 else min(size, self.left))
        self.at += len(block)
        self.left -= len(block)
        return block
