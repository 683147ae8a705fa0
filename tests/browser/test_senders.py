"""A server that asks who sends: said before anything is dropped, with the place to put a token."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.test_accessibility import axe, finds_nothing
from tests.browser.told import TRAIN, inference
from tests.browser.workbench import Workbench
from tests.conftest import StartStack
from tests.live import ROOT, Stack

__all__ = ["axe"]
# As a proxy says it: whoever asks sits at another machine.
ELSEWHERE = {"X-Forwarded-For": "10.0.0.9"}


@pytest.fixture
def asking(start_stack: StartStack) -> Stack:
    return start_stack(PROBE_UPLOAD_REQUIRES_TOKEN="true")


def manage(stack: Stack, *words: str) -> str:
    environment = {**os.environ, **stack.environment, "PROBE_DATA_DIR": str(stack.data)}
    return subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def give(page: Page, secret: str) -> None:
    page.get_by_label("Token or key").fill(secret)
    page.get_by_role("button", name="Use it").click()


def test_who_has_no_token_sees_it_before_dropping_and_gives_one(asking: Stack, visit_of: Callable[[Stack], Visit], axe: str) -> None:
    visit = visit_of(asking)
    visit.tolerate("status of 403")  # the list of comparisons is not theirs
    page = visit("/", extra_http_headers=ELSEWHERE)
    landing = Landing(page)
    expect(page.get_by_role("heading", name="This server asks who sends")).to_be_visible()
    finds_nothing(page, axe)
    for side in ("left", "right"):
        expect(landing.zone(side)).to_contain_text("A token is needed first")
        expect(landing.zone(side).get_by_role("button", name="Choose files")).to_have_attribute("aria-disabled", "true")
    landing.drop("left", TRAIN)
    expect(landing.zone("left")).to_contain_text("A token is needed first")
    assert asking.get("/api/v1/runs/").json()["results"] == []

    give(page, "not-a-token-of-ours")
    expect(page.get_by_role("alert")).to_contain_text("knows no such token")
    Workbench(page).speak("zh")
    expect(page.get_by_role("heading", name="此服务器需要确认发送者")).to_be_visible()
    Workbench(page).speak("en")

    token = manage(asking, "token", "teammate").split()[-1]
    give(page, token)
    expect(page.locator("main")).to_contain_text("This browser sends with a token or key that it keeps.")
    landing.drop("left", TRAIN)
    landing.choose("right", inference("down2"))
    landing.ready("left")
    landing.ready("right")
    landing.compare()
    expect(Workbench(page).sentence).to_contain_text("First divergence: layers.2")

    page.goto("/")
    expect(page.locator("main")).to_contain_text("This browser sends with a token")
    manage(asking, "token", "--revoke", "teammate")
    page.reload()
    expect(page.locator("main")).to_contain_text("is not accepted any more")


def test_the_server_s_own_machine_is_never_asked(asking: Stack, visit_of: Callable[[Stack], Visit]) -> None:
    page = visit_of(asking)("/")
    expect(Landing(page).zone("left")).to_contain_text("Drop the training dump here")
    expect(page.get_by_label("Token or key")).to_have_count(0)
