"""Two runs compared: created in any state of its runs but failed, claimed by a worker, published at once, cancelled, tried again."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from compare.engine.errors import Cancelled, DumpError
from compare.engine.options import Options
from compare.models import Comparison, Part, Run
from compare.services import broker, space, spread, storage, work
from compare.services.refusals import Refusal
from compare.services.summary import NO_VERDICT, summary

State, Phase = Comparison.State, Comparison.Phase

RUNS_READY = Q(left__state=Run.State.READY, right__state=Run.State.READY)
A_RUN_FAILED = Q(left__state=Run.State.FAILED) | Q(right__state=Run.State.FAILED)


def uses(run_id: str) -> Q:
    return Q(left=run_id) | Q(right=run_id) | Q(options__baseline=run_id)


def create(
    left: str, right: str, options: dict[str, Any], name: str = "", example: str = "", previous: Comparison | None = None
) -> Comparison:
    """A comparison of two runs by id; ``options`` as in the contract. ``previous``: the one it was begun from."""
    try:
        Options.from_json(options)
    except DumpError as error:
        raise Refusal(error.code, **error.params) from None
    sides = _run(left), _run(right)
    if options.get("baseline"):
        _run(options["baseline"])
    space.check(1)  # how large a result becomes is not known; where nothing fits any more, neither does it
    comparison = Comparison(
        left=sides[0],
        right=sides[1],
        options={key: value for key, value in options.items() if value not in (None, "") and value is not False},
        name=name or f"{sides[0].name} | {sides[1].name}"[:200],
        example=example,
        previous=previous,
    )
    with transaction.atomic():
        comparison.save(force_insert=True)
        ring_when_ready(comparison)
    return comparison


def ring_when_ready(comparison: Comparison) -> None:
    """Call a worker when there is something to do: a comparison whose runs are still being read waits without holding one."""
    if _all_ready(comparison):
        broker.ring_on_commit(comparison)


def _all_ready(comparison: Comparison) -> bool:
    return all(run.state == Run.State.READY for run in runs_of(comparison))


def runs_of(comparison: Comparison) -> list[Run]:
    """All that it reads: its sides, and the baseline where one was given."""
    baseline = comparison.options.get("baseline")
    return [comparison.left, comparison.right, *(Run.objects.filter(pk=baseline) if baseline else ())]


def waiting_for(run: Run) -> QuerySet[Comparison]:
    return Comparison.objects.filter(uses(run.pk), state=State.QUEUED)


def run_ready(run: Run) -> None:
    """Call workers for the comparisons that waited for this run last. One missed by a crash here is found by ``recovery``."""
    for comparison in waiting_for(run).filter(RUNS_READY):
        if _all_ready(comparison):
            broker.ring(comparison)


def run_failed(run: Run, error: dict[str, Any]) -> None:
    """What waits for a run that cannot be read cannot be done: it fails with the run's error."""
    now = timezone.now()
    waiting_for(run).update(state=State.FAILED, error=error, finished_at=now, updated_at=now)


def compare(comparison_id: str, task_id: str) -> None:
    """The worker's part: claim, compare, publish. Does nothing when somebody else has it or a run is not ready.

    Several parts are left to ``spread``: they are compared by whoever is free.
    """
    waiting = Comparison.objects.with_sides().filter(RUNS_READY, pk=comparison_id).first()
    if waiting is None or not _all_ready(waiting):
        return
    attempt = work.claim(Comparison, comparison_id, task_id)
    if attempt is None:
        return
    comparison = Comparison.objects.with_sides().get(pk=comparison_id)
    making = storage.attempt(comparison, attempt.number)

    def on_verdict(verdict: dict[str, Any]) -> None:
        storage.write(storage.early_verdict(comparison), json.dumps(verdict, ensure_ascii=False, allow_nan=False).encode())
        attempt.write(**summary(verdict))

    def action(pulse: work.Pulse) -> None:
        from compare.engine import pipeline  # only here: a web process needs no numpy

        plan = spread.plan_of(comparison)
        if len(plan.compared) > 1:
            spread.begin(comparison, attempt, plan)
            return
        storage.clear_attempts(comparison)
        verdict = pipeline.compare_plan(plan, making, pulse.progress, on_verdict)
        with transaction.atomic():
            attempt.settle(State.DONE, error=None, **summary(verdict))
            spread.record(comparison, attempt, plan, verdict)
            storage.publish(making, storage.result(comparison))

    try:
        error = work.perform(attempt, action)
        if error is not None:
            attempt.settle(State.FAILED, phase=Phase.WHOLE, error=error, **NO_VERDICT)
    except Cancelled:
        stopped(attempt)
    finally:
        storage.remove(storage.early_verdict(comparison))
        storage.end_attempt(making)


def stopped(attempt: work.Attempt) -> None:
    """The work stopped because the reader asked for it – or because the row is somebody else's by now, then nothing is written."""
    rows = Comparison.objects.filter(pk=attempt.id, attempt=attempt.number, state=State.RUNNING, cancel_requested_at__isnull=False)
    now = timezone.now()
    rows.update(state=State.CANCELLED, finished_at=now, updated_at=now, **NO_VERDICT)


def cancel(comparison: Comparison) -> Comparison:
    """Stop a queued or spread comparison at once, one that a worker holds soon: it hears of it within seconds."""
    now = timezone.now()
    mine = Comparison.objects.filter(pk=comparison.pk)
    with transaction.atomic():
        stopped_waiting = mine.filter(state=State.QUEUED).update(state=State.CANCELLED, finished_at=now, updated_at=now)
        if stopped_waiting:
            spread.cancel_pieces(comparison)
    asked = stopped_waiting or mine.filter(state=State.RUNNING).update(cancel_requested_at=now, updated_at=now)
    comparison.refresh_from_db()
    if not asked:
        raise Refusal("not_cancellable", HTTPStatus.CONFLICT, state=comparison.state)
    if comparison.phase != Phase.WHOLE:
        spread.stop(comparison)
    return comparison


def retry(comparison: Comparison) -> Comparison:
    """Queue a comparison again that ended without a verdict, or with pieces that failed, and with it a run that failed for a reason outside
    its dump. Parts that came out are not compared again.
    """
    with transaction.atomic():
        for run in runs_of(comparison):
            _requeue_run(run)
        if not _requeue(comparison, _retryable()):
            raise Refusal("not_retryable", HTTPStatus.CONFLICT, state=comparison.state)
        spread.requeue(comparison)
        ring_when_ready(comparison)
    return comparison


def retry_part(comparison: Comparison, n: int) -> Comparison:
    """Queue one failed part again and no other; the verdict over the parts is made anew when it has ended.

    While other parts are still being compared it joins them; where all have ended the comparison is queued for it.
    """
    part = Part.objects.filter(comparison=comparison, n=n).first()
    if part is None:
        raise Refusal("part_unknown", HTTPStatus.NOT_FOUND, n=n)
    with transaction.atomic():
        # Its row is held until the part is queued: a reduction that is asked for meanwhile finds the part waiting (``spread.reduce``).
        going = Comparison.objects.filter(_takes_parts(), pk=comparison.pk).update(updated_at=timezone.now())
        queued = bool(going) or _requeue(comparison, Q(state__in=(State.DONE, State.FAILED, State.INTERRUPTED)))
        if not queued or not spread.requeue_part(comparison, n):
            raise Refusal("part_not_retryable", HTTPStatus.CONFLICT, n=n, state=part.state)
        if not going:
            ring_when_ready(comparison)
    spread.advance(comparison.pk)
    comparison.refresh_from_db()
    return comparison


def _requeue(comparison: Comparison, which: Q) -> bool:
    """Back to the state of one that nobody has claimed yet, if it is one of ``which``."""
    queued = Comparison.objects.filter(which, pk=comparison.pk).update(
        state=State.QUEUED,
        phase=Phase.WHOLE,
        tries=0,
        error=None,
        progress={},
        cancel_requested_at=None,
        rung_at=None,
        finished_at=None,
        updated_at=timezone.now(),
        **NO_VERDICT,
    )
    comparison.refresh_from_db()
    return bool(queued)


def _retryable() -> Q:
    failed = [Exists(model._default_manager.filter(comparison=OuterRef("pk"), state=model.FAILED)) for model in spread.PIECES]
    return Q(state__in=Comparison.RETRYABLE) | (Q(state=State.DONE) & Q(*failed, _connector=Q.OR))


def _takes_parts() -> Q:
    """Comparisons that a part may still join."""
    before_reduction = Q(state=State.RUNNING, phase__in=(Phase.WHOLE, Phase.PARTS), cancel_requested_at__isnull=True)
    return Q(state=State.QUEUED) | before_reduction


def delete(comparison: Comparison) -> None:
    """Remove a comparison with its files; a worker that is at it notices and stops. Its runs stay."""
    folder = storage.job(comparison)
    comparison.delete()
    storage.remove(folder)


def verdict_file(comparison: Comparison) -> Path | None:
    """Where the verdict document is, once it is known; it may be known before the comparison is done."""
    if comparison.state == State.DONE:
        return storage.result(comparison) / "verdict.json"
    return storage.early_verdict(comparison) if comparison.verdict else None


def verdict_document(comparison: Comparison) -> bytes | None:
    """The verdict document as JSON, once it is known."""
    path = verdict_file(comparison)
    try:
        return path.read_bytes() if path else None
    except FileNotFoundError:  # its attempt ended since the row was read, one way or the other
        return None


def _requeue_run(run: Run) -> None:
    if run.state != Run.State.FAILED:
        return
    if (run.error or {}).get("code") not in work.PASSING_FAULTS:
        raise _unread(run)
    Run.objects.filter(pk=run.pk, state=Run.State.FAILED).update(
        state=Run.State.QUEUED, attempt=0, error=None, progress={}, rung_at=None, finished_at=None, updated_at=timezone.now()
    )
    run.refresh_from_db()
    broker.ring_on_commit(run)


def _unread(run: Run) -> Refusal:
    """Says why the run could not be read: whoever sent it may not have seen its page."""
    why = str((run.error or {}).get("message") or "–")
    return Refusal("run_failed", HTTPStatus.CONFLICT, name=run.name, why=why)


def _run(run_id: str) -> Run:
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise Refusal("run_unknown", run=run_id)
    if run.state == Run.State.FAILED:
        raise _unread(run)
    return run
