"""What a reader gets of runs and comparisons that the engine has worked on: real dumps, the real engine, in this process."""

from __future__ import annotations

import gzip
import json
import struct

import numpy as np
import pytest

from compare.models import Comparison, Part
from compare.services import comparisons, runs, storage
from tests.rooms import archive, corpus_comparison, corpus_run, files_below, uploaded_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def down2() -> Comparison:
    return corpus_comparison("q2_train_stat", "q2_infer_down2_stat")


@pytest.fixture
def several() -> Comparison:
    """Two steps on either side: a run verdict."""
    return corpus_comparison("q2_train_steps2_stat", "q2_train_steps2_pert1_stat")


def strict(content: bytes):
    def bare(name: str):
        raise AssertionError(f"bare {name}")

    return json.loads(content, parse_constant=bare)


def tree_columns(content: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """A reader of docs/formats.md's own, for the tests."""
    assert content[:8] == b"PWTREE\0\1"
    (size,) = struct.unpack("<I", content[8:12])
    header = json.loads(content[12 : 12 + size])
    base = 12 + size
    places = header["columns"].items()
    return header, {name: np.frombuffer(content, at["dtype"], at["length"], base + at["offset"]) for name, at in places}


def code(response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def test_a_run_that_was_read_shows_what_is_in_it(api, data_folder):
    run = corpus_run("q2_train_stat")
    body = api.get(f"/api/v1/runs/{run.pk}/").json()
    assert body["state"] == "ready"
    assert (body["inventory"]["role"], body["inventory"]["level"], body["inventory"]["task"]) == ("train", "L0", "statistics")
    assert body["inventory"]["counts"]["records"] == 154
    assert body["finished_at"]
    assert not [path for path in files_below(data_folder) if ".tmp" in path]


@pytest.mark.parametrize(
    ("content", "name", "refusals"),
    [
        (b"this is no archive", "dump.zip", {"not_an_archive", "archive_broken", "no_dump"}),
        (b"{", "dump.json", None),
        (b"[1, 2]", "dump.json", {"not_a_dump", "not_json"}),
        (archive(**{"readme.txt": "hello"}), "dump.zip", {"no_dump"}),
        (archive(**{"../../escape/dump.json": "{}"}), "dump.zip", None),
        (b"", "dump.json", {"file_empty"}),
    ],
)
def test_bytes_that_are_no_dump_get_one_clear_sentence_and_are_not_kept(api, data_folder, content, name, refusals):
    run = uploaded_run(content, name)
    runs.read(run.pk, "test")
    body = api.get(f"/api/v1/runs/{run.pk}/").json()
    assert body["state"] == "failed"
    error = body["error"]
    assert set(error) == {"code", "params", "message", "where"}
    assert error["code"] != "internal", error
    assert refusals is None or error["code"] in refusals or error["code"].startswith("archive"), error
    assert name in error["where"]
    assert "\n" not in error["message"]
    assert files_below(data_folder) == set()


def test_a_verdict_is_the_document_of_the_command_line(api, down2):
    body = strict(api.get(f"/api/v1/comparisons/{down2.pk}/").content)
    assert body["state"] == "done"
    assert body["verdict"]["schema"] == "probe-web/verdict/1"
    assert body["verdict"]["verdict"] == "diverged"
    assert body["verdict"]["first_divergence"]["module"] == "model.layers.2.mlp.down_proj"
    assert body["first_module"] == "model.layers.2.mlp.down_proj"
    assert body["headline"] == body["verdict"]["headline"]
    exported = api.get(f"/api/v1/comparisons/{down2.pk}/verdict.json")
    assert exported["Content-Type"] == "application/json"
    assert strict(exported.getvalue()) == body["verdict"]
    row = api.get("/api/v1/comparisons/").json()["results"][0]
    assert (row["verdict"], row["headline"], row["first_module"]) == ("diverged", body["headline"], body["first_module"])


def test_a_verdict_with_nan_in_it_is_strict_json(api):
    nan3 = corpus_comparison("q2_train_stat", "q2_infer_nan3_stat")
    assert strict(api.get(f"/api/v1/comparisons/{nan3.pk}/").content)["verdict"]["verdict"] == "diverged"
    _, columns = tree_columns(gzip.decompress(b"".join(api.get(f"/api/v1/comparisons/{nan3.pk}/tree/").streaming_content)))
    origin = int(np.flatnonzero(columns["role"] == 1)[0])
    node = strict(api.get(f"/api/v1/comparisons/{nan3.pk}/nodes/{origin}/").content)
    numbers = [statistic["right"] for slot in node["slots"] for statistic in slot["statistics"]]
    assert "NaN" in numbers


def test_the_tree_is_sent_as_it_is_stored_and_never_again(api, down2):
    url = f"/api/v1/comparisons/{down2.pk}/tree/"
    response = api.get(url)
    content = b"".join(response.streaming_content)
    assert (response["Content-Type"], response["Content-Encoding"]) == ("application/octet-stream", "gzip")
    assert "immutable" in response["Cache-Control"]
    header, columns = tree_columns(gzip.decompress(content))
    assert header["rows"] == len(columns["parent"]) > 50
    row = next(n for n in range(header["rows"]) if header["strings"][columns["module"][n]] == "model.layers.2.mlp.down_proj")
    assert columns["role"][row] == 1
    again = api.get(url, HTTP_IF_NONE_MATCH=response["ETag"])
    assert (again.status_code, again.content) == (304, b"")


def test_a_node_is_shown_in_full_and_one_that_is_not_there_is_404(api, down2):
    content = gzip.decompress(b"".join(api.get(f"/api/v1/comparisons/{down2.pk}/tree/").streaming_content))
    header, columns = tree_columns(content)
    row = next(n for n in range(header["rows"]) if header["strings"][columns["module"][n]] == "model.layers.2.mlp.down_proj")
    body = strict(api.get(f"/api/v1/comparisons/{down2.pk}/nodes/{row}/").content)
    assert (body["n"], body["module"], body["role"]) == (row, "model.layers.2.mlp.down_proj", "origin")
    assert code(api.get(f"/api/v1/comparisons/{down2.pk}/nodes/{header['rows']}/")) == (404, "node_unknown")
    assert code(api.get(f"/api/v1/comparisons/{down2.pk}/nodes/{10**30}/")) == (404, "node_unknown")


def test_every_row_of_a_tree_can_be_opened(api, down2):
    header, _ = tree_columns(gzip.decompress(b"".join(api.get(f"/api/v1/comparisons/{down2.pk}/tree/").streaming_content)))
    for n in range(header["rows"]):
        assert strict(api.get(f"/api/v1/comparisons/{down2.pk}/nodes/{n}/").content)["n"] == n


def test_the_only_part_is_found_with_and_without_its_number(api, down2):
    part = down2.parts.get()
    assert (part.verdict, part.step) == ("diverged", 0)
    base = f"/api/v1/comparisons/{down2.pk}/"
    assert api.get(f"{base}parts/{part.n}/verdict.json").content == api.get(f"{base}verdict.json").getvalue()
    assert api.get(f"{base}parts/{part.n}/tree/")["ETag"] == api.get(f"{base}tree/")["ETag"]
    assert api.get(f"{base}parts/{part.n}/nodes/3/").json() == api.get(f"{base}nodes/3/").json()
    assert code(api.get(f"{base}parts/99/tree/")) == (404, "part_unknown")
    assert code(api.get(f"{base}parts/99/verdict.json")) == (404, "part_unknown")


def test_several_parts_each_have_their_verdict_and_tree(api, several):
    base = f"/api/v1/comparisons/{several.pk}/"
    verdict = api.get(base).json()["verdict"]
    assert verdict["schema"] == "probe-web/run-verdict/1"
    assert len(verdict["parts"]) == 2
    assert [(part.n, part.step, part.verdict) for part in several.parts.all()] == [
        (part["n"], part["step"], part["verdict"]) for part in verdict["parts"]
    ]
    for part in verdict["parts"]:
        assert api.get(f"{base}parts/{part['n']}/verdict.json").json()["verdict"] == part["verdict"]
        assert api.get(f"{base}parts/{part['n']}/tree/").status_code == 200
        assert api.get(f"{base}parts/{part['n']}/nodes/0/").status_code == 200
    assert code(api.get(f"{base}tree/")) == (409, "several_parts")
    assert code(api.get(f"{base}nodes/0/")) == (409, "several_parts")


def test_a_choice_that_a_side_does_not_hold_fails_with_what_there_is(api):
    failed = corpus_comparison("q2_train_steps2_stat", "q2_train_steps2_pert1_stat", step="7")
    body = api.get(f"/api/v1/comparisons/{failed.pk}/").json()
    assert (body["state"], body["error"]["code"]) == ("failed", "no_such_choice")
    assert body["verdict"] is None


def test_roles_that_a_reader_gave_win_over_what_the_dump_looks_like(api):
    left, right = corpus_run("q2_shim_stat", role="infer"), corpus_run("q2_shim_stat_again", role="train")
    comparison = comparisons.create(left.pk, right.pk, {})
    comparisons.compare(comparison.pk, "test")
    verdict = api.get(f"/api/v1/comparisons/{comparison.pk}/").json()["verdict"]
    assert (verdict["left"]["role"], verdict["right"]["role"]) == ("infer", "train")


def test_a_share_link_opens_the_whole_result(api, down2):
    link = api.post(f"/api/v1/comparisons/{down2.pk}/shares/", {}, format="json").json()["id"]
    for inner in ("", "tree/", "nodes/0/", "verdict.json"):
        assert api.get(f"/api/v1/comparisons/{link}/{inner}").status_code == 200


def test_a_deleted_comparison_takes_its_files_and_frees_its_runs(api, down2, data_folder):
    left, right = down2.left, down2.right
    assert api.delete(f"/api/v1/comparisons/{down2.pk}/").status_code == 204
    assert not [path for path in files_below(data_folder) if path.startswith("comparisons/")]
    for run in (left, right):
        assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert files_below(data_folder) == set()


def test_a_result_folder_left_by_a_worker_that_died_before_its_row_said_done_is_replaced(api, down2, data_folder):
    Comparison.objects.update(state="interrupted")
    (storage.result(down2) / "stale").write_text("x")
    comparisons.retry(down2)
    Part.objects.all().delete()
    comparisons.compare(down2.pk, "again")
    down2.refresh_from_db()
    assert (down2.state, down2.attempt) == ("done", 2)
    assert not (storage.result(down2) / "stale").exists()
