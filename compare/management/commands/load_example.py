"""`manage.py load_example`: makes the example comparisons where they are missing. ./run calls it at every start."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from compare.services import examples


class Command(BaseCommand):
    help = "Make the example comparisons where they are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        for comparison in examples.load():
            self.stdout.write(f"{comparison.example}: /c/{comparison.pk}")
