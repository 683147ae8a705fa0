"""What a large upload costs the web server: a sparse tensor goes up by push, over connections that drop and through a restart."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from tests.live import ROOT, Stack
from tests.relay import Relay

MEGABYTE = 1 << 20
DUMP = Path(__file__).parent / "data" / "corpus"


@dataclass(frozen=True)
class Figures:
    """Megabytes of resident memory are above what the process held before; ``sent`` are bytes that went over the wire."""

    bytes: int
    seconds: float
    web_before_mb: float
    web_peak_mb: float
    client_peak_mb: float
    dropped: int
    restarts: int
    sent: int
    verdict: str

    @property
    def cost_mb(self) -> float:
        return self.web_peak_mb - self.web_before_mb

    def __str__(self) -> str:
        return (
            f"{self.bytes / 1e6:.0f} MB up in {self.seconds:.1f} s ({self.bytes / 1e6 / self.seconds:.0f} MB/s), "
            f"{self.dropped} connections dropped, {self.restarts} restart, {self.sent / self.bytes:.2f} times its bytes sent; "
            f"web server {self.web_before_mb:.0f} MB before, {self.web_peak_mb:.0f} MB at its peak (cost {self.cost_mb:.0f} MB); "
            f"push at most {self.client_peak_mb:.0f} MB"
        )


def high_water(pid: int) -> float:
    """The largest resident set of a process so far, in MB, as the kernel noted it; 0 for one that has gone."""
    try:
        marks = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(marks[1]) / 1024 if marks else 0.0


def web_server(stack: Stack) -> float:
    """The same of the web server, arbiter and worker together."""
    web = stack.child("web server")
    return sum(high_water(process.pid) for process in [web, *web.children(recursive=True)])


def sparse_side(folder: Path, megabytes: int) -> Path:
    """A dump with a tensor file of that size that takes no room on the disk."""
    with zipfile.ZipFile(DUMP / "q2_train_stat.zip") as archive:
        archive.extractall(folder)
    tensor = folder / "step0" / "rank0" / "dump_tensor_data" / "large.pt"
    tensor.parent.mkdir()
    with tensor.open("wb") as out:
        out.truncate(megabytes * MEGABYTE)
    return folder


def send(start: Callable[..., Stack], folder: Path, port: int, megabytes: int) -> Figures:
    """Send it, drop the connection at a quarter and at three quarters, restart the server at the half. Returns what it cost."""
    side = sparse_side(folder / "train", megabytes)
    length = megabytes * MEGABYTE
    stack = start("--port", str(port))
    stack.get("/api/v1/about/")
    before = peak = web_server(stack)
    client_peak = 0.0
    network = Relay(int(urlsplit(stack.url).port or 0), cuts=[length // 4, length * 3 // 4])
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "compare.push",
        str(side),
        str(DUMP / "q2_infer_stat.zip"),
        "--server",
        network.url,
        "--tensors",
        "--wait",
    ]
    said = (folder / "push.log").open("w+")
    stop, restarts = threading.Event(), 0

    def keep_looking() -> None:
        nonlocal peak, client_peak
        while not stop.wait(0.2):
            client_peak = max(client_peak, high_water(client.pid))
            with suppress(LookupError, psutil.Error, OSError):  # it is being restarted
                peak = max(peak, web_server(stack))

    begun = time.monotonic()
    client = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True, cwd=ROOT)
    watcher = threading.Thread(target=keep_looking, daemon=True)
    watcher.start()
    try:
        while client.poll() is None and network.sent < length // 2:
            time.sleep(0.02)
        if client.poll() is None:
            peak = max(peak, web_server(stack))
            stack.stop()
            stack = start("--port", str(port), data=stack.data)
            restarts = 1
        out, _ = client.communicate(timeout=900)
        seconds = time.monotonic() - begun
        peak = max(peak, web_server(stack))
    finally:
        stop.set()
        watcher.join()
        client.kill()
        network.close()
    if client.returncode != 0:
        said.seek(0)
        raise AssertionError(f"push ended with {client.returncode}: {said.read()}")
    return Figures(length, seconds, before, peak, client_peak, network.dropped, restarts, network.sent, out.splitlines()[-1])
