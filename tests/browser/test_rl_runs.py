"""Two runs of one RL loop: from the drop to the table, the stage, the step and the module, and the link that shows the same."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.run_page import RunPage
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.test_layout import TARGETS, faults
from tests.browser.told import CORPUS, as_number, told
from tests.browser.workbench import Workbench
from tests.live import ROOT, Stack

__all__ = ["axe"]
PAIR = (CORPUS / "rl_run_a.zip", CORPUS / "rl_run_b.zip")
FIRST_CELL = "step 2 · reference_compute_log_prob, first divergence, layers.1 · mlp.down_proj"


@pytest.fixture(scope="module")
def loop(site: Stack) -> str:
    """The pair, compared: its comparison's id."""
    slug = site.compare(*(site.upload(path) for path in PAIR))
    assert site.comparison(slug)["state"] == "done"
    return slug


def test_two_runs_are_dropped_and_the_first_table_that_differs_leads_to_its_module(visit: Visit) -> None:
    page = visit("/")
    landing = Landing(page)
    landing.drop("left", PAIR[0])
    landing.drop("right", PAIR[1])
    landing.ready("left")
    landing.ready("right")
    landing.compare()
    run = RunPage(page).arrived()
    truth = told(*PAIR)
    assert run.said() == truth["headline"]["en"]
    assert run.strip() == [(data["key"], data["state"]) for data in truth["key_data"]]
    assert [state for key, state in run.strip() if key in {"prompts", "responses", "values", "old_log_prob", "log_prob"}] == ["equal"] * 5
    assert dict(run.strip())["ref_log_prob"] == "differs"
    # The earliest bad cell has the focus; Enter opens its comparison.
    assert run.focused() == FIRST_CELL
    page.keyboard.press("Enter")
    bench = Workbench(page).arrived()
    assert bench.selected().path == "model.layers.1.mlp.down_proj"
    assert "weight" in bench.said()
    page.go_back()
    run.arrived()
    assert run.focused() == FIRST_CELL


def test_everything_before_step_2_is_identical(visit: Visit, loop: str) -> None:
    run = RunPage(visit(f"/c/{loop}")).arrived()
    names = run.cells()
    assert len(names) == 12
    early = [name for name in names if name.startswith(("step 0", "step 1"))]
    assert len(early) == 8
    assert all(", identical, " in name for name in early)
    assert FIRST_CELL in names
    expect(run.page.get_by_text("before step 2: all 9 equal")).to_be_visible()


def test_the_chain_is_read_from_the_table_to_the_cause_and_each_link_leads_there(visit: Visit, loop: str) -> None:
    run = RunPage(visit(f"/c/{loop}")).arrived()
    chain = run.section("From the table to the module")
    steps = [" ".join(text.split()) for text in chain.locator("ol > li").all_inner_texts()]
    assert [step.split(" step ")[0] for step in steps[:2]] == [
        "1 ref_log_prob is the first table that differs",
        "2 made by reference_compute_log_prob",
    ]
    assert steps[2].startswith("3 inside it, layers.1 · mlp.down_proj parts first")
    run.key("prompts").click()
    expect(run.tables).to_have_attribute("data-key", "prompts")
    chain.get_by_role("button", name="ref_log_prob", exact=True).click()
    expect(run.tables).to_have_attribute("data-key", "ref_log_prob")
    chain.get_by_role("button", name="layers.1 · mlp.down_proj").click()
    expect(run.page).to_have_url(re.compile(r"#v=1&p=9$"))


@pytest.mark.parametrize("key", ["ref_log_prob", "advantages", "responses", "loss"])
def test_the_tables_of_a_key_hold_the_numbers_that_msprobe_printed(key: str, visit: Visit, loop: str) -> None:
    run = RunPage(visit(f"/c/{loop}")).arrived()
    run.key(key).click()
    expect(run.tables).to_have_attribute("data-key", key)
    rows = run.table_rows()
    with (ROOT / "tests" / "data" / "single_comparator" / f"{key}.csv").open(encoding="utf-8-sig") as file:
        printed: list[dict[str, Any]] = list(csv.DictReader(file))
    assert len(rows) == len(printed)
    for row, line in zip(rows, printed, strict=True):
        state, step, rank, micro_step, *rest = row
        assert [step, rank, micro_step] == [line["step"], line["rank"], line["micro_step"]]
        same, first, max_abs, max_rel, within_1e_3, within_1e_2 = rest[-6:]
        assert state == ("equal" if line["相同元素百分比(%)"] == "100" else dict(run.strip())[key])
        assert as_number(same) == pytest.approx(float(line["相同元素百分比(%)"]), abs=0.005)
        assert first == line["首个不匹配元素索引"].removesuffix(".0")
        assert as_number(max_abs) == pytest.approx(float(line["最大绝对误差"]), rel=6e-4)
        assert as_number(max_rel) == pytest.approx(float(line["最大相对误差"]), abs=6e-5)
        assert as_number(within_1e_3) == pytest.approx(float(line["误差在千分之一内元素占比(%)"]), abs=0.005)
        assert as_number(within_1e_2) == pytest.approx(float(line["误差在百分之一内元素占比(%)"]), abs=0.005)


def test_values_stand_side_by_side_from_the_first_that_differs_and_the_link_shows_the_same(visit: Visit, loop: str) -> None:
    page = visit(f"/c/{loop}")
    run = RunPage(page).arrived()
    grid = run.tables.get_by_role("grid").first
    expect(grid).to_be_visible()
    grid.focus()
    page.keyboard.press("End")
    expect(run.tables.get_by_role("heading", level=3)).to_have_text("step 2 · rank 0 · micro step 1")
    expect(run.values).to_be_visible()
    values = run.value_rows()
    assert len(values) == 5
    assert values[0][0].split() == ["0", "first"]
    for _, left, right, difference, relative in values:
        assert as_number(right) - as_number(left) == pytest.approx(as_number(difference), abs=2e-3)
        assert as_number(relative) != 0
    expect(run.tables.get_by_role("img")).to_have_attribute("aria-label", "5 of 5 places differ, the first at 0")
    link = Workbench(page).shared_link()
    there = RunPage(visit(link)).arrived()
    expect(there.tables.get_by_role("heading", level=3)).to_have_text("step 2 · rank 0 · micro step 1")
    expect(there.values).to_be_visible()
    assert there.value_rows() == values


def test_another_pairing_of_stages_is_a_comparison_of_its_own(visit: Visit, loop: str) -> None:
    page = visit(f"/c/{loop}")
    run = RunPage(page).arrived()
    pairing = run.section("Stage pairing")
    proposed = pairing.get_by_role("listitem").filter(has_text="actor_compute_log_prob ↔")
    proposed.filter(has=page.get_by_role("button")).get_by_role("button", name="Compare this pairing").click()
    page.wait_for_url(lambda url: "/c/" in url and loop not in url)
    expect(RunPage(page).sentence).to_be_visible()
    expect(page.get_by_text("actor_compute_log_prob ↔ actor_generate_sequences").first).to_be_visible()


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_page_holds_at_every_width(locale: str, visit: Visit, loop: str) -> None:
    page = visit(f"/c/{loop}", locale=locale, viewport={"width": 1440, "height": 900})
    run = RunPage(page).arrived()
    expect(run.values).to_be_visible()
    wrong = []
    for width, height in {1600: 1000, 1440: 900, 1280: 800, 768: 1024, 390: 844}.items():
        page.set_viewport_size({"width": width, "height": height})
        expect(run.parts).to_be_visible()
        wrong += [f"{width}: {fault}" for fault in faults(page)]
    assert not wrong, "\n".join(wrong)


def test_fingers_find_targets_of_44_pixels_on_a_phone(visit: Visit, loop: str) -> None:
    page = visit(f"/c/{loop}", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    run = RunPage(page).arrived()
    expect(run.values).to_be_visible()
    targets = page.evaluate(TARGETS)
    assert len(targets) > 20
    # The tables move sideways; what stands in them is whole.
    cut = run.tables.locator("[role=columnheader], [role=gridcell]").evaluate_all(
        "(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.innerText)"
    )
    assert cut == []
    small = [target for target in targets if min(target["width"], target["height"]) < 44 and not target["inText"]]
    assert not small, "\n".join(f"{target['name']} {target['width']} x {target['height']}" for target in small)
    run.key("responses").tap()
    expect(run.tables).to_have_attribute("data-key", "responses")
    expect(run.tables).to_be_in_viewport()


def test_axe_finds_nothing_serious(visit: Visit, loop: str, axe: str) -> None:
    page = visit(f"/c/{loop}", color_scheme="light")
    run = RunPage(page).arrived()
    expect(run.values).to_be_visible()
    finds_nothing(page, axe)
    page.emulate_media(color_scheme="dark")
    Workbench(page).speak("zh")
    finds_nothing(page, axe)
    page.set_viewport_size({"width": 390, "height": 844})
    finds_nothing(page, axe)
