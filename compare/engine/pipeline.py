"""The engine's face: read a run, compare two runs, compare two paths. Everything else of the engine is reached through here."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compare.engine.diagnose.case import build_case
from compare.engine.diagnose.run_verdict import run_verdict
from compare.engine.diagnose.verdict import PartVerdict, SideFacts, judge
from compare.engine.errors import Cancelled, DumpError
from compare.engine.ingest import Progress, Source, inventory, paths_to_sources, read_side
from compare.engine.model import Dump, JsonObject
from compare.engine.options import Options
from compare.engine.parts import Part, left_out, parts_of
from compare.engine.publish import write_part, write_verdict
from compare.engine.store.dumps import read_dump, write_dump

__all__ = ["Cancelled", "Comparison", "DumpError", "Options", "Progress", "Source", "compare_paths", "compare_runs", "read_run"]

INVENTORY = "inventory.json"


def silent(stage: str, fraction: float, numbers: dict[str, int]) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the command line works with: the document, and each judged part with its number."""

    document: JsonObject
    parts: Sequence[tuple[Part, PartVerdict | None]]


@dataclass(frozen=True, slots=True)
class _Run:
    """One side: its dumps (opened when asked for), and what the verdict says of it."""

    name: str
    role: str
    digest: str
    dumps: Sequence[Dump]
    folders: Sequence[str]


def read_run(sources: Sequence[Source], name: str, destination: Path, progress: Progress) -> JsonObject:
    """Reads an upload into one column folder a dump below ``destination``, which appears complete or not at all; returns the inventory.

    Raises DumpError for what cannot be read, and whatever ``progress`` raises.
    """
    size = sum(source.path.stat().st_size for source in sources)
    side = read_side(sources, name, progress)
    document = inventory(side, size)
    with _appearing(destination) as folder:
        for number, (dump, entry) in enumerate(zip(side.dumps, document["dumps"], strict=True)):
            progress("store", number / len(side.dumps), {"dumps": number, "of": len(side.dumps)})
            write_dump(dump, folder / entry["folder"])
        (folder / INVENTORY).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")
    return document


def compare_runs(
    left: Path, right: Path, options: Options, destination: Path, progress: Progress, on_verdict: Callable[[JsonObject], None]
) -> JsonObject:
    """Compares two folders that ``read_run`` made. ``on_verdict`` gets the document as soon as it is known, before the tree is written."""
    sides = (_stored(left), _stored(right))
    with _appearing(destination) as folder:
        comparison = _compare(sides, options, progress)
        write_verdict(comparison.document, folder)
        on_verdict(comparison.document)
        judged = [(part, verdict) for part, verdict in comparison.parts if verdict is not None]
        for number, (part, verdict) in enumerate(judged):
            progress("store", number / len(judged), {"parts": number, "of": len(judged)})
            write_verdict(verdict.document, folder / "parts" / str(part.n))
            folders = tuple([[side.folders[row] for row in pair[index]] for pair in part.ranks] for index, side in enumerate(sides))
            write_part(verdict, folder / "parts" / str(part.n), (folders[0], folders[1]), progress)
        progress("store", 1.0, {"parts": len(judged), "of": len(judged)})
    return comparison.document


def compare_paths(left: Sequence[Path], right: Sequence[Path], options: Options, progress: Progress = silent) -> Comparison:
    """Compares what lies at two lists of paths, in memory."""
    begin = time.perf_counter()
    sides = (_read(left, progress), _read(right, progress))
    return _compare(sides, options, progress, read_s=time.perf_counter() - begin)


def _read(paths: Sequence[Path], progress: Progress) -> _Run:
    name = " + ".join(path.resolve().name for path in paths)
    side = read_side(paths_to_sources(paths), name, progress)
    document = inventory(side, 0)
    return _Run(side.name, document["role"], side.digest, side.dumps, [entry["folder"] for entry in document["dumps"]])


def _stored(folder: Path) -> _Run:
    document: JsonObject = json.loads((folder / INVENTORY).read_text("utf-8"))
    folders = [entry["folder"] for entry in document["dumps"]]
    return _Run(document["name"], document["role"], document["digest"], [read_dump(folder / name) for name in folders], folders)


@np.errstate(all="ignore")  # NaN, Inf and zero denominators are decided by rule (measure.statistics), not by numpy's warnings
def _compare(sides: tuple[_Run, _Run], options: Options, progress: Progress, read_s: float = 0.0) -> Comparison:
    roles = (options.left_role or sides[0].role, options.right_role or sides[1].role)
    primary = 1 if roles[1] == "infer" and roles[0] != "infer" else 0
    same_input = sides[0].digest == sides[1].digest
    parts = parts_of(sides[0].dumps, sides[1].dumps, options)
    facts = (
        SideFacts(sides[0].name, roles[0], left_out(sides[0].dumps, options, parts, 0)),
        SideFacts(sides[1].name, roles[1], left_out(sides[1].dumps, options, parts, 1)),
    )
    spent = {"read_s": read_s, "align_s": 0.0, "measure_s": 0.0, "diagnose_s": 0.0}
    judged: list[tuple[Part, PartVerdict | None]] = []
    for number, part in enumerate(parts):
        if part.only is not None:
            judged.append((part, None))
            continue
        cases = []
        for a, b in part.ranks:
            left, right = [sides[0].dumps[row] for row in a], [sides[1].dumps[row] for row in b]
            progress("align", number / len(parts), {"part": number, "parts": len(parts)})
            cases.append(build_case(left, right, primary=primary, exact=options.exact, spent=spent, watch=progress))
        progress("diagnose", number / len(parts), {"part": number, "parts": len(parts)})
        begin = time.perf_counter()
        judged.append((part, judge(cases, facts, same_input=same_input and all(a == b for a, b in part.ranks))))
        spent["diagnose_s"] += time.perf_counter() - begin
    progress("diagnose", 1.0, {"parts": len(parts)})
    timing = {name: round(seconds, 4) for name, seconds in spent.items()}
    if len(judged) == 1 and judged[0][1] is not None:
        document = judged[0][1].document
        document["timing"] = timing
    else:
        document = run_verdict(judged, facts, timing)
    return Comparison(document, judged)


@contextmanager
def _appearing(destination: Path) -> Iterator[Path]:
    """A folder that takes its place when it is complete; a failure leaves nothing behind."""
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.replace(destination)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
