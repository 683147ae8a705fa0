"""The web server's way in: `gunicorn probe_web.wsgi`."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe_web.settings")

from django.core.wsgi import get_wsgi_application

import probe_web.celery  # noqa: F401  the app that tasks are sent through

application = get_wsgi_application()
