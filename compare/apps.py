from __future__ import annotations

from django.apps import AppConfig


class CompareConfig(AppConfig):
    """The comparison app."""

    name = "compare"
    default_auto_field = "django.db.models.BigAutoField"
