"""The workbench without a mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.workbench import Workbench
from tests.live import until

# A text field's ring may be drawn by the box around it, as an outline or as a border that a shadow doubles; the tree's by its active row.
FOCUS = """(() => {
  const element = document.activeElement;
  const ring = (style) => Math.max(style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
                                   style.boxShadow === "none" ? 0 : parseFloat(style.borderTopWidth) + 1);
  const box = element.getBoundingClientRect();
  return { tag: element.tagName, name: element.ariaLabel || element.innerText || element.labels?.[0]?.innerText || "",
           ring: Math.max(...[element, element.parentElement, document.getElementById(element.getAttribute("aria-activedescendant"))]
             .map((one) => one === null ? 0 : ring(getComputedStyle(one)))),
           inView: box.bottom > 0 && box.top < innerHeight && box.width > 0 };
})()"""


def names(bench: Workbench) -> list[str]:
    return [row.name for row in bench.rows()]


def expect_selected(bench: Workbench, path: str) -> None:
    expect(bench.selection.locator("[role=gridcell]:nth-child(2) span[title]")).to_have_attribute("title", path)
    expect(bench.selection).to_be_in_viewport()


def test_the_way_from_the_verdict_to_a_row_and_back_is_walked_by_keys(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    origin = "model.layers.2.mlp.down_proj"
    for key, path in (
        ("j", "model.layers.3"),
        ("j", "model.layers.3.input_layernorm"),
        ("k", "model.layers.3"),
        ("n", origin),
        ("ArrowUp", "model.layers.2.mlp.act_fn"),
    ):
        page.keyboard.press(key)
        expect_selected(bench, path)
    page.keyboard.press("f")
    expect_selected(bench, origin)
    # Next and previous in execution order, which the tree does not show.
    page.keyboard.press("]")
    expect_selected(bench, "model.layers.2.mlp")
    page.keyboard.press("[")
    expect_selected(bench, origin)
    # To the parent, which closes; open again by the other key; into it.
    page.keyboard.press("h")
    expect_selected(bench, "model.layers.2.mlp")
    page.keyboard.press("h")
    expect(bench.selection).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("l")
    expect(bench.selection).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("o")
    expect(bench.selection).to_have_attribute("aria-expanded", "false")
    bench.tree.focus()
    page.keyboard.press("Enter")
    expect(bench.selection).to_have_attribute("aria-expanded", "true")


def test_a_filter_is_typed_kept_and_left_with_keys(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    before = names(bench)
    page.keyboard.press("/")
    expect(bench.query).to_be_focused()
    # Letters are text here and no commands.
    page.keyboard.type("grade>noise class:RMSNorm")
    page.keyboard.press("Enter")
    expect(bench.tree).to_be_focused()
    expect(page.locator("output")).to_have_text(re.compile(r"^\d+ of [\d,]+ rows$"))
    norms = {"norm", "input_layernorm", "post_attention_layernorm"}
    # The rows are drawn after the count is said.
    until("only norms are listed", lambda: set() < {row.name for row in bench.rows() if row.open is None} <= norms)
    expect(page).to_have_url(re.compile(r"q=grade%3Enoise\+class:RMSNorm$"))
    page.keyboard.press("Escape")
    expect(page.locator("output")).to_be_hidden()
    until("all rows are back", lambda: names(bench) == before)
    page.keyboard.press("/")
    page.keyboard.type("layer:9..1")
    expect(page.get_by_text("“9..1” is no layer: write 3, 3..7, 3.. or 3,5")).to_be_visible()
    page.keyboard.press("Escape")
    expect(bench.tree).to_be_focused()


def test_the_keys_and_the_commands_are_listed_and_closed_again(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    for command in ("Next origin", "Filter the tree", "Copy a link to this view", "Open the command list"):
        expect(keys).to_contain_text(command)
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()

    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("layers")
    expect(palette.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(palette).to_be_hidden()
    expect(bench.layers).to_be_visible()
    page.keyboard.press("1")
    expect(bench.tree).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("中文")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
    page.keyboard.press("g")
    expect(page.get_by_role("heading", level=1)).to_have_text("这两次运行，从哪里开始不同？")


def test_an_origin_is_set_aside_and_brought_back_with_keys(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    selected = bench.selected()
    page.keyboard.press("i")  # the only origin, selected because it is the first: it stays selected
    expect(page.get_by_text("1 set aside")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="there is no other origin")).to_be_attached()
    assert bench.selected() == selected
    expect(bench.detail.get_by_role("button", name="Bring it back")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("1 set aside")).to_be_hidden()


@pytest.mark.parametrize("path", ["/", "down2", "walkthrough"])
def test_whatever_has_the_focus_shows_it_and_has_a_name(path: str, visit: Visit, compared: dict[str, str]) -> None:
    page = visit(path if path == "/" else f"/c/{compared[path]}")
    if path == "/":
        expect(page.get_by_role("listitem").first).to_be_visible()
    else:
        Workbench(page).arrived()
    for stop in stops(page):
        assert stop["ring"] >= 2, stop
        assert stop["inView"], stop
        assert stop["name"], stop


def stops(page: Page) -> list[dict]:
    """What Tab stops at, from the top of the page, at most forty of them."""
    found: list[dict] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop["tag"] == "BODY":
            break
        found.append(stop)
    assert len(found) >= 8
    return found


def test_the_skip_link_is_the_first_stop_and_leads_past_the_header(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    Workbench(page).arrived()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to content")).to_be_focused()
    expect(page.get_by_role("button", name="Skip to content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
