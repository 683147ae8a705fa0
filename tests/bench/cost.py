"""What a process costs, beside one that does nothing but `json.loads` the same files with garbage collection off.

CPU is user and system time of the whole process, its start included. The ratio of the two says how far the work is from the floor, on any
machine. Peak is the largest resident set.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = ("dump.json", "construct.json", "stack.json")
JSON_LOADS = """
import gc, json, pathlib, sys
gc.disable()
for side in sys.argv[1:]:
    kept = [json.loads(pathlib.Path(side, name).read_bytes()) for name in ("dump.json", "construct.json", "stack.json")]
"""


@dataclass(frozen=True)
class Cost:
    """Of one process: CPU seconds (user + system), peak resident megabytes, exit status."""

    cpu: float
    peak: float
    status: int


@dataclass(frozen=True)
class Bound:
    """The most that work may cost: CPU as a multiple of the floor's, peak in megabytes."""

    ratio: float
    peak: float

    def exceeded(self, what: str, floor: Cost, cost: Cost) -> list[str]:
        ratio = cost.cpu / floor.cpu
        found = [f"{what}: CPU {ratio:.2f} times json.loads, the bound is {self.ratio:.1f}"] if ratio > self.ratio else []
        return found + ([f"{what}: peak {cost.peak:.0f} MB, the bound is {self.peak:.0f}"] if cost.peak > self.peak else [])


def cost_of(command: Sequence[str]) -> Cost:
    """Run a command to its end; its standard output is dropped, its standard error is not."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2), process.returncode)


def json_loads(sides: Sequence[Path]) -> list[str]:
    return [sys.executable, "-c", JSON_LOADS, *map(str, sides)]


def in_turns(commands: Sequence[Sequence[str]], rounds: int, check: Callable[[Sequence[str], Cost], None]) -> list[Cost]:
    """Of each command the least CPU and the largest peak of ``rounds`` runs, taken in turns so that a busy moment meets all of them."""
    runs: list[list[Cost]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, costs in zip(commands, runs, strict=True):
            costs.append(cost_of(command))
            check(command, costs[-1])
    return [Cost(min(run.cpu for run in each), max(run.peak for run in each), each[-1].status) for each in runs]


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """``work(*given)`` in a process of its own. The peak of a command counts what its parent held when it was started: dumps are written
    elsewhere, so that this process stays small.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


HEADING = f"{'nodes':>7} {'json.loads CPU s':>17} {'CPU s':>10} {'ratio':>6} {'json.loads MB':>14} {'MB':>8}\n"


def row(nodes: int, floor: Cost, cost: Cost, what: str = "") -> str:
    figures = f"{nodes:7d} {floor.cpu:17.2f} {cost.cpu:10.2f} {cost.cpu / floor.cpu:6.2f} {floor.peak:14.0f} {cost.peak:8.0f}"
    return f"{figures}  {what}".rstrip() + "\n"
