"""Trainers' logs: dropped as they lie in a training folder, and what they say of the configuration read on the page."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.run_page import RunPage
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.test_layout import faults
from tests.browser.told import CORPUS
from tests.browser.workbench import Workbench

__all__ = ["axe"]
NEEDS = "What comparing training with inference needs"
STEP = "(TaskRunner pid=7) step:1 - actor/loss:0.25 - timing_s/gen:1.5\n"


def log(temperature: float, mini_batch: int) -> str:
    """As verl prints it under Ray, in the midst of what else a trainer says."""
    name = "(TaskRunner pid=7) "
    lines = [
        "+ export PROMPTS_ONLY=1",
        "2026-05-13 10:00:00,123 INFO worker.py:1879 -- Started a local Ray instance.",
        f"{name}{{'actor_rollout_ref': {{'actor': {{'ppo_mini_batch_size': {mini_batch},",
        f"{name}                                  'use_dynamic_bsz': False}},",
        f"{name} /usr/lib/python3.11/vllm/connections.py:8: RuntimeWarning: Failed to read commit hash:",
        f"{name}                        'model': {{'use_remove_padding': True}},",
        f"{name}                        'rollout': {{'n': 8, 'temperature': {temperature}}}}},",
        f"{name}  'data': {{'train_batch_size': 256}},",
        f"{name}  'trainer': {{'experiment_name': 'run {temperature}', 'n_gpus_per_node': 8, 'nnodes': 1}}}}",
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A folder as a training leaves it: a large log deep inside, and other text."""
    folder = tmp_path / "training"
    (folder / "outputs" / "2026-05-13").mkdir(parents=True)
    (folder / "outputs" / "2026-05-13" / "main.log").write_text(log(0.7, 256) + STEP * 80_000)
    (folder / "requirements.txt").write_text("torch==2.6\n")
    return folder


@pytest.mark.parametrize("width", [1440, 390])
def test_two_logs_are_dropped_and_their_configurations_compared(visit: Visit, training: Path, tmp_path: Path, width: int, axe: str) -> None:
    alone = tmp_path / "grpo.log"
    alone.write_text(log(1.0, 64))
    page = visit("/", viewport={"width": width, "height": 900})
    landing = Landing(page)
    landing.drop("left", alone)
    landing.drop("right", training)
    landing.ready("left")
    landing.ready("right")
    expect(landing.fact("left", "From logs")).to_contain_text("grpo.log")
    expect(landing.fact("left", "From logs")).to_contain_text("with its configuration")
    taken = landing.fact("right", "From logs")
    expect(taken).to_contain_text("training/outputs/2026-05-13/main.log")
    expect(taken).to_contain_text(re.compile(r"524\.\d\skB of 5\.0\sMB: its beginning and the configuration in it"))
    expect(landing.fact("right", "Not sent")).to_contain_text("1 other file")
    expect(landing.fact("right", "Configuration")).to_contain_text("main.log")
    landing.compare()
    run = RunPage(page)
    expect(run.sentence).to_contain_text("no dumps, configurations alone: 2 settings differ, 2 of them matter")
    rows = run.section("Settings that differ").get_by_role("row").all_inner_texts()
    said = [" ".join(row.split()) for row in rows[1:]]
    assert said[0].startswith("actor_rollout_ref/actor/ppo_mini_batch_size 64 256 yes")
    assert said[1].startswith("actor_rollout_ref/rollout/temperature 1 0.7 yes")
    needs = run.section(NEEDS)
    row = needs.get_by_role("row").filter(has_text="One mini-batch a step")
    cells = [" ".join(text.split()) for text in row.get_by_role("cell").all_inner_texts()]
    assert cells == ["fails 4", "holds 1"]
    expect(needs.get_by_role("listitem").filter(has_text="= 4")).to_contain_text(
        "train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1"
    )
    expect(needs.get_by_role("listitem").filter(has_text="256 = 1")).to_contain_text(
        "train_batch_size 256 / ppo_mini_batch_size 256 = 1, wanted 1"
    )
    needs.get_by_role("button", name="Show").click()
    held = needs.get_by_role("row").filter(has_text="PROMPTS_ONLY").get_by_role("cell").all_inner_texts()
    assert [" ".join(text.split()) for text in held] == ["holds 1", "holds 1"]
    assert faults(page) == []
    finds_nothing(page, axe)


def test_a_log_beside_a_train_dump_says_what_the_comparison_with_the_engine_lacks(visit: Visit, tmp_path: Path) -> None:
    for side, name in (("train", "q2_fsdp2_stat"), ("infer", "q2_infer_stat")):
        with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
            archive.extractall(tmp_path / side)
    (tmp_path / "train" / "verl.log").write_text(log(1.0, 64))
    page = visit("/")
    landing = Landing(page)
    landing.choose_folder("left", tmp_path / "train")
    landing.drop("right", tmp_path / "infer")
    landing.ready("left")
    landing.ready("right")
    expect(landing.fact("left", "From logs")).to_contain_text("verl.log")
    landing.compare()
    bench = Workbench(page).arrived()
    said = "train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1"
    expect(bench.page.get_by_text(said)).to_be_visible()
    page.get_by_role("button", name="1 precondition fails").click()
    needs = page.get_by_role("region", name=NEEDS)
    expect(needs.get_by_role("listitem").filter(has_text=said)).to_be_visible()
    expect(needs.get_by_role("row").filter(has_text="One mini-batch a step")).to_contain_text("fails 4")


def test_a_log_that_holds_no_configuration_is_refused_in_words(visit: Visit, tmp_path: Path) -> None:
    (tmp_path / "step.log").write_text(STEP)
    landing = Landing(visit("/"))
    landing.drop("left", tmp_path / "step.log")
    expect(landing.zone("left").get_by_role("alert")).to_contain_text("no log with a configuration that verl printed")
