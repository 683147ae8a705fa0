"""One server a data folder. The lock is the kernel's (flock): it ends with its holder, however that dies, so none is ever stale."""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

FILE_NAME = "run.lock"


@dataclass(frozen=True)
class Holder:
    """Who holds a data folder: process id, and the address it serves at (empty while it is still starting)."""

    pid: int
    url: str


class DataFolder:
    """A data folder that one supervisor holds from `take` until its process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def take(self) -> bool:
        """Make the folder where it is missing and lock it. False when another process holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        # Opened without truncating: what is in it belongs to the holder until the lock is ours.
        descriptor = os.open(self.path / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        file = os.fdopen(descriptor, "r+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        self.announce("")
        return True

    def announce(self, url: str) -> None:
        """Write down who holds the folder and where it serves."""
        if self._file is None:
            raise RuntimeError("take() comes first")
        self._file.seek(0)
        self._file.truncate()
        json.dump({"pid": os.getpid(), "url": url}, self._file)
        self._file.flush()

    def holder(self) -> Holder | None:
        """What the holder has written; None while that is nothing readable."""
        try:
            written = json.loads((self.path / FILE_NAME).read_text(encoding="utf-8"))
            return Holder(int(written["pid"]), str(written["url"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def wait_for_address(self, seconds: float) -> str | None:
        """The address of the holder, which may be starting at this moment; None when none came in time."""
        deadline = time.monotonic() + seconds
        while True:
            holder = self.holder()
            if holder is not None and holder.url:
                return holder.url
            if time.monotonic() > deadline:
                return None
            time.sleep(0.2)
