"""`/c/<slug>` as a person reads and works it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page, expect

READ_ROWS = """(rows) => rows.map((row) => ({
  text: row.innerText.replace(/\\s+/g, " ").trim(),
  name: row.querySelector("[role=gridcell]:nth-child(2) span[title]").innerText,
  path: row.querySelector("[role=gridcell]:nth-child(2) span[title]").title,
  level: Number(row.ariaLevel),
  open: row.getAttribute("aria-expanded"),
  selected: row.ariaSelected === "true",
}))"""
READ_SLOTS = """(table) => {
  const slots = [];
  for (const row of table.tBodies[0].rows) {
    const cells = [...row.cells].map((cell) => ({ text: cell.innerText.trim(), title: cell.title }));
    if (row.cells.length > 2) slots.at(-1).statistics.push(cells);
    else slots.push({ head: row.innerText.replace(/\\s+/g, " ").trim(), statistics: [] });
  }
  return slots;
}"""


@dataclass(frozen=True)
class Row:
    """A row of the tree that is on the page. `open` is None where there is nothing to open."""

    name: str
    path: str
    level: int
    open: bool | None
    selected: bool
    text: str


class Workbench:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.sentence = page.get_by_test_id("verdict-sentence")
        self.tree = page.get_by_test_id("tree")
        self.layers = page.get_by_test_id("layers")
        self.detail = page.locator("section[data-node]")
        self.query = page.locator("input[aria-label='Filter the tree'], input[aria-label='筛选树']")
        self.selection = self.tree.locator("[role=row][aria-selected=true]")

    def arrived(self) -> Workbench:
        """Wait for the verdict, the tree (or the layers) and the detail."""
        expect(self.sentence).to_be_visible()
        expect(self.tree.or_(self.layers)).to_be_visible()
        expect(self.detail).to_have_attribute("aria-busy", "false")
        return self

    def said(self) -> str:
        """The verdict's sentence in one line."""
        return " ".join(self.sentence.inner_text().split())

    def rows(self) -> list[Row]:
        found = self.tree.locator("[role=rowgroup] [role=row]").evaluate_all(READ_ROWS)
        return [Row(**{**row, "open": None if row["open"] is None else row["open"] == "true"}) for row in found]

    def selected(self) -> Row:
        [row] = [row for row in self.rows() if row.selected]
        return row

    def row(self, path: str) -> Locator:
        """A row by the module it stands for (a fold of layers: by its name)."""
        return self.tree.locator("[role=row]", has=self.page.locator(f"[title='{path}']")).first

    def toggle(self, path: str) -> None:
        """Press the small triangle of a row."""
        row = self.row(path)
        before = row.get_attribute("aria-expanded")
        row.locator("[data-toggle]").click()
        expect(row).not_to_have_attribute("aria-expanded", str(before))

    def select(self, path: str) -> None:
        self.row(path).locator("[role=gridcell]:nth-child(2) span[title]").click()
        expect(self.row(path)).to_have_attribute("aria-selected", "true")
        expect(self.detail.get_by_role("heading", level=2)).to_have_attribute("title", path)

    def filter(self, text: str) -> None:
        self.query.fill(text)
        self.query.press("Enter")
        expect(self.page.locator("output")).to_be_visible()

    def slots(self) -> list[dict[str, Any]]:
        """The detail's table: of each slot its headline, and its statistics as lists of cells with text and title."""
        expect(self.detail).to_have_attribute("aria-busy", "false")
        return self.page.get_by_test_id("slots").evaluate(READ_SLOTS)

    def slot(self, ending: str) -> dict[str, Any]:
        """The one slot whose headline ends so."""
        [slot] = [slot for slot in self.slots() if slot["head"].endswith(ending)]
        return slot

    def speak(self, language: str) -> None:
        self.page.locator(f"header [role=group] button[lang={language}]").click()
        expect(self.page.locator("html")).to_have_attribute("lang", re.compile(f"^{language}"))

    def shared_link(self) -> str:
        """Open the share panel, copy, and return what is in its field."""
        self.page.get_by_role("button", name="Share", exact=True).click()
        panel = self.page.get_by_role("dialog", name="Share what you see")
        panel.get_by_role("button", name="Copy link").click()
        expect(panel).to_contain_text("Link copied")
        link = panel.get_by_label("Link", exact=True).input_value()
        self.page.keyboard.press("Escape")
        expect(panel).to_be_hidden()
        return link
