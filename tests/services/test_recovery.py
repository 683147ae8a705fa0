"""What was lost is sent again, what died is said to be dead, what nobody owns is swept."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from compare.models import Comparison, Run
from compare.services import broker, comparisons, recovery, storage
from tests.rooms import files_below, uploaded_run


@pytest.fixture
def rung(monkeypatch) -> list[str]:
    """The rows whose message the broker took; the broker of these tests is a list."""
    taken: list[str] = []
    monkeypatch.setattr(broker.current_app, "send_task", lambda *_, args, **__: taken.append(args[0]))
    monkeypatch.setattr(broker, "waiting", lambda: 0)
    return taken


@pytest.fixture
def runs():
    return uploaded_run(b"left", "train.zip"), uploaded_run(b"right", "infer.zip")


@pytest.fixture
def comparison(runs):
    return comparisons.create(runs[0].pk, runs[1].pk, {})


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


def ready(*runs: Run) -> None:
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(state="ready")


def test_rows_whose_message_was_lost_are_sent_again_oldest_first(rung, runs):
    Run.objects.update(rung_at=ago(31))
    assert recovery.resend_unclaimed() == 2
    assert rung == [run.pk for run in runs]
    assert recovery.resend_unclaimed() == 0


def test_rows_that_were_just_sent_are_given_their_time(rung, runs):
    Run.objects.update(rung_at=ago(29))
    assert recovery.resend_unclaimed() == 0


def test_rows_whose_messages_the_broker_still_holds_are_not_piled_up(rung, runs, monkeypatch):
    Run.objects.update(rung_at=ago(3600))
    monkeypatch.setattr(broker, "waiting", lambda: 2)
    assert recovery.resend_unclaimed() == 0
    monkeypatch.setattr(broker, "waiting", lambda: 1)
    assert recovery.resend_unclaimed() == 2


def test_a_comparison_is_not_sent_before_both_runs_are_ready(rung, runs, comparison):
    Run.objects.update(state="parsing", heartbeat_at=timezone.now())
    assert recovery.resend_unclaimed() == 0
    ready(runs[0])
    assert recovery.resend_unclaimed() == 0
    ready(runs[1])
    assert recovery.resend_unclaimed() == 1
    assert rung == [comparison.pk]


def test_a_run_that_becomes_ready_rings_for_the_comparisons_that_waited_for_it_last(rung, runs, comparison):
    comparisons.create(runs[1].pk, runs[0].pk, {})
    ready(runs[1])
    comparisons.run_ready(runs[1])
    assert rung == []
    ready(runs[0])
    comparisons.run_ready(runs[0])
    assert len(rung) == 2


def test_a_run_that_fails_fails_what_waits_for_it(runs, comparison):
    comparisons.run_failed(runs[1], {"code": "no_dump", "params": {}, "message": "m", "where": "w"})
    comparison.refresh_from_db()
    assert (comparison.state, comparison.error["code"]) == ("failed", "no_dump")
    assert comparison.finished_at is not None


def test_a_comparison_that_missed_the_failure_of_its_run_is_found(rung, runs, comparison):
    Run.objects.filter(pk=runs[0].pk).update(state="failed", error={"code": "no_dump", "params": {}, "message": "m", "where": "w"})
    recovery.resend_unclaimed()
    comparison.refresh_from_db()
    assert comparison.state == "failed"


def test_a_silent_comparison_is_interrupted_and_a_living_one_is_not(runs, comparison):
    Comparison.objects.update(state="running", attempt=1, heartbeat_at=ago(29), verdict="diverged")
    recovery.reap_interrupted()
    assert Comparison.objects.get().state == "running"
    Comparison.objects.update(heartbeat_at=ago(31))
    recovery.reap_interrupted()
    recovery.reap_interrupted()
    comparison.refresh_from_db()
    assert (comparison.state, comparison.error["code"], comparison.verdict) == ("interrupted", "worker_lost", "")


def test_what_a_dead_attempt_left_is_removed_and_what_the_next_one_makes_is_not(comparison):
    old, new = (storage.job(comparison) / f".attempt-{number}.tmp.77.tmp" for number in (1, 11))
    for folder in (old, new):
        folder.mkdir(parents=True)
    Comparison.objects.update(state="running", attempt=1, heartbeat_at=ago(31))
    recovery.reap_interrupted()
    assert (old.exists(), new.exists()) == (False, True)


def test_a_silent_comparison_that_was_to_be_cancelled_is_cancelled(comparison):
    Comparison.objects.update(state="running", attempt=1, heartbeat_at=ago(31), cancel_requested_at=ago(20))
    recovery.reap_interrupted()
    assert Comparison.objects.get().state == "cancelled"


def test_a_silent_run_is_read_again_by_itself_but_not_for_ever(rung, runs, comparison):
    run = runs[0]
    Run.objects.filter(pk=run.pk).update(state="parsing", attempt=1, heartbeat_at=ago(31), rung_at=ago(60))
    recovery.reap_interrupted()
    run.refresh_from_db()
    assert (run.state, rung) == ("queued", [run.pk])
    Run.objects.filter(pk=run.pk).update(state="parsing", attempt=2, heartbeat_at=ago(31))
    recovery.reap_interrupted()
    run.refresh_from_db()
    comparison.refresh_from_db()
    assert (run.state, run.error["code"]) == ("failed", "worker_lost")
    assert (comparison.state, comparison.error["code"]) == ("failed", "worker_lost")
    assert storage.blob(run.sha256).exists()  # the machine's fault: a retry needs the bytes


def test_a_broker_that_is_gone_leaves_the_row_queued(runs):
    assert broker.ring(runs[0]) is False
    runs[0].refresh_from_db()
    assert runs[0].state == "queued"


def test_many_readers_of_a_waiting_run_ring_once(rung, runs):
    Run.objects.filter(pk=runs[0].pk).update(rung_at=ago(31))
    stale = [Run.objects.get(pk=runs[0].pk) for _ in range(5)]
    for reader in stale:
        recovery.look_at_run(reader)
    assert rung == [runs[0].pk]


def test_files_that_no_row_owns_are_swept_when_they_are_old_enough(runs, comparison, data_folder):
    storage.job(comparison).mkdir(parents=True)
    (storage.job(comparison) / "result").mkdir()
    kept = files_below(data_folder)
    orphans = [
        storage.part("gone"),
        storage.incoming() / "half",
        storage.blob("ab" * 32),
        data_folder / "runs" / "gone" / "columns.npy",
        storage.job(comparison) / ".attempt-1.tmp.77.tmp" / "x",
    ]
    for orphan in orphans:
        orphan.parent.mkdir(parents=True, exist_ok=True)
        orphan.write_bytes(b"x")
    assert recovery.sweep() == 0
    long_ago = time.time() - 25 * 3600
    for path in data_folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    assert recovery.sweep() == len(orphans)
    assert files_below(data_folder) == kept
    assert (storage.job(comparison) / "result").is_dir()
