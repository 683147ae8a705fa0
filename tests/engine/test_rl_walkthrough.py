"""docs/rl-runs.md shows what is really printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rl-runs.md").read_text("utf-8")
BLOCKS = re.findall(r"```\n\$ python manage\.py (compare [^\n]+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command.partition(" ")[2] for command, _ in BLOCKS])
def test_the_walkthrough_prints_what_it_shows(command: str, shown: str) -> None:
    arguments = [sys.executable, "manage.py", *command.split()]
    done = subprocess.run(
        arguments, cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    lines = [line for line in shown.splitlines() if line.strip() != "…"]
    assert lines
    assert done.stdout.splitlines()[: len(lines)] == lines


def test_the_walkthrough_has_both_commands() -> None:
    assert len(BLOCKS) == 2
