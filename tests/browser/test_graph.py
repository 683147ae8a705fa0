"""The graph of the workbench: the tree's rows as boxes, the same selection, reached by keys and by pointer."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.workbench import Workbench

__all__ = ["axe"]
# Pixels of the canvas that are not its ground: something is drawn.
DRAWN = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let drawn = 0;
  for (let at = 0; at < data.length; at += 4) if (data[at] !== data[0] || data[at + 1] !== data[1]) drawn += 1;
  return drawn;
}"""


def opened(visit: Visit, slug: str) -> Page:
    page = visit(f"/c/{slug}#v=1&t=graph")
    expect(page.get_by_test_id("graph")).to_be_visible()
    return page


def test_the_graph_opens_on_the_first_divergence_and_says_what_is_selected(visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared["down2"])
    graph = page.get_by_role("tree", name="Aligned modules as nested boxes")
    expect(graph.get_by_role("treeitem")).to_have_text("model.layers.2.mlp.down_proj, Origin, 1.43\u00a0%")
    assert graph.locator("canvas").evaluate(DRAWN) > 5000
    # The box of the origin is in sight: what is filled with the ramp's second colour is drawn.
    assert float(graph.evaluate("(one) => one.scrollTop")) > 0


def test_keys_walk_open_and_close_and_the_tree_and_the_link_show_the_same(visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared["down2"])
    graph = page.get_by_test_id("graph")
    item = graph.get_by_role("treeitem")
    graph.focus()
    page.keyboard.press("ArrowUp")
    expect(item).to_contain_text("model.layers.2.mlp.act_fn")
    page.keyboard.press("ArrowLeft")
    expect(item).to_contain_text("model.layers.2.mlp,")
    expect(item).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("o")
    expect(item).to_have_attribute("aria-expanded", "false")
    link = Workbench(page).shared_link()
    page.keyboard.press("1")
    bench = Workbench(page).arrived()
    assert bench.selected().path == "model.layers.2.mlp"
    assert bench.selected().open is False
    there = visit(link)
    expect(there.get_by_test_id("graph").get_by_role("treeitem")).to_contain_text("model.layers.2.mlp,")
    expect(there.get_by_test_id("graph").get_by_role("treeitem")).to_have_attribute("aria-expanded", "false")


def test_a_press_selects_a_box_and_zoom_fits_the_whole(visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared["walkthrough"])
    graph = page.get_by_test_id("graph")
    box = graph.bounding_box()
    assert box is not None
    # The first box begins at the top of the left pane.
    page.mouse.click(box["x"] + box["width"] / 4, box["y"] + 18)
    expect(graph.get_by_role("treeitem")).to_have_text(re.compile("Qwen2ForCausalLM|root"))
    page.keyboard.press("+")
    expect(page.get_by_role("group", name="Zoom")).to_contain_text("125 %")
    page.get_by_role("button", name="Fit", exact=True).click()
    expect(page.get_by_role("group", name="Zoom")).not_to_contain_text("125 %")
    assert graph.evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")


def test_axe_finds_nothing_serious_in_the_graph(visit: Visit, compared: dict[str, str], axe: str) -> None:
    page = opened(visit, compared["down2"])
    expect(page.get_by_role("treeitem")).to_be_attached()
    finds_nothing(page, axe)
    page.emulate_media(color_scheme="dark")
    finds_nothing(page, axe)
