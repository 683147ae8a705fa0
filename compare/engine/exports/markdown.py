"""A report as Markdown, for an issue or a chat. Names from dumps cannot become markup, links or mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compare.engine.exports.blocks import Block, Bullets, Chain, Code, Grid, Heading, Line, Mark, Paragraph, Span, Verdict

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~@!&$])")


def markdown(blocks: Sequence[Block]) -> str:
    return "\n\n".join("\n".join(_block(block)) for block in blocks) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * block.level} {_text(block.text)}"
        case Verdict():
            yield f"> **{_text(block.word.text)}** {_text(block.sentence)}"
        case Paragraph():
            yield _line(block.line)
        case Bullets():
            yield from (f"- {_line(line)}" for line in block.lines)
        case Chain():
            yield from (f"{place}. {_text(name)}: {_line(line)}" for place, (name, line) in enumerate(block.steps, 1))
        case Grid():
            yield "| " + " | ".join(map(_text, block.header)) + " |"
            yield "|" + "|".join(" ---: " if place in block.numbers else " --- " for place in range(len(block.header))) + "|"
            yield from ("| " + " | ".join(map(_line, row)) + " |" for row in block.rows)


def _line(line: Line) -> str:
    return "".join(map(_span, line))


def _span(span: Span) -> str:
    match span:
        case Code():
            return _code(span.text)
        case Mark():
            return f"**{_text(span.text)}**"
    return _text(span)


def _code(text: str) -> str:
    """Between more backticks than it holds; a bar would end the cell of a table."""
    plain = _plain(text).replace("|", "¦")
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{space}{plain}{space}{fence}" if plain else ""


def _text(text: str) -> str:
    return _MARKUP.sub(r"\\\1", _plain(text))


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " if letter in "\n\t" else "\ufffd" for letter in text)
