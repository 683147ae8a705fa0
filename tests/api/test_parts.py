"""Key data and single parts over HTTP while a comparison of several parts is going on and after: the real corpus, the real engine."""

from __future__ import annotations

import json

import pytest

from compare.models import Comparison, Loop, Part
from compare.services import comparisons, spread, storage
from tests.rooms import corpus_run, worked_off

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def planned() -> Comparison:
    comparison = comparisons.create(corpus_run("rl_run_a").pk, corpus_run("rl_run_b").pk, {})
    comparisons.compare(comparison.pk, "plan")
    return comparison


def address(comparison: Comparison, rest: str = "") -> str:
    return f"/api/v1/comparisons/{comparison.pk}/{rest}"


def code(response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def test_key_data_can_be_read_while_the_parts_wait(api, planned):
    assert api.get(address(planned)).json()["loop"] == {"state": "queued", "error": None}
    for path in ("loop/", "key-data/", "key-data/3/", "key-data/3/tables/4/"):
        assert code(api.get(address(planned, path))) == (409, "not_ready"), path
    spread.compare_loop(Loop.objects.get().pk, "test", "w")
    body = api.get(address(planned)).json()
    assert (body["state"], body["verdict"], body["loop"]["state"]) == ("running", None, "done")
    loop = api.get(address(planned, "loop/"))
    assert api.get(address(planned, "loop/"), HTTP_IF_NONE_MATCH=loop["ETag"]).status_code == 304
    assert (loop.json()["verdict"], loop.json()["first"]["key"]) == ("diverged", "ref_log_prob")
    assert api.get(address(planned, "key-data/")).json()["keys"] == loop.json()["key_data"]
    assert api.get(address(planned, "key-data/3/tables/4/")).json()["key"] == "ref_log_prob"
    worked_off(planned)
    verdict = api.get(address(planned)).json()["verdict"]
    for name in ("configurations", "preconditions", "key_data", "checks"):
        assert verdict[name] == loop.json()[name], name
    assert (verdict["key_data_error"], loop.json()["error"]) == (None, None)


def test_key_data_that_failed_say_why(api, planned):
    Loop.objects.update(state="failed", error={"code": "out_of_memory", "params": {}, "message": "m"})
    assert api.get(address(planned)).json()["loop"]["error"]["code"] == "out_of_memory"
    for path in ("loop/", "key-data/"):
        assert code(api.get(address(planned, path))) == (409, "out_of_memory")


def test_one_failed_part_is_tried_again_at_its_own_address(api, planned):
    columns = storage.columns(planned.left)
    dumps = json.loads((columns / "inventory.json").read_bytes())["dumps"]
    part = Part.objects.get(n=9)
    meta = next(columns / dump["folder"] / "meta.json" for dump in dumps if (dump["stage"], dump["step"]) == (part.stage, part.step))
    whole = meta.read_text()
    meta.write_text('{"format": 99}')
    worked_off(planned)
    before = api.get(address(planned)).json()
    assert (before["parts"][9]["state"], before["verdict"]["first"]["module"]) == ("failed", None)
    assert code(api.post(address(planned, "parts/8/retry/"))) == (409, "part_not_retryable")
    assert code(api.post(address(planned, "parts/99/retry/"))) == (404, "part_unknown")
    meta.write_text(whole)
    body = api.post(address(planned, "parts/9/retry/")).json()
    assert (body["id"], body["state"], body["parts"][9]["state"], body["parts"][9]["error"]) == (planned.pk, "queued", "queued", None)
    assert code(api.post(address(planned, "parts/9/retry/"))) == (409, "part_not_retryable")
    worked_off(planned)
    after = api.get(address(planned)).json()
    assert (after["state"], after["verdict"]["first"]["module"]) == ("done", "model.layers.1.mlp.down_proj")
    assert list(Part.objects.values_list("attempt", flat=True)) == [1] * 9 + [2] + [1] * 2
