"""System checks of the place where the product keeps things. They say what to do, and run where a database is about to be used
(`migrate`, `check --database default`), not for `manage.py compare`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks

# Their file locks do not hold between machines, or not at all; SQLite's write-ahead log needs shared memory besides.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "fuse.glusterfs", "fuse.sshfs"}
)


def file_system_of(path: Path, mounts: str) -> str:
    """The type of the file system that holds `path`, by the text of /proc/mounts; empty where it is not known."""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        if len(place) >= len(best) and path.is_relative_to(place):
            best, kind = place, fields[2]
    return kind


@checks.register(checks.Tags.database)
def data_folder_is_usable(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    folder: Path = settings.DATA_DIR
    if databases and (not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK)):
        return [
            checks.Error(
                f"The data folder {folder} is not there or not writable.", hint="Make it, or set PROBE_DATA_DIR.", id="probe_web.E001"
            )
        ]
    return []


@checks.register(checks.Tags.database)
def sqlite_is_on_a_local_disk(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    database = settings.DATABASES["default"]
    mounts = Path("/proc/mounts")
    if not databases or database["ENGINE"] != "django.db.backends.sqlite3" or not mounts.exists():
        return []
    kind = file_system_of(Path(database["NAME"]).resolve().parent, mounts.read_text())
    if kind not in NETWORK_FILE_SYSTEMS:
        return []
    return [
        checks.Warning(
            f"The SQLite database is on a network file system ({kind}), where its locks may not hold.",
            hint="Choose a local disk (./run --data DIR), or PostgreSQL by DATABASE_URL.",
            id="probe_web.W001",
        )
    ]
