"""One upload read into columns: created from sealed uploads or multipart files, read by a worker, immutable from then on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError

from compare.engine.errors import Cancelled
from compare.models import Blob, Comparison, Run, RunFile, Upload
from compare.services import blobs, broker, comparisons, storage, uploads, work
from compare.services.refusals import Refusal


@dataclass(frozen=True)
class Arrived:
    """A multipart file: where its bytes lie, and its sum, taken as they arrived."""

    name: str
    path: Path
    sha256: str
    size: int


def create_from_uploads(upload_ids: Sequence[str], name: str, role: str) -> Run:
    """A run of finished uploads. The same uploads asked for again give the same run: a request may be repeated."""
    found = Upload.objects.in_bulk(upload_ids)
    for upload_id in upload_ids:
        if upload_id not in found:
            raise Refusal("upload_unknown", upload=upload_id)
    chosen = [found[upload_id] for upload_id in dict.fromkeys(upload_ids)]
    _check_count(len(chosen))
    taken = {upload.run_id for upload in chosen}
    if len(taken) == 1 and None not in taken:
        return Run.objects.get(pk=taken.pop())
    for upload in chosen:
        uploads.seal(upload)
    with transaction.atomic():
        run = _create([(upload.name, blobs.keep(storage.part(upload.pk), upload.sha256, upload.length)) for upload in chosen], name, role)
        Upload.objects.filter(pk__in=[upload.pk for upload in chosen]).update(run=run)
    return run


def create_from_files(files: Sequence[Arrived], name: str, role: str) -> Run:
    """A run of files that came in one multipart request."""
    _check_count(len(files))
    for file in files:
        uploads.check_name(file.name)
    with transaction.atomic():
        return _create([(file.name, blobs.keep(file.path, file.sha256, file.size)) for file in files], name, role)


def read(run_id: str, task_id: str) -> None:
    """The worker's part: claim the run, read it into columns, publish them. Does nothing when somebody else has it."""
    attempt = work.claim(Run, run_id, task_id)
    if attempt is None:
        return
    run = Run.objects.get(pk=run_id)
    making = storage.attempt(run, attempt.number)

    def action(pulse: work.Pulse) -> None:
        from compare.engine import pipeline  # only here: a web process needs no numpy

        storage.clear_attempts(run)
        sources = [pipeline.Source(storage.blob(file.blob_id), file.name) for file in run.files.all()]
        inventory = pipeline.read_run(sources, run.name, making, pulse.progress)
        with transaction.atomic():
            attempt.settle(Run.State.READY, inventory=inventory, error=None)
            storage.publish(making, storage.columns(run))

    try:
        error = work.perform(attempt, action)
        if error is None:
            comparisons.run_ready(run)
        else:
            fail(run, attempt, error)
    except Cancelled:  # the row was deleted or given up for dead
        pass
    finally:
        storage.end_attempt(making)


def fail(run: Run, attempt: work.Attempt, error: dict[str, object]) -> None:
    """The run cannot be read, and what waits for it cannot be done. Raises Cancelled when the row is not this attempt's any more.

    Bytes that are no dump are not kept; where it was the machine's fault they are, for a second try.
    """
    with transaction.atomic():
        attempt.settle(Run.State.FAILED, error=error)
        comparisons.run_failed(run, error)
    if error["code"] not in work.PASSING_FAULTS:
        drop_files(run)


def drop_files(run: Run) -> None:
    """Forget what a run was made of, and the contents that no other run holds."""
    digests = list(run.files.values_list("blob_id", flat=True))
    run.uploads.all().delete()
    run.files.all().delete()
    blobs.release(digests)


def delete(run: Run) -> None:
    """Remove a run with its files. One that a comparison uses, be it as the baseline, stays."""
    digests, folder = list(run.files.values_list("blob_id", flat=True)), storage.job(run)
    baseline_of = Comparison.objects.filter(options__baseline=run.pk).count()
    if baseline_of:
        raise Refusal("run_in_use", HTTPStatus.CONFLICT, comparisons=baseline_of)
    try:
        run.delete()
    except ProtectedError as error:
        users = {c.pk for c in error.protected_objects if isinstance(c, Comparison)}
        raise Refusal("run_in_use", HTTPStatus.CONFLICT, comparisons=len(users)) from None
    storage.remove(folder)
    blobs.release(digests)


def _check_count(count: int) -> None:
    if count == 0:
        raise Refusal("no_files")
    if count > settings.UPLOAD_MAX_FILES:
        raise Refusal("too_many_files", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit=settings.UPLOAD_MAX_FILES)


def _create(files: Sequence[tuple[str, Blob]], name: str, role: str) -> Run:
    """The rows of a run, inside the transaction that holds its blobs."""
    run = Run.objects.create(name=name or _name_of(files[0][0]), role=role, size=sum(blob.size for _, blob in files), sha256=_sum_of(files))
    RunFile.objects.bulk_create(
        [RunFile(run=run, blob=blob, name=file_name, order=order) for order, (file_name, blob) in enumerate(files)], batch_size=500
    )
    broker.ring_on_commit(run)
    return run


def _name_of(file_name: str) -> str:
    """What to call a run whose sender did not say, by its first file: its archive, or the folder that was dropped."""
    return next((step for step in re.split(r"[/\\]", file_name) if step), file_name)[:200]


def _sum_of(files: Sequence[tuple[str, Blob]]) -> str:
    if len(files) == 1:
        return files[0][1].sha256
    lines = sorted(f"{blob.sha256}  {name}\n" for name, blob in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
