"""`/healthz`: can it serve? `/readyz`: can it serve and compute? 200 only when it can; the body says which part is missing."""

from __future__ import annotations

import os
from http import HTTPStatus

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from probe_web.celery import WORKER_KEY, broker_client


def database_state() -> str:
    """`ok`, `unreachable`, or `not_migrated`."""
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "unreachable"
    return "not_migrated" if pending else "ok"


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
    return JsonResponse({"state": "ok" if good else "unavailable", "parts": parts}, status=status)


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    return answer({"database": database_state(), "storage": storage_state()})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    broker, worker = broker_and_worker_state()
    return answer({"database": database_state(), "storage": storage_state(), "broker": broker, "worker": worker})
