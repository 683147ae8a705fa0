"""The overview of `/c/<slug>` for two runs of an RL loop, as a person reads it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

READ_ROWS = """(grid) => [...grid.querySelectorAll("[role=row][aria-selected]")].map((row) =>
  [...row.querySelectorAll("[role=gridcell]")].map((cell) => cell.innerText.replace(/\\u00a0/g, " ").trim()))"""


class RunPage:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.sentence = page.get_by_test_id("verdict-sentence")
        self.parts = page.get_by_test_id("parts")
        self.tables = page.get_by_test_id("key-data")
        self.values = page.get_by_test_id("values")

    def arrived(self) -> RunPage:
        expect(self.sentence).to_be_visible()
        expect(self.parts).to_be_visible()
        return self

    def said(self) -> str:
        return " ".join(self.sentence.inner_text().split())

    def strip(self) -> list[tuple[str, str]]:
        """Each key along the pipeline with its state."""
        nodes = self.page.locator("[data-key][data-state]").evaluate_all("(all) => all.map((one) => [one.dataset.key, one.dataset.state])")
        return [(key, state) for key, state in nodes]

    def key(self, key: str) -> Locator:
        return self.page.locator(f"button[data-key='{key}']")

    def cells(self) -> list[str]:
        """What the cells of the matrix are called, stage by stage."""
        return [str(name) for name in self.parts.get_by_role("button").evaluate_all("(all) => all.map((one) => one.ariaLabel)")]

    def focused(self) -> str:
        return str(self.page.evaluate("document.activeElement.ariaLabel"))

    def section(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def table_rows(self) -> list[list[str]]:
        """The numbers of the tables of the key that is open, cell by cell."""
        return self._rows(self.tables.get_by_role("grid").first)

    def value_rows(self) -> list[list[str]]:
        return self._rows(self.values)

    def _rows(self, grid: Locator) -> list[list[str]]:
        expect(grid).to_be_visible()
        rows: Any = grid.evaluate(READ_ROWS)
        return [[str(cell) for cell in row] for row in rows]
