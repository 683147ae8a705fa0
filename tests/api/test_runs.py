"""Runs over HTTP: made of uploads or of the request's own files, read, named, listed, deleted."""

from __future__ import annotations

import errno
import hashlib

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from compare.models import Blob, Run, Upload
from compare.services import comparisons, storage
from tests.rooms import files_below, uploaded_run

BEGUN = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nabc'


def post(api, **body):
    return api.post("/api/v1/runs/", body, format="json")


def multipart(api, files, **fields):
    """``files``: (name, content) pairs."""
    sent = [SimpleUploadedFile(name, content) for name, content in files]
    return api.post("/api/v1/runs/", {"files": sent, **fields}, format="multipart")


def code(response) -> tuple[int, str]:
    body = response.json()
    assert set(body) == {"code", "params", "message"}
    return response.status_code, body["code"]


def test_a_run_of_an_upload_is_queued(api, tus):
    response = post(api, uploads=[tus.send(b"content", "train.zip")], role="train")
    assert response.status_code == 201
    body = response.json()
    assert body["state"] == "queued"
    assert body["url"] == f"/r/{body['id']}"
    assert response["Location"] == f"/api/v1/runs/{body['id']}/"
    read = api.get(response["Location"]).json()
    assert (read["name"], read["role"], read["size"]) == ("train.zip", "train", 7)
    assert read["sha256"] == hashlib.sha256(b"content").hexdigest()
    assert (read["error"], read["inventory"], read["progress"]) == (None, None, {})


def test_ids_are_slugs_that_nobody_guesses(api, tus):
    ids = {post(api, uploads=[tus.send(b"%d" % n)]).json()["id"] for n in range(3)}
    assert all(len(slug) == 22 for slug in ids)
    assert len(ids) == 3


def test_a_dropped_folder_is_many_uploads_and_is_called_after_the_folder(api, tus):
    names = ["qwen/step0/rank0/dump.json", "qwen/step0/rank0/construct.json"]
    run = Run.objects.get(pk=post(api, uploads=[tus.send(name.encode(), name) for name in names]).json()["id"])
    assert run.name == "qwen"
    assert [file.name for file in run.files.all()] == names


def test_a_request_repeated_after_a_lost_answer_finds_the_same_run(api, tus):
    uploads = [tus.send(b"a", "x/a"), tus.send(b"b", "x/b")]
    assert post(api, uploads=uploads).json()["id"] == post(api, uploads=uploads).json()["id"]
    assert Run.objects.count() == 1


def test_the_same_bytes_in_many_runs_are_stored_once(api, tus, data_folder):
    for _ in range(3):
        post(api, uploads=[tus.send(b"same", "a.zip"), tus.send(b"same", "b.zip")])
    multipart(api, [("c.zip", b"same")])
    assert Run.objects.count() == 4
    assert Blob.objects.count() == 1
    assert len(files_below(data_folder)) == 1


def test_an_unfinished_upload_makes_no_run(api, tus):
    url = tus.create(10)["Location"]
    tus.patch(url, 0, b"12345")
    response = post(api, uploads=[url.rstrip("/").rsplit("/", 1)[-1]])
    assert code(response) == (409, "upload_incomplete")
    assert response.json()["params"] == {"name": "dump.zip", "offset": 5, "length": 10}
    assert not Run.objects.exists()


def test_an_upload_whose_server_died_before_sealing_it_is_sealed_when_it_is_used(api, tus, data_folder):
    slug = tus.create(4)["Location"].rstrip("/").rsplit("/", 1)[-1]
    storage.part(slug).write_bytes(b"rest")
    run = Run.objects.get(pk=post(api, uploads=[slug]).json()["id"])
    assert run.sha256 == hashlib.sha256(b"rest").hexdigest()


def test_an_unknown_upload_makes_no_run(api):
    assert code(post(api, uploads=["nothing"])) == (400, "upload_unknown")


@pytest.mark.parametrize("body", [{}, {"uploads": []}, {"uploads": "x"}, {"uploads": [1, {}]}, {"uploads": ["x"], "role": "both"}])
def test_a_body_that_makes_no_sense_says_which_field(api, body):
    response = post(api, **body)
    assert code(response) == (400, "invalid")
    assert response.json()["params"]["fields"]


def test_a_multipart_file_becomes_a_run(api):
    response = multipart(api, [("train.zip", b"content")], name="mine", role="infer")
    assert response.status_code == 201
    run = Run.objects.get(pk=response.json()["id"])
    assert (run.name, run.role, run.size, run.sha256) == ("mine", "infer", 7, hashlib.sha256(b"content").hexdigest())
    assert storage.blob(run.sha256).read_bytes() == b"content"


def test_multipart_files_take_their_places_from_paths(api):
    files, paths = [("dump.json", b"0"), ("dump.json", b"1")], ["d/rank0/dump.json", "d/rank1/dump.json"]
    run = Run.objects.get(pk=multipart(api, files, paths=paths).json()["id"])
    assert [(file.name, storage.blob(file.blob_id).read_bytes()) for file in run.files.all()] == list(zip(paths, [b"0", b"1"], strict=True))


def test_more_multipart_files_than_djangos_hundred_are_taken(api):
    files = [("dump.json", b"%d" % n) for n in range(250)]
    run = Run.objects.get(pk=multipart(api, files, paths=[f"d/rank{n}/dump.json" for n in range(250)]).json()["id"])
    assert run.files.count() == 250


def test_more_files_than_a_run_holds_are_refused(api, settings, data_folder):
    settings.UPLOAD_MAX_FILES = 3
    assert code(multipart(api, [("x", b"%d" % n) for n in range(4)])) == (413, "too_many_files")
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 3
    assert code(multipart(api, [("x", b"%d" % n) for n in range(4)])) == (413, "too_many_files")
    assert files_below(data_folder) == set()


def test_paths_that_do_not_fit_the_files_are_refused_and_nothing_is_kept(api, data_folder):
    assert code(multipart(api, [("a", b"0"), ("b", b"1")], paths=["only/one"])) == (400, "paths_mismatch")
    assert files_below(data_folder) == set()
    assert not Run.objects.exists()


def test_a_multipart_request_without_files_is_refused(api):
    assert code(api.post("/api/v1/runs/", {"name": "x"}, format="multipart")) == (400, "no_files")


def test_files_in_other_fields_are_not_kept(api, data_folder):
    sent = {"files": SimpleUploadedFile("a", b"a"), "other": SimpleUploadedFile("b", b"b")}
    assert api.post("/api/v1/runs/", sent, format="multipart").status_code == 201
    assert len(files_below(data_folder)) == 1


@pytest.mark.parametrize("body", [b"", b"nonsense", b"--x\r\n", BEGUN, BEGUN + b"\r\n--x\r\n" + BEGUN[5:]])
def test_a_multipart_request_that_breaks_off_leaves_nothing_behind(api, data_folder, body):
    response = api.generic("POST", "/api/v1/runs/", body, content_type="multipart/form-data; boundary=x")
    assert code(response)[0] == 400
    assert files_below(data_folder) == set()
    assert not Run.objects.exists()


def test_a_disk_that_fills_up_in_a_multipart_request_leaves_nothing_behind(api, data_folder, monkeypatch):
    def full(self, raw_data, start):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("compare.api.parsers.ArrivingFiles.receive_data_chunk", full)
    assert code(multipart(api, [("a", b"abc")])) == (507, "disk_full")
    assert files_below(data_folder) == set()


def test_a_multipart_request_larger_than_the_disk_is_refused_before_it_is_read(api, monkeypatch):
    monkeypatch.setattr(storage, "free_bytes", lambda: 10)
    assert code(multipart(api, [("a", b"abc" * 100)])) == (507, "disk_full")


def test_a_multipart_request_over_the_limit_is_refused_before_it_is_read(api, settings):
    settings.UPLOAD_MAX_BYTES = 100
    assert code(multipart(api, [("a", b"abc" * 100)])) == (413, "upload_too_large")


def test_a_run_is_renamed_tagged_and_given_its_role(api):
    run = uploaded_run(b"x")
    response = api.patch(f"/api/v1/runs/{run.pk}/", {"name": "step 7", "tags": ["夜间", "fsdp"], "role": "train"}, format="json")
    assert response.status_code == 200
    assert (response.json()["name"], response.json()["tags"], response.json()["role"]) == ("step 7", ["夜间", "fsdp"], "train")


def test_a_change_leaves_what_a_worker_writes_alone(api):
    run = uploaded_run(b"x")
    Run.objects.filter(pk=run.pk).update(state="parsing", progress={"stage": "read"})
    assert api.patch(f"/api/v1/runs/{run.pk}/", {"name": "new"}, format="json").json()["state"] == "parsing"
    assert Run.objects.get().progress == {"stage": "read"}


def test_the_list_is_searched_by_name_and_tag_and_read_page_by_page(api):
    for n in range(60):
        run = uploaded_run(b"%d" % n)
        Run.objects.filter(pk=run.pk).update(name=f"run {n}", tags=["夜间"] if n % 2 else [])
    first = api.get("/api/v1/runs/").json()
    assert [row["name"] for row in first["results"]] == [f"run {n}" for n in range(59, 9, -1)]
    second = api.get("/api/v1/runs/", {"cursor": first["next"]}).json()
    assert [row["name"] for row in second["results"]] == [f"run {n}" for n in range(9, -1, -1)]
    assert second["next"] is None
    assert [row["name"] for row in api.get("/api/v1/runs/", {"search": "RUN 42"}).json()["results"]] == ["run 42"]
    assert len(api.get("/api/v1/runs/", {"search": "夜间"}).json()["results"]) == 30
    assert api.get("/api/v1/runs/", {"search": "\0"}).status_code == 200


def test_lists_are_closed_to_other_machines_but_single_runs_are_not(api, settings):
    run = uploaded_run(b"x")
    assert code(api.get("/api/v1/runs/", REMOTE_ADDR="10.0.0.5")) == (403, "lists_closed")
    assert api.get(f"/api/v1/runs/{run.pk}/", REMOTE_ADDR="10.0.0.5").status_code == 200


def test_asking_again_costs_a_304_until_something_changes(api):
    run = uploaded_run(b"x")
    url = f"/api/v1/runs/{run.pk}/"
    etag = api.get(url)["ETag"]
    again = api.get(url, HTTP_IF_NONE_MATCH=etag)
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    api.patch(url, {"name": "new"}, format="json")
    assert api.get(url, HTTP_IF_NONE_MATCH=etag).status_code == 200


def test_a_deleted_run_is_gone_with_its_files(api, tus, data_folder):
    run = uploaded_run(b"x")
    assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert files_below(data_folder) == set()
    assert not Run.objects.exists()
    assert not Blob.objects.exists()
    assert not Upload.objects.exists()
    assert code(api.get(f"/api/v1/runs/{run.pk}/")) == (404, "not_found")


def test_content_that_another_run_holds_survives_a_deletion(api):
    first, second = uploaded_run(b"x"), uploaded_run(b"x")
    api.delete(f"/api/v1/runs/{first.pk}/")
    assert storage.blob(second.sha256).read_bytes() == b"x"


def test_a_run_that_a_comparison_uses_stays(api):
    left, right = uploaded_run(b"x"), uploaded_run(b"y")
    comparisons.create(left.pk, right.pk, {})
    response = api.delete(f"/api/v1/runs/{left.pk}/")
    assert code(response) == (409, "run_in_use")
    assert response.json()["params"] == {"comparisons": 1}
    assert storage.blob(left.sha256).exists()
