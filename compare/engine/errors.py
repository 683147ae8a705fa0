"""Every refusal has a code, a place and a hint.

A code is part of the product's face: the browser translates it, the command line prints the English sentence, docs/errors.md lists it.
"""

from __future__ import annotations

from typing import Any

# code → (what is wrong, what to do). {place} and the members of params may be used in both.
MESSAGES: dict[str, tuple[str, str]] = {}


class DumpError(Exception):
    """An input that cannot be read or compared.

    ``code`` is a key of MESSAGES, ``where`` the file (with member, record or byte offset) that the reader should look at, ``params`` what
    the sentence needs besides. ``str(error)`` is the English sentence: where, what, what to do, on one line.
    """

    def __init__(self, code: str, where: str, **params: Any) -> None:
        self.code = code
        self.where = where
        self.params = params
        super().__init__(self.sentence())

    def sentence(self) -> str:
        what, hint = MESSAGES[self.code]
        return f"{self.where}: {what.format(**self.params)}. {hint.format(**self.params)}"


class Cancelled(Exception):
    """The reader asked to stop; nothing was published."""
