"""Options of a comparison: chosen where it is begun, chosen anew from what came out."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.told import CORPUS
from tests.browser.workbench import Workbench

__all__ = ["axe"]


def test_a_step_is_chosen_by_keys_and_the_answer_compared_again_exactly(visit: Visit, axe: str) -> None:
    page = visit("/")
    landing = Landing(page)
    landing.choose("left", CORPUS / "q2_train_steps2_stat.zip")
    landing.choose("right", CORPUS / "q2_infer_stat.zip")
    landing.ready("left")
    landing.ready("right")
    page.locator("summary", has_text="Options").focus()
    page.keyboard.press("Enter")
    step = page.get_by_role("combobox", name="Train: step")
    step.focus()
    page.keyboard.press("End")
    expect(step).to_have_value("1")
    finds_nothing(page, axe)
    slug = landing.compare()
    expect(Workbench(page).sentence).to_contain_text("the two sides were given different tokens")
    assert page.request.get(f"/api/v1/comparisons/{slug}/").json()["options"] == {"step": "1"}

    page.get_by_role("button", name="Options …").click()
    dialog = page.get_by_role("dialog", name="Compare again with options")
    expect(dialog.get_by_role("combobox", name="Train: step")).to_have_value("1")
    dialog.get_by_role("combobox", name="Train: step").select_option("0")
    dialog.get_by_role("checkbox", name=re.compile("^exact")).check()
    finds_nothing(page, axe)
    dialog.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(lambda url: "/c/" in url and slug not in url)
    bench = Workbench(page).arrived()
    again = page.url.split("/c/")[1].split("#")[0]
    told = page.request.get(f"/api/v1/comparisons/{again}/").json()
    assert told["options"] == {"step": "0", "exact": True}
    assert told["previous"] == slug
    assert told["verdict"]["left"]["step"] == 0
    expect(bench.sentence).to_be_visible()


def test_options_that_are_being_chosen_survive_a_phone_that_is_turned(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}", viewport={"width": 844, "height": 600})
    Workbench(page).arrived()
    page.get_by_role("button", name="Options …").click()
    exact = page.get_by_role("dialog", name="Compare again with options").get_by_role("checkbox", name=re.compile("^exact"))
    exact.check()
    for width, height in ((390, 844), (844, 600), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator("main nav")).to_have_count(1 if width < 600 else 0)
        expect(exact).to_be_visible()
        expect(exact).to_be_checked()


def test_sides_that_were_swapped_are_called_by_their_own_names(visit: Visit) -> None:
    page = visit("/")
    Landing(page).compare_files([CORPUS / "q2_infer_down2_stat.zip"], [CORPUS / "q2_train_stat.zip"])
    bench = Workbench(page).arrived()
    heads = bench.tree.get_by_role("columnheader")
    expect(heads.nth(1)).to_have_text("Inference")
    expect(heads.nth(2)).to_have_text("Train, if different")
    bench.query.fill("layers.2.self_attn q_proj")
    fused = bench.row("model.layers.2.self_attn.qkv_proj")
    expect(fused).to_contain_text("qkv_proj")
    expect(fused).to_contain_text("q_proj, k_proj, v_proj")
