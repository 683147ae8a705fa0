"""The records of a .pt file, which is a zip: found by its directory, looked at where they lie."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from dataclasses import dataclass
from typing import IO, cast

from compare.engine.errors import DumpError, printable
from compare.engine.tensors import limits
from compare.engine.tensors.memory import DAMAGE, Memory, inflate

END_MARK = b"PK\x05\x06"
LONGEST_END = 22 + 65535
LOCAL_HEADER = struct.Struct("<4s2xHH16xHH")  # mark, flags, method, length of the name, length of the extra field
UTF8 = 0x800  # bit of a zip record's flags


@dataclass(frozen=True, slots=True)
class Record:
    start: int
    packed: int
    size: int
    method: int
    checksum: int


class Records:
    """Names without the folder that torch puts around them → records. Both headers of every record agree, and no name occurs twice.

    Raises DumpError (tensor_truncated, tensor_damaged, tensor_record_twice).
    """

    def __init__(self, memory: Memory, place: str) -> None:
        self.memory = memory
        self.place = place
        self.records: dict[str, Record] = {}
        if memory.read(max(0, len(memory) - LONGEST_END), LONGEST_END).rfind(END_MARK) < 0:
            raise DumpError("tensor_truncated", place, size=len(memory))
        try:
            with zipfile.ZipFile(cast("IO[bytes]", _Bytes(memory))) as archive:
                infos = archive.infolist()
            if len(infos) > limits.MOST_RECORDS:
                raise self.damage(f"it holds {len(infos)} records")
            for info in infos:
                self._add(info)
        except DAMAGE as error:
            raise self.damage(str(error) or type(error).__name__) from error
        # torch.serialization.set_crc32_options(False) writes 0 for all of them.
        self.has_checksums = any(record.checksum for record in self.records.values())

    def _add(self, info: zipfile.ZipInfo) -> None:
        name = info.orig_filename
        shown = printable(name)
        mark, flags, method, name_length, extra_length = LOCAL_HEADER.unpack(self.memory.read(info.header_offset, LOCAL_HEADER.size))
        local = self.memory.read(info.header_offset + LOCAL_HEADER.size, name_length)
        start = info.header_offset + LOCAL_HEADER.size + name_length + extra_length
        if mark != b"PK\x03\x04" or local.decode("utf-8" if flags & UTF8 else "cp437") != name or method != info.compress_type:
            raise self.damage(f"the headers of {shown} differ")
        if info.flag_bits & 0x1 or flags & 0x1:
            raise self.damage(f"{shown} is encrypted")
        if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.damage(f"{shown} is packed by method {method}")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise self.damage(f"{shown} is a link")
        if start + info.compress_size > len(self.memory) or (method == zipfile.ZIP_STORED and info.compress_size != info.file_size):
            raise self.damage(f"{shown} does not fit into it")
        if name.endswith("/"):
            return
        inner = name.partition("/")[2]
        if inner in self.records:
            raise DumpError("tensor_record_twice", self.place, record=printable(inner))
        self.records[inner] = Record(start, info.compress_size, info.file_size, method, info.CRC)

    def damage(self, detail: str) -> DumpError:
        return DumpError("tensor_damaged", self.place, detail=detail)

    def size(self, name: str) -> int:
        """Bytes of a record. Raises DumpError (tensor_record_missing)."""
        if name not in self.records:
            raise DumpError("tensor_record_missing", self.place, record=printable(name))
        return self.records[name].size

    def look(self, name: str) -> Memory:
        """A record's bytes, checked. Raises DumpError (tensor_record_missing, tensor_checksum, and what inflate raises)."""
        size = self.size(name)
        record = self.records[name]
        found = self.memory.slice(record.start, record.packed)
        if record.method == zipfile.ZIP_DEFLATED:
            found = inflate(found, size, self.place)
        if self.has_checksums and found.checksum() != record.checksum:
            raise DumpError("tensor_checksum", self.place, record=printable(name))
        return found

    def read(self, name: str, limit: int) -> bytes:
        """A short record as bytes. Raises DumpError as ``look`` does."""
        if self.size(name) > limit:
            raise self.damage(f"{printable(name)} has {self.size(name)} bytes, more than {limit}")
        return self.look(name).data.tobytes()


class _Bytes(io.RawIOBase):
    """What zipfile may read from: a directory of an impossible size is not read."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        size = len(self.memory) - self.position if size < 0 else size
        if size > limits.LARGEST_DIRECTORY:
            raise zipfile.BadZipFile(f"its directory has {size} bytes")
        block = self.memory.read(self.position, size)
        self.position += len(block)
        return block

    def seek(self, offset: int, whence: int = 0) -> int:
        position = offset + (0, self.position, len(self.memory))[whence]
        if position < 0:
            raise ValueError("an offset lies before its beginning")
        self.position = position
        return position

    def tell(self) -> int:
        return self.position

    def seekable(self) -> bool:
        return True
