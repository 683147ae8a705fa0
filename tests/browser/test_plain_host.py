"""The page under a plain host name, as a teammate opens it: the browser gives it no secure context, and everything works."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.browser.conftest import PLAIN_HOST, Visit
from tests.browser.landing import Landing
from tests.browser.told import TRAIN, inference
from tests.browser.workbench import Workbench
from tests.live import Stack


def clipboard(visit: Visit) -> str:
    """What was copied, read where a page may."""
    context = visit.context(permissions=["clipboard-read", "clipboard-write"])
    page: Page = context.new_page()
    page.goto("/")
    return str(page.evaluate("navigator.clipboard.readText()"))


def selected_text(page: Page) -> str:
    return str(page.evaluate("(field => field.value.slice(field.selectionStart, field.selectionEnd))(document.activeElement)"))


def test_uploading_comparing_and_copying_need_no_secure_context(visit: Visit, site: Stack) -> None:
    address = f"http://{PLAIN_HOST}:{urlsplit(site.url).port}"
    page = visit(address)
    assert page.evaluate("[window.isSecureContext, typeof navigator.clipboard, typeof crypto.subtle]") == [False, "undefined", "undefined"]
    landing = Landing(page)
    landing.choose("left", TRAIN)
    landing.drop("right", inference("down2"))
    landing.ready("left")
    landing.ready("right")
    slug = landing.compare()
    bench = Workbench(page).arrived()
    assert bench.said().startswith("First divergence: layers.2 · mlp.down_proj")

    page.keyboard.press("k")
    page.get_by_role("button", name="Share", exact=True).click()
    panel = page.get_by_role("dialog", name="Share what you see")
    panel.get_by_role("button", name="Copy link").click()
    # The link stands selected in its field whether the browser copied it or not.
    expect(panel).to_contain_text("Link copied")
    link = panel.get_by_label("Link", exact=True).input_value()
    assert link.startswith(f"{address}/c/{slug}#v=1&n=")
    assert selected_text(page) == link
    assert clipboard(visit) == link
    page.keyboard.press("Escape")

    page.keyboard.press("y")
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_attached()
    assert clipboard(visit) == link

    there = Workbench(visit(link)).arrived()
    assert there.selected() == bench.selected()
    bench.detail.get_by_role("button", name="Copy the path").click()
    expect(bench.detail.get_by_role("button", name="Copied")).to_be_visible()
    assert clipboard(visit) == bench.selected().path


def test_a_host_that_the_server_does_not_know_is_refused(visit: Visit, site: Stack) -> None:
    answer = site.get("/", Host="evil.example")
    assert answer.status == 400
    assert b"<script" not in answer.body
