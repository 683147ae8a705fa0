"""Makes the project an app of its own, for its system checks and its plain pages."""

from __future__ import annotations

from django.apps import AppConfig


class ProbeWebConfig(AppConfig):
    name = "probe_web"

    def ready(self) -> None:
        from probe_web import checks  # noqa: F401  registers them
