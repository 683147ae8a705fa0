"""A run's own page: what was found, what was left aside and why, what uses it; and that it can be deleted."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.told import TRAIN, inference
from tests.browser.workbench import Workbench
from tests.conftest import StartStack
from tests.live import Stack

__all__ = ["axe"]


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """The training dump with a shape that is none, beside files that are no part of a dump."""
    with zipfile.ZipFile(TRAIN) as old, zipfile.ZipFile(tmp_path / "odd.zip", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("dump.json"):
                dump = json.loads(content)
                first = next(record for record in dump["data"].values() if isinstance(record.get("output"), list) and record["output"][0])
                first["output"][0]["shape"] = ["s0", 64]
                content = json.dumps(dump).encode()
            new.writestr(name, content)
        new.writestr("step0/rank0/dump_error_info.log", "x")
        new.writestr("step0/rank0/dump_tensor_data/a.npy", "x")
    return tmp_path / "odd.zip"


def test_a_run_has_a_page_that_the_side_card_leads_to(
    start_stack: StartStack, visit_of: Callable[[Stack], Visit], odd: Path, axe: str
) -> None:
    stack = start_stack()
    visit = visit_of(stack)
    page = visit("/")
    landing = Landing(page)
    landing.choose("left", odd)
    landing.choose("right", inference("down2"))
    landing.ready("left")
    landing.ready("right")
    expect(landing.fact("left", "Noted")).to_contain_text('["s0", 64]')
    landing.zone("left").get_by_role("link", name="odd").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("odd")
    main = page.locator("main")
    expect(main.get_by_role("table")).to_contain_text("step0/rank0/dump.json")
    expect(main).to_contain_text("PyTorch, FSDP")
    expect(main).to_contain_text("1 value has a shape that cannot be one, first output.0")
    expect(main).to_contain_text("step0/rank0/dump_error_info.log")
    expect(main).to_contain_text("a log")
    expect(main).to_contain_text("No comparison uses it.")
    finds_nothing(page, axe)
    Workbench(page).speak("zh")
    expect(main).to_contain_text("没有比对使用它")
    page.emulate_media(color_scheme="dark")
    finds_nothing(page, axe)
    Workbench(page).speak("en")

    address = page.url
    page.go_back()
    landing.ready("left")
    slug = landing.compare()
    Workbench(page).arrived()
    page.goto(address)
    expect(main.locator(f"a[href='/c/{slug}']")).to_contain_text("First divergence")
    expect(main).to_contain_text("It can be deleted once no comparison uses it.")
    expect(page.get_by_role("button", name="Delete this run")).to_have_attribute("aria-disabled", "true")

    assert stack.call("DELETE", f"/api/v1/comparisons/{slug}/").status == 204
    page.reload()
    page.get_by_role("button", name="Delete this run").click()
    page.get_by_role("button", name="Keep it").click()
    page.get_by_role("button", name="Delete this run").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Where do these two runs first part?")
    expect(landing.zone("left")).to_contain_text("Drop the training dump here")
    assert [run["name"] for run in stack.get("/api/v1/runs/").json()["results"]] == ["q2_infer_down2_stat"]
    visit.tolerate("status of 404")
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text("No run here")


def test_a_run_that_cannot_be_read_says_why_on_its_page(
    start_stack: StartStack, visit_of: Callable[[Stack], Visit], tmp_path: Path
) -> None:
    stack = start_stack()
    (tmp_path / "dump.json").write_bytes(b'{"data": [1]}')
    run = stack.upload(tmp_path / "dump.json", name="broken")
    page = visit_of(stack)(f"/r/{run}", viewport={"width": 390, "height": 844})
    expect(page.get_by_role("alert")).to_contain_text("has no object called data")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
