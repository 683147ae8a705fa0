"""The engine's face: read a run, compare two runs, compare two paths. Everything else of the engine is reached through here."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from compare.engine.appearing import appearing
from compare.engine.diagnose.run_loop import failed_loop, loop_document
from compare.engine.diagnose.run_settings import with_settings
from compare.engine.diagnose.run_verdict import Outcome, run_verdict
from compare.engine.diagnose.verdict import PartVerdict
from compare.engine.errors import Cancelled, DumpError
from compare.engine.ingest import Progress, Source
from compare.engine.judging import judge_part
from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.published import FOLDER as KEY_DATA
from compare.engine.keydata.published import read_loop_document, write_key_data, write_loop_document
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.parts.pairing import Part
from compare.engine.plan import Plan, plan_of
from compare.engine.publish import write_part, write_verdict
from compare.engine.runs import held_run, read_run, stored_run

__all__ = [
    "Cancelled",
    "Comparison",
    "DumpError",
    "Options",
    "Plan",
    "Progress",
    "Source",
    "compare_loop",
    "compare_part",
    "compare_paths",
    "compare_plan",
    "compare_runs",
    "failed_loop",
    "plan_runs",
    "read_loop_document",
    "read_run",
    "reduce_parts",
]

Files: TypeAlias = tuple[Sequence[Path], Sequence[Path], Sequence[Path]]
NO_FILES: Files = ((), (), ())


def silent(stage: str, fraction: float, numbers: dict[str, int]) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the command line works with: the document, and each judged part with its number."""

    document: JsonObject
    parts: Sequence[tuple[Part, PartVerdict | None]]


def plan_runs(left: Path, right: Path, options: Options, baseline: Path | None = None, files: Files = NO_FILES) -> Plan:
    """What comparing two folders that ``read_run`` made comes to; ``baseline``: the folder of a second run of the left side. Raises
    DumpError ``no_such_choice``.

    ``files``: for the left and the right side, and the baseline, those that the run was read from, in the same order. Tensors are read out
    of them; without, statistics are compared.
    """
    sides = (stored_run(left, files[0]), stored_run(right, files[1]))
    return plan_of(sides, options, None if baseline is None else stored_run(baseline, files[2]))


def compare_part(plan: Plan, n: int, destination: Path, progress: Progress, on_verdict: Callable[[JsonObject], None]) -> JsonObject:
    """Compares part ``n`` alone, one that both sides hold, into a folder that appears complete or not at all; returns its verdict document.

    Opens the dumps of that part and no others. ``on_verdict`` gets the document before the tree is written.
    """
    part = plan.parts[n]
    verdict, ranks = judge_part(plan, part, progress)
    on_verdict(verdict.document)
    with appearing(destination) as folder:
        write_verdict(verdict.document, folder)
        folders = tuple([[side.entries[row].folder for row in pair[index]] for pair in ranks] for index, side in enumerate(plan.sides))
        progress("store", 0.0, {"part": n})
        write_part(verdict, folder, (folders[0], folders[1]), progress)
        progress("store", 1.0, {"part": n})
    return verdict.document


def compare_loop(plan: Plan, destination: Path | None = None) -> JsonObject:
    """Compares what two runs hold besides dumps: key data and configurations. It needs none of the parts, nor do they wait for it.

    Returns what ``reduce_parts`` takes. Where a side holds any it is kept in ``destination`` too, with what a reader may ask of it: a
    folder that appears complete or not at all.
    """
    begin = time.perf_counter()
    configurations = (plan.sides[0].loop().configuration, plan.sides[1].loop().configuration)
    comparison = compare_key_data(*plan.tables, plan.options.numbers("step"), plan.options.numbers("rank"))
    loop = loop_document(comparison, configurations, plan.parts, plan.roles)
    loop["measure_s"] = round(time.perf_counter() - begin, 4)
    if destination is not None and plan.looped:
        with appearing(destination) as folder:
            write_loop_document(loop, folder)
            if comparison.keys:
                write_key_data(comparison, loop["key_data"], folder)
    return loop


def reduce_parts(
    plan: Plan, documents: Mapping[int, JsonObject], errors: Mapping[int, JsonObject], loop: JsonObject | None = None, read_s: float = 0.0
) -> JsonObject:
    """The verdict over the parts: ``documents`` by number, ``errors`` of those that could not be compared. ``loop``: what ``compare_loop``
    said, now or in another process; None: it is asked here.

    Where one part was compared, the plan has no other and neither side holds key data, that is its verdict, with what the configurations
    say; else a run verdict.
    """
    timing = _total(documents.values(), read_s)
    if loop is None and plan.looped:
        loop = compare_loop(plan)
    if len(plan.parts) == 1 and documents and all(side is None for side in plan.tables):
        return {**with_settings(documents[plan.parts[0].n], loop, plan.roles, plan.pairing.stages), "timing": timing}
    loop = compare_loop(plan) if loop is None else loop
    timing["measure_s"] = round(timing["measure_s"] + loop["measure_s"], 4)
    outcomes = [Outcome(part, documents.get(part.n), errors.get(part.n)) for part in plan.parts]
    return run_verdict(outcomes, plan.facts, timing, loop, plan.pairing)


def compare_runs(
    left: Path,
    right: Path,
    options: Options,
    destination: Path,
    progress: Progress,
    on_verdict: Callable[[JsonObject], None],
    baseline: Path | None = None,
    files: Files = NO_FILES,
) -> JsonObject:
    """Compares two folders that ``read_run`` made: plans, and compares the plan."""
    return compare_plan(plan_runs(left, right, options, baseline, files), destination, progress, on_verdict)


def compare_plan(plan: Plan, destination: Path, progress: Progress, on_verdict: Callable[[JsonObject], None]) -> JsonObject:
    """Compares one part after the other. ``on_verdict`` gets the document as soon as it is known: before the tree of the last part is
    written.
    """
    documents: dict[int, JsonObject] = {}
    errors: dict[int, JsonObject] = {}
    told: list[JsonObject] = []

    def judged(part: int, document: JsonObject) -> None:
        documents[part] = document
        if len(documents) + len(errors) == len(plan.compared):
            told.append(reduce_parts(plan, documents, errors, compare_loop(plan, folder / KEY_DATA)))
            on_verdict(told[0])

    with appearing(destination) as folder:
        (folder / "parts").mkdir()
        for part in plan.compared:
            with _failing(plan, part, errors):
                compare_part(plan, part.n, folder / "parts" / str(part.n), progress, partial(judged, part.n))
        if not told:  # no part is on both sides, or the last of them failed
            told.append(reduce_parts(plan, documents, errors, compare_loop(plan, folder / KEY_DATA)))
            on_verdict(told[0])
        write_verdict(told[0], folder)
    return told[0]


def compare_paths(left: Sequence[Path], right: Sequence[Path], options: Options, progress: Progress = silent) -> Comparison:
    """Compares what lies at two lists of paths, in memory; ``options.baseline`` is the path of a second dump of the left side."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="probe-web-") as folder:
        kept = Path(folder)
        sides = (held_run(left, progress, kept / "left.bin"), held_run(right, progress, kept / "right.bin"))
        baseline = None if options.baseline is None else held_run([Path(options.baseline)], progress, kept / "baseline.bin")
        read_s = time.perf_counter() - begin
        plan = plan_of(sides, options, baseline)
        judged: list[tuple[Part, PartVerdict | None]] = []
        errors: dict[int, JsonObject] = {}
        for part in plan.parts:
            verdict = None
            with _failing(plan, part, errors):
                verdict = None if part.only is not None else judge_part(plan, part, progress)[0]
            judged.append((part, verdict))
    documents = {part.n: verdict.document for part, verdict in judged if verdict is not None}
    return Comparison(reduce_parts(plan, documents, errors, read_s=read_s), judged)


@contextmanager
def _failing(plan: Plan, part: Part, errors: dict[int, JsonObject]) -> Iterator[None]:
    """One part that cannot be compared does not hide the others; where it is the only one, that is the answer."""
    try:
        yield
    except DumpError as error:
        if error.is_of_the_machine or len(plan.compared) == 1:
            raise
        errors[part.n] = error.document


def _total(documents: Iterable[JsonObject], read_s: float) -> JsonObject:
    """The seconds of all parts together: what the work took, not how long somebody waited for it."""
    total = {"read_s": read_s, "align_s": 0.0, "measure_s": 0.0, "diagnose_s": 0.0}
    for document in documents:
        for name, seconds in document["timing"].items():
            total[name] += seconds
    return {name: round(seconds, 4) for name, seconds in total.items()}
