"""Bytes that arrive at an offset, until they are a blob (the server side of tus 1.0).

The truth about how much has arrived is the size of the part file: it is right after a dropped connection, a killed server and a reboot.
The sum is taken as bytes arrive, in the memory of the process they arrive at; where that memory is gone (restart, another process), the
file is read once more when it is complete. A lock on the part file keeps two writers apart and ends with the process that holds it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import IO, Any, Protocol

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from compare.models import Upload
from compare.services import blobs, limits, space, storage
from compare.services.refusals import Refusal

BLOCK = 1024 * 1024
NAME_LENGTH = 1024


class Stream(Protocol):
    """Where bytes come from; an empty answer ends it."""

    def read(self, size: int, /) -> bytes: ...


class RunningSums:
    """Half-taken sha256 sums of open uploads, the most recent ones; (bytes so far, hash) by upload id."""

    def __init__(self, capacity: int = 256) -> None:
        self._sums: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self._capacity = capacity
        self._lock = threading.Lock()

    def take(self, upload_id: str, offset: int) -> Any | None:
        """The sum over exactly the first ``offset`` bytes, or None when nobody has it."""
        with self._lock:
            at, running = self._sums.pop(upload_id, (0, hashlib.sha256()))
        return running if at == offset else None

    def put(self, upload_id: str, offset: int, running: Any) -> None:
        with self._lock:
            self._sums[upload_id] = (offset, running)
            while len(self._sums) > self._capacity:
                self._sums.popitem(last=False)


_sums = RunningSums()


def check_name(name: str) -> str:
    """A relative name as its sender wrote it. It is kept as text and never becomes a path here."""
    if not name or len(name) > NAME_LENGTH or "\0" in name:
        raise Refusal("bad_name")
    return name


def create(name: str, length: int, declared_sha256: str = "") -> Upload:
    """Open an upload of ``length`` bytes, which must sum to ``declared_sha256`` where that is given. Refused where it could not be
    finished."""
    check_name(name)
    if length > settings.UPLOAD_MAX_BYTES:
        raise Refusal("upload_too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit=settings.UPLOAD_MAX_BYTES)
    if Upload.objects.filter(run__isnull=True).count() >= settings.UPLOAD_MAX_OPEN:
        raise Refusal("uploads_too_many", HTTPStatus.TOO_MANY_REQUESTS, limit=settings.UPLOAD_MAX_OPEN)
    if space.arriving_bytes() + length > limits.ARRIVING_BYTES:
        raise Refusal("uploads_full", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit=limits.ARRIVING_BYTES)
    space.check(length)
    upload = Upload.objects.create(
        name=name, length=length, declared_sha256=declared_sha256, expires_at=timezone.now() + limits.idle_upload()
    )
    storage.part(upload.pk).touch()
    if length == 0:
        seal(upload)
    return upload


def of_content(name: str, length: int, sha256: str) -> Upload | None:
    """An upload that is complete at once, because its content is here already; None where it is not.

    Whoever may call this may read, through a run of it, what they only know the sum of: known senders (``api/senders.py``) and no others.
    """
    check_name(name)
    with transaction.atomic():
        blob = blobs.held(sha256, length)
        if blob is None:
            return None
        return Upload.objects.create(name=name, length=length, sha256=sha256, blob=blob, expires_at=timezone.now() + limits.idle_upload())


def offset(upload: Upload) -> int:
    """How many bytes have arrived."""
    try:
        return storage.part(upload.pk).stat().st_size
    except FileNotFoundError:
        return upload.length if upload.sha256 else 0


def append(upload: Upload, at: int, stream: Stream, size: int) -> int:
    """Append ``size`` bytes that belong at offset ``at``; returns the new offset.

    A stream that ends early keeps what it brought (``upload_cut``), and so does a disk that fills up (``disk_full``).
    """
    with _held(upload) as part:
        here = part.seek(0, os.SEEK_END)
        if at != here:
            raise Refusal("offset_mismatch", HTTPStatus.CONFLICT, offset=here)
        if here + size > upload.length:
            raise Refusal("upload_overflow", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, length=upload.length)
        received = _copy(upload, part, here, stream, size)
    Upload.objects.filter(pk=upload.pk).update(expires_at=timezone.now() + limits.idle_upload())
    if received < size:
        raise Refusal("upload_cut", received=received, expected=size)
    if here + received == upload.length:
        seal(upload)
    return here + received


def seal(upload: Upload) -> Upload:
    """Turn a complete upload into a blob. May be called again, also after a crash in the middle."""
    if upload.blob_id:
        return upload
    if not upload.sha256:
        here = offset(upload)
        if here != upload.length:
            raise Refusal("upload_incomplete", HTTPStatus.CONFLICT, name=upload.name, offset=here, length=upload.length)
        running = _sums.take(upload.pk, here)
        found = running.hexdigest() if running else blobs.sha256_of(storage.part(upload.pk))
        if upload.declared_sha256 not in ("", found):
            terminate(upload)
            raise Refusal("upload_changed", HTTPStatus.CONFLICT)
        upload.sha256 = found
        upload.save(update_fields=["sha256"])
    with transaction.atomic():
        upload.blob = blobs.keep(storage.part(upload.pk), upload.sha256, upload.length)
        upload.save(update_fields=["blob"])
    return upload


def terminate(upload: Upload) -> None:
    """Forget an upload and what arrived of it. One that is being written cannot be ended."""
    if not upload.blob_id and storage.part(upload.pk).exists():
        with _held(upload):
            storage.part(upload.pk).unlink(missing_ok=True)
    upload.delete()
    if upload.sha256:
        blobs.release([upload.sha256])


def reap_idle() -> int:
    """Forget the uploads that expired; returns how many."""
    reaped = 0
    for upload in Upload.objects.filter(expires_at__lt=timezone.now()):
        with suppress(Refusal):  # somebody is writing it at this moment: not idle after all
            terminate(upload)
            reaped += 1
    return reaped


@contextmanager
def _held(upload: Upload) -> Iterator[IO[bytes]]:
    """The part file, open for appending and locked against other writers."""
    try:
        part = storage.part(upload.pk).open("r+b", buffering=0)
    except FileNotFoundError:
        raise Refusal("offset_mismatch", HTTPStatus.CONFLICT, offset=offset(upload)) from None
    with part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("upload_locked", HTTPStatus.LOCKED) from None
        yield part


def _copy(upload: Upload, part: IO[bytes], here: int, stream: Stream, size: int) -> int:
    """Write up to ``size`` bytes at the end of the part file, summing them; returns how many arrived. They are on the disk afterwards."""
    running, received = _sums.take(upload.pk, here), 0
    try:
        while received < size:
            try:
                block = stream.read(min(BLOCK, size - received))
            except OSError:  # the connection broke; Django's UnreadablePostError is one
                break
            if not block:
                break
            _write(part, block)
            received += len(block)
            if running:
                running.update(block)
        os.fsync(part.fileno())
    except OSError as error:
        raise (space.disk_full() if error.errno in storage.DISK_FULL else error) from error
    if running:
        _sums.put(upload.pk, here + received, running)
    return received


def _write(part: IO[bytes], block: bytes) -> None:
    """All of ``block``: an unbuffered write may take less than it was given."""
    rest = memoryview(block)
    while rest:
        rest = rest[part.write(rest) :]
