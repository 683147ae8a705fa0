"""The Celery app, and what a worker does besides tasks: it says that it lives, and rings the bell for rows that nobody works on.

The rows of the database are the truth and the broker is only a bell (docs/adr/0002): at worker start and every RESEND_AFTER_SECONDS the
worker asks for `resend_unclaimed` and `reap_interrupted`. They are ordinary tasks that expire before the next round, so a busy worker does
not pile them up, and a double delivery does nothing.
"""

from __future__ import annotations

import os
import time
from typing import Any

import redis
from celery import Celery
from celery.signals import heartbeat_sent, worker_ready
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe_web.settings")

app = Celery("probe_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()

ROUND = ("compare.tasks.reap_interrupted", "compare.tasks.resend_unclaimed")

# A worker renews this key on every Celery heartbeat (2 s); /readyz asks whether it is there.
WORKER_KEY = "probe_web:worker"
WORKER_KEY_SECONDS = 10


def broker_client() -> redis.Redis:
    """A client of the broker that gives up after a second: its callers are health checks."""
    return redis.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=1, socket_timeout=1)


@heartbeat_sent.connect
def say_that_a_worker_lives(**_: Any) -> None:
    try:
        with broker_client() as client:
            client.set(WORKER_KEY, int(time.time()), ex=WORKER_KEY_SECONDS)
    except redis.RedisError:
        pass  # Celery notices a lost broker by itself and connects again


@worker_ready.connect
def ring_for_rows_that_wait(sender: Any, **_: Any) -> None:
    """Starts the round. The signal comes again after a lost connection, and Celery has dropped the old timer by then."""

    def ring() -> None:
        for name in ROUND:
            app.send_task(name, expires=settings.RESEND_AFTER_SECONDS)

    ring()
    sender.timer.call_repeatedly(settings.RESEND_AFTER_SECONDS, ring)
