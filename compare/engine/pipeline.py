"""The engine's face: read a run, compare two runs, compare two paths. Everything else of the engine is reached through here."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from compare.engine.diagnose.baseline import Baseline
from compare.engine.diagnose.case import Case, build_case, measured_self_noise
from compare.engine.diagnose.findings import Unreadable
from compare.engine.diagnose.pairing_findings import pairing_findings
from compare.engine.diagnose.rank_pairs import pair_ranks
from compare.engine.diagnose.run_loop import failed_loop, loop_document
from compare.engine.diagnose.run_settings import with_settings
from compare.engine.diagnose.run_verdict import Outcome, run_verdict
from compare.engine.diagnose.verdict import PartVerdict, SideFacts, judge
from compare.engine.errors import Cancelled, DumpError
from compare.engine.ingest import KEPT_FILE, Progress, Source, inventory, paths_to_sources, read_side
from compare.engine.ingest.layout import process_of
from compare.engine.keydata.alignment import numbers_held
from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.published import FOLDER as KEY_DATA
from compare.engine.keydata.published import read_loop_document, write_key_data, write_loop_document
from compare.engine.keydata.requests import same_requests
from compare.engine.keydata.store import read_loop, write_loop
from compare.engine.mapping.read import read_mapping
from compare.engine.mapping.rules import MappingRules
from compare.engine.measure.self_noise import SelfNoise
from compare.engine.model import Dump, JsonObject, KeyData, LoopData
from compare.engine.options import Options
from compare.engine.pairing import Pairing, Part, RankPairs
from compare.engine.parts import chosen, left_out, parts_of
from compare.engine.publish import write_part, write_verdict
from compare.engine.store.dumps import read_dump, write_dump
from compare.engine.tensors import HeldTensors
from compare.engine.token_parts import training_side
from compare.engine.tokens import Tokens

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

INVENTORY = "inventory.json"
Files: TypeAlias = tuple[Sequence[Path], Sequence[Path], Sequence[Path]]
NO_FILES: Files = ((), (), ())


def silent(stage: str, fraction: float, numbers: dict[str, int]) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the command line works with: the document, and each judged part with its number."""

    document: JsonObject
    parts: Sequence[tuple[Part, PartVerdict | None]]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One dump of a run as its inventory names it."""

    folder: str
    stage: str | None
    step: int | None
    rank: int | None
    process: int | None  # of an asynchronous rollout
    tokens: Sequence[Tokens]  # that its forward passes saw
    error: JsonObject | None = None  # why it cannot be read; it has no folder then


@dataclass(frozen=True, slots=True)
class _Run:
    """One side: what its inventory says, and its dumps, opened one by one when a part asks for them."""

    name: str
    role: str
    digest: str
    entries: Sequence[_Entry]
    dump: Callable[[int], Dump]
    tensors: Callable[[], HeldTensors]  # to be opened anew for a part, so that a plan holds no file open
    logged: bool  # whether it holds request logs
    looped: bool  # whether it holds key data or a configuration
    loop: Callable[[], LoopData]  # key data, configuration and request logs; their numbers are opened when asked for


@dataclass(frozen=True, slots=True)
class Plan:
    """Which parts a comparison is made of, known from the two inventories alone: no column is opened for it."""

    sides: tuple[_Run, _Run]
    pairing: Pairing
    facts: tuple[SideFacts, SideFacts]
    options: Options
    baseline: _Run | None = None  # a second dump of the left side
    mapping: MappingRules | None = None

    @property
    def parts(self) -> Sequence[Part]:
        return self.pairing.parts

    @property
    def compared(self) -> Sequence[Part]:
        """The parts that both sides hold."""
        return [part for part in self.parts if part.only is None]

    @property
    def roles(self) -> tuple[str, str]:
        return self.facts[0].role, self.facts[1].role

    @property
    def looped(self) -> bool:
        """Whether a side holds key data or a configuration, which ``compare_loop`` compares."""
        return any(side.looped for side in self.sides)

    @property
    def tables(self) -> tuple[KeyData | None, KeyData | None]:
        """The key data of both sides; none where stages were chosen, for key data belong to no stage."""
        return (None, None) if self.options.stage is not None else (self.sides[0].loop().key_data, self.sides[1].loop().key_data)

    @property
    def primary(self) -> int:
        """The side whose order of execution counts."""
        return 1 if self.facts[1].role == "infer" and self.facts[0].role != "infer" else 0

    @property
    def namer(self) -> int:
        """The side whose names stand where only a rule of the mapping brings modules together."""
        return 1 if self.facts[1].role == "train" and self.facts[0].role != "train" else 0


def read_run(sources: Sequence[Source], name: str, destination: Path, progress: Progress) -> JsonObject:
    """Reads an upload into one column folder a dump below ``destination``, which appears complete or not at all; returns the inventory.

    Raises DumpError for what cannot be read, and whatever ``progress`` raises.
    """
    size = sum(source.path.stat().st_size for source in sources)
    with _appearing(destination) as folder:
        side = read_side(sources, name, progress, folder / KEPT_FILE)
        document = inventory(side, size)
        for number, (dump, entry) in enumerate(zip(side.dumps, document["dumps"], strict=True)):
            progress("store", number / len(side.dumps), {"dumps": number, "of": len(side.dumps)})
            write_dump(dump, folder / entry["folder"])
        write_loop(side.loop, folder)
        (folder / INVENTORY).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")
    return document


def plan_runs(left: Path, right: Path, options: Options, baseline: Path | None = None, files: Files = NO_FILES) -> Plan:
    """What comparing two folders that ``read_run`` made comes to; ``baseline``: the folder of a second run of the left side. Raises
    DumpError ``no_such_choice``.

    ``files``: for the left and the right side, and the baseline, those that the run was read from, in the same order. Tensors are read out
    of them; without, statistics are compared.
    """
    sides = (_stored(left, files[0]), _stored(right, files[1]))
    return _plan(sides, options, None if baseline is None else _stored(baseline, files[2]))


def compare_part(plan: Plan, n: int, destination: Path, progress: Progress, on_verdict: Callable[[JsonObject], None]) -> JsonObject:
    """Compares part ``n`` alone, one that both sides hold, into a folder that appears complete or not at all; returns its verdict document.

    Opens the dumps of that part and no others. ``on_verdict`` gets the document before the tree is written.
    """
    part = plan.parts[n]
    verdict, ranks = _judge(plan, part, progress)
    on_verdict(verdict.document)
    with _appearing(destination) as folder:
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
        with _appearing(destination) as folder:
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

    with _appearing(destination) as folder:
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
        sides = (_read(left, progress, kept / "left.bin"), _read(right, progress, kept / "right.bin"))
        baseline = None if options.baseline is None else _read([Path(options.baseline)], progress, kept / "baseline.bin")
        read_s = time.perf_counter() - begin
        plan = _plan(sides, options, baseline)
        judged: list[tuple[Part, PartVerdict | None]] = []
        errors: dict[int, JsonObject] = {}
        for part in plan.parts:
            verdict = None
            with _failing(plan, part, errors):
                verdict = None if part.only is not None else _judge(plan, part, progress)[0]
            judged.append((part, verdict))
    documents = {part.n: verdict.document for part, verdict in judged if verdict is not None}
    return Comparison(reduce_parts(plan, documents, errors, read_s=read_s), judged)


def _read(paths: Sequence[Path], progress: Progress, kept: Path) -> _Run:
    name = " + ".join(path.resolve().name for path in paths)
    sources = paths_to_sources(paths)
    side = read_side(sources, name, progress, kept)
    document = inventory(side, 0)
    tensors = partial(HeldTensors, [source.path for source in sources], kept)
    dumps, entries = side.dumps.__getitem__, _entries(document)
    return _Run(
        side.name,
        document["role"],
        side.digest,
        entries,
        dumps,
        tensors,
        bool(side.loop.requests),
        _looped(document),
        lambda: side.loop,
    )


def _stored(folder: Path, files: Sequence[Path]) -> _Run:
    document: JsonObject = json.loads((folder / INVENTORY).read_text("utf-8"))
    entries = _entries(document)
    return _Run(
        document["name"],
        document["role"],
        document["digest"],
        entries,
        lambda row: read_dump(folder / entries[row].folder),
        partial(HeldTensors, files, folder / KEPT_FILE),
        bool(document.get("requests")),
        _looped(document),
        lambda: read_loop(folder),
    )


def _looped(document: JsonObject) -> bool:
    return bool(document.get("key_data") or document.get("configuration"))


def _entries(document: JsonObject) -> list[_Entry]:
    """The dumps that were read, in their order, then those that could not be. An inventory of an older version has none of these, and says
    nothing of tokens."""
    return [
        _Entry(
            entry.get("folder", ""),
            entry["stage"],
            entry["step"],
            entry["rank"],
            process_of(entry["place"]),
            tuple(Tokens.from_document(tokens) for tokens in entry.get("tokens", ())),
            entry.get("error"),
        )
        for entry in (*document["dumps"], *document.get("unreadable", ()))
    ]


def _refuse_unheld(sides: tuple[_Run, _Run], options: Options) -> None:
    """A step or rank that neither the dumps nor the key data of a side hold: DumpError ``no_such_choice``."""
    for name in ("step", "rank"):
        for at, (side, wanted) in enumerate(zip(sides, options.numbers(name), strict=True)):
            table = None if wanted is None else side.loop().key_data
            if table is None or any(getattr(entry, name) == wanted for entry in side.entries):
                continue
            held = numbers_held(table.step if name == "step" else table.rank)
            if len(held) > 1 and wanted not in held:
                raise DumpError("no_such_choice", ("left", "right")[at], name=name, value=wanted, held=", ".join(map(str, held)))


def _plan(sides: tuple[_Run, _Run], options: Options, baseline: _Run | None) -> Plan:
    roles = (options.left_role or sides[0].role, options.right_role or sides[1].role)
    entries = (sides[0].entries, sides[1].entries)
    requests: list[tuple[int, int]] = []
    if any(side.logged for side in sides):
        logs = sides[0].loop().requests, sides[1].loop().requests
        requests = same_requests(entries, (chosen(entries[0], options, 0), chosen(entries[1], options, 1)), logs)
    pairing = parts_of(*entries, options, requests, roles)
    if options.stage is None:
        _refuse_unheld(sides, options)
    facts = tuple(SideFacts(side.name, roles[i], left_out(entries[i], options, pairing.parts, i)) for i, side in enumerate(sides))
    mapping = read_mapping(options.mapping).facing(roles) if options.mapping else None
    return Plan(sides, pairing, (facts[0], facts[1]), options, baseline, mapping)


@np.errstate(all="ignore")  # NaN, Inf and zero denominators are decided by rule (measure.statistics), not by numpy's warnings
def _judge(plan: Plan, part: Part, progress: Progress) -> tuple[PartVerdict, RankPairs]:
    """One part that both sides hold: all its ranks, in one document; and which dumps of the two sides each of its cases is about."""
    spent = {"read_s": 0.0, "align_s": 0.0, "measure_s": 0.0, "diagnose_s": 0.0}
    left, right = plan.sides
    numbers = {"part": part.n, "parts": len(plan.parts)}
    tensors = left.tensors(), right.tensors()
    repeated = None if plan.baseline is None else plan.baseline.tensors()
    same_baseline = plan.baseline is not None and plan.baseline.digest == left.digest  # says nothing of how well the side repeats itself
    measured: dict[tuple[int, ...], SelfNoise | None] = {}  # by the left ranks
    train = training_side((plan.facts[0].role, plan.facts[1].role), part)

    def built(a: Sequence[int], b: Sequence[int]) -> Case:
        progress("align", 0.0, numbers)
        dumps = [left.dump(row) for row in a], [right.dump(row) for row in b]
        again: list[Dump] = []
        if plan.baseline is not None and not same_baseline:
            again = _again(plan.baseline, [left.entries[row] for row in a])
        held = None if repeated is None else (tensors[0], repeated)
        measured[*a] = measured_self_noise(dumps[0], again, spent, progress, held) if again else None
        # A floor of statistics says nothing of elements: a baseline without tensors leaves the sides to their statistics.
        held = None if again and not all(len(dump.tensors) for dump in again) else tensors
        asked = partial(build_case, primary=plan.primary, exact=plan.options.exact, mapping=plan.mapping, namer=plan.namer, train=train)
        return asked(*dumps, spent=spent, watch=progress, held=held, self_noise=measured[*a])

    readable, unreadable = _readable(plan, part)
    ranks, cases = pair_ranks(readable, (left.dump, right.dump), built)
    progress("diagnose", 0.0, numbers)
    begin = time.perf_counter()
    same_input = left.digest == right.digest and all(a == b for a, b in ranks)
    baseline = None if plan.baseline is None else Baseline(plan.baseline.name, same_baseline, [measured[*a] for a, _ in ranks])
    paired = pairing_findings(part, plan.pairing if len(plan.parts) == 1 else None)
    alone = _alone(plan, part, ranks, unreadable)
    verdict = judge(cases, plan.facts, same_input=same_input, baseline=baseline, unreadable=unreadable, pairing=paired, alone=alone)
    spent["diagnose_s"] = time.perf_counter() - begin
    verdict.document["timing"] = {name: round(seconds, 4) for name, seconds in spent.items()}
    progress("diagnose", 1.0, numbers)
    return verdict, ranks


def _readable(plan: Plan, part: Part) -> tuple[RankPairs, list[Unreadable]]:
    """The dumps of a part that can be compared, and which of its dumps cannot be read. Raises DumpError where that leaves none."""
    kept: list[tuple[Sequence[int], Sequence[int]]] = []
    lost: dict[tuple[int, int], Unreadable] = {}
    for pair in part.ranks:
        rows: list[list[int]] = [[], []]
        for side, run in enumerate(plan.sides):
            for row in pair[side]:
                entry = run.entries[row]
                if entry.error is None:
                    rows[side].append(row)
                else:
                    lost[side, row] = Unreadable(side, entry.rank, entry.error)
        if all(rows):
            kept.append((rows[0], rows[1]))
    if not kept:
        raise DumpError.of(next(iter(lost.values())).error)
    return kept, list(lost.values())


def _alone(plan: Plan, part: Part, ranks: RankPairs, unreadable: Sequence[Unreadable]) -> tuple[list[int], list[int]]:
    """The ranks of the part that stand against none, by side; but for those whose namesakes cannot be read, which is said."""
    found: tuple[list[int], list[int]] = ([], [])
    for side, (run, key) in enumerate(zip(plan.sides, (part.left, part.right), strict=True)):
        taken = {row for pair in ranks for row in pair[side]}
        taken |= {row for other in plan.parts if other is not part for pair in other.ranks for row in pair[side]}
        lost = {dump.rank for dump in unreadable if dump.side != side}
        for row in chosen(run.entries, plan.options, side):
            entry = run.entries[row]
            if (entry.stage, entry.step) == key and row not in taken and entry.error is None and entry.rank not in lost:
                found[side].append(entry.rank or 0)
    return sorted(found[0]), sorted(found[1])


def _again(baseline: _Run, entries: Sequence[_Entry]) -> list[Dump]:
    """The baseline's dumps of the same ranks, of the same stage and step where it holds them, else of the first it holds."""
    keys = list(dict.fromkeys((entry.stage, entry.step) for entry in baseline.entries))
    key = next((key for key in keys if key == (entries[0].stage, entries[0].step)), keys[0] if keys else None)
    held = {entry.rank: row for row, entry in enumerate(baseline.entries) if (entry.stage, entry.step) == key}
    if len(entries) == 1 and len(held) == 1:
        return [baseline.dump(row) for row in held.values()]
    return [baseline.dump(held[entry.rank]) for entry in entries] if all(entry.rank in held for entry in entries) else []


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
