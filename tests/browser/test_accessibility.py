"""What a screen reader is told, and axe's rules on every page in both themes."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.told import TRAIN
from tests.browser.workbench import Workbench
from tests.live import ROOT

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        pytest.fail("axe-core is not there: scripts/bootstrap.sh dev installs the front end's packages")
    return AXE.read_text(encoding="utf-8")


def finds_nothing(page: Page, axe: str) -> None:
    """No serious or critical violation; what there is, is told with the first places it was found at."""
    # As the devtools would run it: the page's own policy lets no other script in.
    page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations)")
    told = [
        f"{one['id']} ({one['impact']}): {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert not told, "\n".join(told)


@pytest.mark.parametrize("name", ["landing", "down2", "walkthrough", "nan3", "tokens"])
def test_axe_finds_nothing_serious_in_either_theme_or_language(name: str, visit: Visit, compared: dict[str, str], axe: str) -> None:
    if name == "landing":
        page = visit("/", color_scheme="light")
        Landing(page).choose("left", TRAIN)
        expect(Landing(page).zone("left").locator("dl")).to_contain_text("SHA-256")
        expect(page.locator("a[href^='/c/']").first).to_be_visible()
    else:
        page = visit(f"/c/{compared[name]}", color_scheme="light")
        expect(page.get_by_role("treegrid").or_(page.get_by_test_id("layers"))).to_be_visible()
    finds_nothing(page, axe)
    page.emulate_media(color_scheme="dark")
    Workbench(page).speak("zh")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    finds_nothing(page, axe)


@pytest.mark.parametrize("name", ["landing", "down2", "walkthrough"])
def test_axe_finds_nothing_serious_on_a_phone(name: str, visit: Visit, compared: dict[str, str], axe: str) -> None:
    phone = {"width": 390, "height": 844}
    page = visit("/" if name == "landing" else f"/c/{compared[name]}", viewport=phone)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    finds_nothing(page, axe)


def test_dialogs_and_panels_have_nothing_serious_either(visit: Visit, compared: dict[str, str], axe: str) -> None:
    page = visit(f"/c/{compared['down2']}")
    Workbench(page).arrived()
    for key in ("?", "Control+k"):
        page.keyboard.press(key)
        expect(page.locator("dialog")).to_be_visible()
        finds_nothing(page, axe)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_be_hidden()
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_role("dialog", name="Share what you see")).to_be_visible()
    finds_nothing(page, axe)


def test_the_tree_is_a_named_treegrid_that_tells_levels_places_and_roles(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    grid = page.get_by_role("treegrid", name="Aligned modules")
    expect(grid).to_be_visible()
    headers = grid.get_by_role("columnheader").all_inner_texts()
    assert [text.split("\n")[0] for text in headers if text.strip()][:2] == ["Role", "Train"]
    row = grid.get_by_role("row", name="Origin down_proj 1.43 %").first
    expect(row).to_have_attribute("aria-level", "6")
    expect(row).to_have_attribute("aria-selected", "true")
    expect(grid).to_have_attribute("aria-activedescendant", str(row.get_attribute("id")))
    assert int(str(grid.get_attribute("aria-rowcount"))) == len(bench.rows()) + 1
    expect(page.get_by_role("img", name="189 compared pairs in execution order, 1 origin")).to_be_visible()
    # Said once when it arrives, for whoever does not see it.
    expect(page.get_by_role("status").filter(has_text="First divergence: layers.2 · mlp.down_proj")).to_be_attached()


def test_premises_say_in_words_whether_they_hold(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    premises = page.get_by_role("list", name="Premises")
    expect(premises.locator("[data-premise=weights]")).to_have_text("weights: 1 of 30 differs, failed")
    expect(premises.locator("[data-premise=tokens]")).to_have_text("tokens 12, holds")
