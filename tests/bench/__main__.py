"""`python -m tests.bench`: what `manage.py compare` costs on pairs of 10 000, 50 000 and 200 000 nodes a side, and on a cross-framework
pair of 80 layers × 20 micro-batches (Hugging Face names with API calls against vLLM names); then what reading and a large upload cost.

Ends with status 1 where a bound is exceeded, or where the cross-framework pair's first divergence is not the one that was put in. At
10 000 nodes the start of the process is most of the cost: printed, not bounded.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import cross_framework, reading, tensors, upload, workers
from tests.bench.cost import HEADING, Bound, Cost, apart, in_turns, json_loads, row
from tests.bench.large_dump import Extent, write_large_dump

# micro-batches (about 10 000 nodes a side each) → the most that the comparison may cost
BOUNDS = {1: None, 5: Bound(ratio=3.0, peak=400), 20: Bound(ratio=2.0, peak=800)}
ACROSS = Bound(ratio=2.0, peak=800)


def measure(folder: Path, micro_batches: int, rounds: int) -> tuple[int, Cost, Cost]:
    """(nodes a side, json.loads, comparison) of a pair in the shape of a mixed-level training dump."""
    sides = [folder / "left", folder / "right"]
    nodes = apart(write_large_dump, sides[0], Extent(micro_batches=micro_batches))
    apart(write_large_dump, sides[1], Extent(micro_batches=micro_batches, drift_from=40))
    return nodes, *_compared(folder, sides, rounds)


def measure_across(folder: Path, rounds: int) -> tuple[int, Cost, Cost, list[str]]:
    """(records of the larger side, json.loads, comparison, what is wrong with the answer) of the cross-framework pair."""
    extent = cross_framework.Extent()
    left, right, records = apart(cross_framework.write_pair, folder, extent)
    floor, comparison = _compared(folder, [left, right], rounds)
    document = json.loads((folder / "verdict.json").read_text("utf-8"))
    return max(records), floor, comparison, list(cross_framework.right_answer(document, extent))


def _compared(folder: Path, sides: list[Path], rounds: int) -> tuple[Cost, Cost]:
    """(json.loads, comparison); the verdict of the last round stays in ``folder``."""
    verdict = folder / "verdict.json"

    def ended_well(command: Sequence[str], cost: Cost) -> None:
        if cost.status not in (0, 1) or (command is compare and not verdict.exists()):
            raise SystemExit(f"no verdict; status {cost.status} of {' '.join(command[:2])}")

    compare = [sys.executable, "manage.py", "compare", str(sides[0]), str(sides[1]), "--json", str(verdict)]
    floor, comparison = in_turns([json_loads(sides), compare], rounds, ended_well)
    return floor, comparison


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.bench", description="Cost of a comparison of large dumps.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--micro-batches", type=int, nargs="*", default=list(BOUNDS), help="10 000 nodes a side each")
    arguments = parser.parse_args(given)
    exceeded: list[str] = []
    sys.stdout.write(HEADING)
    for batches in arguments.micro_batches:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            nodes, floor, comparison = measure(Path(folder), batches, arguments.rounds)
        bound = BOUNDS.get(batches)
        sys.stdout.write(row(nodes, floor, comparison))
        sys.stdout.flush()
        exceeded += bound.exceeded(f"{nodes} nodes", floor, comparison) if bound else []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        records, floor, comparison, wrong = measure_across(Path(folder), arguments.rounds)
    sys.stdout.write(row(records, floor, comparison, "80 layers × 20 micro-batches across frameworks"))
    exceeded += ACROSS.exceeded("across frameworks", floor, comparison) + wrong
    sys.stdout.writelines(f"EXCEEDED: {line}\n" for line in exceeded)
    return 1 if exceeded else 0


if __name__ == "__main__":
    raise SystemExit(max(main(), reading.main(), tensors.main(), upload.main(), workers.main()))
