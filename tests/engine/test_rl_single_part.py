"""Runs of one part: what they hold besides it is told too, and two plain dumps stay what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from compare.engine.diagnose.run_chain import chain_lines
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine import build
from tests.engine.keydata.trees import Tree, array, write

RECORDS = {"Module.model.norm.RMSNorm.forward.0": build.call(build.tensor(), output=[build.tensor(6.0)])}
TABLES: Tree = {("responses", 0, 0, 0): [array(1, 2, 3)], ("log_prob", 0, 0, 0): array(-0.5, -0.25, -1)}


def run(root: Path, tree: Tree | None = None, settings: Any = None, *, stages: tuple[str, ...] = ("actor_update",)) -> Path:
    for stage in stages:
        build.write(root / stage / "step0" / "rank0", RECORDS)
    write(tree or {}, root)
    if settings is not None:
        (root / "configurations.json").write_text(json.dumps(settings))
    return root


def compared(left: Path, right: Path, **options: str) -> JsonObject:
    return compare_paths([left], [right], Options(**options)).document


def test_two_plain_dumps_have_the_verdict_of_a_part_and_nothing_else(tmp_path: Path) -> None:
    document = compared(run(tmp_path / "left"), run(tmp_path / "right"))
    assert document["schema"] == "probe-web/verdict/1"
    assert document["verdict"] == "identical"
    assert document.keys().isdisjoint({"configurations", "preconditions", "key_data", "checks", "parts"})
    assert chain_lines(document) == []


def test_settings_that_differ_are_not_lost_where_each_run_has_one_stage_and_step(tmp_path: Path) -> None:
    left = run(tmp_path / "left", settings={"generate": {"temperature": 1.0, "seed": 1}})
    document = compared(left, run(tmp_path / "right", settings={"generate": {"temperature": 0.7, "seed": 2}}))
    assert document["schema"] == "probe-web/verdict/1"  # its tree is what the reader came for
    assert {(row["path"], row["left"]) for row in document["configurations"]} == {("generate/temperature", 1.0), ("generate/seed", 1)}
    assert "configuration_matters" in {finding["code"] for finding in document["findings"]}
    assert chain_lines(document)[0].startswith("configuration: 2 settings differ: generate/")
    call_command("compare", str(left), str(tmp_path / "right"), report=str(tmp_path / "report.md"))
    assert "generate/temperature" in (tmp_path / "report.md").read_text("utf-8")


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_configuration_of_one_side_alone_is_said_and_held_against_the_preconditions(tmp_path: Path, side: str) -> None:
    settings = {"actor": {"use_dynamic_bsz": True}}
    document = compared(*(run(tmp_path / name, settings=settings if name == side else None) for name in ("left", "right")))
    assert document["schema"] == "probe-web/verdict/1"
    assert chain_lines(document) == [f"configuration: on the {side} side only"]
    (row,) = [row for row in document["preconditions"] if row["code"] == "dynamic_batches"]
    assert row[side]["state"] == "failed"


@pytest.mark.parametrize("side", ["left", "right"])
def test_key_data_of_one_side_alone_are_listed_and_checked(tmp_path: Path, side: str) -> None:
    wrong = {**TABLES, ("log_prob", 0, 0, 0): array(-0.5, 2, -1)}
    document = compared(*(run(tmp_path / name, wrong if name == side else None) for name in ("left", "right")))
    assert document["schema"] == "probe-web/run-verdict/1"
    assert document["verdict"] == "consistent"
    assert {row["key"]: row["state"] for row in document["key_data"]} == {"responses": f"{side}_only", "log_prob": f"{side}_only"}
    assert [(row["code"], row["side"]) for row in document["checks"] if row["state"] == "failed"] == [("log_prob_positive", side)]
    assert {"check_log_prob_positive", "key_data_one_sided"} <= {finding["code"] for finding in document["findings"]}
    assert [row["verdict"] for row in document["parts"]] == ["identical"]
    assert document["headline"]["en"].startswith("Consistent — all 2 compared pairs are equal")
    assert document["headline"]["en"].endswith(f"; key data: 2 tables only on the {side} (step 0)")


def test_the_only_part_speaks_for_the_run_with_the_key_data_in_a_clause(tmp_path: Path) -> None:
    left, right = run(tmp_path / "left", TABLES), run(tmp_path / "right", TABLES)
    document = compared(left, right)
    alone = compared(run(tmp_path / "plain"), run(tmp_path / "other"))
    assert document["headline"]["en"] == f"{alone['headline']['en']}; 2 key-data tables compared, no number differs"
    assert document["headline"]["zh"] == f"{alone['headline']['zh']}；2 个关键数据表中没有不同的数值"
    assert {finding["code"] for finding in alone["findings"]} <= {finding["code"] for finding in document["findings"]}


def test_training_against_inference_within_a_loop_says_what_the_configuration_lacks(tmp_path: Path) -> None:
    stages = ("actor_compute_log_prob", "actor_generate_sequences")
    run(tmp_path / "run", TABLES, {"actor": {"use_dynamic_bsz": True}}, stages=stages)
    document = compared(tmp_path / "run", tmp_path / "run", stage=":".join(stages), step="0")
    assert document["schema"] == "probe-web/verdict/1"
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "preconditions_failed"]
    assert finding["evidence"]["codes"] == ["dynamic_batches"]
    same = compared(tmp_path / "run", tmp_path / "run", stage=stages[0], step="0")
    assert "preconditions_failed" not in {finding["code"] for finding in same["findings"]}
