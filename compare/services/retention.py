"""What nobody has looked at for KEEP_UNUSED_DAYS is removed, where an operator wants that. The worker's round asks once an hour."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from compare.models import Comparison, Run
from compare.services import comparisons, runs
from compare.services.refusals import Refusal

log = logging.getLogger(__name__)

OPENED_TO_THE = timedelta(hours=1)  # looking at a page asks many times; the row is written once an hour

ENDED = frozenset(set(Comparison.State) - {Comparison.State.QUEUED, Comparison.State.RUNNING})
SETTLED = (Run.State.READY, Run.State.FAILED)


def opened(comparison: Comparison) -> None:
    """Somebody looks at it. A database that cannot be written to at this moment does not keep them from looking."""
    now = timezone.now()
    if comparison.opened_at is None or comparison.opened_at < now - OPENED_TO_THE:
        with suppress(DatabaseError):
            Comparison.objects.filter(pk=comparison.pk).update(opened_at=now)


def remove_unused() -> tuple[int, int]:
    """Remove the comparisons that nobody opened or changed for too long, then the runs that no comparison uses; returns how many of each.

    The shipped examples stay, and so does everything that waits or is worked on.
    """
    if not settings.KEEP_UNUSED_DAYS:
        return 0, 0
    before = timezone.now() - timedelta(days=settings.KEEP_UNUSED_DAYS)
    forgotten = Comparison.objects.filter(
        Q(opened_at__isnull=True) | Q(opened_at__lt=before), example="", updated_at__lt=before, state__in=ENDED
    )
    removed = [0, 0]
    for comparison in forgotten:
        comparisons.delete(comparison)
        removed[0] += 1
    for run in Run.objects.filter(as_left__isnull=True, as_right__isnull=True, updated_at__lt=before, state__in=SETTLED):
        with suppress(Refusal):  # somebody compares it at this moment
            runs.delete(run)
            removed[1] += 1
    if any(removed):
        log.info("removed %d comparisons and %d runs that nobody used for %g days", *removed, settings.KEEP_UNUSED_DAYS)
    return removed[0], removed[1]
