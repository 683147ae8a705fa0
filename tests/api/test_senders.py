"""Who may send dumps: everybody in local mode; where a token is asked for, this machine, holders of a token, and of the start-up key."""

from __future__ import annotations

import base64
import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from compare.models import ApiToken, Upload
from compare.services import storage, tokens
from probe_web import access
from tests.rooms import TUS, archive, uploaded_run

ELSEWHERE = {"REMOTE_ADDR": "10.0.0.9"}
CONTENT = b"the content of a dump"
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def stranger() -> APIClient:
    """A client on another machine."""
    return APIClient(raise_request_exception=False, **ELSEWHERE)


@pytest.fixture
def guarded(settings):
    settings.UPLOAD_REQUIRES_TOKEN = True
    settings.LISTS_KEY = "the start-up key"


def begin(client: APIClient, sha256: str = "", length: int = len(CONTENT), **headers: str):
    said = f"filename {base64.b64encode(b'dump.zip').decode()}"
    if sha256:
        said += f",sha256 {base64.b64encode(sha256.encode()).decode()}"
    return client.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH=str(length), HTTP_UPLOAD_METADATA=said, **{**TUS, **headers})


def calls(client: APIClient, **headers: str):
    """Every call that adds something."""
    yield begin(client, **headers)
    patch = {**TUS, "HTTP_UPLOAD_OFFSET": "0", **headers}
    yield client.generic("PATCH", "/api/v1/uploads/nothing/", b"x", content_type="application/offset+octet-stream", **patch)
    yield client.post("/api/v1/runs/", {"uploads": ["x"]}, format="json", **headers)
    yield client.post("/api/v1/comparisons/", {"left": "x", "right": "y"}, format="json", **headers)


def test_in_local_mode_nobody_is_asked_for_a_token(stranger):
    assert [answer.status_code for answer in calls(stranger)] == [201, 404, 400, 400]
    assert stranger.get("/api/v1/about/").json()["may_send"] is True


def test_a_token_that_is_not_asked_for_is_not_looked_at(stranger):
    assert begin(stranger, HTTP_AUTHORIZATION="Bearer nonsense").status_code == 201


def test_where_it_is_asked_for_nobody_elsewhere_adds_anything_without_one(guarded, stranger, data_folder):
    for answer in calls(stranger):
        assert (answer.status_code, answer.json()["code"]) == (401, "token_required")
        assert answer["WWW-Authenticate"] == "Bearer"
    multipart = stranger.post("/api/v1/runs/", {"files": [archive(a="b")]})
    assert (multipart.status_code, multipart.json()["code"]) == (401, "token_required")
    assert not list(data_folder.rglob("incoming/*"))
    assert stranger.get("/api/v1/about/").json()["may_send"] is False
    assert stranger.get("/api/v1/about/").json()["local_mode"] is False


def test_this_machine_is_never_asked(guarded, api):
    assert [answer.status_code for answer in calls(api)] == [201, 404, 400, 400]
    assert api.get("/api/v1/about/").json()["may_send"] is True


def test_what_a_proxy_passes_on_counts_as_from_elsewhere(guarded, api):
    assert begin(api, HTTP_X_FORWARDED_FOR="127.0.0.1").status_code == 401


def test_a_token_opens_every_call_and_says_when_it_was_used(guarded, stranger):
    token = tokens.issue("training host")
    assert ApiToken.objects.get().last_used_at is None
    assert [answer.status_code for answer in calls(stranger, HTTP_AUTHORIZATION=f"Bearer {token}")] == [201, 404, 400, 400]
    assert begin(stranger, HTTP_AUTHORIZATION=f"bearer  {token} ").status_code == 201
    assert ApiToken.objects.get().last_used_at is not None
    assert stranger.get("/api/v1/about/", HTTP_AUTHORIZATION=f"Bearer {token}").json()["may_send"] is True


@pytest.mark.parametrize("how", ["unknown", "revoked", "expired", "of another kind"])
def test_a_token_that_is_not_in_force_is_told_apart_from_none(guarded, stranger, how):
    token = tokens.issue("x", 1)
    if how == "revoked":
        tokens.revoke("x")
    if how == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    kind = "Basic" if how == "of another kind" else "Bearer"
    answer = begin(stranger, HTTP_AUTHORIZATION=f"{kind} {token}{'x' if how == 'unknown' else ''}")
    assert (answer.status_code, answer.json()["code"]) == (401, "token_required" if kind == "Basic" else "token_invalid")


def test_a_teammate_s_page_sends_with_the_cookie_of_the_key_and_a_script_with_the_key(guarded, stranger):
    assert begin(stranger, HTTP_AUTHORIZATION="Key the start-up key").status_code == 201
    assert begin(stranger, HTTP_AUTHORIZATION="Key another").status_code == 401
    stranger.cookies[access.COOKIE] = access.cookie_value()
    assert begin(stranger).status_code == 201


def test_a_token_sends_and_opens_no_list(guarded, stranger):
    token = tokens.issue("x")
    assert stranger.get("/api/v1/runs/", HTTP_AUTHORIZATION=f"Bearer {token}").status_code == 403


def test_reading_and_the_owner_s_own_things_need_none(guarded, stranger, tus):
    run = uploaded_run(CONTENT)
    slug = tus.create(3)["Location"]
    assert stranger.get(f"/api/v1/runs/{run.pk}/").status_code == 200
    assert stranger.delete(slug, **TUS).status_code == 204


class TestSum:
    def test_content_that_is_here_is_complete_at_once_for_a_known_sender(self, api, data_folder):
        uploaded_run(CONTENT)
        answer = begin(api, SUM)
        assert (answer.status_code, answer["Upload-Offset"]) == (201, str(len(CONTENT)))
        assert answer.json()["sha256"] == SUM
        made = api.post("/api/v1/runs/", {"uploads": [answer.json()["id"]]}, format="json")
        assert (made.status_code, made.json()["sha256"]) == (201, SUM)

    def test_a_holder_of_a_token_is_known_where_none_is_asked_for(self, stranger):
        uploaded_run(CONTENT)
        token = tokens.issue("x")
        assert begin(stranger, SUM, HTTP_AUTHORIZATION=f"Bearer {token}")["Upload-Offset"] == str(len(CONTENT))

    def test_a_stranger_learns_nothing_by_a_sum(self, stranger):
        before = begin(stranger, SUM)
        uploaded_run(CONTENT)
        after = begin(stranger, SUM)
        assert before["Upload-Offset"] == after["Upload-Offset"] == "0"
        assert set(before.json()) == set(after.json())
        assert before.json()["sha256"] == after.json()["sha256"] == ""

    def test_content_of_another_length_or_whose_file_was_lost_is_sent(self, api):
        uploaded_run(CONTENT)
        assert begin(api, SUM, length=5)["Upload-Offset"] == "0"
        storage.blob(SUM).unlink()
        assert begin(api, SUM)["Upload-Offset"] == "0"

    def test_other_bytes_than_announced_are_refused_and_not_kept(self, tus, api, data_folder):
        url = begin(api, SUM)["Location"]
        answer = tus.patch(url, 0, CONTENT[:-1] + b"!")
        assert (answer.status_code, answer.json()["code"]) == (409, "upload_changed")
        assert tus.head(url).status_code == 404
        assert not [path for path in data_folder.rglob("*") if path.is_file()]

    def test_the_announced_bytes_are_kept(self, tus, api):
        url = begin(api, SUM.upper())["Location"]
        assert tus.patch(url, 0, CONTENT).status_code == 204
        assert Upload.objects.get().sha256 == SUM

    @pytest.mark.parametrize("sha256", ["0" * 63, "g" * 64, "0" * 64 + "\n", "../../etc/passwd"])
    def test_a_sum_that_is_none_is_refused(self, api, sha256):
        answer = begin(api, sha256)
        assert (answer.status_code, answer.json()["code"]) == (400, "upload_metadata_malformed")
