"""Whatever goes wrong: one shape, the right status, no traceback."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from django.db import InterfaceError, OperationalError
from rest_framework.exceptions import Throttled

import compare
from compare.api.errors import as_refusal
from compare.engine.errors import MESSAGES
from compare.services import sharing


def check(response, status: int, code: str) -> dict:
    assert response.status_code == status
    body = response.json()
    assert set(body) == {"code", "params", "message"}
    assert body["code"] == code
    assert body["message"]
    return body


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
@pytest.mark.parametrize("path", ["nothing/", "run", "runs/x/y/", "comparisons/x/y/", "runs/%00/", "comparisons/x/parts/-1/tree/"])
def test_an_address_that_is_not_there_is_404_for_every_method(api, method, path):
    check(getattr(api, method)(f"/api/v1/{path}"), 404, "not_found")


@pytest.mark.parametrize("path", ["runs/x/", *(f"comparisons/x/{inner}" for inner in ("", "tree/", "nodes/0/", "verdict.json"))])
def test_a_slug_that_nobody_has_is_404(api, path):
    check(api.get(f"/api/v1/{path}"), 404, "not_found")


def test_a_method_that_is_not_there_is_405_and_says_which_are(api):
    response = api.put("/api/v1/runs/", {}, format="json")
    assert check(response, 405, "method_not_allowed")["params"] == {"method": "PUT"}
    assert "POST" in response["Allow"]


def test_a_body_of_another_type_is_415(api):
    response = api.post("/api/v1/runs/", "<x/>", content_type="text/xml")
    assert check(response, 415, "unsupported_media_type")["params"] == {"media_type": "text/xml"}


@pytest.mark.parametrize("body", ['{"uploads": [', "NaN", '{"uploads": NaN}', "\xff", ""])
def test_a_body_that_is_no_json_is_400(api, body):
    response = api.post("/api/v1/runs/", body, content_type="application/json")
    assert response.status_code == 400
    assert response.json()["code"] in {"malformed", "invalid"}


def test_a_json_body_that_is_too_large_is_413(api):
    check(api.post("/api/v1/runs/", b"[" + b" " * 3_000_000 + b"]", content_type="application/json"), 413, "request_too_large")


def test_a_format_that_is_not_there_is_406(api):
    check(api.get("/api/v1/about/", HTTP_ACCEPT="text/html"), 406, "not_acceptable")


def test_too_many_requests_say_how_long_to_wait():
    refusal = as_refusal(Throttled(wait=3.2))
    assert (refusal.status, refusal.code, refusal.params) == (429, "throttled", {"wait": 4})


def test_a_fault_of_ours_is_500_with_a_reference_that_the_log_has_and_no_traceback(api, monkeypatch, caplog):
    def broken(slug):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(sharing, "find", broken)
    with caplog.at_level(logging.ERROR):
        body = check(api.get("/api/v1/comparisons/x/"), 500, "internal")
    assert body["params"]["reference"] in body["message"]
    assert body["params"]["reference"] in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in str(body)
    assert "Traceback" not in str(body)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OperationalError("connection refused"), 503, "unavailable"),
        (InterfaceError("connection already closed"), 503, "unavailable"),
        (OperationalError("database or disk is full"), 507, "disk_full"),
    ],
)
def test_a_database_that_is_gone_or_full_says_so(api, monkeypatch, error, status, code):
    def broken(slug):
        raise error

    monkeypatch.setattr(sharing, "find", broken)
    response = api.get("/api/v1/comparisons/x/")
    check(response, status, code)
    assert response.headers.get("Retry-After") == ("5" if status == 503 else None)


def test_a_page_of_another_site_may_not_post(api):
    for headers in ({"HTTP_ORIGIN": "https://evil.example"}, {"HTTP_ORIGIN": "null"}, {"HTTP_SEC_FETCH_SITE": "cross-site"}):
        check(api.post("/api/v1/uploads/", **headers), 403, "foreign_origin")
        check(api.delete("/api/v1/runs/x/", **headers), 403, "foreign_origin")


def test_every_code_that_a_use_case_raises_has_its_sentence():
    folder = Path(compare.__file__).parent
    files = [*(folder / "services").glob("*.py"), *(folder / "api").glob("*.py"), folder / "tasks.py"]
    codes = {found for file in files for found in re.findall(r'(?:Refusal|problem)\(\s*"(\w+)"', file.read_text())}
    assert len(codes) > 25
    assert codes <= set(MESSAGES)
