"""The steps of ./test, in order: each runs whatever the others did, and the last line counts them.

A step that is no test suite counts as one; pytest and vitest count their tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
FRONT_END = ROOT / "frontend"
PYTHON = sys.executable
NODE = str(ROOT / "scripts" / "node")
LONGEST_SECONDS = 2400
# Colours are for a person at a terminal, not for a log.
PLAIN = {} if sys.stdout.isatty() else {"NO_COLOR": "1"}


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


@dataclass(frozen=True)
class Step:
    """One command. `report` makes its counts from the report file it was told to write; without one the step counts as one."""

    name: str
    command: Sequence[str]
    folder: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[Path], Counts] | None = None


def pytest_counts(report: Path) -> Counts:
    suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314  our own file
    total, failed, skipped = (sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "skipped"))
    failed += sum(int(suite.get("errors", 0)) for suite in suites)
    return Counts(total - failed - skipped, failed, skipped)


def vitest_counts(report: Path) -> Counts:
    found = json.loads(report.read_text())
    # A file that does not even load holds no failed test.
    failed = found["numFailedTests"] or found["numFailedTestSuites"]
    return Counts(found["numPassedTests"], failed, found["numPendingTests"] + found["numTodoTests"])


def pytest(name: str, *arguments: str) -> Step:
    return Step(name, [PYTHON, "-m", "pytest", "-q", "--junitxml={report}", *arguments], report=pytest_counts)


def steps() -> list[Step]:
    manage = str(ROOT / "manage.py")
    served_over_https = {"PROBE_PUBLIC_URL": "https://probe.example", "PROBE_SECRET_KEY": "k" * 25 + "0123456789abcdefghijklmnopq"}
    # One at a time: they kill processes and hold times against a clock.
    apart = {"processes": ["tests/house/test_run.py", "tests/tasks"], "integration": ["tests/integration"], "browser": ["tests/browser"]}
    return [
        Step("ruff", [PYTHON, "-m", "ruff", "check", "."]),
        Step("ruff-format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
        Step("mypy", [PYTHON, "-m", "mypy"]),
        Step("import-rules", [str(Path(PYTHON).parent / "lint-imports"), "--no-logo"]),
        Step("django-check", [PYTHON, manage, "check", "--deploy", "--fail-level", "WARNING"], environment=served_over_https),
        Step("migrations", [PYTHON, manage, "makemigrations", "--check", "--dry-run"]),
        Step("front-end-packages", [str(ROOT / "scripts" / "bootstrap.sh"), "dev", "--packages-only"]),
        Step("api-types", [str(ROOT / "scripts" / "api-types.sh"), "--check"]),
        Step("biome", [NODE, "npm", "run", "--silent", "lint"], FRONT_END),
        Step("tsc", [NODE, "npm", "run", "--silent", "types"], FRONT_END),
        Step(
            "vitest",
            [NODE, "npm", "run", "--silent", "test", "--", "--reporter=default", "--reporter=json", "--outputFile.json={report}"],
            FRONT_END,
            report=vitest_counts,
        ),
        Step("vite-build", [str(ROOT / "scripts" / "bootstrap.sh"), "dev"]),
        pytest("tests", "-n", "2", *(f"--ignore={path}" for paths in apart.values() for path in paths), "tests"),
        *(pytest(name, *paths) for name, paths in apart.items()),
    ]


def run(step: Step) -> Counts:
    print(f"\n=== {step.name}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="probe_web-") as folder:
        report = Path(folder) / "report"
        command = [part.replace("{report}", str(report)) for part in step.command]
        try:
            code = subprocess.run(  # noqa: S603  our own commands
                command,
                cwd=step.folder,
                env={**os.environ, **PLAIN, **step.environment},
                stdin=subprocess.DEVNULL,
                timeout=LONGEST_SECONDS,
                check=False,
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            print(error, flush=True)
            code = 1
        counts = Counts(1, 0) if code == 0 else Counts(0, 1)
        if step.report is not None and report.exists():
            counts = step.report(report)
            if code != 0 and counts.failed == 0:
                counts += Counts(0, 1)  # it failed outside of its tests
    print(f"--- {step.name}: {counts} in {time.monotonic() - began:.0f} s", flush=True)
    return counts


def main(names: Sequence[str]) -> int:
    known = steps()
    if "--list" in names:
        print("\n".join(step.name for step in known))
        return 0
    if list(names) == ["bench"]:
        return subprocess.run([PYTHON, "-m", "pytest", "-s", "tests/bench"], cwd=ROOT, check=False).returncode  # noqa: S603
    chosen = [step for step in known if not names or any(step.name.startswith(name) for name in names)]
    if not chosen:
        print(f"no step begins with {' or '.join(names)}; ./test --list names them", file=sys.stderr)
        return 2
    results = {step.name: run(step) for step in chosen}
    total = sum(results.values(), Counts())
    failed = [name for name, counts in results.items() if counts.failed]
    print(f"\nFailed: {', '.join(failed)}" if failed else "\nAll steps passed.")
    print(f"\n{total}", flush=True)
    return 1 if failed else 0


def give_up(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    # Leaving by an exception ends the step that runs; dying of the signal would leave it behind.
    signal.signal(signal.SIGTERM, give_up)
    sys.exit(main(sys.argv[1:]))
