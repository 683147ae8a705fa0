"""The start page as a person uses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

SIDES = ("left", "right")


class Landing:
    """`/` in English. A side is "left" (train) or "right" (inference)."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def zone(self, side: str) -> Locator:
        return self.page.locator("main section").nth(SIDES.index(side))

    def choose(self, side: str, *files: Path) -> None:
        """Choose files by the button's own field."""
        self.zone(side).locator("input[type=file]:not([webkitdirectory])").set_input_files(list(files))

    def choose_folder(self, side: str, folder: Path) -> None:
        self.zone(side).locator("input[type=file][webkitdirectory]").set_input_files(folder)

    def drop(self, side: str, *paths: Path) -> None:
        """Drag files or folders of this machine over the zone and let go: the browser's own drag, not an event made up by a script."""
        box = self.zone(side).bounding_box()
        assert box is not None
        devtools = self.page.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            devtools.send(
                "Input.dispatchDragEvent",
                {"type": kind, "x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "data": data},
            )
        devtools.detach()

    def ready(self, side: str) -> Locator:
        """Wait until the worker has read what a side holds; returns its card."""
        zone = self.zone(side)
        expect(zone).to_contain_text("Ready")
        return zone

    def fact(self, side: str, name: str) -> Locator:
        """A line of the card: `fact("left", "Extent")`."""
        return self.zone(side).locator("dl > div").filter(has=self.page.locator("dt", has_text=name)).locator("dd")

    def sha256(self, side: str) -> str:
        """The whole sum behind the short one."""
        return str(self.fact(side, "SHA-256").locator("code").get_attribute("title"))

    def progress(self, side: str) -> int:
        """Percent that the card's bar says."""
        return int(self.zone(side).get_by_role("progressbar").get_attribute("aria-valuenow") or 0)

    def compare(self) -> str:
        """Press Compare once it can be pressed; returns the comparison's id."""
        button = self.page.get_by_role("button", name="Compare", exact=True)
        expect(button).not_to_have_attribute("aria-disabled", "true")
        button.click()
        self.page.wait_for_url("**/c/*")
        return self.page.url.split("/c/")[1].split("#")[0]

    def compare_files(self, left: Sequence[Path], right: Sequence[Path]) -> str:
        self.choose("left", *left)
        self.choose("right", *right)
        self.ready("left")
        self.ready("right")
        return self.compare()
