"""Bytes of a file as one array: mapped from disk, so that only what is looked at is in memory."""

from __future__ import annotations

import mmap
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from compare.engine.errors import DumpError, os_error
from compare.engine.tensors import limits

# What the standard library raises over archives that are cut off or not what they say.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, ValueError, OverflowError, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Memory:
    """``data`` [bytes] uint8, read-only. ``mapping`` is what they are mapped by; slices share it, and it lives as long as any of them."""

    data: npt.NDArray[np.uint8]
    mapping: mmap.mmap | None

    def __len__(self) -> int:
        return self.data.size

    def slice(self, start: int, size: int) -> Memory:
        return Memory(self.data[start : start + size], self.mapping)

    def read(self, start: int, size: int) -> bytes:
        """A copy of at most ``size`` bytes."""
        return self.data[start : start + size].tobytes()

    def release(self) -> None:
        """Give back the pages that were read; they are read again when they are looked at again."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)

    def checksum(self) -> int:
        """CRC-32, block by block."""
        crc = released = 0
        for start in range(0, self.data.size, limits.BLOCK):
            crc = zlib.crc32(self.data[start : start + limits.BLOCK].data, crc)
            if start - released >= limits.RELEASE:
                self.release()
                released = start
        return crc


class Spool:
    """Where bytes that come in a stream are gathered: in memory while they are few, in an unnamed temporary file when they are many."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.held = bytearray()
        self.file: IO[bytes] | None = None
        self.size = 0

    def write(self, block: bytes) -> None:
        """Raises DumpError (tensor_too_large, disk_full, file_unreadable)."""
        self.size += len(block)
        if self.size > limits.LARGEST_UNPACKED:
            raise DumpError("tensor_too_large", self.place, limit=limits.LARGEST_UNPACKED >> 30)
        try:
            if self.file is None and self.size > limits.IN_MEMORY:
                self.file = tempfile.TemporaryFile(prefix="probe-web-", buffering=0)  # noqa: SIM115  (finish closes it)
                _write_all(self.file, self.held)
                self.held = bytearray()
            if self.file is None:
                self.held += block
            else:
                _write_all(self.file, block)
        except OSError as error:
            self.close()
            raise os_error(error, self.place) from error

    def finish(self) -> Memory:
        if self.file is None:
            return Memory(np.frombuffer(bytes(self.held), np.uint8), None)
        try:
            return _mapped(self.file.fileno())
        finally:
            self.close()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def from_path(path: Path, place: str) -> Memory:
    """Map a file. Raises DumpError (file_missing, file_forbidden, file_unreadable, file_empty); a pipe or a device is unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DumpError("file_unreadable", place, reason="it is no regular file")
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size == 0:
                raise DumpError("file_empty", place)
            return _mapped(stream.fileno())
    except OSError as error:
        raise os_error(error, place) from error
    except ValueError as error:  # a NUL in its name
        raise DumpError("file_missing", place) from error


def from_stream(stream: IO[bytes], place: str) -> Memory:
    """Read a stream to its end; it can be closed afterwards.

    Raises DumpError (archive_damaged for a member that its archive cannot give, file_empty, tensor_too_large, disk_full).
    """
    spool = Spool(place)
    try:
        while block := stream.read(limits.BLOCK):
            spool.write(block)
        if not spool.size:
            raise DumpError("file_empty", place)
        return spool.finish()
    except OSError as error:
        raise os_error(error, place) from error
    except DAMAGE as error:
        raise DumpError("archive_damaged", place, detail=str(error) or type(error).__name__) from error
    finally:
        spool.close()


def inflate(packed: Memory, size: int, place: str) -> Memory:
    """Unpack raw deflate to exactly ``size`` bytes. Raises DumpError (tensor_damaged, tensor_too_large, disk_full)."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    spool = Spool(place)
    try:
        for start in range(0, len(packed), limits.BLOCK):
            rest = packed.read(start, limits.BLOCK)
            while rest and not unpacker.eof:
                spool.write(unpacker.decompress(rest, limits.BLOCK))
                rest = unpacker.unconsumed_tail
                if spool.size > size:
                    raise DumpError("tensor_damaged", place, detail=f"a record unpacks to more than its {size} bytes")
        while not unpacker.eof and spool.size <= size and (block := unpacker.decompress(b"", limits.BLOCK)):
            spool.write(block)
        if spool.size != size or not unpacker.eof:
            raise DumpError("tensor_damaged", place, detail=f"a record does not unpack to its {size} bytes")
        return spool.finish()
    except zlib.error as error:
        raise DumpError("tensor_damaged", place, detail=str(error)) from error
    finally:
        spool.close()


def _mapped(descriptor: int) -> Memory:
    mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    return Memory(np.frombuffer(mapping, np.uint8), mapping)


def _write_all(file: IO[bytes], block: Any) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[file.write(rest) :]
