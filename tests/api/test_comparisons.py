"""Comparisons over HTTP, up to the point where a worker takes them (what it makes of them: test_results.py)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from compare.models import Comparison, Run
from compare.services import comparisons
from tests.rooms import uploaded_run


@pytest.fixture
def runs():
    return uploaded_run(b"left", "train.zip", "train"), uploaded_run(b"right", "infer.zip", "infer")


@pytest.fixture
def comparison(runs):
    return comparisons.create(runs[0].pk, runs[1].pk, {})


def post(api, **body):
    return api.post("/api/v1/comparisons/", body, format="json")


def code(response) -> tuple[int, str]:
    body = response.json()
    assert set(body) == {"code", "params", "message"}
    return response.status_code, body["code"]


def test_a_comparison_of_runs_that_are_still_queued_waits_for_them(api, runs):
    response = post(api, left=runs[0].pk, right=runs[1].pk)
    assert response.status_code == 201
    body = response.json()
    assert body["state"] == "queued"
    assert body["url"] == f"/c/{body['id']}"
    assert (body["verdict"], body["headline"], body["error"]) == (None, None, None)
    assert (body["left"]["name"], body["left"]["role"], body["left"]["state"]) == ("train.zip", "train", "queued")
    assert body["name"] == "train.zip | infer.zip"
    assert body["read_only"] is False
    assert api.get(response["Location"]).json() == body


def test_asking_again_how_far_it_is_does_not_read_the_inventories_again(api, comparison, runs):
    """They are long, and a page asks every second."""
    for run, records in zip(runs, (1, 2), strict=True):
        Run.objects.filter(pk=run.pk).update(state=Run.State.READY, inventory={"counts": {"records": records}})
    address = f"/api/v1/comparisons/{comparison.pk}/"
    body = api.get(address).json()
    assert [body[side]["inventory"] for side in ("left", "right")] == [{"counts": {"records": n}} for n in (1, 2)]
    with CaptureQueriesContext(connection) as asked:
        assert api.get(address).json() == body
    assert [query["sql"] for query in asked if '"inventory"' in query["sql"]] == []


def test_a_run_may_be_compared_with_itself(api, runs):
    assert post(api, left=runs[0].pk, right=runs[0].pk).status_code == 201


def test_options_are_the_command_lines_by_their_long_names(api, runs):
    options = {"step": 0, "rank": "0:1", "stage": "actor_compute_log_prob:generate", "exact": True}
    body = post(api, left=runs[0].pk, right=runs[1].pk, options=options).json()
    assert body["options"] == {**options, "step": "0"}


def test_a_baseline_is_a_run_and_keeps_that_run(api, runs):
    baseline = runs[1].pk
    body = post(api, left=runs[0].pk, right=runs[0].pk, options={"baseline": baseline}).json()
    assert body["options"] == {"baseline": baseline}
    refused = api.delete(f"/api/v1/runs/{baseline}/")
    assert (refused.status_code, refused.json()["code"]) == (409, "run_in_use")


def test_an_unknown_baseline_is_refused(api, runs):
    assert code(post(api, left=runs[0].pk, right=runs[1].pk, options={"baseline": "some-run"})) == (400, "run_unknown")


def test_a_mapping_is_text_that_is_read_before_anything_waits(api, runs):
    mapping = "pairs:\n- {left: a, right: b}\n"
    assert post(api, left=runs[0].pk, right=runs[1].pk, options={"mapping": mapping}).json()["options"] == {"mapping": mapping}
    refused = post(api, left=runs[0].pk, right=runs[1].pk, options={"mapping": "pairs:\n- {left: a, colour: b}\n"})
    assert code(refused) == (400, "mapping_key")
    assert refused.json()["params"] == {"line": 2, "key": "colour"}


def test_options_that_say_nothing_are_left_out(api, runs):
    body = post(api, left=runs[0].pk, right=runs[1].pk, options={"exact": False, "step": None, "baseline": None}).json()
    assert body["options"] == {}


@pytest.mark.parametrize(
    "options",
    [
        {"step": "x"},
        {"step": "0:1:2"},
        {"step": True},
        {"step": -1},
        {"step": [0]},
        {"rank": "1:"},
        {"stage": "a:b:c"},
        {"stage": ""},
        {"stage": "a\0"},
        {"exact": "perhaps"},
        {"mapping": 3.5, "exact": []},
        {"steps": "0"},
        [],
        "x",
    ],
)
def test_options_that_make_no_sense_are_refused(api, runs, options):
    response = post(api, left=runs[0].pk, right=runs[1].pk, options=options)
    assert code(response) == (400, "invalid")
    assert response.json()["params"]["fields"].startswith("options")
    assert not Comparison.objects.exists()


@pytest.mark.parametrize("body", [{}, {"left": "x"}, {"left": ["x"], "right": {}}, {"left": "", "right": ""}])
def test_a_comparison_needs_two_sides(api, body):
    assert code(post(api, **body)) == (400, "invalid")


def test_an_unknown_run_is_named(api, runs):
    assert code(post(api, left=runs[0].pk, right="nothing")) == (400, "run_unknown")


def test_a_run_that_failed_is_refused_with_its_name_and_why(api, runs):
    why = "trunc.json: the JSON ends at byte 5000"
    Run.objects.filter(pk=runs[1].pk).update(state="failed", error={"code": "json_truncated", "params": {}, "message": why, "where": ""})
    response = post(api, left=runs[0].pk, right=runs[1].pk)
    assert code(response) == (409, "run_failed")
    assert runs[1].name in response.json()["message"]
    assert why in response.json()["message"]
    assert response.json()["params"] == {"name": "infer.zip", "why": why}


def test_a_queued_comparison_is_cancelled_at_once_and_can_be_tried_again(api, comparison):
    url = f"/api/v1/comparisons/{comparison.pk}/"
    assert api.post(url + "cancel/").json()["state"] == "cancelled"
    assert code(api.post(url + "cancel/")) == (409, "not_cancellable")
    assert api.post(url + "retry/").json()["state"] == "queued"
    assert code(api.post(url + "retry/")) == (409, "not_retryable")


def test_a_running_comparison_is_asked_to_stop(api, comparison):
    Comparison.objects.update(state="running", attempt=1, heartbeat_at=timezone.now())
    body = api.post(f"/api/v1/comparisons/{comparison.pk}/cancel/").json()
    assert body["state"] == "running"
    assert body["cancel_requested_at"]


def test_a_cancelled_comparison_whose_worker_does_not_hear_is_cancelled_all_the_same(api, comparison):
    Comparison.objects.update(
        state="running", attempt=1, heartbeat_at=timezone.now(), cancel_requested_at=timezone.now() - timedelta(seconds=6), task_id="t"
    )
    assert api.get(f"/api/v1/comparisons/{comparison.pk}/").json()["state"] == "cancelled"


def test_who_looks_at_a_comparison_whose_worker_died_is_told_that_it_is_interrupted(api, comparison):
    Comparison.objects.update(state="running", attempt=1, heartbeat_at=timezone.now() - timedelta(seconds=31))
    body = api.get(f"/api/v1/comparisons/{comparison.pk}/").json()
    assert body["state"] == "interrupted"
    assert body["error"]["code"] == "worker_lost"
    assert api.post(f"/api/v1/comparisons/{comparison.pk}/retry/").json()["state"] == "queued"


def test_a_comparison_created_while_its_run_was_failing_fails_with_the_runs_error(api, comparison, runs):
    Run.objects.filter(pk=runs[0].pk).update(state="failed", error={"code": "no_dump", "params": {}, "message": "m", "where": "train.zip"})
    body = api.get(f"/api/v1/comparisons/{comparison.pk}/").json()
    assert body["state"] == "failed"
    assert body["error"] == {"code": "no_dump", "params": {}, "message": "m", "where": "train.zip"}


def test_a_retry_does_not_read_a_dump_again_that_is_no_dump(api, comparison, runs):
    Run.objects.filter(pk=runs[0].pk).update(state="failed", error={"code": "no_dump", "params": {}, "message": "m", "where": ""})
    Comparison.objects.update(state="failed")
    assert code(api.post(f"/api/v1/comparisons/{comparison.pk}/retry/")) == (409, "run_failed")
    assert Comparison.objects.get().state == "failed"


def test_a_retry_reads_a_run_again_that_the_machine_failed(api, comparison, runs):
    Run.objects.filter(pk=runs[0].pk).update(state="failed", attempt=2, error={"code": "worker_killed", "params": {}, "message": "m"})
    Comparison.objects.update(state="failed")
    body = api.post(f"/api/v1/comparisons/{comparison.pk}/retry/").json()
    assert (body["state"], body["left"]["state"], body["left"]["error"]) == ("queued", "queued", None)


def test_a_comparison_is_renamed_and_tagged(api, comparison):
    body = api.patch(f"/api/v1/comparisons/{comparison.pk}/", {"name": "after the fix", "tags": ["x"]}, format="json").json()
    assert (body["name"], body["tags"]) == ("after the fix", ["x"])


@pytest.mark.parametrize("change", [{"name": ""}, {"name": "x" * 201}, {"tags": ["x"] * 21}, {"tags": [""]}, {"tags": "x"}])
def test_a_change_that_makes_no_sense_is_refused(api, comparison, change):
    assert code(api.patch(f"/api/v1/comparisons/{comparison.pk}/", change, format="json")) == (400, "invalid")


def test_the_list_shows_the_verdict_in_a_line_and_is_searched_by_what_it_says(api, comparison, runs):
    other = comparisons.create(runs[1].pk, runs[0].pk, {}, name="other")
    Comparison.objects.filter(pk=other.pk).update(
        state="done", verdict="diverged", headline_en="First divergence", headline_zh="首个分歧", first_module="model.layers.2.mlp"
    )
    rows = api.get("/api/v1/comparisons/").json()["results"]
    assert [row["id"] for row in rows] == [other.pk, comparison.pk]
    assert rows[0]["verdict"] == "diverged"
    assert rows[0]["headline"] == {"en": "First divergence", "zh": "首个分歧"}
    assert rows[0]["left"] == {"name": "infer.zip", "role": "infer"}
    assert (rows[1]["verdict"], rows[1]["headline"]) == (None, None)
    for words in ("分歧", "LAYERS.2", "Oth"):
        assert [row["id"] for row in api.get("/api/v1/comparisons/", {"search": words}).json()["results"]] == [other.pk]
    assert api.get("/api/v1/comparisons/", {"search": "nothing like it"}).json()["results"] == []


def test_the_list_is_narrowed_to_the_comparisons_that_use_a_run(api, comparison, runs):
    other, third = (uploaded_run(name.encode(), f"{name}.zip") for name in ("other", "third"))
    second = comparisons.create(other.pk, runs[0].pk, {})
    comparisons.create(other.pk, third.pk, {})

    def using(run_id: str) -> list[str]:
        return [row["id"] for row in api.get("/api/v1/comparisons/", {"run": run_id}).json()["results"]]

    assert using(runs[0].pk) == [second.pk, comparison.pk]
    assert using(runs[1].pk) == [comparison.pk]
    assert using("nothing") == using("\0x") == []
    assert code(api.get("/api/v1/comparisons/", {"run": runs[0].pk}, REMOTE_ADDR="10.0.0.5")) == (403, "lists_closed")


def test_the_list_is_closed_to_other_machines_without_the_key(api, comparison, settings):
    settings.LISTS_KEY = "correct horse"
    assert code(api.get("/api/v1/comparisons/", REMOTE_ADDR="10.0.0.5")) == (403, "lists_closed")
    opened = api.get("/api/v1/comparisons/", REMOTE_ADDR="10.0.0.5", HTTP_AUTHORIZATION="Key correct horse")
    assert len(opened.json()["results"]) == 1


def test_a_deleted_comparison_is_gone_and_its_runs_stay(api, comparison):
    url = f"/api/v1/comparisons/{comparison.pk}/"
    assert api.delete(url).status_code == 204
    assert code(api.get(url)) == (404, "not_found")
    assert Run.objects.count() == 2


def test_asking_again_costs_a_304_until_the_comparison_or_one_of_its_runs_moves(api, comparison, runs):
    url = f"/api/v1/comparisons/{comparison.pk}/"
    etag = api.get(url)["ETag"]
    assert api.get(url, HTTP_IF_NONE_MATCH=etag).status_code == 304
    Run.objects.filter(pk=runs[0].pk).update(state="parsing", heartbeat_at=timezone.now(), updated_at=timezone.now())
    assert api.get(url, HTTP_IF_NONE_MATCH=etag).status_code == 200


def test_asking_for_the_state_costs_few_queries(api, comparison, django_assert_max_num_queries):
    api.get(f"/api/v1/comparisons/{comparison.pk}/")
    with django_assert_max_num_queries(1):
        api.get(f"/api/v1/comparisons/{comparison.pk}/")


@pytest.mark.parametrize("inner", ["tree/", "nodes/0/", "parts/0/tree/", "parts/0/verdict.json", "parts/0/nodes/3/", "verdict.json"])
def test_what_is_inside_is_not_ready_before_there_is_a_verdict(api, comparison, inner):
    assert code(api.get(f"/api/v1/comparisons/{comparison.pk}/{inner}")) == (409, "not_ready")


def test_an_export_that_nobody_makes_is_404_by_name(api, comparison):
    response = api.get(f"/api/v1/comparisons/{comparison.pk}/table.pdf")
    assert code(response) == (404, "export_unknown")
    assert response.json()["params"] == {"name": "table.pdf"}
