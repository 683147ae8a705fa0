"""What the engine is given: files by name, and a way to say how far it is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from compare.engine.errors import os_error, printable

Progress: TypeAlias = Callable[[str, float, dict[str, int]], None]

SIDE_FILES = ("construct.json", "stack.json")


@dataclass(frozen=True, slots=True)
class Source:
    """One file of an input: where its bytes are on this machine, and its relative path as the sender named it (hostile text)."""

    path: Path
    name: str


class Meter:
    """Counts the bytes read and reports them at most five times a second.

    Reading has two phases, unpacking (tar.gz only) and the json itself, each with a total of its own; ``fraction`` runs through both and
    never goes back.
    """

    INTERVAL = 0.2

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.total = self.bytes = 0
        self.start = self.until = self.fraction = 0.0
        self.reported = 0.0

    def phase(self, total: int, until: float) -> None:
        """Begin to count again: ``total`` bytes bring the fraction from where it is to ``until``."""
        self.total, self.bytes = total, 0
        self.start, self.until = self.fraction, until

    def add(self, count: int) -> None:
        """Count bytes. Lets through what the progress function raises (errors.Cancelled)."""
        self.bytes += count
        if self.progress is not None and time.monotonic() - self.reported >= self.INTERVAL:
            self.report()

    def report(self) -> None:
        """Call the progress function now."""
        if self.progress is None:
            return
        done = min(1.0, self.bytes / self.total) if self.total else 0.0
        self.fraction = max(self.fraction, self.start + done * (self.until - self.start))
        self.progress("read", self.fraction, {"bytes": self.bytes, "of": max(self.total, self.bytes)})
        self.reported = time.monotonic()


def paths_to_sources(paths: Sequence[Path]) -> list[Source]:
    """The files that the command line means: a dump.json (with its two side files), a folder of any level, or an archive.

    The names start with the folder that was given, and with ``stepN/`` or ``stepN/rankN/`` above it, so that the numbers are not lost.
    Raises DumpError (file_missing, file_forbidden, file_unreadable).
    """
    sources: list[Source] = []
    for given in paths:
        where = printable(str(given))
        try:
            path = given.resolve(strict=True)
            if path.is_dir():
                sources.extend(_folder(path))
            else:
                sources.extend(_lone_file(path))
        except OSError as error:
            raise os_error(error, where) from error
    return sources


def _lone_file(path: Path) -> list[Source]:
    from compare.engine.ingest.layout import TENSOR_FOLDER, numbered_folders  # layout needs this module

    if path.name not in ("dump.json", "debug.json"):
        return [Source(path, path.name)]
    prefix = numbered_folders(path.parent)
    files = [path, *(path.parent / name for name in SIDE_FILES)]
    found = [Source(file, prefix + file.name) for file in files if file == path or file.is_file()]
    tensors = path.parent / TENSOR_FOLDER
    if tensors.is_dir():
        found += [Source(file, f"{prefix}{TENSOR_FOLDER}/{file.name}") for file in sorted(tensors.iterdir()) if file.is_file()]
    return found


def _folder(folder: Path) -> list[Source]:
    from compare.engine.ingest.layout import numbered_folders  # layout needs this module

    prefix = numbered_folders(folder) or f"{folder.name}/"
    found: list[Source] = []

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        for file in sorted(files):
            path = Path(parent) / file
            if path.is_file():
                found.append(Source(path, prefix + path.relative_to(folder).as_posix()))
    return found
