"""A full disk, a database or a broker that is gone: what arrived stays, what is queued is done, and it goes on by itself."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.live import Stack, answers_sql, as_other_user, ending_with_the_tests, initdb, postgres_server, redis_server, until
from tests.rooms import CORPUS
from tests.tasks.test_uploads_survive import TUS, begin, offset, patch

pytestmark = pytest.mark.timeout(280)

MEGABYTE = 1024**2
TRAIN, INFER = CORPUS / "q2_train_stat.zip", CORPUS / "q2_infer_down2_stat.zip"
SOON = {"PROBE_INTERRUPTED_AFTER_SECONDS": "5", "PROBE_RESEND_AFTER_SECONDS": "3"}


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A disk of 48 MB: a file system in memory, which only root may mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"LEFT OUT: no disk can be filled here, mounting one needs root ({mounted.stderr.strip()})")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=False)


def done(stack: Stack, slug: str) -> bool:
    found = stack.comparison(slug, seconds=90)
    return found["state"] == "done" and found["verdict"]["first_divergence"]["module"] == "model.layers.2.mlp.down_proj"


def fill(disk: Path) -> Path:
    """Take all that is left of a disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as out:
        for size in (MEGABYTE, 4096):
            try:
                while True:
                    out.write(bytes(size))
            except OSError:
                continue
    return ballast


def test_a_disk_that_fills_up_keeps_what_arrived_and_everything_goes_on_once_there_is_room(start_stack, small_disk):
    stack = start_stack(data=small_disk / "data", PROBE_DISK_RESERVE_BYTES="0", **SOON)
    before = stack.compare(stack.upload(TRAIN), stack.upload(INFER))
    assert done(stack, before)
    content = os.urandom(12 * MEGABYTE)
    url = begin(stack, len(content))
    assert patch(stack, url, 0, content[:MEGABYTE]).status == 204
    ballast = fill(small_disk)
    full = patch(stack, url, MEGABYTE, content[MEGABYTE:])
    assert (full.status, full.json()["code"]) == (507, "disk_full"), full
    for attempt in (stack.call("POST", "/api/v1/uploads/", b"", {**TUS, "Upload-Length": "5"}), stack.post("/api/v1/comparisons/", {})):
        assert attempt.status in {400, 507}, attempt
        assert "Traceback" not in str(attempt)
    at = offset(stack, url)
    assert MEGABYTE <= at < len(content)
    assert stack.get(f"/api/v1/comparisons/{before}/").json()["state"] == "done", "what is there can be read"
    ballast.unlink()
    assert patch(stack, url, at, content[at:]).status == 204
    assert stack.call("GET", url).json()["sha256"] == hashlib.sha256(content).hexdigest()
    assert done(stack, stack.compare(stack.upload(TRAIN), stack.upload(INFER)))


def test_work_on_a_full_disk_ends_in_a_sentence_and_is_done_on_a_retry(start_stack, small_disk):
    stack = start_stack(data=small_disk / "data", PROBE_DISK_RESERVE_BYTES="0", **SOON)
    worker = stack.child("worker")
    worker.suspend()
    slug = stack.compare(stack.upload(TRAIN), stack.upload(INFER))
    ballast = fill(small_disk)
    worker.resume()

    def ended() -> bool:
        answer = stack.get(f"/api/v1/comparisons/{slug}/")
        assert answer.status == 200, answer
        return bool(answer.json()["state"] in {"failed", "queued", "interrupted"})

    until(
        "the worker has tried",
        lambda: "disk" in stack.log("worker").lower() or stack.get(f"/api/v1/comparisons/{slug}/").json()["error"],
        60,
    )
    assert ended()
    assert worker.is_running()
    ballast.unlink()

    def right() -> bool:
        found = stack.get(f"/api/v1/comparisons/{slug}/").json()
        if found["state"] in {"failed", "interrupted"}:
            stack.post(f"/api/v1/comparisons/{slug}/retry/", {})
        return bool(found["state"] == "done")

    until("it is done", right, 120, 1)


def test_a_postgresql_that_is_gone_for_a_while_costs_neither_uploads_nor_queued_work(start_stack, tmp_path, redis_url):
    with postgres_server(tmp_path / "postgres") as url:
        stack = start_stack(DATABASE_URL=url, REDIS_URL=redis_url, **SOON)
        content = os.urandom(3 * MEGABYTE)
        upload = begin(stack, len(content))
        assert patch(stack, upload, 0, content[:MEGABYTE]).status == 204
        worker = stack.child("worker")
        family = [worker, *worker.children(recursive=True)]
        for process in family:
            process.suspend()
        slug = stack.compare(stack.upload(TRAIN), stack.upload(INFER))
        server = next(p for p in psutil.process_iter() if "postgres" in p.name() and str(tmp_path) in " ".join(p.cmdline()))
        paused = [server, *server.children(recursive=True)]
        for process in reversed(paused):
            with suppress(psutil.NoSuchProcess):  # a backend whose client just left
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(paused, timeout=10)
        for process in family:
            process.resume()
        gone = stack.get(f"/api/v1/comparisons/{slug}/")
        assert (gone.status, gone.json()["code"]) == (503, "unavailable"), gone
        assert gone.headers["Retry-After"] == "5"
        cut = patch(stack, upload, MEGABYTE, content[MEGABYTE:])
        assert cut.status == 503, cut
        assert stack.get("/healthz").status == 503
        with started_again(tmp_path / "postgres", url):
            until("it serves again", lambda: stack.get("/healthz").status == 200, 60)
            at = offset(stack, upload)
            assert at >= MEGABYTE
            assert patch(stack, upload, at, content[at:]).status == 204
            assert stack.call("GET", upload).json()["sha256"] == hashlib.sha256(content).hexdigest()
            assert done(stack, slug)
            stack.stop()


@contextmanager
def started_again(folder: Path, url: str) -> Iterator[None]:
    """The same cluster at the same address, after a death that left its lock behind."""
    program = initdb()
    assert program is not None
    cluster, port = folder / "cluster", url.rsplit(":", 1)[1].split("/", maxsplit=1)[0]
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    words = [str(program.with_name("postgres")), "-D", str(cluster), "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"]
    with (folder / "again.log").open("ab") as log:
        process = subprocess.Popen([*as_other_user(), *words], stdout=log, stderr=log, cwd=folder, preexec_fn=ending_with_the_tests())
    try:
        until("PostgreSQL answers again", lambda: answers_sql(url), 30)
        yield
    finally:
        for child in [*psutil.Process(process.pid).children(), psutil.Process(process.pid)]:
            with suppress(psutil.Error):
                child.send_signal(signal.SIGINT)
        process.wait(20)


def test_a_broker_that_is_gone_while_a_push_goes_on_costs_nothing(start_stack, tmp_path):
    with redis_server(tmp_path / "redis") as url:
        stack = start_stack(REDIS_URL=url, **SOON)
    begun = begin(stack, TRAIN.stat().st_size)
    assert patch(stack, begun, 0, TRAIN.read_bytes()).status == 204
    other = begin(stack, INFER.stat().st_size)
    assert patch(stack, other, 0, INFER.read_bytes()).status == 204
    runs = [stack.post("/api/v1/runs/", {"uploads": [address.rstrip("/").rsplit("/", 1)[-1]]}).json()["id"] for address in (begun, other)]
    slug = stack.compare(*runs)
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with redis_server(tmp_path / "redis", port):
        assert done(stack, slug)
