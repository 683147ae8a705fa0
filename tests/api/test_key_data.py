"""Key data of two RL runs over HTTP: the real corpus, the real engine."""

from __future__ import annotations

import io
import zipfile

import pytest

from compare.models import Comparison, Export
from compare.services import comparisons, exports, runs
from tests.rooms import CORPUS, corpus_comparison, uploaded_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def loops() -> Comparison:
    return corpus_comparison("rl_run_a", "rl_run_b")


def test_the_run_verdict_tells_the_chain_and_its_tables_can_be_opened(api, loops):
    address = f"/api/v1/comparisons/{loops.pk}/"
    verdict = api.get(address).json()["verdict"]
    assert verdict["first"] == {
        "key_data": "ref_log_prob",
        "stage": "reference_compute_log_prob",
        "step": 2,
        "rank": 0,
        "module": "model.layers.1.mlp.down_proj",
    }
    overview = api.get(f"{address}key-data/").json()
    assert overview["keys"] == verdict["key_data"]
    cells = overview["cells"]
    assert {len(column) for column in cells.values()} == {45}
    differing = [
        (verdict["key_data"][n]["key"], step, micro)
        for n, step, micro, count in zip(*(cells[name] for name in ("n", "step", "micro_step", "differing")), strict=True)
        if count
    ]
    assert differing == [(key, 2, micro) for key in ("ref_log_prob", "advantages", "kl_loss", "loss") for micro in (0, 1)]

    tables = api.get(f"{address}key-data/3/").json()
    assert [table["state"] for table in tables["tables"]] == ["equal"] * 4 + ["differs"] * 2
    table = api.get(f"{address}key-data/3/tables/4/?row=0&from=3").json()
    assert table["table"] == tables["tables"][4]
    assert (table["of"], table["rows_of"]) == (5, 1)
    assert table["left"] == pytest.approx([-3.1315782, -3.4198914])
    assert table["difference"] == pytest.approx([right - left for left, right in zip(table["left"], table["right"], strict=True)])
    tokens = api.get(f"{address}key-data/0/tables/4/").json()
    assert tokens["left"] == tokens["right"] == [245, 156, 11, 13, 151, 86]

    assert api.get(f"{address}keydata.xlsx").status_code == 202
    exports.make(Export.objects.get().pk, "test")
    book = api.get(f"{address}keydata.xlsx")
    assert book["Content-Type"].startswith("application/vnd.openxmlformats")
    with zipfile.ZipFile(io.BytesIO(b"".join(book.streaming_content))) as archive:
        assert "ref_log_prob" in archive.read("xl/workbook.xml").decode()
        assert not any(b"<f>" in archive.read(name) for name in archive.namelist() if "sheet" in name)


def test_tables_that_are_not_there_are_refused_by_name(api, loops):
    address = f"/api/v1/comparisons/{loops.pk}/key-data/"
    for path in ("9/", "3/tables/6/", "9/tables/0/"):
        response = api.get(address + path)
        assert (response.status_code, response.json()["code"]) == (404, "key_data_unknown"), path
    assert api.get(f"{address}3/tables/0/?row=-1").status_code == 400
    assert api.get(f"{address}3/tables/0/?row=7&from=99").json()["left"] == []


def test_runs_of_nothing_but_tables_are_read_and_compared(api, tmp_path):
    """What ``key_data_dump`` alone leaves: no dump.json anywhere."""
    packed = []
    for name in "ab":
        with zipfile.ZipFile(CORPUS / f"rl_run_{name}.zip") as whole, zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as data:
            for member in whole.namelist():
                if member.startswith("data/"):
                    data.writestr(member, whole.read(member))
        packed.append(uploaded_run((tmp_path / f"{name}.zip").read_bytes(), f"{name}.zip"))
    for run in packed:
        runs.read(run.pk, "test")
        body = api.get(f"/api/v1/runs/{run.pk}/").json()
        assert (body["state"], body["inventory"]["key_data"]["tables"], body["inventory"]["level"]) == ("ready", 51, None)
    comparison = comparisons.create(packed[0].pk, packed[1].pk, {})
    comparisons.compare(comparison.pk, "test")
    body = api.get(f"/api/v1/comparisons/{comparison.pk}/").json()
    assert (body["state"], body["verdict"]["first"]["key_data"], body["verdict"]["parts"]) == ("done", "ref_log_prob", [])
    assert api.get(f"/api/v1/comparisons/{comparison.pk}/key-data/3/").status_code == 200


def test_a_comparison_without_key_data_says_so(api):
    comparison = corpus_comparison("q2_train_stat", "q2_infer_stat")
    response = api.get(f"/api/v1/comparisons/{comparison.pk}/key-data/")
    assert (response.status_code, response.json()["code"]) == (409, "no_key_data")
    assert api.get(f"/api/v1/comparisons/{comparison.pk}/keydata.xlsx").json()["code"] == "no_key_data"
