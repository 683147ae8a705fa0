"""What the server says of itself: /about/ and the schema."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from compare.services import examples

ROOT = Path(__file__).resolve().parents[2]


def test_about_says_who_can_open_a_link_and_how_much_fits(api, settings):
    settings.LOOPBACK_ONLY, settings.PUBLIC_URL = False, "http://10.1.2.3:8000"
    body = api.get("/api/v1/about/").json()
    assert body["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (body["loopback_only"], body["public_url"], body["local_mode"]) == (False, "http://10.1.2.3:8000", True)
    assert body["limits"] == {"upload_bytes": settings.UPLOAD_MAX_BYTES, "run_files": settings.UPLOAD_MAX_FILES}
    assert (body["example"], body["examples"]) == (None, {})


def test_about_says_how_to_let_others_in_and_only_to_this_machine(api, settings):
    settings.SHARE_COMMAND = "./run --host 0.0.0.0 --port 8123 --data '/srv/my dumps'"
    assert api.get("/api/v1/about/").json()["share_command"] == settings.SHARE_COMMAND
    assert api.get("/api/v1/about/", REMOTE_ADDR="10.0.0.5").json()["share_command"] is None
    assert api.get("/api/v1/about/", HTTP_X_FORWARDED_FOR="10.0.0.5").json()["share_command"] is None
    settings.LOOPBACK_ONLY = False
    assert api.get("/api/v1/about/").json()["share_command"] is None


def test_about_names_the_examples_once_they_are_loaded(api):
    made = {comparison.example: comparison.pk for comparison in examples.load()}
    body = api.get("/api/v1/about/").json()
    assert body["examples"] == made
    assert body["example"] == made[examples.FIRST]


def test_the_schema_has_every_call_of_the_contract(api):
    paths = api.get("/api/v1/schema/").json()["paths"]
    one = "/api/v1/comparisons/{slug}/"
    contract = {
        "/api/v1/about/": {"get"},
        "/api/v1/uploads/": {"post", "options"},
        "/api/v1/uploads/{slug}/": {"get", "head", "patch", "delete"},
        "/api/v1/runs/": {"get", "post"},
        "/api/v1/runs/{slug}/": {"get", "patch", "delete"},
        "/api/v1/comparisons/": {"get", "post"},
        one: {"get", "patch", "delete"},
        one + "cancel/": {"post"},
        one + "retry/": {"post"},
        one + "tree/": {"get"},
        one + "nodes/{row}/": {"get"},
        one + "parts/{n}/verdict.json": {"get"},
        one + "parts/{n}/tree/": {"get"},
        one + "parts/{n}/nodes/{row}/": {"get"},
        one + "{name}": {"get"},
    }
    for path, methods in contract.items():
        assert path in paths, sorted(paths)
        assert methods - {"options", "head"} <= set(paths[path]), path


def test_the_schema_is_yaml_for_who_asks_for_it(api):
    described = yaml.safe_load(api.get("/api/v1/schema/", HTTP_ACCEPT="application/vnd.oai.openapi").content)
    assert described["openapi"].startswith("3.")
