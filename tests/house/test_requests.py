"""What is checked of every request: its Host, its Origin, and whether it may see the lists (probe_web.middleware)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

LISTS = ["/api/v1/runs/", "/api/v1/comparisons/", "/api/v1/comparisons/?search=x"]


@pytest.fixture
def client() -> Client:
    return Client(HTTP_HOST="127.0.0.1:8000", raise_request_exception=False)


def code_of(response: Any) -> str:
    body = response.json()
    assert set(body) == {"code", "params", "message"}
    return str(body["code"])


class TestHost:
    @pytest.mark.parametrize(
        "host", ["127.0.0.1", "127.0.0.2:8123", "127.255.255.254", "localhost:8000", "LOCALHOST", "[::1]:8000", "[::1]"]
    )
    def test_loopback_names_are_answered(self, client: Client, host: str) -> None:
        assert client.get("/api/v1/nothing/", HTTP_HOST=host).status_code == 404

    @pytest.mark.parametrize(
        "host",
        [
            *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:8000", "128.0.0.1", "10.0.0.1", "[::2]"),
            *("127.0.0.1@evil.example", "127.0.0.1/evil", "0.0.0.0", "", "127.0.0.1:80:80", "2130706433", "127.1"),
        ],
    )
    def test_other_names_are_refused(self, client: Client, host: str) -> None:
        response = client.get("/api/v1/about/", HTTP_HOST=host, SERVER_NAME="evil.example")
        assert response.status_code == 400
        assert code_of(response) == "host_not_served"

    def test_a_configured_name_and_the_public_one_are_answered(self, client: Client, settings: Any) -> None:
        settings.HOST_NAMES = ["dumps.lab"]
        settings.PUBLIC_URL = "https://probe.example"
        assert client.get("/api/v1/nothing/", HTTP_HOST="dumps.lab:8000").status_code == 404
        assert client.get("/api/v1/nothing/", HTTP_HOST="probe.example").status_code == 404
        assert client.get("/api/v1/nothing/", HTTP_HOST="other.example").status_code == 400

    def test_bare_addresses_are_answered_once_the_server_listens_beyond_loopback(self, client: Client, settings: Any) -> None:
        settings.LOOPBACK_ONLY = False
        assert client.get("/api/v1/nothing/", HTTP_HOST="192.168.7.9:8000").status_code == 404
        assert client.get("/api/v1/nothing/", HTTP_HOST="evil.example").status_code == 400

    def test_the_page_and_its_files_are_checked_too(self, client: Client) -> None:
        for path in ("/", "/static/probe_web/plain.css", "/healthz"):
            assert client.get(path, HTTP_HOST="evil.example").status_code == 400


class TestOrigin:
    @pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
    @pytest.mark.parametrize(
        "headers",
        [
            {"HTTP_ORIGIN": "https://evil.example"},
            {"HTTP_ORIGIN": "null"},
            {"HTTP_ORIGIN": "http://127.0.0.1:8001"},
            {"HTTP_ORIGIN": "https://127.0.0.1:8000"},
            {"HTTP_ORIGIN": "http://127.0.0.1:8000.evil.example"},
            {"HTTP_SEC_FETCH_SITE": "cross-site"},
            {"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_ORIGIN": "http://127.0.0.1:8000"},
            {"HTTP_ORIGIN": ""},
        ],
    )
    def test_an_unsafe_request_of_a_foreign_page_is_refused(self, client: Client, method: str, headers: dict[str, str]) -> None:
        response = getattr(client, method)("/api/v1/nothing/", **headers)
        assert response.status_code == 403
        assert code_of(response) == "foreign_origin"

    @pytest.mark.parametrize("headers", [{}, {"HTTP_ORIGIN": "http://127.0.0.1:8000", "HTTP_SEC_FETCH_SITE": "same-origin"}])
    def test_the_own_page_and_clients_that_are_no_browser_need_no_token(self, client: Client, headers: dict[str, str]) -> None:
        client.handler.enforce_csrf_checks = True
        assert client.post("/api/v1/nothing/", **headers).status_code == 404

    def test_reading_is_not_held_against_a_foreign_page(self, client: Client) -> None:
        # The browser keeps the answer from it: nothing here sends Access-Control-Allow-Origin.
        response = client.get("/api/v1/nothing/", HTTP_ORIGIN="https://evil.example", HTTP_SEC_FETCH_SITE="cross-site")
        assert response.status_code == 404
        assert "Access-Control-Allow-Origin" not in response.headers

    def test_an_origin_that_the_operator_trusts_may_post(self, client: Client, settings: Any) -> None:
        settings.TRUSTED_ORIGINS = ["https://probe.example"]
        headers = {"HTTP_ORIGIN": "https://probe.example", "HTTP_SEC_FETCH_SITE": "cross-site"}
        assert client.post("/api/v1/nothing/", **headers).status_code == 404


@pytest.mark.django_db
class TestLists:
    @pytest.fixture(autouse=True)
    def _open_to_the_network(self, settings: Any) -> None:
        settings.LOOPBACK_ONLY = False
        settings.LISTS_KEY = "correct-horse"

    @pytest.mark.parametrize("path", LISTS)
    @pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"])
    def test_this_machine_sees_them(self, client: Client, path: str, address: str) -> None:
        assert client.get(path, REMOTE_ADDR=address).status_code == 200

    @pytest.mark.parametrize("path", LISTS)
    @pytest.mark.parametrize("origin", [{"REMOTE_ADDR": "192.168.7.9"}, {"REMOTE_ADDR": ""}, {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}])
    def test_other_machines_do_not(self, client: Client, path: str, origin: dict[str, str]) -> None:
        response = client.get(path, **origin)
        assert response.status_code == 403
        assert code_of(response) == "lists_closed"

    def test_the_key_opens_them_and_leaves_the_address_bar(self, client: Client) -> None:
        response = client.get("/?key=correct-horse", REMOTE_ADDR="192.168.7.9")
        assert (response.status_code, response.headers["Location"]) == (302, "/")
        cookie = response.cookies["probe_web_lists"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert "correct-horse" not in cookie.value
        assert client.get(LISTS[0], REMOTE_ADDR="192.168.7.9").status_code == 200

    def test_a_script_may_send_the_key_as_a_header(self, client: Client) -> None:
        assert client.get(LISTS[0], REMOTE_ADDR="192.168.7.9", HTTP_AUTHORIZATION="Key correct-horse").status_code == 200
        assert client.get(LISTS[0], REMOTE_ADDR="192.168.7.9", HTTP_AUTHORIZATION="Key wrong").status_code == 403

    def test_a_wrong_key_opens_nothing(self, client: Client) -> None:
        assert not client.get("/?key=wrong", REMOTE_ADDR="192.168.7.9").cookies
        assert client.get(LISTS[0], REMOTE_ADDR="192.168.7.9").status_code == 403

    def test_a_new_key_closes_them_again(self, client: Client, settings: Any) -> None:
        client.get("/?key=correct-horse", REMOTE_ADDR="192.168.7.9")
        settings.LISTS_KEY = "another"
        assert client.get(LISTS[0], REMOTE_ADDR="192.168.7.9").status_code == 403

    def test_without_a_key_no_cookie_and_no_empty_key_opens_them(self, client: Client, settings: Any) -> None:
        settings.LISTS_KEY = ""
        client.get("/?key=", REMOTE_ADDR="192.168.7.9")
        assert client.get(LISTS[0], REMOTE_ADDR="192.168.7.9", HTTP_AUTHORIZATION="Key ").status_code == 403

    def test_one_comparison_is_open_to_whoever_knows_its_address(self, client: Client) -> None:
        assert client.get("/api/v1/comparisons/unknown/", REMOTE_ADDR="192.168.7.9").status_code == 404
