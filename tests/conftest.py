"""Fixtures for everybody: the services of tests/live.py, started once where that is enough.

`live_stack` is one server for a whole session, with the embedded broker and SQLite as ./run has them. A test that stops, kills or sets up a
server its own way asks `start_stack` for one. `redis_url` and `postgres_url` are Debian's Redis and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import probe_web.celery  # noqa: F401  the app that tasks are sent through
from tests.live import Stack, free_port, postgres_server, redis_server

StartStack = Callable[..., Stack]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url


def _starter(folder: Path, started: list[Stack]) -> StartStack:
    def start(*arguments: str, data: Path | None = None, example: bool = False, **environment: str) -> Stack:
        """Start a server: more arguments of ./run, and environment variables (DATABASE_URL=…, REDIS_URL=…, PROBE_…=…)."""
        chosen = [*arguments]
        if "--port" not in chosen:
            chosen += ["--port", str(free_port())]
        if "--workers" not in chosen:
            chosen += ["--workers", "1"]  # whatever the machine has
        if not example:
            chosen.append("--no-example")
        stack = Stack(data or folder / f"data-{len(started)}", environment, tuple(chosen))
        started.append(stack)
        return stack.start()

    return start


@pytest.fixture
def start_stack(tmp_path: Path) -> Iterator[StartStack]:
    started: list[Stack] = []
    yield _starter(tmp_path, started)
    for stack in started:
        stack.stop()


@pytest.fixture(scope="session")
def live_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    started: list[Stack] = []
    yield _starter(tmp_path_factory.mktemp("live"), started)()
    for stack in started:
        stack.stop()
