"""What a worker does. Thin: a message carries an id, the use case does the work, the row says how it ended."""

from __future__ import annotations

import os
from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import Task, shared_task
from celery.signals import task_failure, worker_init
from django.core.cache import cache

from compare.models import Comparison, Export, Loop, Part, Piece, Run
from compare.services import comparisons, exports, recovery, retention, runs, spread

HOUR = 3600


@worker_init.connect
def load_the_engine(**_: Any) -> None:
    """Once, before the processes that compute are forked: each would load it for itself otherwise."""
    import compare.engine.pipeline  # noqa: F401  only here: a web process needs no numpy


@shared_task(bind=True)
def read_run(self: Task[Any, Any], run_id: str) -> None:
    runs.read(run_id, self.request.id or "")


@shared_task(bind=True)
def run_comparison(self: Task[Any, Any], comparison_id: str) -> None:
    comparisons.compare(comparison_id, self.request.id or "")


@shared_task(bind=True)
def make_export(self: Task[Any, Any], export_id: int) -> None:
    exports.make(export_id, self.request.id or "")


@shared_task(bind=True)
def compare_part(self: Task[Any, Any], part_id: int) -> None:
    spread.compare(part_id, self.request.id or "", f"{self.request.hostname}/{os.getpid()}")


@shared_task(bind=True)
def compare_loop(self: Task[Any, Any], loop_id: int) -> None:
    spread.compare_loop(loop_id, self.request.id or "", f"{self.request.hostname}/{os.getpid()}")


@shared_task(bind=True)
def reduce_parts(self: Task[Any, Any], comparison_id: str) -> None:
    spread.reduce(comparison_id, self.request.id or "")


@shared_task
def resend_unclaimed() -> None:
    recovery.resend_unclaimed()


@shared_task
def reap_interrupted() -> None:
    recovery.reap_interrupted()
    if cache.add("swept", True, timeout=HOUR):
        recovery.sweep()
        retention.remove_unused()


@task_failure.connect
def process_was_lost(sender: Task[Any, Any], task_id: str, exception: BaseException, args: tuple[Any, ...], **_: Any) -> None:
    """In the worker's main process: the process that computed was killed, so nobody else will settle its row."""
    if isinstance(exception, WorkerLostError):
        code, params = "worker_killed", {}
    elif isinstance(exception, TimeLimitExceeded):
        code, params = "time_limit", {"seconds": exception.args[0]}
    else:
        return
    if sender.name == read_run.name:
        for run in Run.objects.filter(pk=args[0], task_id=task_id, state=Run.WORKING):
            recovery.run_lost(run, code, **params)
    elif sender.name in (compare_part.name, compare_loop.name):
        pieces = (Part if sender.name == compare_part.name else Loop)._default_manager
        for piece in pieces.filter(pk=args[0], task_id=task_id, state=Piece.WORKING).select_related("comparison"):
            spread.piece_lost(piece, code, **params)
    elif sender.name in (run_comparison.name, reduce_parts.name):
        for comparison in Comparison.objects.filter(pk=args[0], task_id=task_id, state=Comparison.WORKING):
            recovery.comparison_lost(comparison, code, **params)
    elif sender.name == make_export.name:
        for export in Export.objects.filter(pk=args[0], task_id=task_id, state=Export.WORKING):
            exports.lost(export, code, **params)
