"""Taking a comparison away, and saying by hand which module stands beside which: menu, downloads, a mapping that comes back."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.told import TRAIN, inference
from tests.browser.workbench import Workbench
from tests.live import Stack


def taken(page: Page, folder: Path, section: str, button: str) -> Path:
    """What a press in the export menu downloads."""
    menu = page.get_by_role("dialog", name="Export", exact=True)
    row = menu.get_by_role("region", name=section)
    with page.expect_download(timeout=60_000) as coming:
        row.get_by_role("button", name=button).click()
    target = folder / coming.value.suggested_filename
    coming.value.save_as(target)
    expect(row).to_contain_text("downloaded")
    return target


def test_the_report_opens_offline_and_the_table_holds_the_origin(visit: Visit, compared: dict[str, str], tmp_path: Path) -> None:
    page = visit(f"/c/{compared['down2']}")
    bench = Workbench(page).arrived()
    page.keyboard.press("e")
    report = taken(page, tmp_path, "Report", "HTML page English")
    assert report.name == "q2_train_stat_vs_q2_infer_down2_stat.report.en.html"
    table = taken(page, tmp_path, "Table of pairs", "CSV")

    with table.open(encoding="utf-8", newline="") as file:
        origins = [row for row in csv.DictReader(file) if row["Role"] == "origin"]
    assert {row["Module"] for row in origins} == {"model.layers.2.mlp.down_proj"}

    offline = page.context.browser.new_context(offline=True)  # type: ignore[union-attr]
    reading = offline.new_page()
    asked: list[str] = []
    reading.on("request", lambda request: asked.append(request.url))
    reading.goto(report.as_uri())
    expect(reading.locator(".verdict").first).to_contain_text(bench.said().split(" — ")[0])
    assert asked == [report.as_uri()]
    for width in (1280, 390):
        reading.set_viewport_size({"width": width, "height": 900})
        assert reading.evaluate("document.documentElement.scrollWidth") == width
    offline.close()


def test_an_exported_mapping_is_used_where_a_comparison_is_begun(
    visit: Visit, compared: dict[str, str], site: Stack, tmp_path: Path
) -> None:
    page = visit(f"/c/{compared['down2']}")
    Workbench(page).arrived()
    page.get_by_role("button", name="Export", exact=True).click()
    mapping = taken(page, tmp_path, "Mapping", "YAML")
    assert "qkv_proj" in mapping.read_text("utf-8")

    page = visit("/")
    landing = Landing(page)
    page.get_by_text("Use a mapping").click()
    page.get_by_label("Choose a file", exact=True).last.set_input_files(mapping)
    expect(page.get_by_text("A mapping of")).to_be_visible()
    slug = landing.compare_files([TRAIN], [inference("down2")])
    bench = Workbench(page).arrived()
    assert "down_proj" in bench.said()
    verdict = site.comparison(slug)["verdict"]
    assert "mapping_used" in [finding["code"] for finding in verdict["findings"]]


def test_a_broken_mapping_is_refused_with_its_line(visit: Visit) -> None:
    page = visit("/")
    landing = Landing(page)
    page.get_by_text("Use a mapping").click()
    page.get_by_label("Text of the mapping file").fill("pairs:\n- {left: a, colour: b}\n")
    for side, file in (("left", TRAIN), ("right", inference("down2"))):
        landing.choose(side, file)
        landing.ready(side)
    visit.tolerate("400")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("ine 2")


@pytest.mark.parametrize("width", [1280, 390])
def test_two_rows_are_matched_by_hand_and_the_former_comparison_stays(visit: Visit, compared: dict[str, str], width: int) -> None:
    slug = compared["down2"]
    page = visit(f"/c/{slug}", viewport={"width": width, "height": 844})
    bench = Workbench(page).arrived() if width == 1280 else Workbench(page)
    if width == 390:
        page.get_by_role("button", name="Tree", exact=True).click()
    page.keyboard.press("f")
    page.keyboard.press("m")
    panel = page.get_by_role("region", name="Match by hand")
    expect(panel).to_contain_text("Choose the partner of model.layers.2.mlp.down_proj")
    page.keyboard.press("k")
    expect(panel.get_by_test_id("match-preview")).to_be_visible()
    expect(panel).to_contain_text("↔")
    panel.get_by_role("button", name="Cancel").click()
    expect(panel).to_be_hidden()

    page.keyboard.press("f")
    page.keyboard.press("M")
    expect(panel.get_by_test_id("match-preview")).to_contain_text("1 pair")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    panel.get_by_role("button", name="Compare again").click()
    page.wait_for_url(lambda url: slug not in url)
    if width == 1280:
        bench.arrived()
    expect(page.get_by_role("link", name="Comparison before")).to_have_attribute("href", f"/c/{slug}")
