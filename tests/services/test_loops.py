"""Key data of a comparison that is spread: a piece of its own, there before the parts, never in their way; and one failed part alone."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from compare.engine.options import Options
from compare.engine.pipeline import compare_runs
from compare.models import Comparison, Export, Loop, Part
from compare.services import broker, comparisons, exports, key_data, limits, recovery, runs, spread, storage, work
from compare.services.refusals import Refusal
from tests.bench.run_tree import RunTree, write_run_tree
from tests.rooms import CORPUS, corpus_comparison, uploaded_run, worked_off

pytestmark = pytest.mark.django_db(transaction=True)

TREE = RunTree(stages=2, steps=3, ranks=1, layers=2)
BAD = ("reference_compute_log_prob", 2)
PARTS = TREE.parts


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> tuple[bytes, bytes]:
    """Two trees with the key data and configurations of two real runs, which part in ref_log_prob at step 2."""
    folder = tmp_path_factory.mktemp("trees")
    return (
        write_run_tree(folder / "l.zip", TREE, loop=CORPUS / "rl_run_a.zip").read_bytes(),
        write_run_tree(folder / "r.zip", TREE, BAD, loop=CORPUS / "rl_run_b.zip").read_bytes(),
    )


@pytest.fixture
def planned(trees, rung) -> Comparison:
    sides = [uploaded_run(content, f"{name}.zip") for name, content in zip(("left", "right"), trees, strict=True)]
    for run in sides:
        runs.read(run.pk, "test")
    found = comparisons.create(sides[0].pk, sides[1].pk, {})
    rung.clear()
    comparisons.compare(found.pk, "plan")
    return fresh(found)


def fresh(comparison: Comparison) -> Comparison:
    return Comparison.objects.select_related("left", "right", "loop").get(pk=comparison.pk)


def compare_parts(comparison: Comparison) -> None:
    for part in Part.objects.filter(comparison=comparison, state="queued"):
        spread.compare(part.pk, "test", "w")


def document_of(comparison: Comparison) -> dict:
    content = comparisons.verdict_document(comparison)
    assert content is not None
    return json.loads(content)


def dumps_of(comparison: Comparison, *numbers: int) -> list:
    """The folders of the left side's columns of some parts."""
    columns = storage.columns(comparison.left)
    inventory = json.loads((columns / "inventory.json").read_bytes())
    places = set(Part.objects.filter(comparison=comparison, n__in=numbers).values_list("stage", "step"))
    return [columns / dump["folder"] for dump in inventory["dumps"] if (dump["stage"], dump["step"]) in places]


def broken(comparison: Comparison, *numbers: int) -> dict:
    """Make the columns of some parts unreadable: those of another format. Returns what mends them."""
    whole = {folder / "meta.json": (folder / "meta.json").read_text() for folder in dumps_of(comparison, *numbers)}
    for path in whole:
        path.write_text('{"format": 99}')
    return whole


def mend(whole: dict) -> None:
    for path, text in whole.items():
        path.write_text(text)


def states(comparison: Comparison) -> list[str]:
    return list(Part.objects.filter(comparison=comparison).values_list("state", flat=True))


# --- key data do not wait for the parts ---------------------------------------------------------------------------------------------------


def test_key_data_are_asked_for_first_and_are_there_before_any_part(planned, rung):
    assert rung[0] == ("compare_loop", planned.loop.pk, broker.LATER)
    assert len(rung) == 1 + PARTS
    assert key_data.state(planned) == {"state": "queued", "error": None}
    with pytest.raises(Refusal) as refused:
        key_data.find(planned)
    assert refused.value.code == "not_ready"
    spread.compare_loop(planned.loop.pk, "test", "w")
    found = fresh(planned)
    assert (found.state, found.phase, key_data.state(found)) == ("running", "parts", {"state": "done", "error": None})
    loop = json.loads(key_data.find(found).loop.read_bytes())
    assert (loop["verdict"], loop["first"]["key"], loop["first"]["step"]) == ("diverged", "ref_log_prob", 2)
    assert json.loads(key_data.find(found).overview.read_bytes())["keys"] == loop["key_data"]
    assert key_data.find(found).table(3, 4, 0, 0)["key"] == "ref_log_prob"
    assert set(states(found)) == {"queued"}


@pytest.mark.parametrize("loop_last", [True, False])
def test_the_pieces_come_to_what_one_process_finds_whichever_ends_last(planned, rung, tmp_path, loop_last):
    if not loop_last:
        spread.compare_loop(planned.loop.pk, "test", "w")
    compare_parts(planned)
    if loop_last:
        assert (fresh(planned).phase, "reduce_parts" in {name for name, _, _ in rung}) == ("parts", False)
        spread.compare_loop(planned.loop.pk, "test", "w")
    assert rung[-1] == ("reduce_parts", planned.pk, broker.FIRST)
    spread.reduce(planned.pk, "test")
    found = fresh(planned)
    assert (found.state, found.verdict) == ("done", "diverged")
    sides = storage.columns(found.left), storage.columns(found.right)
    alone = compare_runs(*sides, Options(), tmp_path / "whole", lambda *_: None, lambda _: None)
    assert {**document_of(found), "timing": None} == {**json.loads(json.dumps(alone)), "timing": None}
    there = {path.name: path.read_bytes() for path in (tmp_path / "whole" / "key_data").iterdir() if path.name != "loop.json"}
    assert {path.name: path.read_bytes() for path in storage.key_data(found).iterdir() if path.name != "loop.json"} == there
    assert not [path for path in storage.job(found).iterdir() if "attempt" in path.name]


def test_a_reduction_reads_the_key_data_and_does_not_compare_them_again(planned, monkeypatch):
    from compare.engine import pipeline

    spread.compare_loop(planned.loop.pk, "test", "w")
    compare_parts(planned)
    monkeypatch.setattr(pipeline, "compare_key_data", None)
    spread.reduce(planned.pk, "test")
    assert (fresh(planned).state, fresh(planned).error) == ("done", None)


def test_messages_for_key_data_that_come_twice_do_nothing(planned):
    spread.compare_loop(planned.loop.pk, "one", "w1")
    spread.compare_loop(planned.loop.pk, "two", "w2")
    loop = Loop.objects.get(comparison=planned)
    assert (loop.worker, loop.attempt, loop.state) == ("w1", 1, "done")


def test_runs_without_key_data_have_no_piece_for_them():
    found = corpus_comparison("q2_train_stat", "q2_infer_stat")
    assert (key_data.state(found), Loop.objects.count()) == (None, 0)


def test_key_data_whose_worker_died_are_compared_by_somebody_else_but_not_for_ever(planned, rung):
    for n in range(limits.PIECE_TRIES):
        assert work.claim(Loop, planned.loop.pk, "dead", tries=n + 1) is not None
        Loop.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=31))
        rung.clear()
        recovery.reap_interrupted()
        assert [name for name, _, _ in rung] == (["compare_loop"] if n + 1 < limits.PIECE_TRIES else [])
    assert key_data.state(fresh(planned))["state"] == "failed"
    compare_parts(planned)
    spread.reduce(planned.pk, "test")
    found = fresh(planned)
    document = document_of(found)
    assert (found.state, found.verdict, document["key_data_error"]["code"]) == ("done", "diverged", "worker_lost")
    assert "key data could not be compared" in found.headline_en
    assert document["first"]["stage"] == BAD[0]
    with pytest.raises(Refusal) as refused:
        key_data.find(found)
    assert refused.value.code == "worker_lost"
    comparisons.retry(found)
    assert states(found) == ["done"] * PARTS
    worked_off(found)
    assert document_of(fresh(found))["first"]["key_data"] == "ref_log_prob"


def test_key_data_that_could_not_be_compared_do_not_pass_for_equal(planned):
    Loop.objects.update(state="failed", error={"code": "internal", "params": {}, "message": "m"})
    Part.objects.update(state="done", verdict="identical")
    for part in Part.objects.all():
        place = storage.part_result(planned, part.n)
        place.mkdir(parents=True)
        identical = {"verdict": "identical", "left": {"ranks": [0]}, "right": {}, "first_difference": None, "first_divergence": None}
        (place / "verdict.json").write_text(json.dumps({**identical, "timing": {}, "layers": []}))
    spread.advance(planned.pk)
    spread.reduce(planned.pk, "test")
    found = fresh(planned)
    assert (found.verdict, found.headline_en) == (
        "not_comparable",
        "Not comparable — 6 parts compared, nothing beyond noise; key data could not be compared",
    )


def test_a_cancel_ends_the_key_data_with_the_parts_and_a_retry_takes_both_up_again(planned, rung):
    attempt = work.claim(Loop, planned.loop.pk, "busy")
    assert attempt is not None
    comparisons.cancel(fresh(planned))
    assert (key_data.state(fresh(planned))["state"], set(states(planned))) == ("cancelled", {"cancelled"})
    with pytest.raises(work.Cancelled):
        attempt.settle("done")
    rung.clear()
    recovery.resend_unclaimed()
    assert rung == []
    comparisons.retry(fresh(planned))
    worked_off(planned)
    assert fresh(planned).verdict == "diverged"


def test_a_lost_message_for_key_data_is_sent_again(planned, rung):
    rung.clear()
    Loop.objects.update(rung_at=timezone.now() - timedelta(seconds=31))
    assert recovery.resend_unclaimed() == 1
    assert rung == [("compare_loop", planned.loop.pk, broker.LATER)]


# --- every part failed --------------------------------------------------------------------------------------------------------------------


def test_key_data_are_shown_with_their_verdict_where_every_part_failed(planned):
    broken(planned, *range(PARTS))
    worked_off(planned)
    found = fresh(planned)
    document = document_of(found)
    assert (found.state, found.verdict, found.error) == ("done", "diverged", None)
    assert document["first"] == {"key_data": "ref_log_prob", "stage": BAD[0], "step": 2, "rank": 0, "module": None}
    assert found.headline_en == (
        "First difference: ref_log_prob from step 2 on — reference model; all 6 parts failed, so that no module is known; "
        "the first difference may lie in one of 5 earlier parts that failed"
    )
    assert {part["state"] for part in document["parts"]} == {"failed"}
    assert key_data.find(found).overview.is_file()


def test_equal_key_data_prove_nothing_of_parts_that_all_failed(trees, rung):
    run = uploaded_run(trees[0], "left.zip")
    runs.read(run.pk, "test")
    found = comparisons.create(run.pk, run.pk, {})
    comparisons.compare(found.pk, "plan")
    broken(found, *range(PARTS))
    worked_off(found)
    assert (found.state, found.verdict) == ("done", "not_comparable")
    assert found.headline_en == (
        "Not comparable — of the runs only 51 key-data tables could be compared, and no number in them differs; "
        "all 6 parts failed, so that no module is known"
    )


# --- one failed part, tried again ---------------------------------------------------------------------------------------------------------


def test_one_failed_part_is_compared_again_and_the_verdict_is_made_anew(planned, rung):
    failed = broken(planned, 1, 5)
    worked_off(planned)
    before = fresh(planned)
    assert "2 parts failed" in before.headline_en
    Export.objects.create(comparison=before, name="report.en.md")
    mend(failed)
    rung.clear()
    found = comparisons.retry_part(before, 5)
    assert (found.pk, found.state, found.verdict) == (planned.pk, "queued", "")
    assert states(found) == ["done", "failed", "done", "done", "done", "queued"]
    worked_off(found)
    after = document_of(fresh(found))
    assert (fresh(found).state, after["parts"][5]["verdict"], after["parts"][1]["state"]) == ("done", "diverged", "failed")
    assert "1 part failed" in after["headline"]["en"]
    assert after["first"]["module"]
    assert list(Part.objects.filter(comparison=found).values_list("attempt", flat=True)) == [1, 1, 1, 1, 1, 2]
    assert Loop.objects.get(comparison=found).attempt == 1
    with pytest.raises(Refusal):
        exports.find(fresh(found), "nothing.at.all")
    assert not Export.objects.filter(comparison=found).exists()


def test_a_failed_part_joins_the_others_that_are_still_being_compared(planned, rung):
    failed = broken(planned, 0)
    first = Part.objects.get(comparison=planned, n=0)
    spread.compare(first.pk, "test", "w")
    mend(failed)
    rung.clear()
    found = comparisons.retry_part(planned, 0)
    assert (found.state, found.phase, states(found)[0]) == ("running", "parts", "queued")
    assert rung == [("compare_part", first.pk, broker.LATER)]
    worked_off(found)
    assert (found.state, states(found)) == ("done", ["done"] * PARTS)


def test_a_part_tried_again_just_before_the_reduction_is_waited_for(planned, rung):
    """The last part has ended and the reduction was asked for; whoever pressed the button was a moment earlier."""
    failed = broken(planned, 0)
    compare_parts(planned)
    spread.compare_loop(planned.loop.pk, "test", "w")
    assert fresh(planned).phase == "reduce"
    mend(failed)
    Part.objects.filter(comparison=planned, n=0).update(state="queued", rung_at=None)
    spread.reduce(planned.pk, "test")
    assert (fresh(planned).state, fresh(planned).phase) == ("running", "parts")
    worked_off(planned)
    assert (fresh(planned).state, states(planned)) == ("done", ["done"] * PARTS)


@pytest.mark.parametrize("phase", ["reduce", "reducing"])
def test_a_part_is_not_tried_again_while_the_verdict_is_being_made(planned, phase):
    Part.objects.filter(comparison=planned, n=0).update(state="failed", error={"code": "internal", "params": {}, "message": "m"})
    Comparison.objects.update(phase=phase)
    with pytest.raises(Refusal) as refused:
        comparisons.retry_part(planned, 0)
    assert (refused.value.code, states(planned)[0]) == ("part_not_retryable", "failed")


def test_parts_that_did_not_fail_or_are_not_there_are_not_tried_again(planned):
    worked_off(planned)
    found = fresh(planned)
    for n, code in ((0, "part_not_retryable"), (99, "part_unknown")):
        with pytest.raises(Refusal) as refused:
            comparisons.retry_part(found, n)
        assert refused.value.code == code
    assert (fresh(found).state, fresh(found).verdict) == ("done", "diverged")
    comparisons.compare(found.pk, "again")
    assert fresh(found).state == "done"
