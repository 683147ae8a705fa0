"""A report as a list of blocks, before it is HTML or Markdown. Text is plain text here: whoever writes it out escapes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Code:
    """A name from a dump, in the type of code."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A word whose colour and sign say how good it is: ``kind`` is good, bad or quiet."""

    text: str
    kind: str


Span: TypeAlias = str | Code | Mark
Line: TypeAlias = Sequence[Span]


@dataclass(frozen=True, slots=True)
class Heading:
    level: int  # 1 the report, 2 a section, 3 a part of one
    text: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence that everything else is there for."""

    word: Mark
    sentence: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    line: Line


@dataclass(frozen=True, slots=True)
class Bullets:
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Grid:
    """``numbers`` are the columns that hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Line]]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps that lead from one to the next; a step is a name and what stands there."""

    steps: Sequence[tuple[str, Line]]


Block: TypeAlias = Heading | Verdict | Paragraph | Bullets | Grid | Chain
