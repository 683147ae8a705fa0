"""``manage.py token NAME``: tokens that let scripts on other machines send dumps."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compare.services import tokens


def days(text: str) -> float:
    value = float(text)
    if not 0 < value <= 36_500:
        raise argparse.ArgumentTypeError("a number of days above 0")
    return value


class Command(BaseCommand):
    help = "Makes a token that lets a script on another machine send dumps, and shows it once."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("name", nargs="?", metavar="NAME", help="whose or what for; you revoke it by this name")
        what.add_argument("--revoke", metavar="NAME", help="end the token of that name now")
        what.add_argument("--list", action="store_true", help="all tokens: when made, last used, when they end")
        parser.add_argument("--expires", type=days, metavar="DAYS", help="ends by itself after DAYS days (default: when it is revoked)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            self._list()
        elif options["revoke"]:
            if not tokens.revoke(options["revoke"]):
                raise CommandError(f"no token called {options['revoke']} is in force; --list shows which there are")
            self.stdout.write(f"{options['revoke']} is revoked.")
        else:
            self._issue(options["name"].strip(), options["expires"])

    def _issue(self, name: str, expires: float | None) -> None:
        if not 0 < len(name) <= 100 or not name.isprintable():
            raise CommandError("a name has 1 to 100 printable characters")
        try:
            token = tokens.issue(name, expires)
        except tokens.NameTaken:
            raise CommandError(f"a token called {name} is in force; --revoke {name} first, or choose another name") from None
        self.stdout.write(token)
        self.stderr.write("Keep it now: only its sum is stored, so it cannot be shown again.")

    def _list(self) -> None:
        for token in tokens.everyone():
            ends = f", ends {_day(token.expires_at)}" if token.expires_at else ""
            used = _day(token.last_used_at) if token.last_used_at else "never"
            self.stdout.write(f"{token.name}: {tokens.state(token)}, made {_day(token.created_at)}, last used {used}{ends}")


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
