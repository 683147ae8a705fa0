"""Processes that are killed under queued and running work. Rows are the truth: everything finishes or says that it did not."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from tests.live import Stack, until
from tests.rooms import CORPUS

pytestmark = pytest.mark.timeout(280)

# Shorter than in production, so that a test need not wait half a minute for each of them.
SOON = {"PROBE_INTERRUPTED_AFTER_SECONDS": "5", "PROBE_RESEND_AFTER_SECONDS": "4"}
TRAIN, INFER = CORPUS / "q2_train_stat.zip", CORPUS / "q2_infer_down2_stat.zip"


@pytest.fixture
def stack(start_stack) -> Stack:
    return start_stack(**SOON)


def upload_both(stack: Stack, pair) -> tuple[str, str]:
    left, right = stack.upload(*pair[0], role="train"), stack.upload(*pair[1], role="infer")
    for run in (left, right):
        until("the run is ready", lambda run=run: stack.get(f"/api/v1/runs/{run}/").json()["state"] == "ready", 90)
    return left, right


def running(stack: Stack, pair) -> str:
    """A comparison that a worker is in the middle of."""
    slug = stack.compare(*upload_both(stack, pair))
    found = stack.comparison(slug, "running")
    assert found["progress"] is not None
    until("the engine has said something", lambda: stack.get(f"/api/v1/comparisons/{slug}/").json()["progress"])
    return slug


def small(stack: Stack) -> str:
    return stack.compare(stack.upload(TRAIN, role="train"), stack.upload(INFER, role="infer"))


def attempts_left(stack: Stack) -> list[Path]:
    folders = [stack.data / "runs", stack.data / "comparisons"]
    return [path for folder in folders if folder.exists() for path in folder.glob("*/*") if "attempt" in path.name]


def kill(*processes: psutil.Process) -> None:
    for process in processes:
        process.send_signal(signal.SIGKILL)


def is_right(found) -> bool:
    return found["state"] == "done" and found["verdict"]["first_divergence"]["module"] == "model.layers.2.mlp.down_proj"


def test_a_verdict_is_there_before_the_tree_and_the_whole_way_leaves_nothing_half_made(stack, long_pair):
    slug = running(stack, long_pair)
    early = until(
        "the verdict is known while the comparison still runs",
        lambda: (found := stack.get(f"/api/v1/comparisons/{slug}/").json())["verdict"] is not None and found,
        60,
        0.05,
    )
    done = stack.comparison(slug, "done")
    assert early["verdict"] == done["verdict"]
    assert early["headline"] == done["headline"]
    assert early["state"] == "running", "the verdict came no earlier than the tree"
    assert attempts_left(stack) == []


def test_a_worker_that_is_killed_leaves_a_comparison_that_says_interrupted_and_retries_cleanly(stack, long_pair):
    slug = running(stack, long_pair)
    worker = stack.child("worker")
    kill(*worker.children(recursive=True), worker)
    found = stack.comparison(slug, "interrupted", seconds=30)
    assert found["error"]["code"] in {"worker_lost", "worker_killed"}
    assert found["verdict"] is None
    assert attempts_left(stack) == []
    assert stack.get(f"/api/v1/comparisons/{slug}/tree/").json()["code"] == "not_ready"
    assert stack.post(f"/api/v1/comparisons/{slug}/retry/", {}).json()["state"] == "queued"
    assert stack.comparison(slug, "done")["error"] is None
    assert stack.get(f"/api/v1/comparisons/{slug}/tree/").status == 200
    assert attempts_left(stack) == []


def test_a_process_that_runs_out_of_memory_interrupts_its_comparison_at_once_and_the_worker_goes_on(start_stack, long_pair):
    stack = start_stack()  # with the half minute of production: the worker itself says it, nobody waits
    slug = running(stack, long_pair)
    worker = stack.child("worker")
    kill(*worker.children())
    found = stack.comparison(slug, "interrupted", seconds=10)
    assert found["error"]["code"] == "worker_killed"
    assert stack.child("worker").pid == worker.pid
    assert is_right(stack.comparison(small(stack)))
    stack.post(f"/api/v1/comparisons/{slug}/retry/", {})
    stack.comparison(slug, "done")


def test_work_that_takes_too_long_is_ended_and_says_so(start_stack, long_pair):
    stack = start_stack(PROBE_TASK_TIME_LIMIT_SECONDS="20")
    slug = running(stack, long_pair)
    stack.child("worker").children()[0].suspend()  # it hangs
    found = stack.comparison(slug, "interrupted", seconds=45)
    assert (found["error"]["code"], found["error"]["params"]) == ("time_limit", {"seconds": 20})
    assert attempts_left(stack) == []
    assert is_right(stack.comparison(small(stack)))


def test_a_run_whose_reader_is_killed_is_read_again_by_itself_and_what_waits_for_it_finishes(stack, long_pair):
    left, right = (stack.upload(*side) for side in long_pair)
    slug = stack.compare(left, right)
    until("the run is being read", lambda: stack.get(f"/api/v1/runs/{left}/").json()["state"] == "parsing", every=0.02)
    kill(*stack.child("worker").children())
    stack.comparison(slug, "done", seconds=120)
    assert attempts_left(stack) == []


def test_a_broker_that_is_killed_with_a_full_queue_loses_nothing(stack):
    worker = stack.child("worker")
    worker.suspend()
    slugs = [small(stack) for _ in range(3)]
    broker = stack.child("broker")
    kill(broker)
    slugs.append(small(stack))  # nobody is there to ring
    worker.resume()
    for slug in slugs:
        assert is_right(stack.comparison(slug, seconds=90))
    assert stack.child("broker").pid != broker.pid


def test_queued_work_survives_an_end_and_a_new_start(start_stack):
    stack = start_stack(**SOON)
    stack.child("worker").suspend()
    slugs = [small(stack) for _ in range(2)]
    stack.stop()
    again = start_stack(data=stack.data, **SOON)
    for slug in slugs:
        assert is_right(again.comparison(slug, seconds=90))


def test_a_comparison_that_ctrl_c_cut_off_says_so_after_the_next_start_and_retries(start_stack, long_pair):
    stack = start_stack(**SOON)
    slug = running(stack, long_pair)
    stack.stop()
    again = start_stack(data=stack.data, **SOON)
    found = again.comparison(slug, "interrupted", "done", seconds=40)
    if found["state"] == "interrupted":
        again.post(f"/api/v1/comparisons/{slug}/retry/", {})
    again.comparison(slug, "done")
    assert attempts_left(again) == []


def test_a_running_comparison_is_cancelled_within_seconds_and_leaves_nothing(stack, long_pair):
    slug = running(stack, long_pair)
    stack.post(f"/api/v1/comparisons/{slug}/cancel/", {})
    found = stack.comparison(slug, seconds=15)
    assert (found["state"], found["verdict"], found["error"]) == ("cancelled", None, None)
    until("nothing is left", lambda: attempts_left(stack) == [])
    assert is_right(stack.comparison(small(stack)))
    stack.post(f"/api/v1/comparisons/{slug}/retry/", {})
    stack.comparison(slug, "done")


def test_a_comparison_that_is_deleted_while_it_runs_stops_and_leaves_nothing(stack, long_pair):
    slug = running(stack, long_pair)
    assert stack.call("DELETE", f"/api/v1/comparisons/{slug}/").status == 204
    assert is_right(stack.comparison(small(stack)))
    until("nothing is left", lambda: not any((stack.data / "comparisons" / slug).glob("*")))


def test_bytes_that_are_no_dump_fail_what_waits_for_them_with_the_place(stack, tmp_path):
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\3\4 and then nothing")
    left, right = stack.upload(TRAIN), stack.upload(broken, name="broken")
    slug = stack.compare(left, right)
    found = stack.comparison(slug)
    assert found["state"] == "failed"
    assert "broken.zip" in found["error"]["where"]
    assert found["right"]["error"] == found["error"]
    assert len([path for path in (stack.data / "blobs").rglob("*") if path.is_file()]) == 1


def test_the_examples_come_out_right(start_stack):
    stack = start_stack(example=True)
    examples = until("both examples are there", lambda: len(e := stack.get("/api/v1/about/").json()["examples"]) == 2 and e)
    down2 = stack.comparison(examples["down2"])
    assert is_right(down2)
    assert stack.comparison(examples["walkthrough"])["verdict"]["verdict"] == "consistent"
    assert stack.get("/api/v1/about/").json()["example"] == examples["down2"]
