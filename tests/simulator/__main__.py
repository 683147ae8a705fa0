"""`python -m tests.simulator OUT [--names GLOB …] [--seed N]` writes OUT/<name>/{left,right}/step0/rank0/*.json and truth.json."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from pathlib import Path

from tests.simulator import scenarios, simulate


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.simulator", description="Write the catalogue of simulated pairs.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--names", nargs="*", default=["*"], help="shell patterns")
    parser.add_argument("--seed", type=int, default=0, help="shift of all seeds: a held-out catalogue")
    arguments = parser.parse_args()
    started, count = time.perf_counter(), 0
    for scenario in scenarios(arguments.seed):
        if any(fnmatch.fnmatch(scenario.name, pattern) for pattern in arguments.names):
            simulate(scenario, arguments.out / scenario.name)
            count += 1
    sys.stdout.write(f"{count} pairs in {time.perf_counter() - started:.1f} s -> {arguments.out}\n")


if __name__ == "__main__":
    main()
