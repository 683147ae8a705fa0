#!/usr/bin/env python
"""Django's command line; `python manage.py compare LEFT RIGHT` is the product's own."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

OURS = Path(__file__).resolve().parent / ".venv" / "bin" / "python"


def main() -> None:
    if importlib.util.find_spec("django") is None:
        _with_our_packages()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe_web.settings")
    if sys.argv[1:2] != ["compare"]:
        # Tasks are sent through this app. `compare` works without a broker and is spared the half second that the import costs.
        import probe_web.celery  # noqa: F401
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def _with_our_packages() -> None:
    """A Python without the packages is not the one that ./run set up: go on with that one, or say what is missing in one line."""
    if OURS.exists() and not os.environ.get("PROBE_STARTED_AGAIN"):
        os.environ["PROBE_STARTED_AGAIN"] = "1"
        os.execv(OURS, [str(OURS), __file__, *sys.argv[1:]])
    print("the packages of requirements.txt are not installed: start ./run once, or pip install -r requirements.txt", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
