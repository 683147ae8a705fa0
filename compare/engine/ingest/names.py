"""What a record name says: kind, path, class, direction and call number."""

from __future__ import annotations

import re
from typing import NamedTuple

from compare.engine.model import Direction, RecordKind

# Numbers have at most nine digits so that they fit int32; class is the last component, and may itself be called "forward".
MODULE = re.compile(r"(?:Module|Cell)\.(?:(.*)\.)?([^.]+)\.(forward|backward)\.([0-9]{1,9})", re.DOTALL)
PARAMETERS_GRAD = re.compile(r"(?:Module|Cell)\.(?:(.*)\.)?([^.]+)\.parameters_grad(?:\.([0-9]{1,9}))?", re.DOTALL)
DEBUG = re.compile(r"(.+)\.([0-9]{1,9})\.debug", re.DOTALL)
API = re.compile(r"([^.]+\..+)\.([0-9]{1,9})\.(forward|backward)", re.DOTALL)


DIRECTIONS = frozenset({"forward", "backward"})
SAVED = ".debug"  # ends the name of a value that the user saved by hand
GRADIENT = "_grad"  # ends the name of what was saved when its gradient came
TOO_LONG = 10  # digits that may not fit int32


class Name(NamedTuple):
    """A record name in its parts. ``class_name`` is None for all but modules; for an API ``path`` is ``Functional.linear``."""

    kind: RecordKind
    direction: Direction
    call: int
    path: str
    class_name: str | None


def parse(name: str) -> Name:
    """Never fails: a name of no known form (``optimizer``) is OTHER, with the whole name as its path."""
    found = MODULE.fullmatch(name)
    if found:
        path, class_name, direction, call = found.groups()
        return Name(RecordKind.MODULE, _direction(direction), int(call), path or "", class_name)
    found = API.fullmatch(name)
    if found:
        path, call, direction = found.groups()
        return Name(RecordKind.API, _direction(direction), int(call), path, None)
    found = PARAMETERS_GRAD.fullmatch(name)
    if found:
        path, class_name, call = found.groups()
        return Name(RecordKind.PARAMETERS_GRAD, Direction.BACKWARD, int(call or 0), path or "", class_name)
    found = DEBUG.fullmatch(name)
    if found:
        path, call = found.groups()
        return Name(RecordKind.OTHER, Direction.BACKWARD if path.endswith(GRADIENT) else Direction.FORWARD, int(call), path, None)
    return Name(RecordKind.OTHER, Direction.FORWARD, 0, name, None)


def _direction(word: str) -> Direction:
    return Direction.FORWARD if word == "forward" else Direction.BACKWARD


def split_call(name: str) -> tuple[str, str, int]:
    """What stands before the number that may be the call number, the direction behind it if any, and the number, -1 = there is none.

    All names with a call number that share the first two say the same otherwise, so that one ``parse`` serves them all.
    """
    stem, _, number = name.rpartition(".")
    direction = ""
    if number in DIRECTIONS:
        direction = number
        stem, _, number = stem.rpartition(".")
    if len(number) < TOO_LONG and number.isdecimal() and number.isascii():
        return stem, direction, int(number)
    return name, "", -1
