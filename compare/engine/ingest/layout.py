"""Which files of a tree are dumps, and which stage, step and rank they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from compare.engine.errors import DumpError
from compare.engine.ingest.member import Member
from compare.engine.ingest.source import printable
from compare.engine.model import LeftAside

STEP = re.compile(r"step_?([0-9]{1,9})")
RANK = re.compile(r"rank_?([0-9]{1,9})?")
PROCESS = re.compile(r"(?:proc|pid)_?([0-9]{1,9})")
NUMBER = re.compile(r"[0-9]+")

DUMP, CONSTRUCT, STACK = "dump.json", "construct.json", "stack.json"
DUMP_FILES = frozenset({DUMP, CONSTRUCT, STACK})
TENSOR_SUFFIXES = (".pt", ".npy")

# Words in the folder names that reinforcement-learning trainers give the stages of a step, in the order the stages run.
STAGES = (
    (frozenset({"update", "train", "training"}), 5),
    (frozenset({"generate", "generation", "rollout", "sequences"}), 0),
    (frozenset({"ref", "reference"}), 1),
    (frozenset({"reward", "rm"}), 2),
    (frozenset({"values", "value", "critic"}), 3),
    (frozenset({"log", "prob", "probs", "logprob", "logprobs", "actor", "old"}), 4),
)
# "train" alone names a side of a comparison, not a stage.
STAGE_WORDS = frozenset().union(*(words for words, _ in STAGES)) - {"train", "training"}
LAST_STAGE = 6


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
    files: dict[str, Member] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str | None, int | None, int | None]:
        return self.stage, self.step, self.rank

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        stage = stage_order(self.stage)
        return stage, self.stage or "", _first(self.step), _first(self.rank), self.folder

    @property
    def where(self) -> str:
        return next(iter(self.files.values())).place


def arrange(members: Iterable[Member], left_aside: list[LeftAside], name: str) -> list[Place]:
    """The dumps among the members, in pipeline order. Everything else goes to ``left_aside`` with a reason.

    Raises DumpError: no_dump, task_unsupported, rank_twice, file_twice, two_roots, several_processes.
    """
    found = list(members)
    places: dict[tuple[int, str], Place] = {}
    rest: list[Member] = []
    for member in found:
        if member.name.lower() in DUMP_FILES:
            folder = member.path.rpartition("/")[0]
            place = places.get((member.origin, folder))
            if place is None:
                place = places[member.origin, folder] = locate(member.origin, folder)
            if member.name.lower() in place.files:
                raise DumpError("file_twice", member.place, name=member.name.lower())
            place.files[member.name.lower()] = member
        else:
            rest.append(member)
    dumps = [place for place in places.values() if DUMP in place.files]
    if not dumps:
        dumps, rest = _lone_json(found, rest, name)
    for place in places.values():
        if DUMP not in place.files:
            left_aside.extend(LeftAside(printable(member.path), "no_dump_beside") for member in place.files.values())
    left_aside.extend(LeftAside(printable(member.path), reason(member)) for member in rest)
    dumps = _without_helpers(dumps, left_aside)
    dumps.sort(key=lambda place: place.order)
    _refuse_twice(dumps)
    return dumps


def locate(origin: int, folder: str) -> Place:
    """Read stage, step and rank off a folder's path."""
    steps = folder.split("/") if folder else []
    rank: int | None = None
    step: int | None = None
    process = False
    if steps and (found := RANK.fullmatch(steps[-1])):
        rank = int(found[1] or 0)
        steps.pop()
    elif steps and PROCESS.fullmatch(steps[-1]):
        process = True
        steps.pop()
    if steps and (found := STEP.fullmatch(steps[-1])):
        step = int(found[1])
        steps.pop()
    while steps and NUMBER.fullmatch(steps[-1]):  # the process folders of asynchronous rollouts
        steps.pop()
    stage = steps.pop() if steps and is_stage(steps[-1]) else None
    return Place(origin, folder, "/".join(steps), stage, step, rank, process)


def is_stage(folder: str) -> bool:
    return not STAGE_WORDS.isdisjoint(_words(folder))


def stage_order(stage: str | None) -> int:
    """Where a stage stands in the pipeline: generate, reference, reward, values, old log prob, update, then others."""
    if stage is None:
        return LAST_STAGE
    words = set(_words(stage))
    return next((order for known, order in STAGES if not known.isdisjoint(words)), LAST_STAGE)


def reason(member: Member) -> str:
    """Why a file that is no part of a dump was not read."""
    name = member.name.lower()
    if name.endswith(TENSOR_SUFFIXES):
        return "key_data_not_read_yet" if _key_data(member.path) else "tensors_not_read_yet"
    if name == "configurations.json" or _key_data(member.path):
        return "key_data_not_read_yet"
    if name == "debug.json":
        return "debug_not_read_yet"
    if name.endswith((".zip", ".tar", ".tar.gz", ".tgz")):
        return "nested_archive"
    if name.endswith((".log", ".jsonl")):
        return "log"
    return "not_part_of_a_dump"


def _words(folder: str) -> list[str]:
    return re.split(r"[^a-z]+", folder.lower())


def _key_data(path: str) -> bool:
    return "micro_step" in path


def _top(folder: str) -> str:
    return folder.partition("/")[0]


def _first(number: int | None) -> int:
    return -1 if number is None else number


def _lone_json(found: list[Member], rest: list[Member], name: str) -> tuple[list[Place], list[Member]]:
    """A single json file under another name is taken for the dump that it must be meant as."""
    if any(member.name.lower() == "debug.json" for member in found):
        raise DumpError("task_unsupported", name, task="debug")
    lone = [member for member in rest if member.name.lower().endswith(".json") and reason(member) == "not_part_of_a_dump"]
    if len(lone) != 1:
        raise DumpError("no_dump", name)
    place = locate(lone[0].origin, lone[0].path.rpartition("/")[0])
    place.files[DUMP] = lone[0]
    return [place], [member for member in rest if member is not lone[0]]


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
            left_aside.extend(LeftAside(printable(member.path), "helper_process") for member in place.files.values())
        elif at in processes:
            raise DumpError("several_processes", place.where, other=processes[at].where)
        else:
            processes[at] = place
            kept.append(place)
    return kept


def _refuse_twice(dumps: list[Place]) -> None:
    seen: dict[tuple[str | None, int | None, int | None], Place] = {}
    for place in dumps:
        other = seen.setdefault(place.key, place)
        if other is place:
            continue
        if other.origin == place.origin and other.root != place.root and (place.origin or _top(other.root) == _top(place.root)):
            raise DumpError("two_roots", place.where, first=printable(other.folder) or ".", second=printable(place.folder) or ".")
        raise DumpError("rank_twice", place.where, other=other.where, rank="–" if place.rank is None else place.rank)
