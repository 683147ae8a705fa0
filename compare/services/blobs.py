"""Content, stored once. A file that arrives becomes ``blobs/<2>/<sha256>``; one that is there already is only counted again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import Sum

from compare.models import Blob
from compare.services import storage


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@transaction.atomic
def keep(arrived: Path, sha256: str, size: int) -> Blob:
    """Move an arrived file into the store and return its blob; the file is gone from where it was.

    May be called again after a crash: what was moved already is found. The row is locked while the file moves, so that ``release`` cannot
    take the content away in between.
    """
    blob = _locked(sha256, size)
    place = storage.blob(sha256)
    if place.is_file() and place.stat().st_size == size:
        arrived.unlink(missing_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        arrived.replace(place)
    return blob


def held(sha256: str, size: int) -> Blob | None:
    """The blob of that content, locked until the transaction ends; None where it is not here, or its file was lost."""
    blob = Blob.objects.select_for_update().filter(pk=sha256, size=size).first()
    place = storage.blob(sha256)
    return blob if blob and place.is_file() and place.stat().st_size == size else None


def stored_bytes() -> int:
    """Bytes of all contents."""
    return int(Blob.objects.aggregate(bytes=Sum("size"))["bytes"] or 0)


def release(digests: Iterable[str]) -> None:
    """Delete the contents among ``digests`` that nothing refers to any more."""
    for sha256 in set(digests):
        with transaction.atomic():
            blob = Blob.objects.select_for_update().filter(pk=sha256).first()
            if blob and not blob.run_files.exists() and not blob.uploads.exists():
                blob.delete()
                storage.blob(sha256).unlink(missing_ok=True)


def _locked(sha256: str, size: int) -> Blob:
    """The blob's row, made if need be, locked until the transaction ends."""
    while True:
        blob = Blob.objects.select_for_update().filter(pk=sha256).first()
        if blob:
            return blob
        try:
            with transaction.atomic():
                return Blob.objects.create(sha256=sha256, size=size)
        except IntegrityError:  # somebody else made it meanwhile
            continue
