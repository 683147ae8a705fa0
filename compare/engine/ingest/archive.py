"""Zip, tar and tar.gz as lists of members that are streamed, never extracted.

A tar.gz cannot be read out of order, so what will be read of it is first copied to a temporary file (its tensor files to one that stays,
see ``kept``); zips and plain tars are read in place. An archive inside an archive (one a rank, say) is copied to a temporary file and read
as a folder of its name; archives inside that are left aside.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Self, cast

from compare.engine.errors import DumpError, os_error, printable
from compare.engine.ingest import limits
from compare.engine.ingest.kept import Extent, Keeper
from compare.engine.ingest.layout import DUMP_FILES, is_tensor, numbered_folders
from compare.engine.ingest.member import Member
from compare.engine.ingest.source import Meter, Source
from compare.engine.ingest.streams import Guarded, Readable, Slice
from compare.engine.keydata.places import is_wanted
from compare.engine.model import KEPT, LeftAside, Packing

UNPACKED = 0.3  # the share of reading that unpacking a tar.gz is told as
LONGEST_LINK = 4096
LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip member: the lengths of its name and its extra field, which follow
ZIP_PACKING = {zipfile.ZIP_STORED: Packing.ZIP_STORED, zipfile.ZIP_DEFLATED: Packing.ZIP_DEFLATED}
ENCRYPTED = 0x1  # bit of a zip member's flags
LOOSE = 0  # origin of files that came in no archive
DRIVE = re.compile(r"[A-Za-z]:")
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
GZIP_START = b"\x1f\x8b"
TAR_MARK, TAR_MARK_AT = b"ustar", 257
# What the standard library raises over archives that are cut off or not what they say.
DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, struct.error, ValueError, OverflowError, NotImplementedError, RuntimeError,
)  # fmt: skip
OTHER_ARCHIVES = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "rar", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
READ_SUFFIXES = (".json", ".db")
# Files of a dump that must not be taken for archives although torch.save writes zips.
DATA_SUFFIXES = (".json", ".jsonl", ".pt", ".pth", ".npy", ".npz", ".bin", ".safetensors", ".log", ".csv", ".txt", ".yaml", ".yml", ".md")


def kind_of(source: Source, where: str) -> str | None:
    """zip, tar, tar.gz, or None for a file that is no archive. Raises DumpError for a file that cannot be read, or is another archive."""
    name = source.name.lower()
    if name.endswith(DATA_SUFFIXES):
        return None
    try:
        with source.path.open("rb") as stream:
            start = stream.read(512)
    except OSError as error:
        raise os_error(error, where) from error
    if start.startswith(ZIP_STARTS):
        return "zip"
    if start.startswith(GZIP_START):
        return "tar.gz"
    if start[TAR_MARK_AT : TAR_MARK_AT + len(TAR_MARK)] == TAR_MARK or (name.endswith(".tar") and start):  # the oldest tars have no mark
        return "tar"
    for mark, other in OTHER_ARCHIVES.items():
        if start.startswith(mark):
            raise DumpError("archive_kind", where, kind=other)
    if name.endswith(ARCHIVE_SUFFIXES):
        detail = "its first bytes are those of no zip, tar or tar.gz" if start else "the file is empty"
        raise DumpError("archive_damaged", where, detail=detail)
    return None


class Expander:
    """Turns the sources of a side into members. Open files live until ``close``; use as a context manager."""

    def __init__(self, meter: Meter, kept: Path | None = None) -> None:
        self.meter = meter
        self.members: list[Member] = []
        self.left_aside: list[LeftAside] = []
        self.open_files = ExitStack()
        self.keeper = Keeper(kept, self.open_files)
        self.counted = self.unpacked = self.nested = 0  # members listed, bytes to be read unpacked, archives inside archives

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.open_files.close()

    def add(self, sources: Sequence[Source]) -> None:
        """Add loose files, and every member of archives. Loose files are one tree, each archive is its own. Raises DumpError."""
        kinds = [None if is_system_file(source.name) else kind_of(source, printable(source.name)) for source in sources]
        self.meter.phase(sum(_size(source) for source, kind in zip(sources, kinds, strict=True) if kind == "tar.gz"), until=UNPACKED)
        for number, (source, kind) in enumerate(zip(sources, kinds, strict=True), LOOSE + 1):
            where = printable(source.name)
            if kind is None:
                path, size = safe_path(source.name, where), _size(source)
                extent = Extent(number - 1, 0, size, size, Packing.PLAIN) if is_tensor(path) else None
                self.members.append(Member(path, where, size, LOOSE, partial(_open_file, source.path), extent))
            else:
                self._archive(source, kind, where, number, nested=False)
        self._without_system_files(0)

    def _without_system_files(self, start: int) -> None:
        """What an operating system adds to folders and archives is no data, whatever it is called."""
        found = self.members[start:]
        self.left_aside += [LeftAside(printable(member.path), "system_file") for member in found if is_system_file(member.path)]
        self.members[start:] = [member for member in found if not is_system_file(member.path)]

    @cached_property
    def _folder(self) -> Path:
        return Path(self.open_files.enter_context(tempfile.TemporaryDirectory(prefix="probe-web-")))

    @cached_property
    def _spool(self) -> IO[bytes]:
        return cast("IO[bytes]", self.open_files.enter_context(tempfile.TemporaryFile(prefix="probe-web-")))

    def _archive(self, source: Source, kind: str, where: str, origin: int, *, nested: bool) -> None:
        seen, links = len(self.members), len(self.left_aside)
        with _refused(where):
            if kind == "zip":
                self._zip(source, where, origin, nested=nested)
            elif kind == "tar":
                self._tar(source, where, origin, nested=nested)
            else:
                self._tar_gz(source, where, origin, nested=nested)
        self._without_system_files(seen)
        folder = _without_suffix(safe_path(source.name, where)) + "/" if nested else _numbers(source.name, self.members[seen:])
        if folder:
            self.members[seen:] = [replace(member, path=folder + member.path) for member in self.members[seen:]]
            self.left_aside[links:] = [replace(left, path=printable(folder) + left.path) for left in self.left_aside[links:]]
        if nested:
            return
        found = self.members[seen:]
        self.members[seen:] = [member for member in found if not _is_archive(member.path)]
        for member in found:
            if _is_archive(member.path):
                self._nested(member, origin)
        for path, following in pairwise(sorted(member.path for member in self.members[seen:])):
            if path == following:
                raise DumpError("member_twice", where, member=printable(path))

    def _nested(self, member: Member, origin: int) -> None:
        """Add the members of an archive that lies in another one."""
        self.nested += 1
        if self.nested > limits.MOST_NESTED:
            raise DumpError("archive_too_many", member.place, limit=limits.MOST_NESTED)
        path = self._folder / str(self.nested)
        with _refused(member.place), member.open() as packed, path.open("wb") as copy:
            _copy(packed, copy, member.size, member.place, self.meter)
        source = Source(path, member.path)
        kind = kind_of(source, member.place)
        if kind is not None:
            self._archive(source, kind, member.place, origin, nested=True)

    def _count(self, count: int, where: str) -> None:
        self.counted += count
        if self.counted > limits.MOST_MEMBERS:
            raise DumpError("archive_too_many", where, limit=limits.MOST_MEMBERS)

    def _unpack(self, size: int, where: str) -> None:
        self.unpacked += size
        if self.unpacked > limits.LARGEST_JSON:
            raise DumpError("archive_too_large", where, limit=limits.LARGEST_JSON >> 30)

    def _zip(self, source: Source, where: str, origin: int, *, nested: bool) -> None:
        _check_directory(source.path, where)
        archive = self.open_files.enter_context(zipfile.ZipFile(source.path))
        infos = archive.infolist()
        self._count(len(infos), where)
        self._unpack(sum(info.file_size for info in infos if _is_read(info.filename, nested=nested)), where)
        for info in infos:
            path = safe_path(info.filename, f"{where}/{printable(info.filename)}")
            if not path or info.is_dir():  # in this order: zipfile looks at the last letter of a name
                continue
            place = f"{where}/{printable(path)}"
            mode = info.external_attr >> 16
            if mode & 0o170000 == 0o120000:
                target = archive.read(info).decode("utf-8", "replace") if info.file_size <= LONGEST_LINK else "/"
                self._link(path, place, target, path.count("/"))
            elif not _is_read(path, nested=nested):
                extent = self._in_zip(source.path, info, place, origin, nested=nested) if is_tensor(path) else None
                self.members.append(Member(path, place, info.file_size, origin, partial(_not_read, place), extent))
            else:
                if info.flag_bits & ENCRYPTED:
                    raise DumpError("archive_encrypted", place)
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise DumpError("archive_kind", place, kind=f"zip method {info.compress_type}")
                if info.file_size > limits.BOMB_FROM and info.file_size > limits.BOMB_RATIO * max(info.compress_size, 1):
                    raise DumpError("archive_bomb", place, size=info.file_size, packed=info.compress_size)
                # A nested archive is opened again for each of its few members: one a rank, they could be more than may be open at once.
                opened = partial(_open_in_zip, source.path, info) if nested else partial(archive.open, info)
                self.members.append(Member(path, place, info.file_size, origin, opened))
        if nested:
            archive.close()

    def _in_zip(self, path: Path, info: zipfile.ZipInfo, place: str, origin: int, *, nested: bool) -> Extent | None:
        """Where a tensor file stays that is a member of a zip: there, or copied as it is packed out of a nested one."""
        packing = ZIP_PACKING.get(info.compress_type, Packing.UNREADABLE) if not info.flag_bits & ENCRYPTED else Packing.UNREADABLE
        extent = Extent(origin - 1, info.header_offset, info.compress_size, info.file_size, packing)
        if not nested:
            return extent
        if not self.keeper.wanted:
            return None
        with path.open("rb") as stream:
            stream.seek(info.header_offset)
            header = stream.read(LOCAL_HEADER.size)
            length = LOCAL_HEADER.size + sum(LOCAL_HEADER.unpack(header)) + info.compress_size
            stream.seek(info.header_offset)
            offset = self.keeper.keep(length, place, partial(_copy, stream, size=length, place=place, meter=self.meter))
        return replace(extent, source=KEPT, offset=offset)

    def _copied(self, stream: Readable, size: int, place: str) -> Extent | None:
        """Where a tensor file stays that is copied out of a stream."""
        if not self.keeper.wanted:
            return None
        offset = self.keeper.keep(size, place, partial(_copy, stream, size=size, place=place, meter=self.meter))
        return Extent(KEPT, offset, size, size, Packing.PLAIN)

    def _tar(self, source: Source, where: str, origin: int, *, nested: bool) -> None:
        with source.path.open("rb") as stream, source.path.open("rb") as contents:
            for path, place, header in self._tar_members(Guarded(stream), where):
                opened = partial(_open_slice, source.path, header.offset_data, header.size)
                extent = None
                if is_tensor(path):
                    extent = Extent(origin - 1, header.offset_data, header.size, header.size, Packing.PLAIN)
                    if nested:
                        contents.seek(header.offset_data)
                        extent = self._copied(contents, header.size, place)
                self.members.append(Member(path, place, header.size, origin, opened, extent))

    def _tar_gz(self, source: Source, where: str, origin: int, *, nested: bool) -> None:
        spool = self._spool
        with source.path.open("rb") as packed, gzip.GzipFile(fileobj=packed) as unpacked:
            guarded = Guarded(cast("IO[bytes]", unpacked), packed, where, self.meter)
            for path, place, header in self._tar_members(guarded, where):
                at, extent = spool.seek(0, io.SEEK_END), None
                if is_tensor(path):
                    guarded.seek(header.offset_data)
                    extent = self._copied(guarded, header.size, place)
                if _is_read(path, nested=nested):
                    self._unpack(header.size, where)
                    guarded.seek(header.offset_data)
                    _copy(guarded, spool, header.size, place, self.meter)
                self.members.append(Member(path, place, header.size, origin, partial(_slice_of, spool, at, header.size), extent))
            while guarded.read(limits.BLOCK):
                pass  # to the end: its checksum is checked there

    def _tar_members(self, stream: Guarded, where: str) -> Iterator[tuple[str, str, tarfile.TarInfo]]:
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            while (header := archive.next()) is not None:
                vars(archive)["members"] = []  # tarfile would keep every header; we need none of them again
                self._count(1, where)
                self.meter.add(0)
                place = f"{where}/{printable(header.name)}"
                path = safe_path(header.name, place)
                if header.issym() or header.islnk():
                    # a symbolic link starts from its own folder, a hard link from the root of the archive
                    self._link(path, place, header.linkname, path.count("/") if header.issym() else 0)
                elif header.isdir() or not path:
                    continue
                elif not header.isreg() or header.issparse():
                    self.left_aside.append(LeftAside(printable(path), "special_file"))
                elif header.size < 0:
                    raise DumpError("archive_damaged", place, detail="its size is negative")
                else:
                    yield path, f"{where}/{printable(path)}", header
            if stream.last.strip(b"\0") or len(stream.last) < tarfile.BLOCKSIZE:
                # tarfile takes a broken header and a missing end for the end
                raise DumpError("archive_damaged", where, detail="its end is missing: it was cut off, or a header in it is broken")

    def _link(self, path: str, place: str, target: str, depth: int) -> None:
        """Links are never followed; one that would leave the archive marks the whole archive as hostile."""
        for step in target.replace("\\", "/").split("/"):
            depth += -1 if step == ".." else 0 if step in ("", ".") else 1
            if depth < 0:
                raise DumpError("archive_climbs", place, name=printable(target))
        if target.startswith(("/", "\\")) or DRIVE.match(target):
            raise DumpError("archive_climbs", place, name=printable(target))
        self.left_aside.append(LeftAside(printable(path), "link"))


def safe_path(name: str, where: str) -> str:
    """The relative path of a member with ``/`` and without ``.``. Raises DumpError (archive_climbs) when it would leave its folder."""
    path = name.replace("\\", "/")
    steps = [step for step in path.split("/") if step not in ("", ".")]
    if path.startswith("/") or ".." in steps or "\0" in path or DRIVE.match(path):
        raise DumpError("archive_climbs", where, name=printable(name))
    return "/".join(steps)


def _is_read(path: str, *, nested: bool) -> bool:
    """Whether a member's bytes may be wanted; archives are wanted in archives that are not nested themselves."""
    if is_system_file(path):
        return False
    return path.lower().endswith(READ_SUFFIXES) or is_wanted(path) or (not nested and _is_archive(path))


def is_system_file(path: str) -> bool:
    """Whether macOS wrote it beside the files themselves: ``__MACOSX/`` in archives, ``._name`` on disks of other systems."""
    steps = path.replace("\\", "/").split("/")
    return steps[-1].startswith("._") or any(step.upper() == "__MACOSX" for step in steps)


def _is_archive(path: str) -> bool:
    return path.lower().endswith(ARCHIVE_SUFFIXES)


def _without_suffix(path: str) -> str:
    return path[: -len(next((suffix for suffix in ARCHIVE_SUFFIXES if path.lower().endswith(suffix)), ""))] or path


def _numbers(name: str, members: Sequence[Member]) -> str:
    """``rank3/`` for a ``rank3.zip`` that holds a dump at its top: the number is nowhere else."""
    if all("/" in member.path for member in members if member.name.lower() in DUMP_FILES):
        return ""
    folders = PurePosixPath(_without_suffix(name.replace("\\", "/")))
    return numbered_folders(folders)


def _size(source: Source) -> int:
    try:
        return source.path.stat().st_size
    except OSError as error:
        raise os_error(error, printable(source.name)) from error


def _check_directory(path: Path, where: str) -> None:
    """Refuse a central directory that zipfile could not hold in memory, before zipfile reads it."""
    tail = 22 + 65535 + 20
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - tail))
        end = stream.read()
        at = end.rfind(b"PK\x05\x06")
        if at < 0 or at + 22 > len(end):
            raise DumpError("archive_damaged", where, detail="its end is missing: it was cut off, or not written to its end")
        directory = struct.unpack_from("<L", end, at + 12)[0]
        if directory == 0xFFFFFFFF and at >= 20:
            record = struct.unpack_from("<4sLQL", end, at - 20)
            stream.seek(min(record[2], size))
            head = stream.read(56)
            directory = struct.unpack_from("<Q", head, 40)[0] if len(head) == 56 else 0
    if directory > limits.LARGEST_DIRECTORY:
        raise DumpError("archive_too_many", where, limit=limits.MOST_MEMBERS)


def _open_file(path: Path) -> AbstractContextManager[IO[bytes]]:
    return path.open("rb")


@contextmanager
def _open_in_zip(path: Path, info: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
        yield stream


@contextmanager
def _refused(where: str) -> Iterator[None]:
    """Turns what the standard library raises over an archive into refusals."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not the system's: gzip.BadGzipFile
            raise DumpError("archive_damaged", where, detail=str(error)) from error
        raise os_error(error, where) from error
    except DAMAGE as error:
        raise DumpError("archive_damaged", where, detail=str(error) or type(error).__name__) from error


def _copy(unpacked: Readable, spool: IO[bytes], size: int, place: str, meter: Meter) -> None:
    while size:
        block = unpacked.read(min(size, limits.BLOCK))
        if not block:
            raise DumpError("archive_damaged", place, detail="the archive ends within it")
        spool.write(block)
        size -= len(block)
        meter.add(0)


def _not_read(place: str) -> AbstractContextManager[IO[bytes]]:
    raise DumpError("archive_damaged", place, detail="it is no json file")


@contextmanager
def _open_slice(path: Path, offset: int, size: int) -> Iterator[IO[bytes]]:
    with path.open("rb") as stream:
        yield Slice(stream, offset, size)  # type: ignore[misc]


@contextmanager
def _slice_of(stream: IO[bytes], offset: int, size: int) -> Iterator[IO[bytes]]:
    yield Slice(stream, offset, size)  # type: ignore[misc]
