"""The address is the view: two readers of one link go their own ways, a reload keeps a view, Back undoes what a reader expects."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.workbench import Workbench
from tests.live import Stack


def test_the_way_to_let_others_in_keeps_the_port_and_the_folder(visit: Visit, site: Stack, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    Workbench(page).arrived()
    page.get_by_role("button", name="Share", exact=True).click()
    panel = page.get_by_role("dialog", name="Share what you see")
    expect(panel.locator("code")).to_have_text(f"./run --host 0.0.0.0 --port {urlsplit(site.url).port} --data {site.data}")


def test_two_readers_of_one_link_do_not_move_each_others_rows(visit: Visit, compared: dict[str, str]) -> None:
    link = f"/c/{compared['down2']}"
    one, other = Workbench(visit(link)).arrived(), Workbench(visit(link)).arrived()
    untouched = other.rows()
    one.toggle("model.layers.2.mlp")
    one.select("model.layers.3.input_layernorm")
    one.filter("layernorm")
    assert other.rows() == untouched
    other.toggle("model.layers.2.self_attn")
    assert other.selected().path == "model.layers.2.self_attn"
    assert one.selected().path == "model.layers.3.input_layernorm"
    one.page.reload()
    one.arrived()
    assert one.selected().path == "model.layers.3.input_layernorm"
    expect(one.page.get_by_role("button", name="Remove layernorm")).to_be_visible()


def test_a_reload_keeps_selection_filter_opened_rows_place_and_tab(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['walkthrough']}#t=tree")
    bench = Workbench(page).arrived()
    bench.row("layers 0–23").locator("[data-toggle]").click()
    bench.tree.evaluate("(tree) => tree.scrollBy(0, 200)")
    bench.select("model.layers.12")
    expect(page).to_have_url(re.compile("o=.*a="))
    before = bench.rows()
    page.reload()
    bench.arrived()
    expect(bench.tree).to_be_visible()
    assert [(row.path, row.open, row.selected) for row in bench.rows()] == [(row.path, row.open, row.selected) for row in before]


def test_back_returns_to_the_tab_before_and_then_to_the_list(visit: Visit, compared: dict[str, str]) -> None:
    page = visit("/")
    page.locator(f"a[href='/c/{compared['down2']}']").click()
    bench = Workbench(page).arrived()
    page.get_by_role("tab", name="Layers").click()
    expect(bench.layers).to_be_visible()
    page.go_back()
    expect(bench.tree).to_be_visible()
    page.go_forward()
    expect(bench.layers).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Where do these two runs first part?")


def test_a_stretch_of_the_timeline_filters_the_tree_and_rides_in_the_link(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    rail = page.get_by_test_id("timeline")
    box = rail.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    expect(page.locator("output")).to_have_text(re.compile(r"^\d+ of [\d,]+ rows$"))
    filtered = bench.rows()
    there = Workbench(visit(bench.shared_link())).arrived()
    assert there.rows() == filtered
    there.page.get_by_role("button", name="Show the whole timeline again").click()
    expect(there.page.locator("output")).to_be_hidden()


def test_a_broken_or_newer_link_opens_what_can_be_understood_of_it(visit: Visit, compared: dict[str, str]) -> None:
    page = visit(f"/c/{compared['down2']}#v=9&n=zzzzzzz&o=!!&q=%E0%A4%A&t=sphere&future=1")
    bench = Workbench(page).arrived()
    assert bench.selected().path == "model.layers.2.mlp.down_proj"
    expect(bench.query).to_have_value("")
