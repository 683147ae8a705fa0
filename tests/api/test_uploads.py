"""tus 1.0 as a client sees it."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
from datetime import timedelta

import pytest
from django.utils import timezone

from compare.models import Blob, Comparison, Upload
from compare.services import comparisons, storage, uploads
from tests.rooms import TUS, corpus_run, files_below


def problem(response) -> tuple[int, str]:
    body = response.json()
    assert set(body) == {"code", "params", "message"}
    assert response["Tus-Resumable"] == "1.0.0"
    return response.status_code, body["code"]


def disk_that_takes(size: int):
    def write(part, block):
        part.write(block[:size])
        raise OSError(errno.ENOSPC, "No space left on device")

    return write


def test_options_say_what_the_server_can_do(api, settings):
    response = api.options("/api/v1/uploads/")
    assert response.status_code == 204
    assert response["Tus-Resumable"] == response["Tus-Version"] == "1.0.0"
    assert set(response["Tus-Extension"].split(",")) == {"creation", "termination", "expiration"}
    assert int(response["Tus-Max-Size"]) == settings.UPLOAD_MAX_BYTES


def test_an_upload_is_created_appended_and_sealed_under_its_sum(tus, data_folder):
    content = b"abc" * 1000
    created = tus.create(len(content), "dump/step0/rank0/dump.json")
    url = created["Location"]
    assert created.status_code == 201
    assert created["Upload-Offset"] == "0"
    assert "GMT" in created["Upload-Expires"]

    first = tus.patch(url, 0, content[:1000])
    assert (first.status_code, first["Upload-Offset"], first.content) == (204, "1000", b"")
    assert tus.head(url)["Upload-Offset"] == "1000"
    assert tus.head(url)["Upload-Length"] == "3000"
    assert tus.head(url)["Cache-Control"] == "no-store"

    assert tus.patch(url, 1000, content[1000:])["Upload-Offset"] == "3000"
    described = tus.client.get(url).json()
    assert described["sha256"] == hashlib.sha256(content).hexdigest()
    assert described["name"] == "dump/step0/rank0/dump.json"
    assert tus.head(url)["Upload-Offset"] == "3000"
    assert files_below(data_folder) == {f"blobs/{described['sha256'][:2]}/{described['sha256']}"}
    assert storage.blob(described["sha256"]).read_bytes() == content


def test_a_body_larger_than_django_keeps_in_memory_is_streamed(tus):
    content = bytes(range(256)) * 20_000  # 5 MB; request.body would stop at 2.5 MB
    upload = Upload.objects.get(pk=tus.send(content))
    assert upload.sha256 == hashlib.sha256(content).hexdigest()


def test_an_empty_file_is_complete_at_once(tus):
    upload = Upload.objects.get(pk=tus.send(b""))
    assert upload.sha256 == hashlib.sha256(b"").hexdigest()


def test_an_empty_patch_asks_nothing_and_changes_nothing(tus):
    url = tus.create(3)["Location"]
    assert tus.patch(url, 0, b"", CONTENT_LENGTH="0")["Upload-Offset"] == "0"


def test_the_wrong_offset_is_a_conflict_and_writes_nothing(tus):
    url = tus.create(10)["Location"]
    tus.patch(url, 0, b"12345")
    response = tus.patch(url, 3, b"45678")
    assert problem(response) == (409, "offset_mismatch")
    assert response.json()["params"] == {"offset": 5}
    assert tus.head(url)["Upload-Offset"] == "5"


def test_more_bytes_than_declared_are_refused_before_they_are_read(tus):
    url = tus.create(4)["Location"]
    assert problem(tus.patch(url, 0, b"12345")) == (413, "upload_overflow")
    assert tus.head(url)["Upload-Offset"] == "0"


def test_bytes_after_the_end_are_a_conflict(tus):
    url = tus.create(3)["Location"]
    tus.patch(url, 0, b"abc")
    assert problem(tus.patch(url, 0, b"abc")) == (409, "offset_mismatch")


@pytest.mark.parametrize("length", ["", "-1", "abc", "1.5", "٣", "9" * 30])
def test_a_length_that_is_no_number_is_refused(api, length):
    assert problem(api.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH=length, **TUS)) == (400, "upload_length_required")


def test_a_deferred_length_is_refused(api):
    assert problem(api.post("/api/v1/uploads/", HTTP_UPLOAD_DEFER_LENGTH="1", **TUS)) == (400, "upload_length_required")


@pytest.mark.parametrize("offset", ["", "-1", "x"])
def test_an_offset_that_is_no_number_is_refused(tus, offset):
    url = tus.create(3)["Location"]
    assert problem(tus.patch(url, 0, b"abc", HTTP_UPLOAD_OFFSET=offset)) == (400, "offset_required")


def test_another_protocol_version_is_told_ours(api):
    response = api.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="3", HTTP_TUS_RESUMABLE="0.2.2")
    assert problem(response) == (412, "tus_version")
    assert response["Tus-Version"] == "1.0.0"


def test_another_content_type_is_refused(tus):
    url = tus.create(3)["Location"]
    response = tus.client.generic("PATCH", url, b"abc", content_type="application/json", HTTP_UPLOAD_OFFSET="0", **TUS)
    assert problem(response) == (415, "unsupported_media_type")


@pytest.mark.parametrize("header", ["filename ###", f"filename {base64.b64encode(bytes([255, 254])).decode()}", "filename Y\xfcA="])
def test_metadata_that_cannot_be_decoded_is_refused(api, header):
    response = api.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="3", HTTP_UPLOAD_METADATA=header, **TUS)
    assert problem(response) == (400, "upload_metadata_malformed")


@pytest.mark.parametrize("name", ["a" * 1025, "a\0b"])
def test_a_name_that_no_database_should_hold_is_refused(tus, name):
    assert problem(tus.create(3, name)) == (400, "bad_name")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "C:\\x\\y", "训练/dump.json", "=1+1", "<b>x</b>", "a" * 1024])
def test_a_hostile_name_is_kept_as_text_and_never_becomes_a_path(tus, data_folder, name):
    upload = Upload.objects.get(pk=tus.send(b"x", name))
    assert upload.name == name
    assert all(path.startswith("blobs/") for path in files_below(data_folder))


def test_a_file_over_the_limit_is_refused_at_creation(tus, settings):
    settings.UPLOAD_MAX_BYTES = 100
    assert problem(tus.create(101)) == (413, "upload_too_large")


def test_open_uploads_together_have_a_limit(tus, monkeypatch):
    monkeypatch.setattr("compare.services.limits.ARRIVING_BYTES", 100)
    assert tus.create(60).status_code == 201
    assert problem(tus.create(60)) == (413, "uploads_full")


def test_uploads_that_no_run_took_are_counted(tus, settings):
    settings.UPLOAD_MAX_OPEN = 2
    open_, complete = tus.create(6)["Location"], tus.send(b"abc")
    assert problem(tus.create(1)) == (429, "uploads_too_many")
    tus.delete(open_)
    assert tus.create(1).status_code == 201
    tus.client.post("/api/v1/runs/", {"uploads": [complete]}, format="json")
    assert tus.create(1).status_code == 201


def test_all_that_is_stored_or_arriving_together_has_a_limit_where_an_operator_sets_one(tus, settings):
    settings.STORED_MAX_BYTES = 10
    tus.send(b"abcd")
    going_on = tus.create(5)["Location"]
    assert problem(tus.create(2)) == (507, "storage_full")
    assert tus.create(1).status_code == 201
    assert tus.patch(going_on, 0, b"12345").status_code == 204, "what was begun is finished"
    multipart = tus.client.post("/api/v1/runs/", {"files": [io.BytesIO(b"x" * 50)]})
    assert (multipart.status_code, multipart.json()["code"]) == (507, "storage_full")


def test_columns_and_results_count_towards_the_limit_and_what_was_deleted_does_not(tus, settings, data_folder):
    run = corpus_run("q2_infer_stat")
    comparison = comparisons.create(run.pk, run.pk, {})
    comparisons.compare(comparison.pk, "test")
    sent = sum(blob.size for blob in Blob.objects.all())
    kept = sum((data_folder / name).stat().st_size for name in files_below(data_folder))
    assert kept > 2 * sent
    settings.STORED_MAX_BYTES = kept + 10
    assert tus.create(10).status_code == 201
    assert problem(tus.create(1)) == (507, "storage_full")
    asked = tus.client.post("/api/v1/comparisons/", {"left": run.pk, "right": run.pk}, format="json")
    assert (asked.status_code, asked.json()["code"]) == (507, "storage_full")
    assert Comparison.objects.count() == 1
    comparisons.delete(comparison)
    assert tus.create(1).status_code == 201, "measured anew before it is refused"


def test_an_upload_that_would_fill_the_disk_is_refused_at_creation(tus, monkeypatch):
    monkeypatch.setattr(storage, "free_bytes", lambda: 10)
    assert problem(tus.create(11)) == (507, "disk_full")


def test_a_disk_that_fills_up_keeps_what_fitted_and_the_upload_goes_on_later(tus, monkeypatch):
    url = tus.create(6)["Location"]
    write = uploads._write
    monkeypatch.setattr(uploads, "_write", disk_that_takes(2))
    assert problem(tus.patch(url, 0, b"abcdef")) == (507, "disk_full")
    monkeypatch.setattr(uploads, "_write", write)
    assert tus.head(url)["Upload-Offset"] == "2"
    assert tus.patch(url, 2, b"cdef").status_code == 204
    assert Upload.objects.get().sha256 == hashlib.sha256(b"abcdef").hexdigest()


def test_an_upload_that_is_being_written_is_locked(tus):
    url = tus.create(3)["Location"]
    with uploads._held(Upload.objects.get()):
        assert problem(tus.patch(url, 0, b"abc")) == (423, "upload_locked")
        assert problem(tus.delete(url)) == (423, "upload_locked")
        assert tus.head(url)["Upload-Offset"] == "0"
    assert tus.patch(url, 0, b"abc").status_code == 204


def test_a_terminated_upload_is_gone_with_its_bytes(tus, data_folder):
    url = tus.create(6)["Location"]
    tus.patch(url, 0, b"abc")
    assert tus.delete(url).status_code == 204
    assert tus.head(url).status_code == 404
    assert files_below(data_folder) == set()


def test_terminating_a_complete_upload_that_no_run_took_frees_its_content(tus, data_folder):
    slug = tus.send(b"abc")
    assert tus.delete(f"/api/v1/uploads/{slug}/").status_code == 204
    assert files_below(data_folder) == set()
    assert not Blob.objects.exists()


def test_an_unknown_upload_is_not_found(tus):
    assert problem(tus.patch("/api/v1/uploads/nothing/", 0, b"x")) == (404, "not_found")
    assert tus.head("/api/v1/uploads/nothing/").status_code == 404


def test_a_proxy_that_knows_only_post_is_served(tus):
    url = tus.create(3)["Location"]
    headers = {**TUS, "HTTP_UPLOAD_OFFSET": "0", "HTTP_X_HTTP_METHOD_OVERRIDE": "PATCH"}
    response = tus.client.generic("POST", url, b"abc", content_type="application/offset+octet-stream", **headers)
    assert (response.status_code, response["Upload-Offset"]) == (204, "3")


def test_an_address_without_its_last_slash_works(tus):
    url = tus.create(3)["Location"].rstrip("/")
    assert tus.patch(url, 0, b"abc").status_code == 204


def test_an_idle_upload_is_reaped_and_one_that_goes_on_is_not(tus):
    idle, going_on = tus.create(3)["Location"], tus.create(3)["Location"]
    Upload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    tus.patch(going_on, 0, b"a")
    assert uploads.reap_idle() == 1
    assert tus.head(idle).status_code == 404
    assert tus.head(going_on).status_code == 200


def test_a_body_of_unknown_length_is_refused(tus):
    url = tus.create(3)["Location"]
    assert problem(tus.patch(url, 0, b"abc", CONTENT_LENGTH="")) == (411, "content_length_required")
