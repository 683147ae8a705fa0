"""``manage.py compare LEFT RIGHT``: the engine without server, broker or database."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compare.engine.diagnose.run_chain import TOLD, chain_lines
from compare.engine.errors import DumpError, os_error
from compare.engine.exports.finished import Finished, from_memory
from compare.engine.exports.words import LANGUAGES, Language
from compare.engine.exports.write import write_mapping, write_report, write_table
from compare.engine.mapping.read import MOST_BYTES, read_mapping
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import Comparison, compare_paths

AGREES, DIVERGED, BAD_INPUT, NOT_COMPARABLE, INTERNAL = 0, 1, 2, 3, 4
EXPORTS = {  # option → what a file's name may end with
    "report": (".html", ".md"),
    "table": (".csv", ".xlsx"),
    "export_mapping": (".yaml", ".yml", ".csv"),
}
MOST_FAILED = 5  # parts whose errors are printed
STATUS = {"identical": AGREES, "consistent": AGREES, "diverged": DIVERGED, "not_comparable": NOT_COMPARABLE}


class Command(BaseCommand):
    help = (
        "Compares two dumps: where do they first part, and why. "
        "Exit status: 0 identical or consistent, 1 diverged, 2 bad input, 3 not comparable, 4 internal error."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="*", metavar="LEFT RIGHT", help="a dump.json, rank folder, step folder, run root or archive")
        parser.add_argument(
            "--left", action="append", default=[], metavar="PATH", help="the left side; may repeat where it is one rank per archive"
        )
        parser.add_argument("--right", action="append", default=[], metavar="PATH", help="the right side; may repeat")
        parser.add_argument("--json", metavar="FILE", help="write the verdict document (- for standard output)")
        parser.add_argument("--report", metavar="FILE", help="write a report that stands alone: .html or .md")
        parser.add_argument("--report-language", choices=LANGUAGES, default="en", help="language of the report")
        parser.add_argument("--table", metavar="FILE", help="write the pair table, msprobe's columns first: .csv or .xlsx")
        parser.add_argument("--step", metavar="N|L:R")
        parser.add_argument("--rank", metavar="N|L:R")
        parser.add_argument("--stage", metavar="NAME|L:R")
        parser.add_argument("--baseline", metavar="DUMP", help="a second dump of the left side: its self-noise is the noise floor")
        parser.add_argument("--mapping", metavar="FILE", help="rules for which module is compared with which (docs/mapping.md)")
        parser.add_argument(
            "--export-mapping",
            metavar="FILE",
            help="write the mapping that was used: .yaml or .csv; layer_mapping.yaml, cell_mapping.yaml, data_mapping.yaml as msprobe's",
        )
        parser.add_argument("--exact", action="store_true", help="any pair that is not equal counts as diverged")

    def run_from_argv(self, argv: list[str]) -> None:
        """Django ends in 1 for any error; here 1 means diverged and nothing else."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            parser = self.create_parser(argv[0], argv[1])
            options = vars(parser.parse_args(argv[2:]))
            status = self.handle(**options)
        except CommandError as error:
            status = _say(str(error))
        except DumpError as error:
            status = _say(error.sentence())
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = BAD_INPUT
        except KeyboardInterrupt:
            status = _say("stopped")
        except Exception:  # noqa: BLE001 – anything else is a fault of ours: one line, the rest in a log
            status = _internal()
        sys.exit(status)

    def handle(self, *args: Any, **options: Any) -> int:  # type: ignore[override]
        left, right = _sides(options)
        mapping = None if options["mapping"] is None else _read_mapping(Path(options["mapping"]))
        asked = {name: options[name] for name in ("step", "rank", "stage", "exact", "baseline")}
        chosen = Options.from_json(asked | {"mapping": mapping})
        targets = {name: Path(options[name]) for name in EXPORTS if options[name] is not None}
        for name, target in targets.items():
            _check_suffix(name, target)
        comparison = compare_paths(left, right, chosen)
        _write(comparison, options["json"])
        finished = from_memory(comparison, mapping)
        for name, target in targets.items():
            _export(finished, name, target, options["report_language"])
        if options["json"] != "-":
            self.stdout.write(_summary(comparison.document))
        return STATUS[comparison.document["verdict"]]


def _read_mapping(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8", "replace")
        read_mapping(text)
    except OSError as error:
        raise os_error(error, str(path)) from error
    except DumpError as error:
        raise DumpError(error.code, str(path), **error.params) from error
    return text


def _check_suffix(name: str, target: Path) -> None:
    """Before anything is compared: a name that says no format."""
    if target.suffix.lower() not in EXPORTS[name]:
        raise CommandError(f"--{name.replace('_', '-')} {target}: the name must end with {' or '.join(EXPORTS[name])}")


def _export(finished: Finished, name: str, target: Path, language: Language) -> None:
    try:
        if name == "report":
            write_report(finished, target, language)
        elif name == "table":
            write_table(finished, target)
        else:
            write_mapping(finished, target)
    except OSError as error:
        raise DumpError("cannot_write", str(target), detail=error.strerror or str(error)) from error


def _sides(options: dict[str, Any]) -> tuple[list[Path], list[Path]]:
    left, right, paths = list(options["left"]), list(options["right"]), list(options["paths"])
    if paths and (left or right or len(paths) != 2):
        raise CommandError("give exactly two paths, LEFT and RIGHT, or --left and --right instead of them")
    if paths:
        left, right = paths[:1], paths[1:]
    if not left or not right:
        raise CommandError("a side is missing: give LEFT and RIGHT, or --left and --right")
    return [Path(path) for path in left], [Path(path) for path in right]


def _write(comparison: Comparison, target: str | None) -> None:
    if target is None:
        return
    text = json.dumps(comparison.document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    if target == "-":
        sys.stdout.buffer.write(text.encode())  # a document is UTF-8, whatever the terminal speaks
        sys.stdout.buffer.flush()
        return
    try:
        Path(target).write_text(text, "utf-8")
    except OSError as error:
        raise DumpError("cannot_write", target, detail=error.strerror or str(error)) from error


def _summary(document: JsonObject) -> str:
    chain = [f"  {line}" for line in chain_lines(document)]
    several = "parts" in document
    lines = [document["headline"]["en"], *(chain if several else ())]
    for origin in document.get("origins") or []:
        place = f"pair {origin['order'] + 1} of {origin['of']}, confidence {origin['confidence']}"
        lines.append(f"  {origin['kind']}: {origin['module']} {origin['slot']} ({place})")
        lines += [f"    {cause['text']['en']} ({cause['score']:.2f})" for cause in origin["causes"][:3]]
        lines += [f"    next: {cause['advice']['en']}" for cause in origin["causes"][:1] if cause.get("advice")]
    failed = [premise["code"] for premise in document.get("premises") or [] if premise["state"] == "failed"]
    if failed:
        lines.append(f"  failed premises: {', '.join(failed)}")
    unread = [row for row in document.get("parts") or [] if row["error"]]
    lines += [f"  failed: {row['error']['message']}" for row in unread[:MOST_FAILED]]
    lines += [f"  and {len(unread) - MOST_FAILED} more"] if len(unread) > MOST_FAILED else []
    if not several:  # the findings of a run verdict are in its chain
        lines += chain
        lines += [f"  note: {finding['text']['en']}" for finding in document["findings"] if finding["severity"] in TOLD]
    return "\n".join(lines)


def _say(sentence: str) -> int:
    print(" ".join(sentence.split()), file=sys.stderr)
    return BAD_INPUT


def _internal() -> int:
    with tempfile.NamedTemporaryFile("w", prefix="probe-web-", suffix=".log", delete=False, encoding="utf-8") as log:
        log.write(traceback.format_exc())
    print(f"internal error; please report it with {log.name}", file=sys.stderr)
    return INTERNAL
