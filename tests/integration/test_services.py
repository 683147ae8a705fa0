"""The larger installation, natively: the same web server and worker over PostgreSQL and a Redis server on TCP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from tests.bench.run_tree import RunTree, write_run_tree
from tests.conftest import StartStack, _starter
from tests.live import ROOT, Stack, redis_server, until

CORPUS = Path(__file__).resolve().parents[1] / "data" / "corpus"


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory, postgres_url: str, redis_url: str) -> Iterator[Stack]:
    """One server on PostgreSQL and Redis for the tests of this file."""
    started: list[Stack] = []
    yield _starter(tmp_path_factory.mktemp("larger"), started)(DATABASE_URL=postgres_url, REDIS_URL=redis_url)
    for stack in started:
        stack.stop()


def test_it_is_ready_without_a_broker_or_database_of_its_own(larger: Stack) -> None:
    assert larger.get("/readyz").json()["parts"] == {"database": "ok", "storage": "ok", "broker": "ok", "worker": "ok"}
    with pytest.raises(LookupError):
        larger.child("broker")
    assert not (larger.data / "probe_web.sqlite3").exists()


def test_the_tables_are_in_postgresql(larger: Stack, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    assert {"compare_run", "compare_comparison", "django_migrations"} <= tables


def test_the_worker_says_over_redis_that_it_lives(larger: Stack, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert 0 < client.ttl("probe_web:worker") <= 10


def test_the_migrations_fit_the_models_on_postgresql(postgres_url: str) -> None:
    command = [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"]
    result = subprocess.run(command, cwd=ROOT, env={"DATABASE_URL": postgres_url}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_two_uploads_become_a_verdict(larger: Stack) -> None:
    left, right = larger.upload(CORPUS / "q2_train_stat.zip", role="train"), larger.upload(CORPUS / "q2_infer_stat.zip", role="infer")
    found = larger.comparison(larger.compare(left, right))
    assert found["state"] == "done", found
    assert found["verdict"]["schema"] == "probe-web/verdict/1"
    assert found["verdict"]["verdict"] == "consistent"


def test_parts_are_shared_by_two_processes_and_reduced_once(
    start_stack: StartStack, postgres_url: str, redis_url: str, tmp_path: Path
) -> None:
    tree = RunTree(stages=3, steps=8, ranks=2, layers=2)
    drifted = ("reference_compute_log_prob", 3)
    # An installation of its own beside that of the other tests: another database of either server.
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE parts")
    database, broker = postgres_url.removesuffix("/postgres") + "/parts", redis_url.removesuffix("/0") + "/1"
    stack = start_stack("--workers", "2", DATABASE_URL=database, REDIS_URL=broker)
    left = stack.upload(write_run_tree(tmp_path / "left.zip", tree))
    right = stack.upload(write_run_tree(tmp_path / "right.zip", tree, drifted))
    slug = stack.compare(left, right)
    found = stack.comparison(slug, seconds=120)
    assert (found["state"], found["verdict"]["verdict"]) == ("done", "diverged"), found
    assert (found["verdict"]["first"]["stage"], found["verdict"]["first"]["step"]) == drifted
    with psycopg.connect(database) as connection:
        parts = connection.execute("SELECT worker, attempt, state FROM compare_part WHERE comparison_id = %s", (slug,)).fetchall()
        claims = connection.execute("SELECT attempt, tries, phase FROM compare_comparison WHERE id = %s", (slug,)).fetchone()
    assert {(attempt, state) for _, attempt, state in parts} == {(1, "done")}
    assert len(parts) == tree.parts
    assert len({worker for worker, _, _ in parts}) == 2
    assert claims == (2, 1, ""), "planned once, reduced once"


def test_a_redis_that_is_gone_for_a_while_loses_no_comparison(start_stack: StartStack, postgres_url: str, tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as url:
        stack = start_stack(DATABASE_URL=postgres_url, REDIS_URL=url, PROBE_RESEND_AFTER_SECONDS="2")
        left, right = stack.upload(CORPUS / "q2_train_stat.zip"), stack.upload(CORPUS / "q2_infer_stat.zip")
    until("readyz says that the broker is gone", lambda: stack.get("/readyz").status == 503)
    slug = stack.compare(left, right)
    assert stack.get("/healthz").status == 200
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with redis_server(tmp_path / "redis", port):
        assert stack.comparison(slug, seconds=90)["state"] == "done"
