"""A comparison of several parts, spread over workers: each piece is a row and a message of its own, the last one to end has them reduced.

    run_comparison   plans: a row a part, one for the key data, then no worker holds the comparison any more (phase ``parts``)
    compare_part     claims one part, compares it, publishes its folder; whoever claims or ends a part rings for the next
    compare_loop     the same for key data and configurations, which need no part: they are there while the parts are being compared
    reduce_parts     once, when no piece is left: the verdict over those that succeeded, naming those that did not

Few messages of one comparison wait at the same time (``limits.PARTS_AHEAD``), behind everything that is not a part, those of large
comparisons behind those of small ones: who comes with two dumps while 960 parts are being compared waits for the part that a worker has
in hand. All changes are compare-and-set on rows, so that what is told twice is done once, on SQLite as on PostgreSQL.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from compare.engine.errors import Cancelled
from compare.engine.options import Options
from compare.models import Comparison, Export, Loop, Part, Piece, Run
from compare.services import broker, limits, storage, work
from compare.services.refusals import problem
from compare.services.summary import NO_VERDICT, summary

if TYPE_CHECKING:
    from compare.engine.pipeline import Plan

log = logging.getLogger(__name__)

State, Phase = Comparison.State, Comparison.Phase

PIECES: tuple[type[Loop | Part], ...] = (Loop, Part)
AnyPiece = TypeVar("AnyPiece", Loop, Part)

ONE_SIDED = Q(verdict__endswith="_only")


def plan_of(comparison: Comparison) -> Plan:
    """The parts of a comparison whose runs are ready."""
    sides = {"left_role": comparison.left.role, "right_role": comparison.right.role}
    said = {option: role for option, role in sides.items() if role != Run.Role.AUTO}  # what nobody said is told from the dumps
    options = Options.from_json({**comparison.options, **said})
    baseline = None if options.baseline is None else Run.objects.get(pk=options.baseline)
    return _planned(
        storage.columns(comparison.left),
        storage.columns(comparison.right),
        options,
        None if baseline is None else storage.columns(baseline),
        (
            storage.contents(comparison.left),
            storage.contents(comparison.right),
            () if baseline is None else storage.contents(baseline),
        ),
    )


@lru_cache(maxsize=2)
def _planned(left: Path, right: Path, options: Options, baseline: Path | None, files: tuple[tuple[Path, ...], ...]) -> Plan:
    """A process plans once for all parts of a comparison that it takes. Runs that are ready do not change."""
    from compare.engine import pipeline  # only here: a web process needs no numpy

    return pipeline.plan_runs(left, right, options, baseline, (files[0], files[1], files[2]))


def begin(comparison: Comparison, attempt: work.Attempt, plan: Plan) -> None:
    """Let go of a claimed comparison: from here on workers hold its parts. Parts that an earlier attempt compared stay as they are."""
    rows = _rows(comparison, plan)
    with transaction.atomic():
        attempt.write(phase=Phase.PARTS, task_id="", rung_at=None)
        if Comparison.objects.filter(work.CANCELLED, pk=comparison.pk).exists():
            raise Cancelled
        known = Part.objects.filter(comparison=comparison)
        if [_place(part) for part in known] != [_place(part) for part in rows]:
            known.delete()
            Loop.objects.filter(comparison=comparison).delete()
            storage.remove(storage.result(comparison))
            Part.objects.bulk_create(rows)
        if plan.looped:
            Loop.objects.get_or_create(comparison=comparison)
    advance(comparison.pk)


def record(comparison: Comparison, attempt: work.Attempt, plan: Plan, verdict: dict[str, Any]) -> None:
    """The rows of a comparison that one worker did alone: at most one of its parts is on both sides."""
    words = {part["n"]: part["verdict"] for part in verdict.get("parts", [])}
    rows = _rows(comparison, plan)
    for row in rows:
        row.state, row.verdict, row.attempt = Part.State.DONE, words.get(row.n, verdict["verdict"]), attempt.number
        row.finished_at = timezone.now()
    Part.objects.filter(comparison=comparison).delete()
    Part.objects.bulk_create(rows)


def advance(comparison_id: str) -> None:
    """Say how far a spread comparison is, ring for the pieces that come next, and when all have ended for their reduction."""
    parts = Part.objects.filter(~ONE_SIDED, comparison=comparison_id)
    counts = parts.aggregate(
        all=Count("pk"),
        waiting=Count("pk", filter=Q(state=Part.State.QUEUED, rung_at__isnull=False)),
        queued=Count("pk", filter=Q(state=Part.State.QUEUED)),
        running=Count("pk", filter=Q(state=Part.State.RUNNING)),
    )
    ended = counts["all"] - counts["queued"] - counts["running"]
    progress = {
        "stage": "parts",
        "fraction": round((ended + counts["running"] / 2) / max(1, counts["all"]), 4),
        "parts": ended,
        "of": counts["all"],
        "running": counts["running"],
    }
    spread = Comparison.objects.filter(pk=comparison_id, state=State.RUNNING, phase=Phase.PARTS)
    if not spread.update(progress=progress, updated_at=timezone.now()):
        return
    loop = Loop.objects.filter(comparison=comparison_id, state__in=Loop.UNFINISHED).first()
    if loop is None and not counts["queued"] + counts["running"]:
        if spread.update(phase=Phase.REDUCE, rung_at=None, updated_at=timezone.now()):
            broker.ring(Comparison.objects.get(pk=comparison_id))
        return
    if loop is not None and loop.state == Loop.State.QUEUED and loop.rung_at is None:
        broker.ring(loop, broker.LATER)  # a glance at the whole run: before the parts of large comparisons
    unrung = parts.filter(state=Part.State.QUEUED, rung_at__isnull=True).order_by("tries", "n")
    for part in unrung[: max(0, limits.PARTS_AHEAD - counts["waiting"])]:
        if not broker.ring(part, priority(counts["all"])):
            break  # what was not taken, and what comes after it, is sent again by ``recovery``


def priority(parts: int) -> int:
    """Of the messages of a comparison of so many parts."""
    return broker.LATER if parts <= limits.PARTS_OF_A_SMALL_COMPARISON else broker.LAST


def compare(part_id: int, task_id: str, worker: str) -> None:
    """The worker's part: claim, compare, publish. Does nothing when somebody else has it or nobody wants it any more."""

    def work_on(part: Part, making: Path, pulse: work.Pulse) -> dict[str, Any]:
        from compare.engine import pipeline

        document = pipeline.compare_part(plan_of(part.comparison), part.n, making, pulse.progress, lambda _: None)
        return {"verdict": document["verdict"]}

    _take(Part, part_id, task_id, worker, work_on)


def compare_loop(loop_id: int, task_id: str, worker: str) -> None:
    """The same for key data and configurations."""

    def work_on(loop: Loop, making: Path, pulse: work.Pulse) -> dict[str, Any]:
        from compare.engine import pipeline

        pipeline.compare_loop(plan_of(loop.comparison), making)
        return {}

    _take(Loop, loop_id, task_id, worker, work_on)


def _take(
    model: type[AnyPiece], pk: int, task_id: str, worker: str, work_on: Callable[[AnyPiece, Path, work.Pulse], dict[str, Any]]
) -> None:
    """Claim a piece, have it made in a folder of this attempt, and publish it together with the row that says *done* and the fields that
    ``work_on`` returns.
    """
    attempt = work.claim(model, pk, task_id, worker=worker[:200], tries=F("tries") + 1)
    if attempt is None:
        return
    rows = model._default_manager
    piece = rows.get(pk=pk)
    piece.comparison = Comparison.objects.with_sides().get(pk=piece.comparison_id)
    making = storage.piece_attempt(piece, attempt.number)
    advance(piece.comparison.pk)

    def action(pulse: work.Pulse) -> None:
        fields = work_on(piece, making, pulse)
        with transaction.atomic():
            attempt.settle(Piece.State.DONE, error=None, **fields)
            storage.publish(making, storage.piece_result(piece))

    try:
        error = work.perform(attempt, action)
        if error is not None:
            attempt.settle(Piece.State.FAILED, error=error)
    except Cancelled:
        # Nobody needs to end this process any more.
        rows.filter(pk=pk, attempt=attempt.number, state=Piece.State.CANCELLED).update(task_id="")
    finally:
        storage.end_attempt(making)
    advance(piece.comparison.pk)


def reduce(comparison_id: str, task_id: str) -> None:
    """The worker's part when all pieces have ended: their verdict, from what they left."""
    attempt = work.claim(Comparison, comparison_id, task_id, broker.REDUCTION, phase=Phase.REDUCING, tries=F("tries") + 1)
    if attempt is None:
        return
    comparison = Comparison.objects.with_sides().get(pk=comparison_id)
    parts = Part.objects.filter(~ONE_SIDED, comparison=comparison)
    failures = {part.n: part.error or {} for part in parts.filter(state=Part.State.FAILED)}

    def action(pulse: work.Pulse) -> None:
        from compare.engine import pipeline

        documents = {
            part.n: json.loads((storage.part_result(comparison, part.n) / "verdict.json").read_bytes())
            for part in parts.filter(state=Part.State.DONE)
        }
        plan = plan_of(comparison)
        loop = _loop(comparison, plan)
        if not documents and loop["verdict"] in (None, "not_comparable"):  # nothing came out: no part, and no table
            attempt.settle(State.FAILED, phase=Phase.WHOLE, error=next(iter(failures.values())), **NO_VERDICT)
            return
        verdict = pipeline.reduce_parts(plan, documents, failures, loop)
        Export.objects.filter(comparison=comparison).delete()  # of the verdict before a retry
        storage.remove(storage.exports(comparison))
        with transaction.atomic():
            attempt.settle(State.DONE, phase=Phase.WHOLE, error=None, **summary(verdict))
            storage.write(
                storage.result(comparison) / "verdict.json", json.dumps(verdict, ensure_ascii=False, allow_nan=False).encode("utf-8")
            )

    with suppress(Cancelled):  # it was cancelled, deleted, or given to somebody else
        if pieces(comparison=comparison, state__in=Piece.UNFINISHED):
            # Somebody had a part tried again between the end of the last one and this reduction.
            attempt.write(phase=Phase.PARTS, task_id="", rung_at=None)
            advance(comparison_id)
            return
        error = work.perform(attempt, action)
        if error is not None:
            attempt.settle(State.FAILED, phase=Phase.WHOLE, error=error, **NO_VERDICT)


def _loop(comparison: Comparison, plan: Plan) -> dict[str, Any]:
    """What key data and configurations came to."""
    from compare.engine import pipeline

    row = Loop.objects.filter(comparison=comparison).first()
    folder = storage.key_data(comparison)
    if row is None:  # neither run holds any, or the parts were planned before loops were pieces of their own
        storage.remove(folder)
        return pipeline.compare_loop(plan, folder)
    return pipeline.read_loop_document(folder) if row.state == Loop.State.DONE else pipeline.failed_loop(row.error or {})


def stop(comparison: Comparison) -> None:
    """End a spread comparison at once. Workers hear of it at their next step; the parts that are done stay for a retry."""
    now = timezone.now()
    with transaction.atomic():
        spread = Comparison.objects.filter(pk=comparison.pk, state=State.RUNNING).exclude(phase=Phase.WHOLE)
        spread.update(state=State.CANCELLED, phase=Phase.WHOLE, finished_at=now, updated_at=now, **NO_VERDICT)
        cancel_pieces(comparison)
    comparison.refresh_from_db()


def cancel_pieces(comparison: Comparison) -> None:
    """``task_id`` stays where a process works on a piece, until it has heard."""
    now = timezone.now()
    for model in PIECES:
        rows = model._default_manager.filter(comparison=comparison)
        rows.filter(state=Piece.State.QUEUED).update(state=Piece.State.CANCELLED, task_id="", finished_at=now, updated_at=now)
        rows.filter(state=Piece.State.RUNNING).update(state=Piece.State.CANCELLED, finished_at=now, updated_at=now)


def requeue(comparison: Comparison) -> None:
    """Queue the pieces again that did not come out, and no others."""
    for model in PIECES:
        model._default_manager.filter(comparison=comparison, state__in=Piece.RETRYABLE).update(**_afresh())


def requeue_part(comparison: Comparison, n: int) -> bool:
    """Queue one failed part again; False where it did not fail."""
    return bool(Part.objects.filter(comparison=comparison, n=n, state=Part.State.FAILED).update(**_afresh()))


def _afresh() -> dict[str, Any]:
    queued = {"state": Piece.State.QUEUED, "tries": 0, "error": None, "progress": {}, "task_id": "", "rung_at": None}
    return {**queued, "finished_at": None, "updated_at": timezone.now()}


def pieces(*conditions: Q, **fields: Any) -> list[Loop | Part]:
    """Of all spread comparisons, or those asked for."""
    return [piece for model in PIECES for piece in model._default_manager.filter(*conditions, **fields).select_related("comparison")]


def piece_lost(piece: Loop | Part, code: str, **params: Any) -> None:
    """The worker of a piece is gone: somebody else takes it, but not for ever, for it may be the piece that kills."""
    attempt = work.Attempt(type(piece), piece.pk, piece.attempt)
    log.warning("attempt %d of %s of comparison %s ended without a word: %s", piece.attempt, piece, piece.comparison.pk, code)
    with suppress(Cancelled):  # somebody else settled it
        if piece.tries < limits.PIECE_TRIES and code != "time_limit":
            attempt.write(state=Piece.State.QUEUED, progress={}, rung_at=None, task_id="")
        else:
            attempt.settle(Piece.State.FAILED, error=problem(code, _name(piece), **params))
        storage.clear_piece_attempt(piece)
    advance(piece.comparison.pk)


def reduction_lost(comparison: Comparison, code: str, **params: Any) -> None:
    """The worker that reduced is gone: somebody else does it, but not for ever."""
    attempt = work.Attempt(Comparison, comparison.pk, comparison.attempt)
    log.warning("attempt %d of comparison %s, its reduction, ended without a word: %s", comparison.attempt, comparison.pk, code)
    with suppress(Cancelled):  # somebody else settled it
        if comparison.tries < limits.PIECE_TRIES and code != "time_limit":
            attempt.write(phase=Phase.REDUCE, rung_at=None, task_id="")
            broker.ring(Comparison.objects.get(pk=comparison.pk))
        else:
            attempt.settle(State.INTERRUPTED, phase=Phase.WHOLE, error=problem(code, comparison.name, **params), **NO_VERDICT)
    comparison.refresh_from_db()


def _rows(comparison: Comparison, plan: Plan) -> list[Part]:
    rows = []
    for part in plan.parts:
        stage, step = part.left or part.right or (None, None)
        done = {"state": Part.State.DONE, "verdict": f"{part.only}_only", "finished_at": timezone.now()} if part.only else {}
        rows.append(Part(comparison=comparison, n=part.n, stage=stage[:200] if stage else stage, step=step, **done))
    return rows


def _place(part: Part) -> tuple[int, str | None, int | None, bool]:
    return part.n, part.stage, part.step, part.verdict.endswith("_only")


def _name(piece: Loop | Part) -> str:
    if not isinstance(piece, Part):
        return "key data"
    step = "" if piece.step is None else f"step {piece.step}"
    return " ".join(word for word in (piece.stage, step) if word) or f"part {piece.n}"
