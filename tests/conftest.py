"""What all tests share: the services they run against, and a whole server of real processes."""

from __future__ import annotations

import probe_web.celery  # noqa: F401  the app that tasks are sent through
