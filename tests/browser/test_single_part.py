"""Two runs of one stage and step: the page is their tree, and what their configurations say is one click away."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.test_layout import faults
from tests.browser.told import CORPUS
from tests.live import Stack

__all__ = ["axe"]
SAID = "1 setting that matters differs"


def run(target: Path, temperature: float) -> Path:
    with zipfile.ZipFile(CORPUS / "q2_train_stat.zip") as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            archive.writestr(f"actor_update/step0/rank0/{name.rpartition('/')[2]}", source.read(name))
        archive.writestr("configurations.json", json.dumps({"generate": {"temperature": temperature}}))
    return target


@pytest.fixture(scope="module")
def pair(site: Stack, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("single")
    return site.compare(*(site.upload(run(folder / f"{name}.zip", size)) for name, size in (("a", 1.0), ("b", 0.7))))


@pytest.mark.parametrize("width", [1440, 390])
def test_settings_that_differ_are_said_beside_the_tree_and_open_over_it(visit: Visit, pair: str, axe: str, width: int) -> None:
    page = visit(f"/c/{pair}")
    page.set_viewport_size({"width": width, "height": 900})
    if width == 1440:
        expect(page.get_by_role("treegrid")).to_be_visible()
    button = page.get_by_role("button", name=SAID)
    expect(button).to_be_visible()
    button.click()
    dialog = page.get_by_role("dialog", name="Settings and preconditions")
    expect(dialog.get_by_role("rowheader", name="generate/temperature")).to_be_visible()
    expect(dialog.get_by_role("row", name="generate/temperature")).to_contain_text("0.7")
    finds_nothing(page, axe)
    assert faults(page) == []
    assert dialog.evaluate("(box) => box.scrollWidth <= box.clientWidth + 1")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
