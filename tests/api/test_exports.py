"""Downloads: files that a worker makes of a finished comparison, once, when somebody asks."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import timedelta
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import pytest
from django.utils import timezone

from compare.models import Comparison, Export
from compare.services import broker, comparisons, exports, recovery, sharing, storage
from tests.rooms import corpus_comparison, corpus_run, files_below

pytestmark = pytest.mark.django_db(transaction=True)
MADE = sorted(exports.MADE)


@pytest.fixture
def down2() -> Comparison:
    return corpus_comparison("q2_train_stat", "q2_infer_down2_stat")


def address(comparison: Comparison, name: str, lang: str = "") -> str:
    return f"/api/v1/comparisons/{comparison.pk}/{name}" + (f"?lang={lang}" if lang else "")


def work() -> None:
    """What the worker would do with all that waits."""
    for export in Export.objects.filter(state=Export.State.QUEUED):
        exports.make(export.pk, "test")


def download(api, comparison: Comparison, name: str, lang: str = "") -> bytes:
    url = address(comparison, name, lang)
    waiting = api.get(url)
    assert (waiting.status_code, waiting.json()["state"]) == (202, "queued")
    work()
    ready = api.get(url)
    assert ready.status_code == 200
    kind, _, ending = name.partition(".")
    kept_as = f"{kind}.{lang or 'en'}.{ending}" if kind == "report" else name
    left, right = (run.name.removesuffix(".zip") for run in (comparison.left, comparison.right))
    assert ready["Content-Disposition"] == f'attachment; filename="{left}_vs_{right}.{kept_as}"'
    return b"".join(ready.streaming_content)


def test_a_report_is_made_by_the_worker_and_sent_to_be_kept(api, down2):
    page = download(api, down2, "report.html", "zh").decode()
    assert '<html lang="zh-CN">' in page
    assert down2.headline_zh.split("（")[0] in page
    assert '<html lang="en">' in download(api, down2, "report.html").decode()
    assert download(api, down2, "report.md", "zh").decode().startswith("# ")


@pytest.mark.parametrize(
    ("left", "right", "kept_as"),
    [
        ("fsdp 1130", "rollout (b)/../x", "fsdp-1130_vs_rollout-b-..-x.mapping.yaml"),
        ("..", '"; a=\r\nb\u202e', "run_vs_a-b.mapping.yaml"),
        ("-rf.tar.gz", "n" * 200, f"rf_vs_{'n' * 60}.mapping.yaml"),
    ],
)
def test_a_file_is_kept_under_the_names_of_its_runs_without_what_a_file_name_cannot_hold(api, down2, left, right, kept_as):
    for run, name in ((down2.left, left), (down2.right, right)):
        run.name = name
        run.save(update_fields=["name"])
    api.get(address(down2, "mapping.yaml"))
    work()
    assert api.get(address(down2, "mapping.yaml"))["Content-Disposition"] == f'attachment; filename="{kept_as}"'


def test_a_run_name_in_another_script_stays_readable_in_the_name_of_its_files(api, down2):
    down2.left.name = "训练 一"
    down2.left.save(update_fields=["name"])
    header = api.get(address(down2, "verdict.json"))["Content-Disposition"]
    assert unquote(header.partition("utf-8''")[2]) == "训练-一_vs_q2_infer_down2_stat.verdict.json"


def test_the_table_and_the_mapping_are_what_the_engine_writes(api, down2):
    rows = list(csv.DictReader(io.StringIO(download(api, down2, "table.csv").decode())))
    assert {"NPU Name", "Bench Name", "Result", "Grade", "Part"} <= set(rows[0])
    assert [row["Result"] for row in rows if row["Role"] == "origin" and row["Group"] == "parameters"] == ["error"]
    assert zipfile.is_zipfile(io.BytesIO(download(api, down2, "table.xlsx")))
    assert "qkv_proj" in download(api, down2, "mapping.yaml").decode()


@pytest.mark.parametrize("name", MADE)
def test_every_export_is_refused_before_there_is_a_verdict(api, name):
    comparison = comparisons.create(corpus_run("q2_train_stat").pk, corpus_run("q2_infer_stat").pk, {})
    response = api.get(address(comparison, name))
    assert (response.status_code, response.json()["code"]) == (409, "not_ready")
    assert not Export.objects.exists()


def test_asking_often_makes_a_file_once(api, down2):
    with mock.patch.object(broker.current_app, "send_task") as sent:
        states = [api.get(address(down2, "table.csv")).json()["state"] for _ in range(5)]
    assert states == ["queued"] * 5
    assert [call.args[0] for call in sent.call_args_list] == ["compare.tasks.make_export"]
    work()
    made = storage.exports(down2) / "table.csv"
    before = made.stat().st_mtime_ns
    assert api.get(address(down2, "table.csv")).status_code == 200
    work()
    assert made.stat().st_mtime_ns == before
    assert Export.objects.get().attempt == 1


def test_a_message_that_comes_twice_does_nothing(api, down2):
    api.get(address(down2, "report.md"))
    export = Export.objects.get()
    exports.make(export.pk, "one")
    exports.make(export.pk, "two")
    export.refresh_from_db()
    assert (export.state, export.attempt) == ("ready", 1)


def test_a_failure_is_told_once_and_asking_again_tries_again(api, down2):
    api.get(address(down2, "table.csv"))
    with mock.patch.object(exports, "_write", side_effect=MemoryError):
        work()
    assert (api.get(address(down2, "table.csv")).json()["code"], Export.objects.count()) == ("out_of_memory", 0)
    download(api, down2, "table.csv")


def test_an_export_whose_worker_died_is_told_and_leaves_nothing_behind(api, down2, data_folder: Path):
    api.get(address(down2, "table.csv"))
    long_ago = timezone.now() - timedelta(hours=1)
    Export.objects.update(state=Export.State.MAKING, attempt=1, heartbeat_at=long_ago)
    recovery.reap_interrupted()
    response = api.get(address(down2, "table.csv"))
    assert (response.status_code, response.json()["code"]) == (500, "worker_lost")
    assert not [path for path in files_below(data_folder) if ".tmp" in path]


def test_a_bell_that_was_lost_is_rung_again(api, down2):
    with mock.patch.object(broker.current_app, "send_task", side_effect=OSError):
        assert api.get(address(down2, "table.csv")).status_code == 202
    Export.objects.update(rung_at=timezone.now() - timedelta(hours=1))
    with mock.patch.object(broker, "waiting", return_value=0), mock.patch.object(broker.current_app, "send_task") as sent:
        recovery.resend_unclaimed()
    assert [call.args[0] for call in sent.call_args_list] == ["compare.tasks.make_export"]


def test_a_comparison_deleted_while_its_table_is_made_leaves_no_file(api, down2, data_folder: Path):
    api.get(address(down2, "table.csv"))
    folder = storage.job(down2)

    def deleted(*_: object) -> None:
        comparisons.delete(down2)
        (next(folder.rglob("*.tmp"), folder) / "x").parent.mkdir(parents=True, exist_ok=True)

    with mock.patch.object(exports, "_write", side_effect=deleted):
        work()
    assert not list(folder.rglob("*.csv"))
    assert not Export.objects.exists()


def test_a_read_only_link_downloads_too_and_learns_no_other_address(api, down2):
    link = sharing.share(down2, None)
    assert api.get(f"/api/v1/comparisons/{link.pk}/report.md").status_code == 202
    work()
    assert api.get(f"/api/v1/comparisons/{link.pk}/report.md").status_code == 200


def test_an_unknown_export_or_language_is_refused(api, down2):
    assert api.get(address(down2, "report.pdf")).json()["code"] == "export_unknown"
    assert api.get(address(down2, "report.html", "fr")).json()["code"] == "invalid"


def test_rules_make_a_new_comparison_that_knows_the_one_before(api, down2):
    rules = "unpaired:\n- {left: model.layers.3.mlp.act_fn, right: model.layers.3.mlp.act_fn}\n"
    body = {"left": down2.left_id, "right": down2.right_id, "options": {"mapping": rules}, "previous": down2.pk}
    made = api.post("/api/v1/comparisons/", body, format="json").json()
    assert (made["previous"], made["options"]["mapping"]) == (down2.pk, rules)
    comparison = Comparison.objects.get(pk=made["id"])
    comparisons.compare(comparison.pk, "test")
    comparison.refresh_from_db()
    assert comparison.state == "done"
    text = download(api, comparison, "mapping.yaml").decode()
    assert "unpaired:\n- {left: model.layers.3.mlp.act_fn" in text
    assert api.get(f"/api/v1/comparisons/{sharing.share(comparison, None).pk}/").json()["previous"] is None
    comparisons.delete(down2)
    assert api.get(f"/api/v1/comparisons/{comparison.pk}/").json()["previous"] is None


def test_an_unknown_previous_comparison_is_not_found(api, down2):
    body = {"left": down2.left_id, "right": down2.right_id, "previous": "nothing"}
    assert api.post("/api/v1/comparisons/", body, format="json").status_code == 404


def test_a_run_of_several_steps_is_one_report_and_one_table(api):
    several = corpus_comparison("q2_train_steps2_stat", "q2_train_steps2_pert1_stat")
    rows = list(csv.DictReader(io.StringIO(download(api, several, "table.csv").decode())))
    assert {row["Part"] for row in rows} == {"0", "1"}
    assert download(api, several, "report.html").decode().count('id="part-') >= 1
