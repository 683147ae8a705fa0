"""One file of a side, wherever its bytes are: on disk, in a zip, in a tar, in a spooled temporary file."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any

from compare.engine.errors import DumpError, os_error
from compare.engine.ingest.kept import Extent
from compare.engine.ingest.source import Meter


@dataclass(frozen=True, slots=True)
class Member:
    """``path`` is relative, with ``/`` and no ``..``; ``place`` is what messages call it; ``origin`` numbers what it came in. ``extent``
    says where the bytes of a tensor file stay after reading, None where they do not.
    """

    path: str
    place: str
    size: int
    origin: int
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    extent: Extent | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Reading:
    """A member being read: counts, hashes, and turns the errors of files and archives into refusals."""

    def __init__(self, member: Member, stream: IO[bytes], meter: Meter, digest: Any) -> None:
        self.member = member
        self.stream = stream
        self.meter = meter
        self.digest = digest
        self.count = 0

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, empty at the end. Raises DumpError, and whatever the progress raises (errors.Cancelled)."""
        try:
            block = self.stream.read(size)
        except OSError as error:
            raise os_error(error, self.member.place) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
            raise DumpError("archive_damaged", self.member.place, detail=str(error) or type(error).__name__) from error
        self.count += len(block)
        if not block and self.count < self.member.size:
            raise DumpError("archive_damaged", self.member.place, detail=f"it holds {self.count} bytes instead of {self.member.size}")
        if self.count > self.member.size:
            raise DumpError("archive_damaged", self.member.place, detail=f"it holds more than the {self.member.size} bytes it declares")
        self.digest.update(block)
        self.meter.add(len(block))
        return block


def new_digest() -> Any:
    """The hash of a side, over the json members in the order they are read."""
    return hashlib.sha256()
