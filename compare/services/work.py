"""A claimed row: who works on it, how far that is, and how it ends. The same for a run that is read, a comparison and a part.

Every write is a compare-and-set on (id, attempt, working state): when it changes nothing, the row was taken away (cancelled hard, given up
for dead, deleted) and the work stops as if it had been cancelled.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from compare.engine.errors import Cancelled, DumpError
from compare.models import Comparison, Task
from compare.services import storage
from compare.services.refusals import problem

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5  # how often new progress reaches the row

# Faults of the machine and the moment; every other code says something about the dump, which reading it again does not change.
PASSING_FAULTS = frozenset({"worker_lost", "worker_killed", "out_of_memory", "time_limit", "disk_full", "internal"})

CANCELLED = Q(cancel_requested_at__isnull=False)


@dataclass(frozen=True)
class Attempt:
    """One claim of one row."""

    model: type[Task]
    id: str | int
    number: int

    def write(self, **fields: Any) -> None:
        """Change the row, or raise Cancelled when it is no longer this attempt's."""
        mine = self.model._default_manager.filter(pk=self.id, attempt=self.number, state=self.model.WORKING)
        if not mine.update(**fields, updated_at=timezone.now()):
            raise Cancelled

    def settle(self, state: str, **fields: Any) -> None:
        """The last write: the row leaves the working state."""
        self.write(state=state, finished_at=timezone.now(), **fields)


def claim(model: type[Task], key: str | int, task_id: str, waiting: Q | None = None, **fields: Any) -> Attempt | None:
    """Take a queued row, or None: somebody else has it, or it waits for nothing any more. A message that comes twice does nothing.

    ``waiting`` says which rows may be taken where that is not all that are queued; ``fields`` are written as well.
    """
    now = timezone.now()
    with transaction.atomic():
        taken = model._default_manager.filter(Q(state=model.QUEUED) if waiting is None else waiting, pk=key).update(
            state=model.WORKING,
            attempt=F("attempt") + 1,
            task_id=task_id or "",
            claimed_at=now,
            heartbeat_at=now,
            updated_at=now,
            progress={},
            error=None,
            finished_at=None,
            **fields,
        )
        return Attempt(model, key, model._default_manager.values_list("attempt", flat=True).get(pk=key)) if taken else None


class Pulse:
    """Says every two seconds that this attempt is alive, carries its progress to the row, and hears that it should stop.

    One thread does all the writing, so that the engine's progress callback costs nothing however often it is called, and a long step inside
    numpy does not look like death. ``progress`` is the engine's callback; it raises Cancelled once the row was taken away or cancelled.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self._latest: dict[str, Any] | None = None
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"pulse of {attempt.id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def progress(self, stage: str, fraction: float, numbers: dict[str, int]) -> None:
        self._latest = {**numbers, "stage": stage, "fraction": round(fraction, 4)}
        if self._stop.is_set():
            raise Cancelled

    def _beat(self) -> None:
        written, beaten = None, time.monotonic()
        period = settings.HEARTBEAT_SECONDS
        try:
            while not self._ended.wait(min(LOOK_SECONDS, period)):
                latest, now = self._latest, time.monotonic()
                if latest is written and now - beaten < period:
                    continue
                if self._say(latest):
                    written, beaten = latest, now
        finally:
            connection.close()

    def _say(self, progress: dict[str, Any] | None) -> bool:
        """One heartbeat. A database that is busy is tried again at the next look."""
        try:
            self.attempt.write(heartbeat_at=timezone.now(), **({"progress": progress} if progress else {}))
            if self.attempt.model is Comparison and Comparison.objects.filter(CANCELLED, pk=self.attempt.id).exists():
                self._stop.set()
        except Cancelled:
            self._stop.set()
        except DatabaseError:
            log.warning("no heartbeat of %s %s this time", self.attempt.model.__name__, self.attempt.id, exc_info=True)
            return False
        return True


def perform(attempt: Attempt, action: Callable[[Pulse], None]) -> dict[str, Any] | None:
    """Do the work of a claimed row. Returns its ``error`` where it went wrong, None where ``action`` settled the row itself.

    Raises Cancelled when it should stop. A worker that is killed in the middle returns nothing at all: ``recovery`` finds the row.
    """
    try:
        with Pulse(attempt) as pulse:
            action(pulse)
    except Cancelled:
        raise
    except DumpError as refusal:
        return refusal.document
    except MemoryError:
        return problem("out_of_memory")
    except OSError as error:
        return problem("disk_full") if error.errno in storage.DISK_FULL else internal(attempt, error)
    except Exception as error:  # noqa: BLE001 - whatever it was, the row must say that it ended
        return internal(attempt, error)
    return None


def internal(attempt: Attempt, error: Exception) -> dict[str, Any]:
    """The ``error`` of a fault of ours; the log has the traceback under its reference."""
    reference = secrets.token_hex(4)
    log.error("internal error %s in attempt %d of %s %s", reference, attempt.number, attempt.model.__name__, attempt.id, exc_info=error)
    return problem("internal", reference=reference)
