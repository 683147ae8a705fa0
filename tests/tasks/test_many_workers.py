"""A comparison of many parts, shared by real workers: taken by both, survived when one is killed, never hidden by one part that fails."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from compare.engine.options import Options
from compare.engine.pipeline import compare_runs
from tests.bench.run_tree import STAGES, RunTree, write_run_tree
from tests.live import ROOT, Stack, ending_with_the_tests, until
from tests.rooms import CORPUS

pytestmark = pytest.mark.timeout(280)

# Shorter than in production, so that a test need not wait half a minute for each of them.
SOON = {"PROBE_INTERRUPTED_AFTER_SECONDS": "5", "PROBE_RESEND_AFTER_SECONDS": "4"}
WHOLE = RunTree(stages=6, steps=20, ranks=8, layers=2)
SOME = RunTree(stages=3, steps=6, ranks=2, layers=4)
DRIFTED = ("reference_compute_log_prob", 2)

Pair = tuple[Path, Path]
Recruit = Callable[[Stack, str], subprocess.Popen[bytes]]


class Row(NamedTuple):
    n: int
    state: str
    worker: str
    attempt: int
    verdict: str

    @property
    def pid(self) -> int:
        return int(self.worker.rpartition("/")[2])


def pair_of(folder: Path, tree: RunTree) -> Pair:
    return write_run_tree(folder / "left.zip", tree), write_run_tree(folder / "right.zip", tree, DRIFTED)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return pair_of(tmp_path_factory.mktemp("whole"), WHOLE)


@pytest.fixture(scope="session")
def some(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return pair_of(tmp_path_factory.mktemp("some"), SOME)


@pytest.fixture
def recruit(tmp_path: Path) -> Iterator[Recruit]:
    """Starts one more worker of a stack, as a second machine would."""
    started: list[subprocess.Popen[bytes]] = []

    def start(stack: Stack, name: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "probe_web.worker", "--name", f"{name}@local"],
                env=stack.child("worker").environ(),
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=ending_with_the_tests(),
            )
        started.append(process)
        until(f"{name} is ready", lambda: b"ready." in (tmp_path / f"{name}.log").read_bytes(), 30)
        return process

    yield start
    for process in started:
        kill_all(process)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """The worker and its pool, as a machine that is switched off."""
    with contextlib.suppress(psutil.NoSuchProcess):
        worker = psutil.Process(process.pid)
        for one in [worker, *worker.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
    process.wait(10)


def rows(stack: Stack, slug: str) -> list[Row]:
    query = "SELECT n, state, worker, attempt, verdict FROM compare_part WHERE comparison_id = ? ORDER BY n"
    with contextlib.closing(sqlite3.connect(f"file:{stack.data / 'probe_web.sqlite3'}?mode=ro", uri=True, timeout=20)) as database:
        return [Row(*row) for row in database.execute(query, (slug,))]


def in_state(stack: Stack, slug: str, state: str) -> list[Row]:
    return [row for row in rows(stack, slug) if row.state == state]


def upload(stack: Stack, pair: Pair) -> tuple[str, str]:
    left, right = stack.upload(pair[0]), stack.upload(pair[1])
    for run in (left, right):
        until("the run is ready", lambda run=run: stack.get(f"/api/v1/runs/{run}/").json()["state"] == "ready", 300)
    return left, right


def alone(stack: Stack, left: str, right: str, place: Path) -> dict[str, Any]:
    """What one process finds in the same runs."""
    folders = [stack.data / "runs" / run / "columns" for run in (left, right)]
    return without_seconds(compare_runs(folders[0], folders[1], Options(), place, lambda *_: None, lambda _: None))


def without_seconds(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "timing"}


def columns_of(stack: Stack, run: str, stage: str, step: int) -> list[Path]:
    """The column folders of one part of a run, a rank each."""
    columns = stack.data / "runs" / run / "columns"
    dumps = json.loads((columns / "inventory.json").read_bytes())["dumps"]
    return [columns / dump["folder"] for dump in dumps if (dump["stage"], dump["step"]) == (stage, step)]


def attempts_left(stack: Stack, slug: str) -> list[str]:
    return [path.name for path in (stack.data / "comparisons" / slug).glob("*") if "attempt" in path.name]


@pytest.mark.timeout(900)
def test_two_workers_share_six_stages_of_twenty_steps_and_eight_ranks(start_stack, recruit, whole, tmp_path):
    stack = start_stack()
    recruit(stack, "second")
    left, right = upload(stack, whole)
    slug = stack.compare(left, right)
    until("a part is done", lambda: in_state(stack, slug, "done"), 60)
    early = stack.get(f"/api/v1/comparisons/{slug}/").json()
    assert (early["state"], early["verdict"], early["progress"]["of"]) == ("running", None, 120)
    n = next(part["n"] for part in early["parts"] if part["state"] == "done")
    assert stack.get(f"/api/v1/comparisons/{slug}/parts/{n}/tree/").status == 200
    done = stack.comparison(slug, "done", seconds=300)
    shares = {name: sum(row.worker.startswith(f"{name}@") for row in rows(stack, slug)) for name in ("worker", "second")}
    assert min(shares.values()) >= 30, shares
    assert sum(shares.values()) == len(done["parts"]) == 120
    assert {(row.state, row.attempt) for row in rows(stack, slug)} == {("done", 1)}
    assert done["verdict"]["parts"][0]["ranks"] == list(range(8))
    assert (done["verdict"]["first"]["stage"], done["verdict"]["first"]["step"]) == DRIFTED
    assert without_seconds(done["verdict"]) == alone(stack, left, right, tmp_path / "alone")
    assert attempts_left(stack, slug) == []


def test_a_worker_that_is_killed_in_the_middle_costs_nothing_but_time(start_stack, recruit, some, tmp_path):
    stack = start_stack(**SOON)
    second = recruit(stack, "second")
    left, right = upload(stack, some)
    slug = stack.compare(left, right)
    until(
        "the second worker has a part in hand",
        lambda: any(row.worker.startswith("second@") for row in in_state(stack, slug, "running")),
        60,
        0.005,
    )
    kill_all(second)
    done = stack.comparison(slug, "done", seconds=120)
    assert {row.state for row in rows(stack, slug)} == {"done"}
    assert without_seconds(done["verdict"]) == alone(stack, left, right, tmp_path / "alone")
    assert attempts_left(stack, slug) == []


@pytest.fixture(scope="session")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same with the key data and configurations of two real runs."""
    folder = tmp_path_factory.mktemp("looped")
    left = write_run_tree(folder / "left.zip", SOME, loop=CORPUS / "rl_run_a.zip")
    return left, write_run_tree(folder / "right.zip", SOME, DRIFTED, loop=CORPUS / "rl_run_b.zip")


def loop_row(stack: Stack, slug: str) -> tuple[str, str, int]:
    """State, worker and attempt of the key data's piece."""
    query = "SELECT state, worker, attempt FROM compare_loop WHERE comparison_id = ?"
    with contextlib.closing(sqlite3.connect(f"file:{stack.data / 'probe_web.sqlite3'}?mode=ro", uri=True, timeout=20)) as database:
        return database.execute(query, (slug,)).fetchone() or ("", "", 0)


def test_key_data_are_there_while_the_parts_are_compared_and_survive_their_worker(start_stack, recruit, looped, tmp_path):
    stack = start_stack(**SOON)
    left, right = upload(stack, looped)
    tables = stack.data / "runs" / left / "columns" / "key_data" / "meta.json"
    content = tables.read_bytes()
    tables.unlink()
    os.mkfifo(tables)  # whoever compares the key data waits for what they are
    second = recruit(stack, "second")
    slug = stack.compare(left, right)
    until("somebody has the key data in hand", lambda: loop_row(stack, slug)[0] == "running", 60, 0.005)
    until("the other one has compared all parts meanwhile", lambda: len(in_state(stack, slug, "done")) == SOME.parts, 120)
    found = stack.get(f"/api/v1/comparisons/{slug}/").json()
    assert (found["state"], found["verdict"], found["loop"]["state"]) == ("running", None, "running")
    assert stack.get(f"/api/v1/comparisons/{slug}/key-data/").json()["code"] == "not_ready"
    worker, _, pid = loop_row(stack, slug)[1].rpartition("/")
    if worker.startswith("second@"):
        kill_all(second)
    else:
        os.kill(int(pid), signal.SIGKILL)
    tables.unlink()
    tables.write_bytes(content)
    done = stack.comparison(slug, "done", seconds=120)
    assert loop_row(stack, slug)[::2] == ("done", 2)
    assert {row.attempt for row in rows(stack, slug)} == {1}
    assert done["verdict"]["first"]["key_data"] == "ref_log_prob"
    assert stack.get(f"/api/v1/comparisons/{slug}/key-data/").json()["keys"] == done["verdict"]["key_data"]
    assert without_seconds(done["verdict"]) == alone(stack, left, right, tmp_path / "alone")
    assert attempts_left(stack, slug) == []


def test_every_worker_killed_in_the_middle_and_started_again_goes_on_where_they_were(start_stack, some, tmp_path):
    stack = start_stack(**SOON)
    left, right = upload(stack, some)
    slug = stack.compare(left, right)
    until("some parts are done", lambda: len(in_state(stack, slug, "done")) >= 3, 60, 0.02)
    worker = stack.child("worker")
    for process in [*worker.children(recursive=True), worker]:
        process.send_signal(signal.SIGKILL)
    finished = {row.n for row in in_state(stack, slug, "done")}
    done = stack.comparison(slug, "done", seconds=120)
    again = {row.n for row in rows(stack, slug) if row.attempt > 1}
    assert finished.isdisjoint(again)
    assert len(again) <= 1
    assert without_seconds(done["verdict"]) == alone(stack, left, right, tmp_path / "alone")


def test_a_part_that_fails_is_named_and_the_others_are_compared(start_stack, some):
    stack = start_stack()
    left, right = upload(stack, some)
    for folder in columns_of(stack, left, STAGES[0], 1):
        (folder / "meta.json").write_text('{"format": 99}')
    slug = stack.compare(left, right)
    found = stack.comparison(slug)
    assert (found["state"], found["verdict"]["verdict"], found["error"]) == ("done", "diverged", None)
    failed = [part for part in found["parts"] if part["state"] == "failed"]
    assert [(part["stage"], part["step"], part["error"]["code"]) for part in failed] == [(STAGES[0], 1, "stored_format")]
    assert [part["n"] for part in found["verdict"]["parts"] if part["state"] == "failed"] == [failed[0]["n"]]
    assert f"1 part failed: {STAGES[0]} step 1" in found["headline"]["en"]
    assert stack.get(f"/api/v1/comparisons/{slug}/parts/{failed[0]['n']}/tree/").json()["code"] == "stored_format"
    assert stack.post(f"/api/v1/comparisons/{slug}/retry/", {}).json()["state"] == "queued"
    stack.comparison(slug, "done")
    assert {row.attempt for row in rows(stack, slug) if row.n != failed[0]["n"]} == {1}


def blocked(stack: Stack, run: str, stage: str, step: int) -> None:
    """A part whose worker never comes to its end: its columns are a pipe that nobody writes to."""
    column = columns_of(stack, run, stage, step)[0] / "columns.bin"
    column.unlink()
    os.mkfifo(column)


def test_a_part_that_kills_each_worker_fails_and_takes_nothing_down_with_it(start_stack, some):
    stack = start_stack()  # with the half minute of production: the worker itself says that its process died
    left, right = upload(stack, some)
    blocked(stack, left, STAGES[0], 0)
    slug = stack.compare(left, right)
    for attempt in (1, 2, 3):
        poison = until(
            "the part is in hand",
            lambda attempt=attempt: [row for row in in_state(stack, slug, "running") if (row.n, row.attempt) == (0, attempt)],
            60,
        )
        os.kill(poison[0].pid, signal.SIGKILL)
    found = stack.comparison(slug, seconds=60)
    assert (found["state"], found["verdict"]["verdict"]) == ("done", "diverged")
    assert [(part["n"], part["error"]["code"]) for part in found["parts"] if part["state"] == "failed"] == [(0, "worker_killed")]
    assert {row.attempt for row in rows(stack, slug) if row.n} == {1}


def test_a_cancel_stops_the_parts_and_frees_the_worker_even_of_one_that_hangs(start_stack, some):
    stack = start_stack(**SOON)
    left, right = upload(stack, some)
    blocked(stack, left, STAGES[0], 1)
    slug = stack.compare(left, right)
    until("the part that hangs is in hand", lambda: [row for row in in_state(stack, slug, "running") if row.n == SOME.stages], 60)
    found = stack.post(f"/api/v1/comparisons/{slug}/cancel/", {}).json()
    assert (found["state"], found["verdict"]) == ("cancelled", None)
    assert {row.state for row in rows(stack, slug)} == {"done", "cancelled"}
    small = stack.compare(stack.upload(CORPUS / "q2_train_stat.zip"), stack.upload(CORPUS / "q2_infer_stat.zip"))
    assert stack.comparison(small, seconds=60)["state"] == "done"
    assert {row.state for row in rows(stack, slug)} == {"done", "cancelled"}
    until("nothing half made is left", lambda: attempts_left(stack, slug) == [])


def test_a_small_comparison_does_not_wait_for_the_parts_of_a_large_one(start_stack, whole):
    stack = start_stack()
    large = stack.compare(*upload(stack, whole))
    until("parts are being compared", lambda: in_state(stack, large, "done"), 60)
    begin = time.monotonic()
    left, right = stack.upload(CORPUS / "q2_train_stat.zip"), stack.upload(CORPUS / "q2_infer_stat.zip")
    assert stack.comparison(stack.compare(left, right))["state"] == "done"
    took = time.monotonic() - begin
    waiting = in_state(stack, large, "queued")
    assert len(waiting) >= 20, f"{len(waiting)} parts were left after {took:.1f} s"
    stack.post(f"/api/v1/comparisons/{large}/cancel/", {})
