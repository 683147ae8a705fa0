"""What a trainer's log says of its configuration: the last one that verl printed, and environment variables that decide something.

A log is read once, in blocks, whatever its size: nothing of it is kept but the configuration that is being read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import suppress

from compare.engine.keydata.tables import Stream
from compare.engine.model import JsonObject

BLOCK = 1 << 18
LARGEST_LOG = 1 << 30
"""Bytes of a log that are looked through."""

LARGEST_PRINTED = 256 << 10
MOST_TRIES = 1_000
"""Bytes of a configuration in a log, and how often one may seem to end. verl prints 20,000 and 30 inner braces at the ends of lines."""

LONGEST_LINE = 2 * LARGEST_PRINTED  # a longer one is read in pieces

ANSI = re.compile(rb"\x1b\[[0-9;]*m")
# Ray prints the process before every line of its output.
RAY = re.compile(rb"\([^()\n]{0,100}pid=[0-9]+[^()\n]{0,100}\) ?")
PRINTED = b"{'actor_rollout_ref'"
# What a line of a printed dict begins with. Others come between them: warnings, and what other processes print meanwhile.
CONTINUED = re.compile(rb"[\]})]|\s+(?:['\"\[\]{}(),:\-.0-9]|b['\"]|True\b|False\b|None\b|nan\b|inf\b)")
ENVIRONMENT = "environment"


def read_log(stream: Stream, variables: Sequence[str]) -> JsonObject | None:
    """The last configuration that verl printed into a log (Python's way of writing it, literals only), as it was printed; None where
    there is none. ``variables``: the last value that a log shows of each goes with it, below ``environment``.
    """
    log, size, rest = _Log(variables), 0, b""
    while block := stream.read(BLOCK):
        size += len(block)
        if size > LARGEST_LOG:
            continue
        rest += block
        end = rest.rfind(b"\n") + 1
        if end or len(rest) > LONGEST_LINE:
            log.add(rest[: end or len(rest)])
            rest = rest[end or len(rest) :]
    log.add(rest)
    return log.content


class _Log:
    """A log read in stretches of whole lines."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.found: JsonObject | None = None  # the last configuration so far
        self.process = b""  # who prints the one that is being read
        self.lines: list[bytes] = []  # of the one that is being read, empty between them
        self.size = self.tries = 0  # tries: of the whole log, so that no log can make many
        self.names = [name.encode() for name in variables]
        self.variables: dict[str, str] = {}
        names = b"|".join(self.names)
        # NAME=1 of a shell, 'NAME': '1' of a dict or JSON; not ${NAME} that the shell has still to put in.
        self.set = re.compile(rb"\b(" + names + rb")(?:=|[\"']\s*:\s*)[\"']?([^\s\"',;:$(){}\\]{1,64})")

    @property
    def content(self) -> JsonObject | None:
        if not isinstance(self.found, dict):
            return None
        return {**self.found, ENVIRONMENT: self.variables} if self.variables else self.found

    def add(self, text: bytes) -> None:
        if any(name in text for name in self.names):
            for name, value in self.set.findall(text):
                self.variables[name.decode()] = value.decode("utf-8", "replace")
        at = 0
        while at < len(text):
            if not self.lines:  # nearly all of a log: no line of it is looked at
                begins = text.find(PRINTED, at)
                if begins < 0:
                    return
                at = text.rfind(b"\n", 0, begins) + 1
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            self.line(text[at:end])
            at = end + 1

    def line(self, line: bytes) -> None:
        line = ANSI.sub(b"", line.rstrip(b"\r"))
        ray = RAY.match(line)
        process, line = (ray.group(), line[ray.end() :]) if ray else (b"", line)
        at = line.find(PRINTED)
        if at >= 0:
            self.process, self.lines, self.size, line = process, [], 0, line[at:]
        elif process != self.process or not CONTINUED.match(line):
            return
        self.lines.append(line)
        self.size += len(line)
        if self.size > LARGEST_PRINTED or self.tries >= MOST_TRIES:
            self.lines = []
        elif line.rstrip().endswith(b"}"):
            self.tries += 1
            with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # an inner brace that ends a line: read on
                self.found, self.lines = ast.literal_eval(b"\n".join(self.lines).decode("utf-8", "replace")), []
