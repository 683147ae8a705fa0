"""A comparison of several parts: each is claimed, compared and published alone, and they are reduced once."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from compare.engine.errors import Cancelled
from compare.engine.options import Options
from compare.engine.pipeline import compare_runs
from compare.models import Comparison, Export, Part, Run
from compare.services import broker, comparisons, exports, limits, parts, recovery, runs, spread, storage, work
from compare.services.refusals import Refusal
from tests.bench.run_tree import RunTree, write_run_tree
from tests.rooms import uploaded_run, worked_off

pytestmark = pytest.mark.django_db(transaction=True)

TREE = RunTree(stages=2, steps=3, ranks=2, layers=2)
BAD = ("reference_compute_log_prob", 1)
ERROR = {"code": "worker_killed", "params": {}, "message": "m", "where": ""}


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> tuple[bytes, bytes]:
    folder = tmp_path_factory.mktemp("trees")
    return write_run_tree(folder / "l.zip", TREE).read_bytes(), write_run_tree(folder / "r.zip", TREE, BAD).read_bytes()


@pytest.fixture
def comparison(trees, rung) -> Comparison:
    sides = [uploaded_run(content, f"{name}.zip") for name, content in zip(("left", "right"), trees, strict=True)]
    for run in sides:
        runs.read(run.pk, "test")
    found = comparisons.create(sides[0].pk, sides[1].pk, {})
    rung.clear()
    return found


@pytest.fixture
def planned(comparison) -> Comparison:
    comparisons.compare(comparison.pk, "plan")
    comparison.refresh_from_db()
    return comparison


def rows(comparison: Comparison, **fields) -> list[Part]:
    return list(Part.objects.filter(comparison=comparison, **fields))


def compare_all(comparison: Comparison) -> None:
    for part in rows(comparison, state="queued"):
        spread.compare(part.pk, "test", "w")


def expected(comparison: Comparison, place) -> dict:
    sides = storage.columns(comparison.left), storage.columns(comparison.right)
    return compare_runs(*sides, Options(), place, lambda *_: None, lambda _: None)


def without_seconds(document: dict) -> dict:
    return {key: value for key, value in document.items() if key != "timing"}


def document_of(comparison: Comparison) -> dict:
    content = comparisons.verdict_document(comparison)
    assert content is not None
    return json.loads(content)


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


def broken(comparison: Comparison, n: int) -> None:
    """Make the columns of one part unreadable: those of another format."""
    inventory = json.loads((storage.columns(comparison.left) / "inventory.json").read_bytes())
    part = Part.objects.get(comparison=comparison, n=n)
    for dump in inventory["dumps"]:
        if (dump["stage"], dump["step"]) == (part.stage, part.step):
            (storage.columns(comparison.left) / dump["folder"] / "meta.json").write_text('{"format": 99}')


# --- from the plan to the verdict -------------------------------------------------------------------------------------------------------


def test_planning_makes_a_row_and_a_message_a_part_and_lets_the_comparison_go(planned, rung):
    assert (planned.state, planned.phase, planned.task_id) == ("running", "parts", "")
    assert [(part.n, part.state, part.verdict) for part in rows(planned)] == [(n, "queued", "") for n in range(6)]
    assert rung == [("compare_part", part.pk, broker.LATER) for part in rows(planned)]
    assert planned.progress == {"stage": "parts", "fraction": 0.0, "parts": 0, "of": 6, "running": 0}


def test_the_parts_come_to_what_one_process_finds(planned, rung, tmp_path):
    compare_all(planned)
    assert rung[-1] == ("reduce_parts", planned.pk, broker.FIRST)
    spread.reduce(planned.pk, "test")
    planned.refresh_from_db()
    assert (planned.state, planned.phase, planned.verdict, planned.error) == ("done", "", "diverged", None)
    assert planned.first_module
    assert without_seconds(document_of(planned)) == without_seconds(expected(planned, tmp_path / "whole"))
    assert [part.verdict for part in rows(planned)] == [row["verdict"] for row in document_of(planned)["parts"]]
    assert not [path for path in storage.job(planned).iterdir() if "attempt" in path.name]


def test_a_comparison_of_one_part_stays_with_one_worker(comparison, rung):
    Comparison.objects.update(options={"step": "1", "stage": BAD[0]})
    comparisons.compare(comparison.pk, "test")
    comparison.refresh_from_db()
    assert (comparison.state, comparison.verdict, rung) == ("done", "diverged", [])
    assert [(part.n, part.state, part.stage, part.step, part.verdict) for part in rows(comparison)] == [(0, "done", *BAD, "diverged")]


def test_a_part_is_there_for_readers_before_the_others_are(planned):
    with pytest.raises(Refusal, match="no verdict yet"):
        parts.find(planned, 2)
    spread.compare(rows(planned)[2].pk, "test", "w")
    assert parts.find(planned, 2).tree.exists()
    assert [part["state"] for part in parts.states(planned)] == ["queued", "queued", "done", "queued", "queued", "queued"]
    with pytest.raises(Refusal) as refused:
        parts.find(planned, None)
    assert refused.value.code == "several_parts"
    with pytest.raises(Refusal) as refused:
        parts.find(planned, 1)
    assert refused.value.code == "not_ready"


def test_progress_counts_parts_and_those_in_hand(planned):
    work.claim(Part, rows(planned)[0].pk, "t")
    spread.compare(rows(planned)[1].pk, "test", "w")
    planned.refresh_from_db()
    assert planned.progress == {"stage": "parts", "fraction": 0.25, "parts": 1, "of": 6, "running": 1}


def test_a_process_plans_once_for_all_the_parts_it_takes(planned, monkeypatch):
    from compare.engine import pipeline

    spread._planned.cache_clear()
    planned_for = []
    plan_runs = pipeline.plan_runs
    monkeypatch.setattr(pipeline, "plan_runs", lambda *sides: (planned_for.append(sides[:2]), plan_runs(*sides))[1])
    for part in rows(planned)[:3]:
        spread.compare(part.pk, "test", "w")
    assert [part.state for part in rows(planned)[:3]] == ["done"] * 3
    assert len(planned_for) == 1


# --- once, whoever comes twice ----------------------------------------------------------------------------------------------------------


def test_messages_that_come_twice_do_nothing(planned, monkeypatch):
    calls = []
    part = rows(planned)[0]
    spread.compare(part.pk, "one", "w1")
    monkeypatch.setattr(spread, "plan_of", lambda *_: calls.append(1))
    spread.compare(part.pk, "two", "w2")
    comparisons.compare(planned.pk, "again")
    spread.reduce(planned.pk, "too early")
    part.refresh_from_db()
    planned.refresh_from_db()
    assert (part.worker, part.attempt, calls) == ("w1", 1, [])
    assert (planned.state, planned.phase) == ("running", "parts")


def test_a_worker_that_was_given_up_for_dead_publishes_nothing_when_it_wakes_up(planned, monkeypatch):
    part = rows(planned)[0]

    def taken_over(*_):
        Part.objects.filter(pk=part.pk).update(heartbeat_at=ago(31))
        recovery.reap_interrupted()
        assert work.claim(Part, part.pk, "second") is not None

    publish = []
    monkeypatch.setattr(storage, "publish", lambda *places: publish.append(places))
    plan = spread.plan_of(planned)
    monkeypatch.setattr(spread, "plan_of", lambda _: (taken_over(), plan)[1])
    spread.compare(part.pk, "first", "w")
    part.refresh_from_db()
    assert (part.state, part.task_id, part.attempt, publish) == ("running", "second", 2, [])


def test_two_workers_that_end_the_last_parts_at_once_have_them_reduced_once(planned, rung):
    *others, a, b = rows(planned)
    for part in others:
        spread.compare(part.pk, "test", "w")
    rung.clear()
    for attempt in [work.claim(Part, part.pk, "t") for part in (a, b)]:
        attempt.settle("done", verdict="identical")
    for _ in range(2):  # both have ended before either looks
        spread.advance(planned.pk)
    assert [name for name, _, _ in rung] == ["reduce_parts"]
    planned.refresh_from_db()
    assert planned.phase == "reduce"


# --- parts that fail --------------------------------------------------------------------------------------------------------------------


def test_a_failed_part_keeps_its_error_and_the_others_go_on(planned, rung):
    broken(planned, 0)
    worked_off(planned)
    assert (planned.state, planned.verdict, planned.error) == ("done", "diverged", None)
    document = document_of(planned)
    assert [part["state"] for part in document["parts"]] == ["failed", *["done"] * 5]
    assert document["parts"][0]["error"]["code"] == "stored_format"
    assert "1 part failed: actor_generate_sequences step 0" in planned.headline_en
    with pytest.raises(Refusal) as refused:
        parts.find(planned, 0)
    assert refused.value.code == "stored_format"


def test_a_retry_compares_failed_parts_alone(planned, rung):
    broken(planned, 0)
    meta = storage.columns(planned.left) / "dumps"
    whole = {path: path.read_text() for path in meta.glob("*/meta.json") if '"format": 99' not in path.read_text()}
    worked_off(planned)
    template = next(iter(whole.values()))
    for path in meta.glob("*/meta.json"):
        if path not in whole:
            path.write_text(template)
    rung.clear()
    comparisons.retry(planned)
    assert [(part.n, part.state) for part in rows(planned, state="queued")] == [(0, "queued")]
    assert (planned.state, planned.verdict, comparisons.verdict_document(planned)) == ("queued", "", None)
    assert parts.find(planned, 3).verdict.exists()
    worked_off(planned)
    assert (planned.state, planned.verdict) == ("done", "diverged")
    assert "failed" not in planned.headline_en
    assert [part.attempt for part in rows(planned)] == [2, 1, 1, 1, 1, 1]
    with pytest.raises(Refusal):
        comparisons.retry(planned)


def exported(comparison: Comparison, name: str) -> str:
    made = exports.find(comparison, name)
    if isinstance(made, Export):
        exports.make(made.pk, "test")
        made = exports.find(comparison, name)
    assert isinstance(made, exports.File)
    return made.path.read_text("utf-8")


def test_a_report_of_failed_parts_names_them_and_is_made_again_after_a_retry(planned, rung):
    part = rows(planned)[0]
    Part.objects.filter(pk=part.pk).update(state="failed", error=ERROR)
    worked_off(planned)
    assert "1 part failed" in exported(planned, "report.md")
    assert exported(planned, "table.csv").count("\n") > 10
    comparisons.retry(planned)
    with pytest.raises(Refusal):
        exports.find(planned, "report.md")
    worked_off(planned)
    assert "1 part failed" not in exported(planned, "report.md")


def test_a_comparison_whose_parts_all_failed_failed(planned):
    for n in range(6):
        broken(planned, n)
    worked_off(planned)
    assert (planned.state, planned.verdict, planned.error["code"]) == ("failed", "", "stored_format")
    assert comparisons.verdict_document(planned) is None


def test_a_part_that_kills_its_workers_fails_after_some_tries_and_comes_after_the_others(planned, rung):
    poison = rows(planned)[0]
    for n in range(limits.PIECE_TRIES):
        assert work.claim(Part, poison.pk, f"t{n}", tries=n + 1) is not None
        poison.refresh_from_db()
        spread.piece_lost(poison, "worker_killed")
        poison.refresh_from_db()
    assert (poison.state, poison.error["code"]) == ("failed", "worker_killed")
    compare_all(planned)
    spread.reduce(planned.pk, "test")
    planned.refresh_from_db()
    assert (planned.state, planned.verdict) == ("done", "diverged")


def test_a_silent_part_is_taken_by_somebody_else(planned, rung):
    part = rows(planned)[0]
    work.claim(Part, part.pk, "dead", tries=1)
    left_over = storage.piece_attempt(part, 1).with_name(f".attempt-part-{part.n}-1.tmp.77.tmp")
    left_over.mkdir(parents=True)
    Part.objects.filter(pk=part.pk).update(heartbeat_at=ago(31))
    rung.clear()
    recovery.look_at(planned)  # whoever looks finds it
    part.refresh_from_db()
    assert (part.state, rung) == ("queued", [("compare_part", part.pk, broker.LATER)])
    assert not left_over.exists()
    worked_off(planned)
    assert planned.state == "done"


def test_a_reduction_whose_worker_died_is_done_by_somebody_else(planned, rung):
    compare_all(planned)
    assert work.claim(Comparison, planned.pk, "dead", broker.REDUCTION, phase="reducing", tries=1) is not None
    Comparison.objects.update(heartbeat_at=ago(31))
    rung.clear()
    recovery.reap_interrupted()
    assert rung == [("reduce_parts", planned.pk, broker.FIRST)]
    spread.reduce(planned.pk, "test")
    planned.refresh_from_db()
    assert planned.state == "done"


def test_what_was_ended_by_a_worker_that_died_before_it_told_anybody_is_reduced(planned, rung):
    Part.objects.update(state="done", verdict="identical")
    recovery.resend_unclaimed()
    assert ("reduce_parts", planned.pk, broker.FIRST) in rung


# --- the end, asked for -----------------------------------------------------------------------------------------------------------------


def test_a_cancel_ends_every_part_at_once_and_keeps_what_is_done(planned, rung):
    first, second, *_ = rows(planned)
    spread.compare(first.pk, "test", "w")
    attempt = work.claim(Part, second.pk, "busy")
    comparisons.cancel(planned)
    assert planned.state == "cancelled"
    assert [part.state for part in rows(planned)] == ["done", *["cancelled"] * 5]
    with pytest.raises(Cancelled):
        attempt.settle("done")
    rung.clear()
    recovery.resend_unclaimed()
    compare_all(planned)
    assert rung == []
    comparisons.retry(planned)
    worked_off(planned)
    assert planned.state == "done"
    assert next(part.attempt for part in rows(planned)) == 1


def test_a_cancel_that_comes_while_the_parts_are_planned_is_heard(comparison, rung, monkeypatch):
    plan_of = spread.plan_of

    def slow(found):
        comparisons.cancel(Comparison.objects.get(pk=found.pk))
        return plan_of(found)

    monkeypatch.setattr(spread, "plan_of", slow)
    comparisons.compare(comparison.pk, "test")
    comparison.refresh_from_db()
    assert (comparison.state, rows(comparison), rung) == ("cancelled", [], [])


def test_a_process_that_does_not_hear_of_a_cancel_is_ended(planned, monkeypatch):
    killed = []
    monkeypatch.setattr(broker, "kill", killed.append)
    work.claim(Part, rows(planned)[0].pk, "deaf")
    comparisons.cancel(planned)
    recovery.reap_interrupted()
    assert killed == []
    Part.objects.update(finished_at=ago(6))
    recovery.reap_interrupted()
    recovery.reap_interrupted()
    assert killed == ["deaf"]


def test_a_deleted_comparison_stops_its_parts(planned):
    attempt = work.claim(Part, rows(planned)[0].pk, "t")
    comparisons.delete(planned)
    with pytest.raises(Cancelled):
        attempt.settle("done")


# --- taking turns -----------------------------------------------------------------------------------------------------------------------


def test_few_messages_of_a_large_comparison_wait_at_once_and_each_claim_sends_the_next(comparison, rung, monkeypatch):
    monkeypatch.setattr(limits, "PARTS_AHEAD", 2)
    monkeypatch.setattr(limits, "PARTS_OF_A_SMALL_COMPARISON", 5)
    comparisons.compare(comparison.pk, "plan")
    first, second, third, *_ = rows(comparison)
    assert rung == [("compare_part", first.pk, broker.LAST), ("compare_part", second.pk, broker.LAST)]
    work.claim(Part, first.pk, "t")
    spread.advance(comparison.pk)
    assert [row for _, row, _ in rung[2:]] == [third.pk]
    assert recovery.resend_unclaimed() == 0, "those whose turn has not come were not lost"


def test_parts_whose_messages_were_lost_are_sent_again(planned, rung):
    rung.clear()
    Part.objects.update(rung_at=ago(31))
    assert recovery.resend_unclaimed() == 6
    assert rung == [("compare_part", part.pk, broker.LATER) for part in rows(planned)]


def test_the_messages_of_parts_do_not_hide_that_another_one_was_lost(planned, rung, monkeypatch):
    lost = Run.objects.create(name="lost", rung_at=ago(31))
    monkeypatch.setattr(broker, "waiting", lambda: 6)  # those of the six parts, rung just now
    rung.clear()
    assert recovery.resend_unclaimed() == 1
    assert rung == [("read_run", lost.pk, broker.FIRST)]
