"""What nobody uses is removed where an operator wants that, and nothing else ever is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.utils import timezone

from compare import tasks
from compare.models import Blob, Comparison, Run
from compare.services import comparisons, examples, retention
from tests.rooms import files_below, uploaded_run

DAY = timedelta(days=1)


@pytest.fixture
def kept(settings):
    settings.KEEP_UNUSED_DAYS = 10


@pytest.fixture
def comparison():
    made = comparisons.create(uploaded_run(b"left").pk, uploaded_run(b"right").pk, {})
    Comparison.objects.update(state="done")
    Run.objects.update(state="ready")
    return made


def age(days: float, **fields) -> None:
    then = timezone.now() - days * DAY
    for model in (Run, Comparison):
        model.objects.update(updated_at=then)
    Comparison.objects.update(**fields)


def test_by_default_everything_is_kept(comparison):
    age(10_000)
    assert retention.remove_unused() == (0, 0)


def test_a_comparison_that_nobody_opened_goes_with_its_runs_and_their_bytes(kept, comparison, data_folder):
    age(11)
    assert retention.remove_unused() == (1, 2)
    assert not Comparison.objects.exists()
    assert not Run.objects.exists()
    assert not Blob.objects.exists()
    assert not {name for name in files_below(data_folder) if name.startswith("blobs/")}
    assert retention.remove_unused() == (0, 0)


def test_one_that_somebody_opens_stays_and_keeps_its_runs(kept, comparison, api):
    age(11)
    assert api.get(f"/api/v1/comparisons/{comparison.pk}/").status_code == 200
    assert retention.remove_unused() == (0, 0)
    age(30, opened_at=timezone.now() - 11 * DAY)
    assert retention.remove_unused() == (1, 2)


def test_young_ones_stay(kept, comparison):
    age(9)
    assert retention.remove_unused() == (0, 0)


@pytest.mark.parametrize("state", ["queued", "running"])
def test_what_waits_or_is_worked_on_stays(kept, comparison, state):
    Comparison.objects.update(state=state)
    age(100)
    assert retention.remove_unused() == (0, 0)


def test_a_run_that_no_comparison_uses_goes_and_one_that_is_being_read_stays(kept):
    ready, parsing = uploaded_run(b"a"), uploaded_run(b"b")
    Run.objects.filter(pk=ready.pk).update(state="ready")
    Run.objects.filter(pk=parsing.pk).update(state="parsing")
    age(11)
    assert retention.remove_unused() == (0, 1)
    assert Run.objects.get() == parsing


def test_the_examples_stay(kept):
    examples.load()
    Comparison.objects.update(state="done")
    Run.objects.update(state="ready")
    age(1000)
    assert retention.remove_unused() == (0, 0)


def test_looking_writes_once_an_hour_and_never_keeps_one_from_looking(kept, comparison, api, monkeypatch):
    url = f"/api/v1/comparisons/{comparison.pk}/"
    etag = api.get(url)["ETag"]
    first = Comparison.objects.get().opened_at
    assert api.get(url, HTTP_IF_NONE_MATCH=etag).status_code == 304, "being looked at is no change"
    assert Comparison.objects.get().opened_at == first
    Comparison.objects.update(opened_at=None)

    def broken(*_, **__):
        raise OperationalError("database or disk is full")

    monkeypatch.setattr("django.db.models.query.QuerySet.update", broken)
    assert api.get(url).status_code == 200


def test_the_worker_s_round_does_it_once_an_hour(kept, comparison, data_folder):
    age(9)
    tasks.reap_interrupted()
    age(11)
    tasks.reap_interrupted()
    assert Comparison.objects.exists(), "not again within the hour"
    cache.clear()
    tasks.reap_interrupted()
    assert not Comparison.objects.exists()
