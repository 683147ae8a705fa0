#!/usr/bin/env python
"""Django's command line; `python manage.py compare LEFT RIGHT` is the product's own."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe_web.settings")
    if sys.argv[1:2] != ["compare"]:
        # Tasks are sent through this app. `compare` works without a broker and is spared the half second that the import costs.
        import probe_web.celery  # noqa: F401
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
