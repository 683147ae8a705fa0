"""The Django project: wiring only. Settings, routes, the Celery app, the checks on requests, and `embedded/` (the local mode of ./run).

Nothing here knows what a dump is. The Celery app is not imported here on purpose: `manage.py compare` runs without it.
"""
