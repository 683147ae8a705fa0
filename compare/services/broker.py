"""Rings the bell: one message a queued row, its id and nothing else. A broker that is gone loses nothing, ``recovery`` rings again."""

from __future__ import annotations

import logging
import uuid
from typing import Any

from celery import current_app
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from kombu import Connection
from kombu.exceptions import OperationalError

from compare.models import Comparison, Export, Loop, Part, Run, Task
from compare.services import limits

log = logging.getLogger(__name__)

TASKS: dict[type[Task], str] = {
    Run: "compare.tasks.read_run",
    Comparison: "compare.tasks.run_comparison",
    Part: "compare.tasks.compare_part",
    Loop: "compare.tasks.compare_loop",
    Export: "compare.tasks.make_export",
}
# A spread comparison whose parts have all ended.
REDUCTION = Q(state=Comparison.State.RUNNING, phase=Comparison.Phase.REDUCE, cancel_requested_at__isnull=True)

# Which message is taken first; Redis has a list for each.
FIRST, LATER, LAST = 0, 3, 6


def unrung() -> Q:
    """Rows whose message, if there was one, nobody has answered for too long."""
    return Q(rung_at__isnull=True) | Q(rung_at__lt=timezone.now() - limits.unclaimed())


def ring(row: Task, priority: int = FIRST) -> bool:
    """Send the message of a waiting row unless that was just done. False when the broker did not take it: the row stays queued.

    ``rung_at`` is set first, by compare-and-set, so that many readers that look at once ring once, and stays where the broker is gone, so
    that they do not all wait for it again and again.
    """
    model, task_id = type(row), str(uuid.uuid4())
    name, waiting = TASKS[model], Q(state=model.QUEUED)
    if isinstance(row, Comparison) and row.phase == Comparison.Phase.REDUCE:
        name, waiting = "compare.tasks.reduce_parts", REDUCTION
    rows = model._default_manager.filter(waiting, pk=row.pk)
    if not rows.filter(unrung()).update(rung_at=timezone.now(), task_id=task_id):
        return True
    try:
        with _link() as link:
            current_app.send_task(name, args=[row.pk], task_id=task_id, priority=priority, connection=link)
    except (OperationalError, OSError) as error:
        log.warning("the broker did not take %s %s (%s); it stays queued and is sent again", model.__name__, row.pk, error)
        return False
    return True


def ring_on_commit(row: Task) -> None:
    """Ring when the row is there for the worker to see."""
    transaction.on_commit(lambda: ring(row))


def kill(task_id: str) -> None:
    """Stop the process that works on a message: the hard end of a cancel."""
    try:
        with _link() as link:
            current_app.control.revoke(task_id, terminate=True, connection=link)
    except (OperationalError, OSError) as error:
        log.warning("the broker did not take the order to stop %s (%s)", task_id, error)


def waiting() -> int | None:
    """How many messages the broker still holds, None when it cannot say."""
    with _link() as link:
        lost: tuple[type[BaseException], ...] = (OperationalError, OSError, *link.connection_errors, *link.channel_errors)
        try:
            channel: Any = link.default_channel
            return int(channel.queue_declare(current_app.conf.task_default_queue, passive=True).message_count)
        except lost:  # the broker is gone, or has never seen the queue
            return None


def _link() -> Connection:
    """A connection that gives up at the first failure: somebody waits for an answer. (Left alone, kombu sleeps six seconds over it.)"""
    link = current_app.connection_for_write()
    link.transport_options = {**(link.transport_options or {}), "max_retries": 1, "interval_start": 0, "interval_step": 0}
    return link
