"""A comparison of many parts while it runs: cells that fill, key data that do not wait, one part that fails and is tried again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.bench.run_tree import STAGES, RunTree, write_run_tree
from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.run_page import RunPage
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.test_layout import TARGETS, faults
from tests.browser.told import CORPUS
from tests.browser.workbench import Workbench
from tests.conftest import StartStack
from tests.live import Stack, until

__all__ = ["axe"]
pytestmark = pytest.mark.timeout(280)

TREE = RunTree(stages=3, steps=4, ranks=2, layers=2)
DRIFTED = (STAGES[1], 2)
BROKEN = (STAGES[2], 1)  # its columns are of another version
SLOW = (STAGES[0], 3)  # its worker waits for bytes that nobody sends


class Going(NamedTuple):
    """A comparison whose first ten parts have ended, one of them badly; the eleventh is in hand and the last waits."""

    stack: Stack
    page: Page
    visit: Visit
    slug: str
    release: Callable[[], None]
    mend: Callable[[], None]


def columns_of(stack: Stack, run: str, place: tuple[str, int]) -> list[Path]:
    """The column folders of one part of a run, a rank each."""
    columns = stack.data / "runs" / run / "columns"
    dumps = json.loads((columns / "inventory.json").read_bytes())["dumps"]
    return [columns / dump["folder"] for dump in dumps if (dump["stage"], dump["step"]) == place]


@pytest.fixture
def going(start_stack: StartStack, visit_of: Callable[[Stack], Visit], tmp_path: Path) -> Going:
    stack = start_stack()
    visit = visit_of(stack)
    page = visit("/")
    landing = Landing(page)
    landing.drop("left", write_run_tree(tmp_path / "run-a.zip", TREE, loop=CORPUS / "rl_run_a.zip"))
    landing.drop("right", write_run_tree(tmp_path / "run-b.zip", TREE, DRIFTED, loop=CORPUS / "rl_run_b.zip"))
    landing.ready("left")
    landing.ready("right")
    left = next(run["id"] for run in stack.get("/api/v1/runs/").json()["results"] if run["name"].startswith("run-a"))
    metas = [folder / "meta.json" for folder in columns_of(stack, left, BROKEN)]
    whole = [meta.read_text() for meta in metas]
    for meta in metas:
        meta.write_text('{"format": 99}')
    column = columns_of(stack, left, SLOW)[0] / "columns.bin"
    content = column.read_bytes()
    column.unlink()
    os.mkfifo(column)

    def release() -> None:
        """The worker gets the end of what it waited for instead of bytes: that part fails too. Then the column is there again."""
        descriptor = os.open(column, os.O_WRONLY)
        column.unlink()
        column.write_bytes(content)
        os.close(descriptor)

    def mend() -> None:
        for meta, text in zip(metas, whole, strict=True):
            meta.write_text(text)

    slug = landing.compare()
    until("the slow part is in hand", lambda: state_of(stack, slug, SLOW) == "running", 60)
    return Going(stack, page, visit, slug, release, mend)


def state_of(stack: Stack, slug: str, place: tuple[str, int]) -> str:
    parts = stack.get(f"/api/v1/comparisons/{slug}/").json()["parts"]
    return next((part["state"] for part in parts if (part["stage"], part["step"]) == place), "")


def ended(going: Going) -> str | None:
    """When the comparison came to its present verdict."""
    found = going.stack.get(f"/api/v1/comparisons/{going.slug}/").json()
    return str(found["finished_at"]) if found["state"] == "done" else None


def states(page: Page) -> list[str]:
    """Of the cells, in the order of the pipeline: step by step."""
    cells = page.get_by_test_id("parts").locator("button[data-part]")
    found = cells.evaluate_all("(all) => all.map((one) => [Number(one.dataset.part), one.dataset.verdict])")
    return [state for _, state in sorted(found)]


SO_FAR = f"Earliest so far: step 2 · {DRIFTED[0]}, layers.1 · input_layernorm — 8 of 12 parts compared; 1 earlier part failed"
IN_PROGRESS = ["identical"] * 5 + ["failed"] + ["identical", "diverged", "identical", "running", "queued", "queued"]


def test_cells_fill_and_key_data_stand_while_parts_are_still_being_compared(going: Going) -> None:
    page = going.page
    so_far = page.get_by_test_id("so-far")
    expect(so_far).to_have_text(SO_FAR)
    expect(page.get_by_text("provisional", exact=True)).to_be_visible()
    expect(page.get_by_text("1 being compared · 2 waiting · 1 failed · a part that is still to come may part earlier")).to_be_visible()
    assert states(page) == IN_PROGRESS
    run = RunPage(page)
    assert dict(run.strip()) == {
        **dict.fromkeys(("prompts", "responses", "values", "old_log_prob", "log_prob"), "equal"),
        "ref_log_prob": "differs",
        **dict.fromkeys(("advantages", "kl_loss", "loss"), "consequence"),
    }
    expect(page.get_by_text("Key data, compared whole: ref_log_prob parts first, from step 2 on — reference model")).to_be_visible()
    run.key("responses").click()
    expect(run.tables).to_have_attribute("data-key", "responses")
    assert len(run.table_rows()) == 6

    # What is done can be opened: the part that parts so far, and back again.
    page.get_by_role("button", name="earliest so far").click()
    bench = Workbench(page).arrived()
    assert "layers.1" in bench.said()
    page.get_by_role("button", name="All parts").click()
    expect(so_far).to_be_visible()

    # Somebody else sees the same, in their own language.
    there = going.visit(f"/c/{going.slug}", locale="zh-CN")
    expect(there.get_by_test_id("so-far")).to_contain_text(f"目前最早的分歧：第 2 步 · {DRIFTED[0]}，layers.1 · input_layernorm")
    expect(there.get_by_test_id("so-far")).to_contain_text("已比对 8 / 12 个部分；更早的部分中有 1 个失败")
    expect(there.get_by_text("暂定", exact=True)).to_be_visible()
    assert states(there) == IN_PROGRESS

    # Cells fill by themselves, and the verdict takes its place when the last has ended.
    going.release()
    run.arrived()
    there_too = RunPage(there).arrived()
    assert run.said().startswith(
        "First difference: ref_log_prob from step 2 on — reference model; inside reference_compute_log_prob: layers.1"
    )
    assert run.said().endswith(
        f"; 2 parts failed: {BROKEN[0]} step 1, {SLOW[0]} step 3; the first difference may lie in an earlier part that failed"
    )
    assert there_too.strip() == run.strip()
    expect(page.get_by_test_id("so-far")).to_have_count(0)


def test_a_failed_part_says_why_and_is_tried_again_by_itself_at_the_same_address(going: Going) -> None:
    page = going.page
    going.release()
    run = RunPage(page).arrived()
    address = page.url
    # From its cell to what failed, why, and what to do.
    run.parts.get_by_role("button", name=f"step 1 · {BROKEN[0]} · rank 1, failed").click()
    expect(page.get_by_role("heading", name="This part could not be compared")).to_be_visible()
    expect(page.get_by_text(re.compile("Stored in format 99, this version reads 2. Upload the dump again"))).to_be_visible()
    # Tried again before anything has changed it fails again, and says so again.
    before = ended(going)
    page.get_by_role("button", name="Try this part again").click()
    until("it has ended again", lambda: ended(going) not in (None, before))
    expect(page.get_by_role("heading", name="This part could not be compared")).to_be_visible()
    going.mend()
    page.get_by_role("button", name="Try this part again").click()
    expect(Workbench(page).sentence).to_contain_text("Identical")
    page.get_by_role("button", name="All parts").click()
    run.arrived()
    assert run.said().endswith(f"; 1 part failed: {SLOW[0]} step 3")
    assert page.url.partition("#")[0] == address.partition("#")[0]
    parts = going.stack.get(f"/api/v1/comparisons/{going.slug}/").json()["parts"]
    assert [part["n"] for part in parts if part["state"] == "failed"] == [9]

    # The other one from its row in the list; who came by the keyboard finds the button beside the cell.
    run.section("Parts").get_by_role("button", name=f"Try this part again, step 3 · {SLOW[0]}").click()
    expect(run.sentence).to_have_text(re.compile(r"layers\.1 · \w+$"))
    assert "failed" not in run.said()
    expect(run.parts.locator("[data-verdict=failed]")).to_have_count(0)


def test_the_keyboard_reaches_a_failed_cell_and_its_button(going: Going) -> None:
    page = going.page
    going.mend()
    cell = page.get_by_test_id("parts").get_by_role("button", name=f"step 1 · {BROKEN[0]}, failed")
    cell.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == f"Try this part again, step 1 · {BROKEN[0]}"
    page.keyboard.press("Enter")
    # It joins the parts that wait, while another is in hand.
    expect(page.get_by_test_id("so-far")).to_contain_text("8 of 12 parts compared; 1 earlier part is still to be compared")
    going.release()
    run = RunPage(page).arrived()
    assert run.said().endswith(f"; 1 part failed: {SLOW[0]} step 3")


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_page_holds_at_every_width_while_it_runs(locale: str, going: Going, axe: str) -> None:
    page = going.visit(f"/c/{going.slug}", locale=locale, color_scheme="light")
    expect(page.get_by_test_id("so-far")).to_be_visible()
    expect(page.get_by_test_id("values")).to_be_visible()
    wrong = []
    for width, height in {1440: 900, 1024: 768, 390: 844}.items():
        page.set_viewport_size({"width": width, "height": height})
        expect(page.get_by_test_id("parts")).to_be_visible()
        wrong += [f"{width}: {fault}" for fault in faults(page)]
    assert not wrong, "\n".join(wrong)
    small = [
        target for target in page.evaluate(TARGETS) if min(target["width"], target["height"]) < 44 and not target["inText"]
    ]  # at 390 pixels, where fingers press
    assert not small, "\n".join(f"{target['name']} {target['width']} x {target['height']}" for target in small)
    finds_nothing(page, axe)
    page.emulate_media(color_scheme="dark")
    finds_nothing(page, axe)
    going.release()
