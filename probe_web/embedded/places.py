"""Where the local mode keeps what is not data: the broker's socket."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

# Linux takes 107 bytes for the path of a unix socket, macOS 103.
LONGEST_SOCKET_PATH = 103


def broker_socket(data: Path) -> Path:
    """The path of the embedded broker's socket for a data folder; every process of one installation computes the same.

    It is in the data folder where the path is short enough, else in a folder of this user's own in the system's temporary directory.
    """
    path = data / "broker.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"probe_web-{os.getuid()}" / f"{digest}.sock"
