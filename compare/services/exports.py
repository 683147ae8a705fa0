"""What can be downloaded of a comparison: files that lie there, and files that a worker makes when somebody asks for them.

A made file is made once: a finished comparison never changes. A failure is told to whoever asks next, and asking again tries again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from compare.engine.errors import Cancelled
from compare.models import Comparison, Export
from compare.services import broker, comparisons, key_data, storage, work
from compare.services.refusals import Refusal, problem

State = Export.State

LANGUAGES = ("en", "zh")
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
YAML = "application/yaml"


@dataclass(frozen=True)
class Stored:
    """A file that can be sent as it is."""

    content_type: str
    find: Callable[[Comparison], Path | None]


STORED = {"verdict.json": Stored("application/json", comparisons.verdict_file)}
MADE = {
    "report.html": "text/html; charset=utf-8",
    "report.md": "text/markdown; charset=utf-8",
    "table.csv": "text/csv; charset=utf-8",
    "table.xlsx": XLSX,
    "keydata.xlsx": XLSX,
    "mapping.yaml": YAML,
    "mapping.csv": "text/csv; charset=utf-8",
    "layer_mapping.yaml": YAML,
    "cell_mapping.yaml": YAML,
    "data_mapping.yaml": YAML,
}


@dataclass(frozen=True)
class File:
    """A download that is there. ``made`` files are sent as attachments; ``kept_as`` is the name that it is to be saved under."""

    path: Path
    kept_as: str
    content_type: str
    made: bool


def find(comparison: Comparison, name: str, language: str = "en") -> File | Export:
    """The file of an export, or the job that is making it. Only reports have a language."""
    if name in STORED:
        path = STORED[name].find(comparison)
        if path is None:
            raise Refusal("not_ready", HTTPStatus.CONFLICT)
        return File(path, _kept_as(comparison, name), STORED[name].content_type, made=False)
    if name not in MADE:
        raise Refusal("export_unknown", HTTPStatus.NOT_FOUND, name=name)
    if language not in LANGUAGES:
        raise Refusal("invalid", fields="lang")
    if comparison.state != Comparison.State.DONE:
        raise Refusal("not_ready", HTTPStatus.CONFLICT)
    if name == "keydata.xlsx":
        key_data.find(comparison)  # refuses where there is none
    stored = _stored_name(name, language)
    path = storage.exports(comparison) / stored
    if path.is_file():
        return File(path, _kept_as(comparison, stored), MADE[name], made=True)
    return _wanted(comparison, stored)


def make(export_id: int, task_id: str) -> None:
    """The worker's part: claim, write, put in its place. Does nothing when somebody else has it."""
    attempt = work.claim(Export, export_id, task_id)
    if attempt is None:
        return
    export = Export.objects.get(pk=export_id)
    export.comparison = Comparison.objects.with_sides().get(pk=export.comparison_id)
    folder = _making(export)

    def action(pulse: work.Pulse) -> None:
        storage.remove(folder)
        folder.mkdir(parents=True)
        made = folder / export.name
        _write(export, made, lambda rows: pulse.progress("export", 0.0, {"rows": rows}))
        attempt.write(progress={})  # whoever deleted the comparison meanwhile wants no file of it
        made.replace(storage.exports(export.comparison) / export.name)
        attempt.settle(State.READY, error=None)

    try:
        error = work.perform(attempt, action)
        if error is not None:
            attempt.settle(State.FAILED, error=error)
    except Cancelled:
        pass
    finally:
        storage.remove(folder)


def lost(export: Export, code: str, **params: Any) -> None:
    """Its worker is gone: say so to whoever asks next."""
    attempt = work.Attempt(Export, export.pk, export.attempt)
    storage.remove(_making(export))
    try:
        attempt.settle(State.FAILED, error=problem(code, export.name, **params))
    except Cancelled:  # somebody else settled it
        return


def _wanted(comparison: Comparison, stored: str) -> Export:
    export, _ = Export.objects.get_or_create(comparison=comparison, name=stored)
    if export.state == State.FAILED:
        Export.objects.filter(pk=export.pk, attempt=export.attempt).delete()
        error = export.error or problem("internal", reference="-")
        raise Refusal(error["code"], HTTPStatus.INTERNAL_SERVER_ERROR, **error["params"])
    if export.state == State.READY:  # the file was there and is not any more
        Export.objects.filter(pk=export.pk, attempt=export.attempt, state=State.READY).update(state=State.QUEUED, rung_at=None)
        export.refresh_from_db()
    if export.state == State.QUEUED:
        broker.ring(export)
    return export


def _write(export: Export, target: Path, watch: Callable[[int], None]) -> None:
    from compare.engine.exports.finished import from_folder  # only here: a web process needs no numpy
    from compare.engine.exports.write import write_mapping, write_report, write_table
    from compare.engine.keydata.published import write_tables

    comparison = export.comparison
    if export.name == "keydata.xlsx":
        write_tables(storage.result(comparison), target, watch)
        return
    sides = (storage.columns(comparison.left), storage.columns(comparison.right))
    finished = from_folder(storage.result(comparison), *sides, mapping=comparison.options.get("mapping"))
    kind, _, rest = export.name.partition(".")
    if kind == "report":
        write_report(finished, target, "zh" if rest.startswith("zh.") else "en")
    elif kind == "table":
        write_table(finished, target, watch)
    else:
        write_mapping(finished, target)


def _stored_name(name: str, language: str) -> str:
    kind, _, ending = name.partition(".")
    return f"{kind}.{language}.{ending}" if kind == "report" else name


ARCHIVE_ENDING = re.compile(r"\.(zip|tar|tgz|tar\.gz)$", re.IGNORECASE)
LONGEST_RUN_NAME = 60  # characters; both names and the kind fit what every file system takes


def _kept_as(comparison: Comparison, stored: str) -> str:
    """``train_vs_infer.report.en.html``: files of several comparisons, and of both languages, lie in one folder."""
    return f"{_plain(comparison.left.name)}_vs_{_plain(comparison.right.name)}.{stored}"


def _plain(name: str) -> str:
    """What somebody called a run, as part of a file name: letters and digits of any language, ``_``, ``-`` and dots inside, and not the
    ending of the archive that it came as."""
    return re.sub(r"[^\w.-]+", "-", ARCHIVE_ENDING.sub("", name))[:LONGEST_RUN_NAME].strip(".-") or "run"


def _making(export: Export) -> Path:
    return storage.exports(export.comparison) / f".{export.pk}-{export.attempt}.tmp"
