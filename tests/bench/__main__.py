"""`python -m tests.bench`: what `manage.py compare` costs on pairs of 10 000 and 50 000 nodes a side, and on a cross-framework pair of
80 layers × 20 micro-batches (Hugging Face names with API calls against vLLM names).

CPU is user and system time of the whole process, its start included, beside a process that does nothing but `json.loads` the same
six files with garbage collection off: the ratio of the two says how far the comparison is from the floor, on any machine. Peak is
the largest resident set. Ends with status 1 where a bound at 50 000 nodes or of the cross-framework pair is exceeded, or where that pair's
first divergence is not the one that was put in.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench import cross_framework, upload
from tests.bench.large_dump import Extent, write_large_dump

ROOT = Path(__file__).resolve().parents[2]
CPU_RATIO_LIMIT, PEAK_LIMIT_MB = 3.0, 400.0
CROSS_CPU_RATIO_LIMIT, CROSS_PEAK_LIMIT_MB = 2.0, 800.0
FILES = ("dump.json", "construct.json", "stack.json")
BASELINE = """
import gc, json, pathlib, sys
gc.disable()
kept = [json.loads(pathlib.Path(name).read_bytes()) for name in sys.argv[1:]]
"""


@dataclass(frozen=True)
class Cost:
    """Of one process: CPU seconds (user + system), peak resident megabytes, exit status."""

    cpu: float
    peak: float
    status: int


def cost_of(command: list[str]) -> Cost:
    """Run a command to its end; its standard output is dropped, its standard error is not."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2), process.returncode)


def measure(folder: Path, micro_batches: int, rounds: int) -> tuple[int, Cost, Cost]:
    """(nodes a side, baseline, comparison): least CPU and largest peak of `rounds` runs of each, taken in turns."""
    sides = [folder / f"left{micro_batches}", folder / f"right{micro_batches}"]
    nodes = write_large_dump(sides[0], Extent(micro_batches=micro_batches))
    write_large_dump(sides[1], Extent(micro_batches=micro_batches, drift_from=40))
    return nodes, *_measured(folder, sides, rounds)


def measure_cross(folder: Path, rounds: int) -> tuple[int, Cost, Cost, list[str]]:
    """(records of the larger side, baseline, comparison, what is wrong with the answer) of the cross-framework pair."""
    extent = cross_framework.Extent()
    left, right, records = cross_framework.write_pair(folder, extent)
    baseline, comparison = _measured(folder, [left, right], rounds)
    document = json.loads((folder / "verdict.json").read_text("utf-8"))
    return max(records), baseline, comparison, list(cross_framework.right_answer(document, extent))


def _measured(folder: Path, sides: list[Path], rounds: int) -> tuple[Cost, Cost]:
    """(baseline, comparison); the verdict of the last round stays in ``folder``."""
    files = [str(side / name) for side in sides for name in FILES]
    verdict = folder / "verdict.json"
    compare = [sys.executable, "manage.py", "compare", str(sides[0]), str(sides[1]), "--json", str(verdict)]
    runs: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(rounds):
        verdict.unlink(missing_ok=True)
        runs[0].append(cost_of([sys.executable, "-c", BASELINE, *files]))
        runs[1].append(cost_of(compare))
        if runs[0][-1].status != 0 or runs[1][-1].status not in (0, 1) or not verdict.exists():
            raise SystemExit(f"no verdict; status {runs[0][-1].status or runs[1][-1].status} of {' '.join(compare)}")
    baseline, comparison = (Cost(min(run.cpu for run in each), max(run.peak for run in each), each[-1].status) for each in runs)
    return baseline, comparison


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.bench", description="Cost of a comparison of large dumps.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--micro-batches", type=int, nargs="*", default=[1, 5], help="1 is about 10 000 nodes a side, 5 about 50 000")
    arguments = parser.parse_args(given)
    out, exceeded = sys.stdout, []
    out.write(f"{'nodes':>7} {'json.loads CPU s':>17} {'compare CPU s':>14} {'ratio':>6} {'json.loads MB':>14} {'compare MB':>11}\n")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for batches in arguments.micro_batches:
            nodes, baseline, comparison = measure(Path(folder), batches, arguments.rounds)
            out.write(_row(nodes, baseline, comparison))
            if nodes > 40_000:
                exceeded += _exceeded(baseline, comparison, CPU_RATIO_LIMIT, PEAK_LIMIT_MB)
            out.flush()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        records, baseline, comparison, wrong = measure_cross(Path(folder), arguments.rounds)
        out.write(_row(records, baseline, comparison).rstrip() + "  80 layers × 20 micro-batches across frameworks\n")
        exceeded += _exceeded(baseline, comparison, CROSS_CPU_RATIO_LIMIT, CROSS_PEAK_LIMIT_MB) + wrong
    out.writelines(f"EXCEEDED: {line}\n" for line in exceeded)
    return 1 if exceeded else 0


def _row(nodes: int, baseline: Cost, comparison: Cost) -> str:
    ratio = comparison.cpu / baseline.cpu
    return f"{nodes:7d} {baseline.cpu:17.2f} {comparison.cpu:14.2f} {ratio:6.2f} {baseline.peak:14.0f} {comparison.peak:11.0f}\n"


def _exceeded(baseline: Cost, comparison: Cost, ratio_limit: float, peak_limit: float) -> list[str]:
    ratio = comparison.cpu / baseline.cpu
    found = [f"CPU {ratio:.2f} times json.loads, the bound is {ratio_limit:.0f}"] if ratio > ratio_limit else []
    return found + ([f"peak {comparison.peak:.0f} MB, the bound is {peak_limit:.0f}"] if comparison.peak > peak_limit else [])


if __name__ == "__main__":
    raise SystemExit(max(main(), upload.main()))
