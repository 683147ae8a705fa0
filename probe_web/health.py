"""`/healthz`: can it serve? `/readyz`: can it serve and compute? 200 only when it can; the body says which part is missing."""

from __future__ import annotations

import os
from functools import lru_cache
from http import HTTPStatus

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from probe_web.celery import WORKER_KEY, broker_client


@lru_cache(maxsize=1)
def migrated() -> bool:
    """Does the database have every migration? Asked until it has: nothing takes one away under a running server."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotMigrated
    return True


class NotMigrated(Exception):
    """Migrations are missing. Raised, so that the answer is not kept."""


def database_state() -> str:
    """`ok`, `unreachable`, or `not_migrated`."""
    try:
        migrated()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    except NotMigrated:
        return "not_migrated"
    return "ok"


def storage_state() -> str:
    return "ok" if os.access(settings.DATA_DIR, os.W_OK) else "not_writable"


def broker_and_worker_state() -> tuple[str, str]:
    """The broker's state, and the worker's as the broker tells it."""
    try:
        with broker_client() as client:
            alive = client.exists(WORKER_KEY)
    except redis.RedisError:
        return "unreachable", "unknown"
    return "ok", "ok" if alive else "none"


def answer(parts: dict[str, str]) -> JsonResponse:
    good = all(state == "ok" for state in parts.values())
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    response = JsonResponse({"state": "ok" if good else "unavailable", "parts": parts}, status=status)
    # Whoever asks reads the answer; Django would log each one that is not 200 as an error.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    return answer({"database": database_state(), "storage": storage_state()})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    broker, worker = broker_and_worker_state()
    return answer({"database": database_state(), "storage": storage_state(), "broker": broker, "worker": worker})
