"""`python -m tests.bench.workers`: what a second worker saves on a comparison of 6 stages × 20 steps × 8 ranks.

Wall time from asking to *done*, best of three, by real broker, worker and web processes. It says something where two cores are idle.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.run_tree import RunTree, write_run_tree
from tests.live import Stack, free_port, until

ROUNDS = 3
ASKED_EVERY = 0.5  # seconds: a page asks less often, and what is spent on answers is taken from the workers' two cores
GOAL = 0.65  # of the time that one worker takes


def seconds(stack: Stack, left: str, right: str) -> float:
    """One comparison; it is deleted again, so that the next does not find its parts."""
    begin = time.monotonic()
    slug = stack.compare(left, right)
    found = stack.comparison(slug, seconds=1800, every=ASKED_EVERY)
    took = time.monotonic() - begin
    if found["state"] != "done" or found["verdict"]["verdict"] != "diverged":
        raise SystemExit(f"no verdict: {found['state']} {found['error']}")
    stack.call("DELETE", f"/api/v1/comparisons/{slug}/")
    return took


def is_ready(stack: Stack, run: str) -> bool:
    return bool(stack.get(f"/api/v1/runs/{run}/").json()["state"] == "ready")


def measure(folder: Path, tree: RunTree) -> dict[int, float]:
    """Workers → least seconds of ``ROUNDS``. The runs are read once and compared by either number of workers."""
    archives = write_run_tree(folder / "left.zip", tree), write_run_tree(folder / "right.zip", tree, ("reference_compute_log_prob", 2))
    runs: list[str] = []
    best: dict[int, float] = {}
    for workers in (1, 2):
        stack = Stack(folder / "data", {}, ("--port", str(free_port()), "--workers", str(workers), "--no-example")).start()
        try:
            runs = runs or [stack.upload(archive) for archive in archives]
            for run in runs:
                until("the run is ready", partial(is_ready, stack, run), 1800)
            best[workers] = min(seconds(stack, runs[0], runs[1]) for _ in range(ROUNDS))
        finally:
            stack.stop()
    return best


def main() -> int:
    tree = RunTree(layers=8)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        best = measure(Path(folder), tree)
    ratio = best[2] / best[1]
    sys.stdout.write(
        f"{tree.parts} parts of {tree.ranks} ranks: one worker {best[1]:.1f} s, two {best[2]:.1f} s, two over one {ratio:.2f} "
        f"(goal {GOAL:.2f} on an idle machine; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f})\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
