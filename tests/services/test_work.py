"""A claimed row: one worker has it, its heart beats, and it ends exactly once."""

from __future__ import annotations

import errno
import logging
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from compare.engine.errors import MESSAGES, Cancelled, DumpError
from compare.models import Comparison, Run
from compare.services import comparisons, runs, storage, work
from tests.rooms import corpus_run, uploaded_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run():
    return uploaded_run(b"x", "train.zip")


@pytest.fixture
def comparison(run):
    return comparisons.create(run.pk, run.pk, {})


def until(condition, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def work_until_stopped(attempt) -> None:
    with work.Pulse(attempt) as pulse:
        for n in range(500):
            pulse.progress("align", n / 500, {})
            time.sleep(0.01)


def test_a_row_is_claimed_once_however_often_its_message_comes(run):
    first, second = work.claim(Run, run.pk, "task-1"), work.claim(Run, run.pk, "task-2")
    assert first is not None
    assert second is None
    run.refresh_from_db()
    assert (run.state, run.attempt, run.task_id) == ("parsing", 1, "task-1")
    assert run.claimed_at == run.heartbeat_at is not None


def test_a_row_that_is_not_there_is_not_claimed(db):
    assert work.claim(Run, "nothing", "task") is None


def test_a_worker_that_was_given_up_for_dead_changes_nothing_when_it_wakes_up(run):
    sleeper = work.claim(Run, run.pk, "1")
    Run.objects.update(state="queued")
    second = work.claim(Run, run.pk, "2")
    with pytest.raises(Cancelled):
        sleeper.settle("ready")
    second.settle("ready", inventory={"records": 1})
    run.refresh_from_db()
    assert (run.state, run.attempt, run.inventory) == ("ready", 2, {"records": 1})


def test_progress_reaches_the_row_and_is_not_written_more_often_than_somebody_looks(run, settings, monkeypatch):
    attempt = work.claim(Run, run.pk, "1")
    written = []
    write = work.Attempt.write
    monkeypatch.setattr(work.Attempt, "write", lambda self, **fields: (written.append(fields), write(self, **fields)))
    with work.Pulse(attempt) as pulse:
        for n in range(10_000):
            pulse.progress("read", n / 10_000, {"bytes": n, "of": 10_000})
        until(lambda: Run.objects.get().progress)
    assert Run.objects.get().progress == {"stage": "read", "fraction": 0.9999, "bytes": 9_999, "of": 10_000}
    assert len(written) <= 2


def test_the_heart_beats_while_the_engine_says_nothing(run, settings):
    settings.HEARTBEAT_SECONDS = 0.05
    attempt = work.claim(Run, run.pk, "1")
    old = timezone.now() - timedelta(minutes=1)
    Run.objects.update(heartbeat_at=old)
    with work.Pulse(attempt):
        until(lambda: Run.objects.get().heartbeat_at > old)


def test_a_cancelled_comparison_hears_of_it_at_its_next_progress(comparison, settings):
    settings.HEARTBEAT_SECONDS = 0.05
    attempt = work.claim(Comparison, comparison.pk, "1")
    comparisons.cancel(comparison)
    with pytest.raises(Cancelled):
        work_until_stopped(attempt)
    comparisons.stopped(attempt)
    assert Comparison.objects.get().state == "cancelled"


def test_a_deleted_row_stops_its_worker(run, settings):
    settings.HEARTBEAT_SECONDS = 0.05
    attempt = work.claim(Run, run.pk, "1")
    Run.objects.all().delete()
    with pytest.raises(Cancelled):
        work_until_stopped(attempt)


def test_a_refusal_of_the_engine_becomes_the_rows_error(run, monkeypatch):
    monkeypatch.setitem(MESSAGES, "test_refusal", ("{count} things are wrong", "Mend them"))
    attempt = work.claim(Run, run.pk, "1")

    def action(pulse):
        raise DumpError("test_refusal", "train.zip/step0/dump.json", count=3)

    assert work.perform(attempt, action) == {
        "code": "test_refusal",
        "params": {"count": 3},
        "message": "train.zip/step0/dump.json: 3 things are wrong. Mend them",
        "where": "train.zip/step0/dump.json",
    }


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (MemoryError(), "out_of_memory"),
        (OSError(errno.ENOSPC, "full"), "disk_full"),
        (OSError(errno.EDQUOT, "quota"), "disk_full"),
        (OSError(errno.EACCES, "no"), "internal"),
        (ZeroDivisionError("secret"), "internal"),
        (KeyError("x"), "internal"),
    ],
)
def test_whatever_else_goes_wrong_has_a_code_and_faults_of_ours_a_reference_in_the_log(run, caplog, fault, code):
    attempt = work.claim(Run, run.pk, "1")

    def action(pulse):
        raise fault

    with caplog.at_level(logging.ERROR):
        error = work.perform(attempt, action)
    assert error["code"] == code
    assert "secret" not in error["message"]
    if code == "internal":
        assert error["params"]["reference"] in caplog.text
        assert type(fault).__name__ in caplog.text


def test_the_thread_of_a_heart_ends_with_its_work(run):
    attempt = work.claim(Run, run.pk, "1")
    with work.Pulse(attempt) as pulse:
        thread = pulse._thread
        assert thread.is_alive()
    assert not thread.is_alive()


@pytest.mark.parametrize("what", ["run", "comparison"])
def test_what_failed_leaves_no_empty_folder(data_folder, what, run, monkeypatch):
    if what == "run":
        runs.read(run.pk, "1")
        assert Run.objects.get().error["code"] == "archive_damaged"
    else:
        ready = corpus_run("q2_infer_stat")
        comparison = comparisons.create(ready.pk, ready.pk, {})
        (storage.columns(ready) / "inventory.json").unlink()
        comparisons.compare(comparison.pk, "1")
        assert Comparison.objects.get().state == "failed"
    assert not storage.job(run if what == "run" else comparison).exists()
