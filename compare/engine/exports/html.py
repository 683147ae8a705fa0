"""A report as one HTML page that needs nothing else: no script, no font, no address. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from compare.engine.exports.blocks import Block, Bullets, Chain, Code, Grid, Heading, Line, Mark, Paragraph, Span, Verdict
from compare.engine.exports.words import Language, word

STYLE = Path(__file__).with_name("report.css")
LANG = {"en": "en", "zh": "zh-CN"}
# Nothing may be loaded or run, also where the page is opened from a server.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(blocks: Sequence[Block], language: Language) -> str:
    title = next((block.text for block in blocks if isinstance(block, Heading)), "")
    body = "\n".join(line for block in blocks for line in _block(block))
    head = (
        f'<!doctype html>\n<html lang="{LANG[language]}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(word('report', language))}: {_text(title)}</title>\n<style>\n{STYLE.read_text('utf-8')}</style>\n</head>\n"
    )
    return f'{head}<body>\n<main>\n<p class="kind">probe_web · {_text(word("report", language))}</p>\n{body}\n</main>\n</body>\n</html>\n'


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            anchor = f' id="{escape(block.anchor)}"' if block.anchor else ""
            yield f"<h{block.level}{anchor}>{_text(block.text)}</h{block.level}>"
        case Verdict():
            yield f'<p class="verdict {block.word.kind}"><strong>{_text(block.word.text)}</strong> {_text(block.sentence)}</p>'
        case Paragraph():
            yield f"<p>{_line(block.line)}</p>"
        case Bullets():
            yield "<ul>"
            yield from (f"<li>{_line(line)}</li>" for line in block.lines)
            yield "</ul>"
        case Chain():
            yield '<ol class="chain">'
            yield from (f"<li><span>{_text(name)}</span>{_line(line)}</li>" for name, line in block.steps)
            yield "</ol>"
        case Grid():
            yield from _grid(block)


def _grid(grid: Grid) -> Iterator[str]:
    def cell(tag: str, place: int, content: str, more: str = "") -> str:
        return f"<{tag}{more}{' class=number' if place in grid.numbers else ''}>{content}</{tag}>"

    yield '<div class="scroll" tabindex="0"><table>'
    yield (
        "<thead><tr>" + "".join(cell("th", place, _text(name), ' scope="col"') for place, name in enumerate(grid.header)) + "</tr></thead>"
    )
    yield "<tbody>"
    for row in grid.rows:
        yield "<tr>" + "".join(cell("td", place, _line(line)) for place, line in enumerate(row)) + "</tr>"
    yield "</tbody></table></div>"


def _line(line: Line) -> str:
    return "".join(map(_span, line))


def _span(span: Span) -> str:
    match span:
        case Code():
            return f"<code>{_breakable(span.text)}</code>"
        case Mark():
            return f'<b class="{span.kind}">{_text(span.text)}</b>'
    return _text(span)


def _breakable(text: str) -> str:
    """Long dotted names may break after a dot."""
    return _text(text).replace(".", ".<wbr>")


def _text(text: str) -> str:
    """Escaped; what HTML cannot hold is replaced."""
    return escape("".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text))
