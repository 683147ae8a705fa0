"""How often the answer is right: `python -m tests.bench.scoreboard [FOLDER] [--seed N] [--names GLOB …] [--tensors] [--command]`.

FOLDER is a catalogue that `python -m tests.simulator` wrote; without one the catalogue is made in a temporary folder. Prints, by
group, the share of right verdicts, right modules (the first divergence is one of the acceptable modules), right layers, false alarms
on clean pairs, and every miss with what was found. Groups of faults: `weights` (a parameter's written statistics differ), `clear`
(well out of the noise, and the statistics show it), `faint` (the rest: some of them nobody can see). Which group a fault is in is a rule
of the simulator (`Truth.clear`, `Truth.shown`, from its own arrays, before anybody is asked). Ends with status 1 where of the first two
groups fewer than 95 % are found in the right layer, or where a pair without a fault is said to diverge.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.simulator import scenarios, simulate

ROOT = Path(__file__).resolve().parents[2]
RIGHT_LAYER_LIMIT = 0.95
Answer = Callable[[Path, Path], dict[str, Any]]


@dataclass(frozen=True)
class Score:
    """What was said about one scenario, beside its truth."""

    name: str
    group: str
    truth: dict[str, Any]
    verdict: str
    module: str | None
    kind: str | None
    failed: tuple[str, ...]

    @property
    def right_verdict(self) -> bool:
        return self.verdict in self.truth["verdicts"]

    @property
    def right_module(self) -> bool:
        return self.module in self.truth["modules"]

    @property
    def right_layer(self) -> bool:
        return self.right_module or any(_layer(self.module) == _layer(module) for module in self.truth["modules"])

    @property
    def right_premises(self) -> bool:
        return set(self.failed) >= {code for code, state in self.truth["premises"].items() if state == "failed"}

    @property
    def right(self) -> bool:
        """A consistent verdict needs no module; a divergence needs the right one."""
        needs_module = self.verdict == "diverged" and bool(self.truth["modules"])
        return self.right_verdict and self.right_premises and (self.right_module or not needs_module)


def _layer(module: str | None) -> str | None:
    found = re.search(r"layers\.(\d+)", module or "")
    return found.group(1) if found else module


def group_of(name: str, truth: dict[str, Any]) -> str:
    if not name.startswith("fault_"):
        return name.split("_", 1)[0]
    if truth["parameter_visible"]:
        return "weights"
    return "clear" if truth["clear"] and truth["shown"] else "faint"


def ask_engine(left: Path, right: Path) -> dict[str, Any]:
    """The verdict document, computed in this process."""
    from compare.engine.options import Options
    from compare.engine.pipeline import compare_paths

    return compare_paths([left], [right], Options()).document


def ask_command(left: Path, right: Path) -> dict[str, Any]:
    """The verdict document from `manage.py compare --json -`."""
    command = [sys.executable, "manage.py", "compare", str(left), str(right), "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def score(folder: Path, ask: Answer) -> Score:
    """Ask about the pair in `folder`, which is called as its scenario and holds truth.json."""
    name, truth = folder.name, json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    try:
        document = ask(folder / "left", folder / "right")
    except Exception as error:  # noqa: BLE001  a crash is an answer too, and the others still count
        where = traceback.extract_tb(error.__traceback__)[-1]
        broken = f"crash: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Score(name, group_of(name, truth), truth, broken, None, None, ())
    first = document.get("first_divergence") or {}
    failed = tuple(premise["code"] for premise in document.get("premises", []) if premise["state"] == "failed")
    return Score(name, group_of(name, truth), truth, document["verdict"], first.get("module"), first.get("kind"), failed)


def report(scores: list[Score]) -> str:
    groups: dict[str, list[Score]] = defaultdict(list)
    for one in scores:
        groups[one.group].append(one)
    lines = [f"{'group':9s} {'pairs':>5s} {'verdict':>8s} {'module':>8s} {'layer':>8s} {'right':>8s}"]

    def share(rows: list[Score], name: str, *, needs_modules: bool = False) -> str:
        counted = [row for row in rows if row.truth["modules"]] if needs_modules else rows
        return f"{100 * sum(getattr(row, name) for row in counted) / len(counted):7.1f}%" if counted else "      – "

    for group, rows in [*groups.items(), ("all", scores)]:
        cells = [
            share(rows, "right_verdict"),
            share(rows, "right_module", needs_modules=True),
            share(rows, "right_layer", needs_modules=True),
            share(rows, "right"),
        ]
        lines.append(f"{group:9s} {len(rows):5d} {' '.join(f'{cell:>8s}' for cell in cells)}")
    alarms = [row for row in scores if row.verdict == "diverged" and "diverged" not in row.truth["verdicts"]]
    harmless = [row for row in scores if "diverged" not in row.truth["verdicts"]]
    lines.append(f"false alarms: {len(alarms)} of {len(harmless)}")
    lines += [f"  {'ALARM' if row in alarms else 'miss':5s} {row.name}: {_miss(row)}" for row in scores if not row.right]
    return "\n".join(lines)


def exceeded(scores: list[Score]) -> list[str]:
    """The bounds that the answers do not keep, in words."""
    faults = [row for row in scores if row.group in ("weights", "clear")]
    right = sum(row.right_layer for row in faults)
    alarms = sum(row.verdict == "diverged" and "diverged" not in row.truth["verdicts"] for row in scores)
    found = [f"right layer in {right} of {len(faults)} faults"] if faults and right < RIGHT_LAYER_LIMIT * len(faults) else []
    return found + ([f"{alarms} false alarms"] if alarms else [])


def _miss(row: Score) -> str:
    truth = row.truth
    said = row.verdict + (f" at {row.module} ({row.kind})" if row.module else "")
    wanted = "/".join(truth["verdicts"]) + (f" at {truth['modules'][0]}" if truth["modules"] else "")
    size = (
        ""
        if truth["effect"] is None
        else f"; effect {truth['effect']:.2g}, noise {truth['noise'] or 0.0:.2g}, moved "
        + ", ".join(f"{key} {value:.2f} (honest {truth['honest'].get(key, 0.0):.2f})" for key, value in truth["moved"].items())
    )
    premises = "" if row.right_premises else f"; premises failed: {', '.join(row.failed) or 'none'}, wanted {truth['premises']}"
    return f"said {said}, wanted {wanted}{premises}{size}"


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.scoreboard", description="How often the answer is right.")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--names", nargs="*", default=["*"], help="shell patterns")
    parser.add_argument("--seed", type=int, default=0, help="shift of all seeds, where the catalogue is made here")
    parser.add_argument("--command", action="store_true", help="ask manage.py compare instead of the engine in this process")
    parser.add_argument("--tensors", action="store_true", help="write tensor files too: the pairs are judged by their elements")
    arguments = parser.parse_args(given)
    ask = ask_command if arguments.command else ask_engine

    def wanted(name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in arguments.names)

    scores = []
    if arguments.folder:
        folders = [path.parent for path in sorted(arguments.folder.glob("*/truth.json")) if wanted(path.parent.name)]
        scores = [score(folder, ask) for folder in folders]
    else:
        for scenario in scenarios(arguments.seed):
            if wanted(scenario.name):
                with tempfile.TemporaryDirectory(prefix="score-") as parent:
                    simulate(scenario, Path(parent) / scenario.name, tensors=arguments.tensors)
                    scores.append(score(Path(parent) / scenario.name, ask))
    sys.stdout.write(report(scores) + "\n")
    broken = exceeded(scores)
    sys.stdout.writelines(f"EXCEEDED: {line}\n" for line in broken)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
