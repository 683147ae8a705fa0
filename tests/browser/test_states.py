"""A comparison that runs, is cancelled, loses its worker, or cannot be made."""

from __future__ import annotations

import hashlib
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.bench.large_dump import Extent, write_large_dump
from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.relay import Relay
from tests.browser.test_resume import LOST
from tests.browser.told import TRAIN, inference
from tests.browser.workbench import Workbench
from tests.conftest import _starter
from tests.live import Stack, until


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A server whose worker may be stopped and killed; a silent worker counts as lost sooner than in production."""
    started: list[Stack] = []
    yield _starter(tmp_path_factory.mktemp("own"), started)(PROBE_INTERRUPTED_AFTER_SECONDS="8")
    for stack in started:
        stack.stop()


@pytest.fixture(scope="module")
def large_runs(own: Stack, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two runs of 50,000 nodes: long enough in the worker's hands to be caught there."""
    folder = tmp_path_factory.mktemp("large")
    ids = []
    for side, role, drift in (("left", "train", None), ("right", "infer", 40)):
        write_large_dump(folder / side, Extent(micro_batches=5, drift_from=drift))
        ids.append(own.upload(*sorted((folder / side).iterdir()), name=f"large-{side}", role=role))
    for run in ids:
        until("the run is read", lambda run=run: own.get(f"/api/v1/runs/{run}/").json()["state"] == "ready", 60)
    return ids[0], ids[1]


class Worker:
    """The worker with its pool, to be stopped in the middle of a comparison."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        worker = stack.child("worker")
        self.processes = [*worker.children(recursive=True), worker]

    def send(self, number: int) -> None:
        for process in self.processes:
            if process.is_running():
                process.send_signal(number)

    def stop_at(self, slug: str) -> None:
        """Stop it while it is at this comparison, has said how far it is, and knows no verdict yet.

        It runs in short stretches and is looked at between them: however busy the machine is, it cannot get far unseen.
        """

        def caught() -> bool:
            self.send(signal.SIGSTOP)
            found = self.stack.get(f"/api/v1/comparisons/{slug}/").json()
            assert found["state"] in {"queued", "running"}, "it ended before it was caught"
            if found["state"] == "running" and found["progress"].get("stage"):
                return True
            self.send(signal.SIGCONT)
            return False

        until("the worker is at it", caught, 60, every=0.03)
        assert self.stack.get(f"/api/v1/comparisons/{slug}/").json()["verdict"] is None, "it was caught too late"


def test_a_comparison_shows_that_it_waits_then_its_stage_with_a_number_and_is_cancelled_from_the_page(
    own: Stack, large_runs: tuple[str, str], visit_of: Callable[[Stack], Visit]
) -> None:
    worker = Worker(own)
    try:
        worker.send(signal.SIGSTOP)
        slug = own.compare(*large_runs)
        page = visit_of(own)(f"/c/{slug}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Waiting for a worker")
        expect(page.locator("main")).to_contain_text("statistics, mix, bf16 · 1 step × 1 rank")
        worker.send(signal.SIGCONT)
        worker.stop_at(slug)
        expect(page.get_by_role("heading", level=1)).to_have_text("Comparing")
        stage = page.get_by_role("list", name="Progress").locator("[aria-current=step]")
        expect(stage).to_contain_text("%")
        page.get_by_role("button", name="Cancel the comparison").click()
        expect(page.get_by_role("button", name="Cancelling")).to_have_attribute("aria-disabled", "true")
    finally:
        worker.send(signal.SIGCONT)
    expect(page.get_by_role("heading", level=1)).to_have_text("This comparison was cancelled")
    assert list((own.data / "comparisons").glob(f"*/{slug}*")) == []
    page.get_by_role("button", name="Retry").click()
    expect(Workbench(page).sentence).to_contain_text("First divergence: layers.40")


def test_a_server_that_goes_away_while_a_comparison_runs_is_said_and_the_page_follows_when_it_is_back(
    own: Stack, large_runs: tuple[str, str], visit_of: Callable[[Stack], Visit]
) -> None:
    worker, relay = Worker(own), Relay(own.url)
    visit = visit_of(own)
    visit.tolerate(LOST)
    visit.tolerate("net::ERR_INTERNET_DISCONNECTED")
    try:
        worker.send(signal.SIGSTOP)
        slug = own.compare(*large_runs)
        page = visit(f"{relay.url}/c/{slug}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Waiting for a worker")
        lost = page.get_by_role("status").filter(has_text="The server does not answer; trying again.")
        expect(lost).to_have_count(0)
        relay.cut()
        expect(lost).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Waiting for a worker")
        relay.mend()
        expect(lost).to_have_count(0)
        # A browser that thinks itself offline asks all the same: the server may be this machine.
        page.context.set_offline(True)
        expect(lost).to_be_visible()
        page.context.set_offline(False)
        expect(lost).to_have_count(0)
        # A server that hangs answers nothing and refuses nothing.
        web = own.child("web server")
        hanging = [*web.children(recursive=True), web]
        for process in hanging:
            process.suspend()
        try:
            expect(lost).to_be_visible()
        finally:
            for process in hanging:
                process.resume()
        expect(lost).to_have_count(0)
        worker.send(signal.SIGCONT)
        expect(Workbench(page).sentence).to_contain_text("First divergence: layers.40")
    finally:
        worker.send(signal.SIGCONT)
        relay.cut()


def test_a_killed_worker_leaves_a_page_that_says_so_and_a_retry_ends_well(
    own: Stack, large_runs: tuple[str, str], visit_of: Callable[[Stack], Visit]
) -> None:
    slug = own.compare(*large_runs)
    worker = Worker(own)
    try:
        worker.stop_at(slug)
        page = visit_of(own)(f"/c/{slug}")
        worker.send(signal.SIGKILL)
    finally:
        worker.send(signal.SIGCONT)
    expect(page.get_by_role("heading", level=1)).to_have_text("This comparison was interrupted")
    expect(page.get_by_role("alert")).to_contain_text("retry starts it again")
    page.get_by_role("button", name="Retry").click()
    expect(Workbench(page).sentence).to_contain_text("First divergence: layers.40")
    Workbench(page).arrived()


def truncated(folder: Path) -> Path:
    """A dump that was cut off while it was written."""
    with zipfile.ZipFile(inference("clean")) as members:
        content = members.read("step0/rank0/dump.json")
    broken = folder / "dump.json"
    broken.write_bytes(content[: len(content) // 2])
    return broken


def test_a_truncated_dump_gets_one_sentence_with_file_and_place_and_leaves_nothing(
    own: Stack, visit_of: Callable[[Stack], Visit], tmp_path: Path
) -> None:
    page = visit_of(own)("/")
    landing = Landing(page)
    landing.choose("left", TRAIN)
    broken = truncated(tmp_path)
    landing.choose("right", broken)
    card = landing.zone("right")
    expect(card).to_contain_text("Cannot be read")
    [sentence] = card.get_by_role("alert").all_inner_texts()
    assert "dump.json" in sentence
    assert any(word in sentence for word in ("byte", "line")), sentence
    assert "\n" not in sentence.strip()
    landing.ready("left")
    expect(page.get_by_role("button", name="Compare, one side cannot be read")).to_have_attribute("aria-disabled", "true")

    [failed] = [run for run in own.get("/api/v1/runs/").json()["results"] if run["state"] == "failed"]
    assert failed["inventory"] is None
    assert list((own.data / "runs").glob(f"*/{failed['id']}*")) == []
    assert not list((own.data / "blobs").rglob(hashlib.sha256(broken.read_bytes()).hexdigest()))

    # The same side takes the right file afterwards.
    landing.choose("right", inference("down2"))
    landing.ready("right")
    landing.compare()
    expect(Workbench(page).sentence).to_contain_text("First divergence: layers.2 · mlp.down_proj")


def test_a_comparison_whose_dump_turns_out_broken_says_which_side_and_why(
    own: Stack, visit_of: Callable[[Stack], Visit], tmp_path: Path
) -> None:
    """A script may compare before the dumps were read; the page of that comparison explains."""
    worker = Worker(own)
    worker.send(signal.SIGSTOP)
    try:
        left = own.upload(TRAIN, role="train")
        slug = own.compare(left, own.upload(truncated(tmp_path), name="cut-off", role="infer"))
    finally:
        worker.send(signal.SIGCONT)
    page = visit_of(own)(f"/c/{slug}")
    expect(page.get_by_role("heading", level=1)).to_have_text("This comparison failed")
    expect(page.get_by_role("alert")).to_contain_text("Inference cut-off")
    expect(page.get_by_role("alert")).to_contain_text("dump.json")
    page.get_by_role("button", name="Choose other dumps").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Where do these two runs first part?")


def test_a_link_that_leads_nowhere_says_so(visit: Visit) -> None:
    visit.tolerate(r"status of 404")
    page = visit("/c/not-there")
    expect(page.get_by_role("heading", level=1)).to_have_text("No comparison here")
    page.goto("/no/such/page")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no page here")
