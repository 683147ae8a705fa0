"""What 2 GB through the web server cost it, over connections that drop and through a restart."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conftest import _starter
from tests.large_upload import send
from tests.live import Stack, free_port

MEGABYTES = 2048
COST_LIMIT_MB = 100.0


def main() -> int:
    started: list[Stack] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            figures = send(_starter(Path(folder), started), Path(folder), free_port(), MEGABYTES)
        finally:
            for stack in started:
                stack.stop()
    sys.stdout.write(f"{figures}\n")
    if figures.cost_mb > COST_LIMIT_MB:
        sys.stdout.write(f"EXCEEDED: the web server grew by {figures.cost_mb:.0f} MB, the bound is {COST_LIMIT_MB:.0f}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
