"""Which files of a tree are dumps, and which stage, step and rank they belong to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath

from compare.engine.errors import DumpError, printable
from compare.engine.ingest.member import Member
from compare.engine.loop import is_stage, stage_order
from compare.engine.model import LeftAside

STEP = re.compile(r"step_?([0-9]{1,9})")
RANK = re.compile(r"rank_?([0-9]{1,9})?")
PROCESS = re.compile(r"(?:proc|pid)_?([0-9]{1,9})")
NUMBER = re.compile(r"[0-9]+")
ROLLOUT_PROCESS = re.compile(r"(?:^|/)([0-9]{1,9})/step_?[0-9]{1,9}/")

DUMP, DEBUG, CONSTRUCT, STACK = "dump.json", "debug.json", "construct.json", "stack.json"
DATABASE = ".vis.db"
DUMP_FILES = frozenset({DUMP, DEBUG, CONSTRUCT, STACK})
TENSOR_SUFFIXES = (".pt", ".npy")
TENSOR_FOLDER = "dump_tensor_data"
# MindSpore's two ways of running, each with steps of its own.
MODES = frozenset({"graph", "pynative"})


@dataclass(slots=True)
class Place:
    """Where a dump lies: ``root`` is what stands before stage, step and rank."""

    origin: int
    folder: str
    root: str
    stage: str | None
    step: int | None
    rank: int | None
    process: bool  # the folder is proc*: the rank is not known
    writer: str = ""  # the process folder of an asynchronous rollout that the step lies in
    inner: int | None = None  # the dumper's own step where a trainer's step lies around it
    files: dict[str, Member] = field(default_factory=dict)
    tensors: dict[str, Member] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str | None, int | None, int | None]:
        return self.stage, self.step, self.rank

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        stage = stage_order(self.stage)
        return stage, self.stage or "", _first(self.step), _first(self.rank), self.folder

    @property
    def main(self) -> Member | None:
        """The file that makes the folder a dump."""
        return self.files.get(DUMP) or self.files.get(DEBUG) or self.files.get(DATABASE)

    @property
    def where(self) -> str:
        return next(iter(self.files.values())).place


def arrange(members: Iterable[Member], left_aside: list[LeftAside], name: str, *, optional: bool = False) -> list[Place]:
    """The dumps among the members, in pipeline order. Everything else goes to ``left_aside`` with a reason. There may be none where
    that is ``optional``.

    Without any dump, a database that graph_visualize made of dumps is the one place. Raises DumpError: no_dump, rank_twice, file_twice,
    two_roots, several_processes, database_unfinished.
    """
    found = list(members)
    places: dict[tuple[int, str], Place] = {}
    rest: list[Member] = []
    tensors: list[Member] = []
    for member in found:
        if is_tensor(member.path):
            tensors.append(member)
        elif member.name.lower() in DUMP_FILES:
            folder = member.path.rpartition("/")[0]
            place = places.get((member.origin, folder))
            if place is None:
                place = places[member.origin, folder] = locate(member.origin, folder)
            if member.name.lower() in place.files:
                raise DumpError("file_twice", member.place, name=member.name.lower())
            place.files[member.name.lower()] = member
        else:
            rest.append(member)
    for member in tensors:
        beside = places.get((member.origin, member.path.rpartition("/")[0].rpartition("/")[0]))
        if beside is None or beside.main is None:
            rest.append(member)
        else:
            beside.tensors[member.name] = member
    dumps = [place for place in places.values() if place.main is not None]
    if not dumps:
        dumps, rest = _database(rest) or (([], rest) if optional else _lone_json(rest, name))
    for place in places.values():
        if place.main is None:
            left_aside.extend(LeftAside(printable(member.path), "no_dump_beside") for member in place.files.values())
        elif DUMP in place.files and DEBUG in place.files:
            left_aside.append(LeftAside(printable(place.files.pop(DEBUG).path), "debug_beside_dump"))
    left_aside.extend(LeftAside(printable(member.path), reason(member)) for member in rest)
    _tell_apart(dumps, lambda place: place.writer)
    _tell_apart(dumps, lambda place: "" if place.inner is None else str(place.inner))
    dumps = _without_helpers(dumps, left_aside)
    dumps.sort(key=lambda place: place.order)
    _refuse_twice(dumps)
    refuse_two_runs((place.origin, place.root, (place.stage, place.rank), place.where) for place in dumps)
    return dumps


def locate(origin: int, folder: str) -> Place:
    """Read stage, step and rank off a folder's path."""
    steps = folder.split("/") if folder else []
    rank, process = _rank(steps)
    step = _step(steps)
    inner = outer_rank = None
    if step is not None and steps and RANK.fullmatch(steps[-1]):  # a trainer's step_7/actor_update/rank_0/ around step0/rank0/
        outer_rank = _rank(steps)[0]
    writer = ""
    while steps and NUMBER.fullmatch(steps[-1]):  # the process folders of asynchronous rollouts, sometimes twice
        writer = steps.pop()
    mode = steps.pop() if steps and steps[-1] in MODES else None
    around = len(steps) > 1 and STEP.fullmatch(steps[-2]) and (outer_rank is not None or is_stage(steps[-1]))
    stage = steps.pop() if around or (steps and is_stage(steps[-1])) else None
    if around:
        inner, step = step, _step(steps)
    if process and outer_rank is not None:
        rank, process = outer_rank, False
    whole = "/".join(part for part in (stage, mode) if part) or None
    return Place(origin, folder, "/".join(steps), whole, step, rank, process, writer, inner)


def process_of(place: str) -> int | None:
    """The process folder of an asynchronous rollout that a dump lies in: 4711 in ``generate/4711/step3/rank0/dump.json``."""
    found = ROLLOUT_PROCESS.search(place)
    return None if found is None else int(found[1])


def numbered_folders(folder: PurePath) -> str:
    """``stepN/rankN/``, ``stepN/`` or ``rankN/``: the numbers that a folder's own place says."""
    kept: list[str] = []
    if RANK.fullmatch(folder.name) or PROCESS.fullmatch(folder.name):
        kept.append(folder.name)
        folder = folder.parent
    if STEP.fullmatch(folder.name):
        kept.insert(0, folder.name)
    return "".join(f"{name}/" for name in kept)


def is_tensor(path: str) -> bool:
    """Whether a file lies where the dumper puts the values of tensors."""
    folder, _, name = path.rpartition("/")
    return name.lower().endswith(TENSOR_SUFFIXES) and folder.rpartition("/")[2] == TENSOR_FOLDER


def reason(member: Member) -> str:
    """Why a file that is no part of a dump was not read."""
    name = member.name.lower()
    if name.endswith(TENSOR_SUFFIXES):
        return "tensor_without_slot"
    if name.endswith(DATABASE):
        return "database_beside_dumps"
    if name.endswith((".zip", ".tar", ".tar.gz", ".tgz")):
        return "nested_archive"
    if name.endswith("_log.jsonl"):
        return "request_log"
    if name.endswith((".log", ".jsonl")):
        return "log"
    return "not_part_of_a_dump"


def _rank(steps: list[str]) -> tuple[int | None, bool]:
    """Takes the folder of a rank off the end: its number, and whether it is that of a process whose rank is not known."""
    if steps and (found := RANK.fullmatch(steps[-1])):
        steps.pop()
        return int(found[1] or 0), False
    if steps and PROCESS.fullmatch(steps[-1]):
        steps.pop()
        return None, True
    return None, False


def _step(steps: list[str]) -> int | None:
    if steps and (found := STEP.fullmatch(steps[-1])):
        steps.pop()
        return int(found[1])
    return None


def _top(folder: str) -> str:
    return folder.partition("/")[0]


def _first(number: int | None) -> int:
    return -1 if number is None else number


def _database(rest: list[Member]) -> tuple[list[Place], list[Member]] | None:
    """A graph_visualize database, where that is all there is."""
    databases = [member for member in rest if member.name.lower().endswith(DATABASE)]
    if not databases:
        return None
    first = databases[0]
    if len(databases) > 1:
        raise DumpError("two_roots", databases[1].place, first=printable(first.path), second=printable(databases[1].path))
    if any(member.path == f"{first.path}-wal" and member.size for member in rest):
        raise DumpError("database_unfinished", first.place)
    place = Place(first.origin, first.path, "", None, None, None, process=False, files={DATABASE: first})
    return [place], [member for member in rest if member is not first]


def _lone_json(rest: list[Member], name: str) -> tuple[list[Place], list[Member]]:
    """A single json file under another name is taken for the dump that it must be meant as."""
    lone = [member for member in rest if member.name.lower().endswith(".json") and reason(member) == "not_part_of_a_dump"]
    if len(lone) != 1:
        raise DumpError("no_dump", name)
    place = locate(lone[0].origin, lone[0].path.rpartition("/")[0])
    place.files[DUMP] = lone[0]
    return [place], [member for member in rest if member is not lone[0]]


def _tell_apart(dumps: list[Place], what: Callable[[Place], str]) -> None:
    """Where several dumps would be the same stage, step and rank, what they differ in becomes part of the stage's name."""
    groups: defaultdict[Hashable, set[str]] = defaultdict(set)
    for place in dumps:
        groups[place.origin, place.root, *place.key].add(what(place))
    clashing = {key[:3] for key, held in groups.items() if isinstance(key, tuple) and len(held) > 1}
    for place in dumps:
        if (place.origin, place.root, place.stage) in clashing and what(place):
            place.stage = "/".join(part for part in (place.stage, what(place)) if part)


def _without_helpers(dumps: list[Place], left_aside: list[LeftAside]) -> list[Place]:
    """Where ranks are known, proc* are helper processes; where only proc* is there, it must be one."""
    ranked = {(place.stage, place.step) for place in dumps if not place.process}
    kept: list[Place] = []
    processes: dict[tuple[str | None, int | None], Place] = {}
    for place in dumps:
        at = (place.stage, place.step)
        if not place.process:
            kept.append(place)
        elif at in ranked:
            left_aside.extend(
                LeftAside(printable(member.path), "helper_process") for member in (*place.files.values(), *place.tensors.values())
            )
        elif at in processes:
            raise DumpError("several_processes", place.where, other=processes[at].where)
        else:
            processes[at] = place
            kept.append(place)
    return kept


def refuse_two_runs(found: Iterable[tuple[int, str, Hashable, str]]) -> None:
    """(origin, root, what, place): one run keeps the steps of a stage and rank, or of a key of its key data, below one folder. What lies
    below two is two runs, even where no step is in both. Raises DumpError ``two_roots``.
    """
    seen: dict[tuple[int, Hashable], str] = {}
    for origin, folder, what, place in found:
        root = "/".join(part for part in folder.strip("/").split("/") if not STEP.fullmatch(part))
        other = seen.setdefault((origin, what), root)
        if other != root and (origin or _top(other) == _top(root)):
            raise DumpError("two_roots", place, first=printable(other) or ".", second=printable(root) or ".")


def _refuse_twice(dumps: list[Place]) -> None:
    seen: dict[tuple[str | None, int | None, int | None], Place] = {}
    for place in dumps:
        other = seen.setdefault(place.key, place)
        if other is place:
            continue
        if other.origin == place.origin and other.root != place.root and (place.origin or _top(other.root) == _top(place.root)):
            raise DumpError("two_roots", place.where, first=printable(other.folder) or ".", second=printable(place.folder) or ".")
        raise DumpError("rank_twice", place.where, other=other.where, rank="–" if place.rank is None else place.rank)
