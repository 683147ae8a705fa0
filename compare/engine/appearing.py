"""Folders that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def appearing(destination: Path) -> Iterator[Path]:
    """A folder that takes its place when it is complete; a failure leaves nothing behind."""
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.replace(destination)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
