"""One browser and one server for all browser tests, a fresh context for each page that a test opens."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.told import CORPUS, TRAIN, inference
from tests.conftest import _starter
from tests.live import ROOT, Stack, missing, until

# A plain host name, as a teammate's machine has one on the local network: no secure context.
PLAIN_HOST = "probe.test"
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"),
    f"--host-resolver-rules=MAP {PLAIN_HOST} 127.0.0.1",
]
# Two cores that everything shares: a condition may take its time, and is no slower for it when it holds at once.
PATIENCE_MS = 30_000
# The page's policy is enforced by the browser; what it stops must be heard even where the console says nothing.
LISTEN_TO_POLICY = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} stopped ${event.blockedURI || "inline"} (${event.sourceFile}:${event.lineNumber})`))"""


def chromium_binary() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        missing("chromium", "chromium")
    return str(found)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if not (ROOT / "frontend" / "dist" / "index.html").exists():
        pytest.fail("the front end is not built: scripts/bootstrap.sh dev")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_binary(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A server with the examples loaded, which also answers to PLAIN_HOST. Tests share it: none stops it or counts what it holds."""
    started: list[Stack] = []
    yield _starter(tmp_path_factory.mktemp("site"), started)(example=True, PROBE_HOST_NAMES=PLAIN_HOST)
    for stack in started:
        stack.stop()


class Visits:
    """Pages in contexts of their own. `visit("/c/…", viewport=…)` opens one; `tolerate` names complaints that a test brings about."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self.address = address
        self.contexts: list[BrowserContext] = []
        self.complaints: list[str] = []
        self.tolerated: list[str] = []

    def context(self, **options: Any) -> BrowserContext:
        options = {"base_url": self.address, "locale": "en-GB", "viewport": {"width": 1440, "height": 900}, **options}
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(LISTEN_TO_POLICY)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        self.contexts.append(context)
        return context

    def __call__(self, path: str = "/", **options: Any) -> Page:
        page = self.context(**options).new_page()
        page.goto(path)
        return page

    def tolerate(self, pattern: str) -> None:
        self.tolerated.append(pattern)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def unexpected(self) -> list[str]:
        return [line for line in self.complaints if not any(re.search(pattern, line) for pattern in self.tolerated)]

    def photograph(self, folder: Path) -> None:
        """What was on screen when a test failed."""
        pages = [page for context in self.contexts for page in context.pages]
        for number, page in enumerate(pages):
            page.screenshot(path=folder / f"page-{number}.png")
            print(f"{page.url} looked like {folder / f'page-{number}.png'}")  # noqa: T201  pytest shows it with the failure

    def close(self) -> None:
        for context in self.contexts:
            context.close()


Visit = Visits
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


def _visits(browser: Browser, address: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Visits]:
    visits = Visits(browser, address)
    yield visits
    try:
        if request.node.stash.get(FAILED, False):
            visits.photograph(folder)
    finally:
        visits.close()
    assert visits.unexpected() == [], "the console of a page complained"


@pytest.fixture
def visit(chromium: Browser, site: Stack, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Visits]:
    """Opens pages of `site`."""
    yield from _visits(chromium, site.url, request, tmp_path)


@pytest.fixture
def visit_of(chromium: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[Stack], Visits]]:
    """Opens pages of a server of the test's own: `visit_of(stack)` is its `visit`."""
    opened: list[Iterator[Visits]] = []

    def of(stack: Stack) -> Visits:
        opened.append(_visits(chromium, stack.url, request, tmp_path))
        return next(opened[-1])

    yield of
    for visits in opened:
        with pytest.raises(StopIteration):
            next(visits)


@pytest.fixture(scope="session")
def compared(site: Stack) -> dict[str, str]:
    """Finished comparisons to look at, by name: the two examples, a NaN, an operation between two records, other tokens."""

    def examples() -> dict[str, str]:
        rows = site.get("/api/v1/comparisons/").json()["results"]
        found = {row["example"]: row["id"] for row in rows if row["example"]}
        return found if {"down2", "walkthrough"} <= set(found) else {}

    train = site.upload(TRAIN, role="train")
    made = {case: site.compare(train, site.upload(inference(case), role="infer")) for case in ("nan3", "rope")}
    made["tokens"] = site.compare(site.upload(CORPUS / "q2b_train_stat.zip"), site.upload(CORPUS / "q2b_infer_tok_stat.zip"))
    found = {**until("the examples are loaded", examples), **made}
    for slug in found.values():
        assert site.comparison(slug)["state"] == "done"
    return found
