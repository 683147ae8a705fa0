"""Where the bytes of a tensor file are after the input was listed, and the file into which those are copied that cannot be read in place.

A loose file, a member of a zip and a member of a plain tar stay where they are: they are read there, by offset, when they are compared. A
tar.gz cannot be entered in the middle and an archive inside an archive is gone when reading ends, so the tensor files of those are copied,
packed as they were, one after the other into one file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from compare.engine.errors import DumpError
from compare.engine.ingest import limits
from compare.engine.model import Packing

KEPT_FILE = "tensors.bin"  # in the folder of a run's columns


@dataclass(frozen=True, slots=True)
class Extent:
    """A row of ``model.TensorTable``."""

    source: int
    offset: int
    packed: int
    size: int
    packing: Packing


class Keeper:
    """Writes the copies. Without a path nothing is kept, and ``wanted`` says so. The file appears with the first copy."""

    def __init__(self, path: Path | None, opened: ExitStack) -> None:
        self.path = path
        self._opened = opened
        self._file: IO[bytes] | None = None
        self._size = 0

    @property
    def wanted(self) -> bool:
        return self.path is not None

    def keep(self, size: int, where: str, copy: Callable[[IO[bytes]], None]) -> int:
        """Let ``copy`` write ``size`` bytes; returns where they begin. Raises DumpError archive_too_large, and what copy does."""
        if self.path is None:
            raise ValueError("nothing is kept")
        begin = self._size
        self._size += size
        if self._size > limits.LARGEST_KEPT:
            raise DumpError("archive_too_large", where, limit=limits.LARGEST_KEPT >> 30)
        if self._file is None:
            self._file = self._opened.enter_context(self.path.open("wb"))
        copy(self._file)
        return begin
