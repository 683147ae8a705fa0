"""What was lost is sent again, what died is said to be dead, what nobody owns is swept. All of it may run twice, or in two places at once.

A worker does both rounds at its start and every 30 s; who looks at a comparison calls ``look_at`` for that one row, so that nobody waits
for a clock that died with its worker.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from compare.engine.errors import Cancelled
from compare.models import Comparison, Export, Job, Loop, Part, Run, Task
from compare.services import broker, comparisons, exports, limits, runs, spread, storage, uploads, work
from compare.services.refusals import problem
from compare.services.summary import NO_VERDICT

log = logging.getLogger(__name__)


def resend_unclaimed() -> int:
    """Ring again for waiting rows that nobody claimed, unless the broker still holds their messages; returns how many it took.

    Parts are sent a few at a time: those that were never sent wait for their turn (``spread.advance``).
    """
    for comparison in Comparison.objects.filter(comparisons.A_RUN_FAILED, state=Comparison.State.QUEUED):
        _fail_with_its_run(comparison)
    in_parts = Comparison.objects.filter(state=Comparison.WORKING, phase=Comparison.Phase.PARTS)
    for pk in in_parts.values_list("pk", flat=True):
        spread.advance(pk)
    rows: list[Task] = [
        *Run.objects.filter(broker.unrung(), state=Run.State.QUEUED).order_by("created_at"),
        *Comparison.objects.filter(broker.unrung(), comparisons.RUNS_READY, state=Comparison.State.QUEUED).order_by("created_at"),
        *Comparison.objects.filter(broker.unrung(), broker.REDUCTION),
        *Export.objects.filter(broker.unrung(), state=Export.State.QUEUED).order_by("created_at"),
    ]
    loops = list(Loop.objects.filter(broker.unrung(), state=Loop.State.QUEUED, comparison__in=in_parts))
    parts = list(
        Part.objects.filter(broker.unrung(), state=Part.State.QUEUED, rung_at__isnull=False, comparison__in=in_parts).order_by("n")
    )
    lost = len(rows) + len(loops) + len(parts)
    if not lost or (broker.waiting() or 0) - _just_rung() >= lost:
        return 0
    sizes = dict(Comparison.objects.filter(pk__in={part.comparison_id for part in parts}).values_list("pk").annotate(Count("parts")))
    taken = [broker.ring(row) for row in rows] + [broker.ring(loop, broker.LATER) for loop in loops]
    return sum(taken) + sum(broker.ring(part, spread.priority(sizes[part.comparison_id])) for part in parts)


def _just_rung() -> int:
    """Rows that wait and whose messages may still be on the broker."""
    models: tuple[type[Task], ...] = (Run, Comparison, Part, Loop, Export)
    return sum(model._default_manager.filter(~broker.unrung(), state=model.QUEUED).count() for model in models)


def reap_interrupted() -> None:
    """Settle the rows whose worker said nothing for too long and the comparisons that do not hear that they are cancelled."""
    for run in Run.objects.filter(silent(), state=Run.WORKING):
        run_lost(run, "worker_lost")
    for comparison in Comparison.objects.filter(silent() | deaf(), state=Comparison.WORKING):
        comparison_lost(comparison, "worker_lost")
    for piece in spread.pieces(silent(), state=Part.WORKING):
        spread.piece_lost(piece, "worker_lost")
    end_deaf_pieces()
    for export in Export.objects.select_related("comparison").filter(silent(), state=Export.WORKING):
        exports.lost(export, "worker_lost")
    uploads.reap_idle()


def end_deaf_pieces() -> None:
    """End the processes that go on with a piece long after it was cancelled: somebody else waits for them."""
    long_ago = timezone.now() - limits.HARD_CANCEL
    for piece in spread.pieces(~Q(task_id=""), state=Part.State.CANCELLED, finished_at__lt=long_ago):
        broker.kill(piece.task_id)
        type(piece)._default_manager.filter(pk=piece.pk, task_id=piece.task_id).update(task_id="")
        storage.clear_piece_attempt(piece)


def look_at(comparison: Comparison) -> Comparison:
    """The cheap check of somebody who looks at one comparison: a query only where a row has been quiet for too long."""
    for run in comparisons.runs_of(comparison):
        look_at_run(run)
        if run.state == Run.State.FAILED and comparison.state == Comparison.State.QUEUED:
            _fail_with_its_run(comparison)
    if _is_due(comparison):
        _make_room_for(comparison)
        comparisons.ring_when_ready(comparison)
    if comparison.state == Comparison.WORKING and (
        _is_past(comparison.heartbeat_at, limits.stale()) or _is_past(comparison.cancel_requested_at, limits.HARD_CANCEL)
    ):
        comparison_lost(comparison, "worker_lost")
    if comparison.state == Comparison.WORKING and comparison.phase == Comparison.Phase.PARTS:
        for piece in spread.pieces(silent(), comparison=comparison, state=Part.WORKING):
            spread.piece_lost(piece, "worker_lost")
    return comparison


def look_at_export(export: Export) -> Export:
    """The same for a file that somebody waits for."""
    if export.state == Export.WORKING and _is_past(export.heartbeat_at, limits.stale()):
        exports.lost(export, "worker_lost")
        export.refresh_from_db()
    return export


def look_at_run(run: Run) -> Run:
    """The same for one run."""
    if _is_due(run):
        _make_room_for(run)
        broker.ring(run)
    if run.state == Run.WORKING and _is_past(run.heartbeat_at, limits.stale()):
        run_lost(run, "worker_lost")
    return run


def run_lost(run: Run, code: str, **params: Any) -> None:
    """The worker of a run is gone: read it again by itself, but not for ever, for it may be the dump that kills."""
    attempt = work.Attempt(Run, run.pk, run.attempt)
    log.warning("attempt %d of run %s ended without a word: %s", run.attempt, run.pk, code)
    with suppress(Cancelled):  # somebody else settled it
        storage.clear_attempt(run)
        if run.attempt < limits.RUN_ATTEMPTS:
            attempt.write(state=Run.State.QUEUED, progress={}, rung_at=None)
            broker.ring(run)
        else:
            runs.fail(run, attempt, problem(code, run.name, **params))
    run.refresh_from_db()


def comparison_lost(comparison: Comparison, code: str, **params: Any) -> None:
    """The worker of a comparison is gone, or deaf: cancelled if that was asked for, else interrupted, and a retry is offered.

    One that is spread has lost nothing by it: its parts are rows of their own, and its reduction is done by somebody else.
    """
    if comparison.phase != Comparison.Phase.WHOLE:
        if comparison.cancel_requested_at:
            spread.stop(comparison)
        elif comparison.phase == Comparison.Phase.REDUCING:
            spread.reduction_lost(comparison, code, **params)
        return
    attempt = work.Attempt(Comparison, comparison.pk, comparison.attempt)
    log.warning("attempt %d of comparison %s ended without a word: %s", comparison.attempt, comparison.pk, code)
    if comparison.cancel_requested_at:
        broker.kill(comparison.task_id)
        comparisons.stopped(attempt)
    else:
        with suppress(Cancelled):  # somebody else settled it
            attempt.settle(Comparison.State.INTERRUPTED, error=problem(code, comparison.name, **params), **NO_VERDICT)
    storage.clear_attempt(comparison)
    comparison.refresh_from_db()


def silent() -> Q:
    """Claimed rows whose worker has said nothing for too long."""
    return Q(heartbeat_at__lt=timezone.now() - limits.stale())


def deaf() -> Q:
    """Comparisons whose worker was asked to stop and did not."""
    return Q(cancel_requested_at__lt=timezone.now() - limits.HARD_CANCEL)


def sweep() -> int:
    """Remove files that no row owns: what a killed process left behind. Returns how many."""
    old = time.time() - limits.SWEEP_AGE.total_seconds()
    suspects = [(path, key, model) for path, key, model in storage.everything() if path.lstat().st_mtime < old]
    owned = {model: set(model._default_manager.values_list("pk", flat=True)) if model else set() for _, _, model in suspects}
    orphans = [path for path, key, model in suspects if key not in owned[model]]
    for path in orphans:
        storage.remove(path)
    return len(orphans)


def _fail_with_its_run(comparison: Comparison) -> None:
    """A comparison that waits for a run which failed before the comparison was there to be told."""
    for run in comparisons.runs_of(comparison):
        if run.state == Run.State.FAILED:
            comparisons.run_failed(run, run.error or {})
    comparison.refresh_from_db()


def _make_room_for(job: Job) -> None:
    """What was rung for and waits all the same may wait for parts that go on after their cancel: no worker is free to find out."""
    if job.rung_at is not None:
        end_deaf_pieces()


def _is_due(job: Job) -> bool:
    return job.state == job.QUEUED and (job.rung_at is None or _is_past(job.rung_at, limits.unclaimed()))


def _is_past(moment: datetime | None, patience: timedelta) -> bool:
    return moment is not None and moment < timezone.now() - patience
