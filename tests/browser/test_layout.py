"""Every page at four widths, in both languages and themes: nothing is cut off or scrolls sideways, fingers find their targets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.told import CORPUS
from tests.browser.workbench import Workbench
from tests.live import Stack

WIDTHS = {1440: 900, 1024: 768, 768: 1024, 390: 844}
PAGES = ["landing", "down2", "rope", "walkthrough", "tokens"]

# Text that is cut off by its box, with no title on the way up that holds it whole.
CUT_OFF = """() => [...document.querySelectorAll("main *, header *")].filter((element) => {
  if (!element.checkVisibility() || ![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "")) return false;
  if (element.closest(".visually-hidden") !== null) return false;
  const style = getComputedStyle(element);
  if (!["hidden", "clip"].includes(style.overflowX) || element.scrollWidth <= element.clientWidth + 1) return false;
  const titles = [];
  for (let one = element; one !== null; one = one.parentElement) if (one.title) titles.push(one.title);
  return titles.length === 0;
}).map((element) => element.innerText)"""

CUT_NUMBERS = """() => [...document.querySelectorAll("main td")].filter((cell) => cell.checkVisibility() && /\\d/.test(cell.innerText) &&
  getComputedStyle(cell).overflowX !== "visible" && cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.innerText)"""

SIDEWAYS = "[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"

TARGETS = """() => [...document.querySelectorAll("button, a[href], input:not([hidden]), summary, [role=tab]")].filter((element) =>
  element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.closest(".visually-hidden") === null
).map((element) => {
  // The edge drawn around a text field belongs to it.
  const box = (element.tagName === "INPUT" ? element.parentElement : element).getBoundingClientRect();
  return { name: (element.ariaLabel || element.innerText || element.placeholder || "").slice(0, 60), width: Math.round(box.width),
           height: Math.round(box.height), inText: getComputedStyle(element).display === "inline", bottom: box.bottom };
}).filter(({ width, height, bottom }) => width > 1 && height > 1 && bottom > 0)"""


def opened(visit: Visit, compared: dict[str, str], name: str, **options: Any) -> Page:
    page = visit("/" if name == "landing" else f"/c/{compared[name]}", **options)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    if name == "landing":
        expect(page.locator("a[href^='/c/']").first).to_be_visible()
    elif options["viewport"]["width"] > 600:
        expect(page.get_by_role("treegrid").or_(page.get_by_test_id("layers"))).to_be_visible()
    return page


def faults(page: Page) -> list[str]:
    scroll, body, width = page.evaluate(SIDEWAYS)
    heading = page.get_by_role("heading", level=1)
    box = heading.bounding_box()
    assert box is not None
    whole = heading.evaluate("(h) => h.scrollWidth <= h.clientWidth + 1 && h.scrollHeight <= h.clientHeight + 1")
    return [
        *([f"scrolls sideways to {max(scroll, body)}"] if max(scroll, body) > width else []),
        *(["the sentence is cut off"] if not whole or box["x"] < 0 or box["x"] + box["width"] > width else []),
        *(f"cut off: {text}" for text in page.evaluate(CUT_OFF)),
    ]


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways_and_nothing_is_cut_off_without_a_way_to_read_it(
    name: str, locale: str, visit: Visit, compared: dict[str, str]
) -> None:
    page = opened(visit, compared, name, locale=locale, viewport={"width": 1440, "height": 900})
    wrong = []
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        # A narrow page is another page, with a bar of its own.
        expect(page.locator("main nav")).to_have_count(1 if width < 600 and name != "landing" else 0)
        wrong += [f"{width}: {fault}" for fault in faults(page)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_no_number_is_cut_and_no_screen_left_empty_on_a_phone(locale: str, visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared, "down2", locale=locale, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    tabs = page.locator("main nav button")
    tabs.nth(3).tap()
    expect(page.locator("section[data-node]").get_by_role("table").first).to_be_visible()
    assert page.evaluate(CUT_NUMBERS) == []
    tabs.nth(2).tap()
    plot, origins = page.get_by_test_id("timeline").bounding_box(), page.get_by_role("region").filter(has_text="down_proj").bounding_box()
    bar = page.locator("main nav").bounding_box()
    assert plot is not None
    assert origins is not None
    assert bar is not None
    assert plot["height"] > 400
    assert bar["y"] - (origins["y"] + origins["height"]) < 40


@pytest.mark.parametrize("name", ["landing", "down2", "walkthrough"])
def test_fingers_find_targets_of_44_pixels_on_a_phone(name: str, visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared, name, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    tabs = [] if name == "landing" else ["Verdict", "Tree", "Timeline", "Detail"]
    small: list[str] = []
    for tab in tabs or [""]:
        if tab:
            page.get_by_role("navigation", name="Views").get_by_role("button", name=tab).click()
        targets = page.evaluate(TARGETS)
        assert len(targets) >= 4
        small += [
            f"{tab}: {target['name']} {target['width']} x {target['height']}"
            for target in targets
            if min(target["width"], target["height"]) < 44 and not target["inText"]
        ]
    assert not small, "\n".join(small)


def test_a_phone_walks_from_the_verdict_to_tree_timeline_and_detail(visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared, "down2", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    bench = Workbench(page)
    expect(bench.sentence).to_contain_text("layers.2 · mlp.down_proj")
    expect(page.get_by_role("region", name="Origins")).to_contain_text("layers.2 · mlp.down_proj")
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("button", name="Tree").tap()
    assert bench.selected().path == "model.layers.2.mlp.down_proj"
    bench.row("model.layers.3").tap()
    views.get_by_role("button", name="Detail").tap()
    expect(bench.detail.get_by_role("heading", level=2)).to_have_attribute("title", "model.layers.3")
    views.get_by_role("button", name="Timeline").tap()
    expect(page.get_by_test_id("timeline")).to_be_visible()
    page.get_by_role("region", name="Origins").get_by_role("button").first.tap()
    views.get_by_role("button", name="Detail").tap()
    expect(bench.detail.get_by_role("heading", level=2)).to_have_attribute("title", "model.layers.2.mlp.down_proj")


def test_on_a_phone_every_number_is_whole_and_every_row_has_a_name(visit: Visit, compared: dict[str, str]) -> None:
    """A finger finds no title: what is cut off there cannot be read."""
    page = opened(visit, compared, "down2", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    bench, wrong = Workbench(page), []
    for name in ("Verdict", "Tree", "Timeline", "Detail"):
        page.get_by_role("navigation", name="Views").get_by_role("button", name=name).tap()
        shown = {
            "Verdict": bench.sentence,
            "Tree": bench.tree,
            "Timeline": page.get_by_test_id("timeline"),
            "Detail": page.get_by_test_id("slots"),
        }
        expect(shown[name]).to_be_visible()
        # A table that has learnt its width draws itself again.
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")
        scroll, body, width = page.evaluate(SIDEWAYS)
        wrong += [f"{name}: scrolls sideways to {max(scroll, body)}"] if max(scroll, body) > width else []
        wrong += [f"{name}: cut off: {text}" for text in page.evaluate(CUT_NUMBERS)]
        if name == "Tree":
            nameless = [row.path for row in bench.rows() if row.name in {"", "—"} and row.path.rsplit(".", 1)[-1] not in row.text]
            wrong += [f"{name}: without a name: {path}" for path in nameless]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_follows_the_system_until_somebody_chooses(theme: str, visit: Visit, compared: dict[str, str]) -> None:
    page = opened(visit, compared, "down2", viewport={"width": 1440, "height": 900}, color_scheme=theme)
    # Of the two tokens for the page's surface, the light one is white and the dark one nearly black.
    surface = {"light": "rgb(255, 255, 255)", "dark": "rgb(28, 28, 26)"}
    expect(page.get_by_role("region", name="Verdict")).to_have_css("background-color", surface[theme])
    page.get_by_role("button", name="Theme").click()
    other = "dark" if theme == "light" else "light"
    page.get_by_role("menuitemradio", name=other.capitalize()).click()
    expect(page.get_by_role("region", name="Verdict")).to_have_css("background-color", surface[other])
    page.reload()
    expect(page.get_by_role("region", name="Verdict")).to_have_css("background-color", surface[other])


@pytest.mark.parametrize(
    ("locale", "lang", "heading"), [("zh-CN", "zh", "这两次运行，从哪里开始不同？"), ("de-DE", "en", "Where do these two runs first part?")]
)
def test_the_page_speaks_the_readers_language_and_says_which_it_is(locale: str, lang: str, heading: str, visit: Visit) -> None:
    page = visit("/", locale=locale)
    expect(page.locator("html")).to_have_attribute("lang", re.compile(f"^{lang}"))
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)


def test_a_matrix_without_stages_shows_its_head_and_its_first_cell_whole(visit: Visit, site: Stack) -> None:
    """The word was cut to its last letter, and the empty place of a stage's name lay over half of the first cell."""
    left, right = (site.upload(CORPUS / f"q2_train_steps2_{name}.zip") for name in ("stat", "pert1_stat"))
    slug = site.compare(left, right)
    site.comparison(slug, "done")
    page = visit(f"/c/{slug}")
    head = page.get_by_test_id("parts").get_by_text("step", exact=True)
    box, cell = head.bounding_box(), page.locator("[data-part='0']")
    assert box is not None
    assert box["x"] >= 0
    assert cell.evaluate(
        "(one) => { const {left, top} = one.getBoundingClientRect(); return one === document.elementFromPoint(left + 3, top + 3) }"
    )
    expect(page.get_by_text("the worst rank of each step")).to_be_visible()
    expect(page.get_by_role("region", name="Stage pairing")).to_have_count(0)
