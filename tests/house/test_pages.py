"""What the server answers outside of the API: the page, health, and plain sentences where there is no page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client


@pytest.fixture
def client() -> Client:
    return Client(HTTP_HOST="127.0.0.1:8000", raise_request_exception=False)


@pytest.fixture
def built(tmp_path: Path, settings: Any) -> Path:
    """A built front end."""
    (tmp_path / "index.html").write_text("<!doctype html><title>the page</title>")
    settings.FRONT_END_DIR = tmp_path
    return tmp_path


@pytest.mark.usefixtures("built")
def test_every_route_of_the_page_gets_its_index_uncached(client: Client) -> None:
    for path in ("/", "/c/Jq3k_9-Zx", "/c/Jq3k_9-Zx/", "/r/Jq3k_9-Zx"):
        response = client.get(path)
        assert response.status_code == 200
        assert b"the page" in response.content
        assert response.headers["Cache-Control"] == "no-cache"


@pytest.mark.usefixtures("built")
def test_an_unknown_address_gets_the_page_under_404(client: Client) -> None:
    response = client.get("/no/such/thing")
    assert response.status_code == 404
    assert b"the page" in response.content


@pytest.mark.usefixtures("built")
def test_the_address_of_a_comparison_is_kept_from_search_engines_and_other_sites(client: Client) -> None:
    for address in ("/c/secret", "/r/secret"):
        response = client.get(address)
        assert response.headers["X-Robots-Tag"] == "noindex"
        assert response.headers["Referrer-Policy"] == "same-origin"


@pytest.mark.usefixtures("built")
def test_the_page_may_load_its_own_things_and_nothing_else(client: Client) -> None:
    policy = dict(part.strip().split(" ", 1) for part in client.get("/").headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["worker-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"


def test_without_a_front_end_a_plain_page_says_what_to_do_in_both_languages(client: Client, settings: Any, tmp_path: Path) -> None:
    settings.FRONT_END_DIR = tmp_path / "absent"
    response = client.get("/")
    assert response.status_code == 503
    assert "./run" in response.text
    assert "页面尚未构建" in response.text
    assert client.get("/static/probe_web/plain.css").status_code == 200


def test_the_page_is_read_only(client: Client) -> None:
    assert client.post("/c/x").status_code == 405


@pytest.mark.django_db
def test_healthz_is_200_when_database_and_folder_serve(client: Client, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"state": "ok", "parts": {"database": "ok", "storage": "ok"}})
    assert "no-cache" in response.headers["Cache-Control"]


@pytest.mark.django_db
def test_readyz_is_not_200_without_a_broker_and_says_which_part_is_missing(client: Client, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    settings.BROKER_URL = f"unix://{tmp_path}/nobody.sock?db=0"
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["parts"] == {"database": "ok", "storage": "ok", "broker": "unreachable", "worker": "unknown"}


@pytest.mark.django_db
def test_healthz_is_not_200_when_the_data_folder_is_gone(client: Client, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "gone"
    assert client.get("/healthz").status_code == 503
