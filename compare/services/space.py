"""How much room there is: on the disk, and of what an operator lets the server keep."""

from __future__ import annotations

import time
from http import HTTPStatus
from pathlib import Path

from django.conf import settings
from django.db.models import Sum

from compare.models import Upload
from compare.services import blobs, storage
from compare.services.refusals import Refusal

# Columns and results are files of many rows: their size is measured, and good for this many seconds.
MEASURED_FOR = 30.0

_measured: dict[Path, tuple[float, int]] = {}


def check(coming: int) -> None:
    """Refuse bytes that would fill the disk, or the share of it that an operator gave."""
    if storage.free_bytes() - coming < settings.DISK_RESERVE_BYTES:
        raise disk_full()
    limit = settings.STORED_MAX_BYTES
    if not limit:
        return
    here = blobs.stored_bytes() + arriving_bytes() + coming
    # Measured anew before anything is refused: somebody may have just made room.
    if here + made_bytes() > limit and here + made_bytes(anew=True) > limit:
        raise Refusal("storage_full", HTTPStatus.INSUFFICIENT_STORAGE, limit=limit)


def disk_full() -> Refusal:
    return Refusal("disk_full", HTTPStatus.INSUFFICIENT_STORAGE)


def arriving_bytes() -> int:
    """Declared bytes of all uploads that are not complete."""
    return int(Upload.objects.filter(blob__isnull=True).aggregate(bytes=Sum("length"))["bytes"] or 0)


def made_bytes(*, anew: bool = False) -> int:
    """Bytes of what was made of the dumps: columns of runs, results and exports of comparisons."""
    root, now = storage.root(), time.monotonic()
    at, size = _measured.get(root, (-MEASURED_FOR, 0))
    if anew or now - at >= MEASURED_FOR:
        size = storage.made_bytes()
        _measured[root] = (now, size)
    return size
