"""Whether the database has every migration of this checkout, without the second that asking Django costs at every start."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

FILE_NAME = "migrated"


def _code(root: Path) -> str:
    names = sorted(str(path.relative_to(root)) for path in root.glob("*/migrations/*.py"))
    content = b"".join((root / name).read_bytes() for name in names)
    return hashlib.sha256("\n".join(names).encode() + content + (root / "requirements.txt").read_bytes()).hexdigest()


def _applied(database: Path) -> int:
    """How many migrations the database says it has; −1 where it cannot be read."""
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM django_migrations").fetchone()[0])
    except sqlite3.Error:
        return -1


def stamp(root: Path, database: Path) -> str:
    """What holds together: the checkout's migrations, and the number of them in the database (which may be an older copy)."""
    return f"{_code(root)} {_applied(database)}"


def are_applied(root: Path, data: Path, database: Path) -> bool:
    """True when `remember` was called in this state of the checkout and of the database."""
    try:
        return database.exists() and (data / FILE_NAME).read_text() == stamp(root, database)
    except OSError:
        return False


def remember(root: Path, data: Path, database: Path) -> None:
    (data / FILE_NAME).write_text(stamp(root, database))
