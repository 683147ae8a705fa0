"""Uploads that are cut off: they go on where they stood, and what arrives is what was sent."""

from __future__ import annotations

import hashlib
import re
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.bench.large_dump import Extent, write_large_dump
from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.relay import Relay
from tests.conftest import StartStack
from tests.live import Stack, free_port, until

BYTES_A_SECOND = 8_000_000
# What a browser says about requests that a test takes the line away from.
LOST = "net::ERR_(CONNECTION_(REFUSED|RESET|CLOSED|ABORTED)|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)"


@pytest.fixture(scope="session")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of more than 20 MB in an archive that does not make it smaller."""
    folder = tmp_path_factory.mktemp("heavy")
    write_large_dump(folder / "dump", Extent(micro_batches=3))
    with zipfile.ZipFile(folder / "heavy.zip", "w", zipfile.ZIP_STORED) as archive:
        for file in sorted((folder / "dump").iterdir()):
            archive.write(file, f"step0/rank0/{file.name}")
    assert (folder / "heavy.zip").stat().st_size > 20_000_000
    return folder / "heavy.zip"


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def slow_line(page: Page) -> None:
    """A home connection's upload, by the browser's own throttle: the middle of it lasts."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")
    conditions = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": BYTES_A_SECOND}
    devtools.send("Network.emulateNetworkConditions", conditions)


def in_the_middle(landing: Landing) -> int:
    """Wait until some of it is under way and some is not."""
    return int(until("the upload is in the middle", lambda: 15 <= (done := landing.progress("left")) <= 85 and done, 60, every=0.02))


def stored(stack: Stack, file: Path) -> bytes:
    digest = sha256(file)
    return (stack.data / "blobs" / digest[:2] / digest).read_bytes()


def arrives_whole(landing: Landing, stack: Stack, file: Path) -> None:
    landing.ready("left")
    assert stored(stack, file) == file.read_bytes()
    assert landing.sha256("left") == sha256(file)


def test_an_upload_survives_a_lost_connection(visit: Visit, site: Stack, heavy: Path) -> None:
    visit.tolerate(LOST)
    relay = Relay(site.url)
    try:
        page = visit(relay.url)
        landing = Landing(page)
        slow_line(page)
        landing.choose("left", heavy)
        in_the_middle(landing)
        expect(landing.zone("left")).to_contain_text(re.compile(r"% · [\d.]+ of 25\.\d\sMB · [\d.]+\sMB/s · "))
        relay.cut()
        expect(landing.zone("left")).to_contain_text("Connection lost, trying again")
        relay.mend()
        expect(landing.zone("left")).not_to_contain_text("Connection lost")
        arrives_whole(landing, site, heavy)
    finally:
        relay.cut()


def test_an_upload_is_paused_and_goes_on(visit: Visit, site: Stack, tmp_path: Path) -> None:
    other = tmp_path / "paused.bin.json"
    other.write_bytes(b'{"task": "statistics", "level": "L0", "data": {}' + b" " * 20_000_000 + b"}")
    page = visit("/")
    landing = Landing(page)
    slow_line(page)
    landing.choose("left", other)
    in_the_middle(landing)
    landing.zone("left").get_by_role("button", name="Pause").click()
    expect(landing.zone("left")).to_contain_text("Paused")
    at = landing.progress("left")
    landing.zone("left").get_by_role("button", name="Resume").click()
    until("it goes on from there", lambda: landing.progress("left") > at, 30)


def test_an_upload_survives_a_server_that_is_killed_and_started_again(
    start_stack: StartStack, visit_of: Callable[[Stack], Visit], heavy: Path
) -> None:
    port = str(free_port())
    stack = start_stack("--port", port)
    visit = visit_of(stack)
    visit.tolerate(LOST)
    page = visit("/")
    landing = Landing(page)
    slow_line(page)
    landing.choose("left", heavy)
    in_the_middle(landing)
    web = stack.child("web server")
    for process in [*web.children(recursive=True), web]:
        process.send_signal(signal.SIGKILL)
    expect(landing.zone("left")).to_contain_text("Connection lost, trying again")
    stack.stop()
    again = start_stack("--port", port, data=stack.data)
    expect(landing.zone("left")).not_to_contain_text("Connection lost")
    arrives_whole(landing, again, heavy)


def test_an_upload_to_a_server_that_hangs_says_so_and_goes_on(
    start_stack: StartStack, visit_of: Callable[[Stack], Visit], heavy: Path
) -> None:
    """Nothing ends such a request: the page said 0 B/s for as long as it lasted."""
    stack = start_stack()
    page = visit_of(stack)("/")
    landing = Landing(page)
    slow_line(page)
    landing.choose("left", heavy)
    in_the_middle(landing)
    web = stack.child("web server")
    processes = [*web.children(recursive=True), web]
    for process in processes:
        process.suspend()
    try:
        expect(landing.zone("left")).to_contain_text(re.compile(r"Connection lost, trying again.* · \d+\s% · [\d.]+ of 25\.\d\sMB"))
    finally:
        for process in processes:
            process.resume()
    expect(landing.zone("left")).not_to_contain_text("Connection lost")
    arrives_whole(landing, stack, heavy)


def test_a_closed_tab_is_no_loss_the_same_file_goes_on_from_where_it_stood(visit: Visit, site: Stack, tmp_path: Path, heavy: Path) -> None:
    # Bytes of its own, or the server would know them already from the other tests.
    file = tmp_path / "tab.zip"
    with zipfile.ZipFile(heavy) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(f"again/{name}", old.read(name))
    page = visit("/")
    landing = Landing(page)
    slow_line(page)
    landing.choose("left", file)
    in_the_middle(landing)
    page.close()

    landing = Landing(page := visit.contexts[0].new_page())
    page.goto("/")
    slow_line(page)
    landing.choose("left", file)
    arrives_whole(landing, site, file)
    # Still said when all of it is there: a short rest is sent faster than anybody reads.
    expect(landing.zone("left")).to_contain_text(re.compile(r"Resumed: [\d.]+\sMB were here already"))


def test_a_page_that_was_loaded_again_asks_for_the_same_file_and_goes_on(visit: Visit, site: Stack, tmp_path: Path, heavy: Path) -> None:
    file = tmp_path / "reload.zip"
    with zipfile.ZipFile(heavy) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(f"reloaded/{name}", old.read(name))
    page = visit("/")
    landing = Landing(page)
    slow_line(page)
    landing.choose("left", file)
    in_the_middle(landing)
    page.reload()
    expect(landing.zone("left")).to_contain_text("The upload of reload stopped")
    expect(landing.zone("left")).to_contain_text("Choose the same files again and it goes on from there.")
    slow_line(page)
    landing.choose("left", file)
    arrives_whole(landing, site, file)
    expect(landing.zone("left")).to_contain_text("were here already")
