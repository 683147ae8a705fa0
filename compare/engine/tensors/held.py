"""Opens the tensor files of a run where their bytes stayed: in a file of their own, in an archive, or in the file of copies.

A member of an archive that lies there as it is, is mapped at its offset and copied nowhere. A deflated one is unpacked each time it is
opened, into memory or an unnamed temporary file.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from compare.engine.errors import DumpError
from compare.engine.model import KEPT, Packing, TensorTable
from compare.engine.tensors import limits
from compare.engine.tensors.file import TensorFile, open_memory
from compare.engine.tensors.memory import Memory, from_path, inflate

LOCAL_HEADER = struct.Struct("<4s4xH16xHH")  # mark, method, length of the name, length of the extra field
ZIP_METHODS = {Packing.ZIP_STORED: 0, Packing.ZIP_DEFLATED: 8}


class HeldTensors:
    """The tensor files of one run. ``files`` are those that the run was read from, in the same order; ``kept`` is the file of copies."""

    def __init__(self, files: Sequence[Path], kept: Path) -> None:
        self._files = files
        self._kept = kept
        self._archive: tuple[Path, Memory] | None = None
        self._opened: OrderedDict[tuple[int, int], TensorFile] = OrderedDict()
        self._held = 0

    def open(self, table: TensorTable, row: int, place: str) -> TensorFile:
        """The tensor of a row. ``place`` is what messages call it. Raises DumpError for whatever cannot be read."""
        key = (int(table.source[row]), int(table.offset[row]))
        if key in self._opened:
            self._opened.move_to_end(key)
            return self._opened[key]
        tensor = open_memory(self._memory(table, row, place), place)
        self._remember(key, tensor)
        return tensor

    def _remember(self, key: tuple[int, int], tensor: TensorFile) -> None:
        """Keep small tensors open: many pairs look at the same few again."""
        if tensor.description.storage_bytes > limits.IN_MEMORY:
            return
        self._opened[key] = tensor
        self._held += tensor.description.storage_bytes
        while self._held > limits.KEPT_OPEN or len(self._opened) > limits.MOST_OPEN:
            _, oldest = self._opened.popitem(last=False)
            self._held -= oldest.description.storage_bytes

    def _memory(self, table: TensorTable, row: int, place: str) -> Memory:
        source, offset, packed = int(table.source[row]), int(table.offset[row]), int(table.packed[row])
        packing = Packing(int(table.packing[row]))
        if packing is Packing.UNREADABLE:
            raise DumpError("archive_damaged", place, detail="it is encrypted, or packed by a method that is not read")
        if source != KEPT and not 0 <= source < len(self._files):
            raise DumpError("file_missing", place)
        memory = self._mapped(self._kept if source == KEPT else self._files[source], place)
        if packing is Packing.PLAIN:
            return self._slice(memory, offset, packed, place)
        start = self._behind_header(memory, offset, packing, place)
        found = self._slice(memory, start, packed, place)
        return found if packing is Packing.ZIP_STORED else inflate(found, int(table.size[row]), place)

    def _mapped(self, path: Path, place: str) -> Memory:
        """One archive stays mapped: its members follow one another."""
        if self._archive is None or self._archive[0] != path:
            self._archive = (path, from_path(path, place))
        return self._archive[1]

    @staticmethod
    def _behind_header(memory: Memory, offset: int, packing: Packing, place: str) -> int:
        header = memory.read(offset, LOCAL_HEADER.size)
        if len(header) == LOCAL_HEADER.size:
            mark, method, name, extra = LOCAL_HEADER.unpack(header)
            if mark == b"PK\x03\x04" and method == ZIP_METHODS[packing]:
                return offset + LOCAL_HEADER.size + int(name) + int(extra)
        raise DumpError("archive_damaged", place, detail="its header is not where the archive's directory says")

    @staticmethod
    def _slice(memory: Memory, start: int, size: int, place: str) -> Memory:
        if start + size > len(memory):
            raise DumpError("archive_damaged", place, detail=f"it holds less than the {size} bytes it declares")
        if not size:
            raise DumpError("file_empty", place)
        return memory.slice(start, size)
