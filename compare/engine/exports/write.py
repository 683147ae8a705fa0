"""Each export as a file; what its name ends with says which form."""

from __future__ import annotations

from pathlib import Path

from compare.engine.exports.finished import Finished
from compare.engine.exports.html import html
from compare.engine.exports.mapping import used_mapping
from compare.engine.exports.markdown import markdown
from compare.engine.exports.report import report
from compare.engine.exports.sheets import Watch, write_csv, write_xlsx
from compare.engine.exports.words import Language
from compare.engine.mapping.write import mapping_text


def write_report(finished: Finished, target: Path, language: Language = "en") -> None:
    """HTML or Markdown, by the name's ending."""
    blocks = report(finished, language)
    text = html(blocks, language) if target.suffix.lower() == ".html" else markdown(blocks)
    target.write_text(text, "utf-8", errors="replace")


def write_table(finished: Finished, target: Path, watch: Watch = lambda _: None) -> None:
    """XLSX or CSV, by the name's ending. ``watch`` hears the number of rows written so far."""
    if target.suffix.lower() == ".xlsx":
        write_xlsx(finished, target, watch)
    else:
        write_csv(finished, target, watch)


def write_mapping(finished: Finished, target: Path) -> None:
    """YAML, CSV or one of msprobe's forms, by the name."""
    target.write_text(mapping_text(used_mapping(finished), target.name), "utf-8", errors="replace")
