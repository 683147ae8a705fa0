"""A tensor pair dropped into the page: what the elements themselves say is read in the detail."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.told import CORPUS
from tests.browser.workbench import Workbench
from tests.live import Stack

TRAIN, ROPE = CORPUS / "q2_train_tensor.zip", CORPUS / "q2_infer_rope_tensor.zip"


@pytest.mark.parametrize("width", [1440, 390])
def test_a_dropped_tensor_pair_shows_how_far_its_elements_are_apart_and_where(width: int, visit: Visit, site: Stack) -> None:
    page = visit("/")
    slug = Landing(page).compare_files([TRAIN], [ROPE])
    bench = Workbench(page).arrived()
    evidence = json.loads(site.get(f"/api/v1/comparisons/{slug}/verdict.json").body)["first_divergence"]["evidence"]
    assert bench.said().endswith(f"(tensors: relative L2 {evidence['rel_l2']:.4g}, cosine {evidence['cosine']:.6f})")
    if width < 600:
        page = visit(f"/c/{slug}", viewport={"width": width, "height": 844}, has_touch=True, is_mobile=True)
        page.get_by_role("navigation", name="Views").get_by_role("button", name="Detail").click()
    tensors = page.get_by_test_id("tensors")
    tensors.scroll_into_view_if_needed()
    row = tensors.get_by_role("row").filter(has_text="output.0")
    expect(row).to_contain_text(f"{100 * evidence['rel_l2']:.2f}\u00a0%")
    expect(tensors.get_by_role("img")).to_have_count(3)  # distances, along rows, along columns
    expect(tensors).to_contain_text("768 elements")
    for picture in tensors.get_by_role("img").all():
        box = picture.bounding_box()
        assert box is not None
        assert box["width"] > 0.6 * min(width, 390)
        assert box["x"] + box["width"] <= width
    if width > 600:
        bench.speak("zh")
        expect(tensors).to_contain_text("逐元素比较")


def test_a_dropped_folder_sends_its_tensors_when_it_is_asked_to(visit: Visit, site: Stack, tmp_path: Path) -> None:
    page = visit("/")
    landing = Landing(page)
    for side, archive in (("left", TRAIN), ("right", ROPE)):
        folder = tmp_path / archive.stem
        with zipfile.ZipFile(archive) as files:
            files.extractall(folder)
        landing.choose_folder(side, folder)
        landing.ready(side)
        landing.zone(side).get_by_role("button", name="Send the tensors too").click()
        expect(landing.zone(side).get_by_role("button", name="Send the tensors too")).to_have_count(0)
        landing.ready(side)
    slug = landing.compare()
    bench = Workbench(page).arrived()
    evidence = json.loads(site.get(f"/api/v1/comparisons/{slug}/verdict.json").body)["first_divergence"]["evidence"]
    assert evidence["rel_l2"] == pytest.approx(0.1177997, rel=1e-5)
    assert "tensors: relative L2 0.1178" in bench.said()
