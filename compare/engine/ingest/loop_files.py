"""What a tree holds besides dumps: key data, a configuration, request logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from compare.engine.errors import printable
from compare.engine.ingest.layout import refuse_two_runs
from compare.engine.ingest.member import Member, Reading
from compare.engine.keydata.configuration import read_configuration
from compare.engine.keydata.places import CONFIGURATION, REQUESTS, YAML, TablePlace, is_configuration, table_place
from compare.engine.keydata.requests import read_requests
from compare.engine.keydata.tables import TableReader
from compare.engine.model import Configuration, JsonObject, LeftAside, LoopData


@dataclass(slots=True)
class LoopFiles:
    """``others`` are what dumps are looked for among."""

    tables: list[tuple[TablePlace, Member]] = field(default_factory=list)
    configurations: list[Member] = field(default_factory=list)
    requests: list[Member] = field(default_factory=list)
    others: list[Member] = field(default_factory=list)

    @property
    def members(self) -> Iterator[Member]:
        yield from (member for _, member in self.tables)
        yield from self.configurations
        yield from self.requests


def claim(members: Iterable[Member]) -> LoopFiles:
    """Raises DumpError ``two_roots`` where key data are of two runs."""
    found = LoopFiles()
    for member in members:
        place = table_place(member.path)
        if place is not None:
            found.tables.append((place, member))
        elif REQUESTS.fullmatch(member.path):
            found.requests.append(member)
        elif is_configuration(member.path):
            found.configurations.append(member)
        else:
            found.others.append(member)
    _claim_statistics(found)
    refuse_two_runs((member.origin, place.root, (place.key, place.rank), member.place) for place, member in found.tables)
    found.configurations.sort(key=_likeliest)
    return found


def _claim_statistics(found: LoopFiles) -> None:
    """A ``dump.json`` beside the numbers of a key that is called ``dump`` is its statistics, not a dump."""
    beside = {(member.origin, member.path.removesuffix(member.name), place.key) for place, member in found.tables if place.id is not None}
    others = []
    for member in found.others:
        place = None
        if (member.origin, member.path.removesuffix(member.name), member.name.rpartition(".")[0]) in beside:
            place = table_place(member.path, beside_numbers=True)
        if place is None:
            others.append(member)
        else:
            found.tables.append((place, member))
    found.others = others


def read_loop(found: LoopFiles, opened: Callable[[Member], AbstractContextManager[Reading]], left_aside: list[LeftAside]) -> LoopData:
    """Reads them; what turns out to be no configuration, or is a second one, or a log that names no request, is left aside."""
    tables = TableReader()
    for place, member in found.tables:
        with opened(member) as reading:
            if not tables.add(place, member.place, reading):
                left_aside.append(LeftAside(printable(member.path), "key_data_not_read"))
    configuration: Configuration | None = None
    for member in found.configurations:
        if configuration is None:
            with opened(member) as reading:
                configuration = read_configuration(member.path, reading)
            if configuration is not None:
                continue
        left_aside.append(LeftAside(printable(member.path), _reason(member, second=configuration is not None)))
    requests: list[JsonObject] = []
    for member in found.requests:
        with opened(member) as reading:
            named = read_requests(reading)
        requests += named
        if not named:
            left_aside.append(LeftAside(printable(member.path), "request_log"))
    return LoopData(tables.finish(), configuration, requests)


def _likeliest(member: Member) -> tuple[int, int, str]:
    """configurations.json before YAML before logs, and what lies at the top first."""
    kind = 0 if CONFIGURATION.fullmatch(member.path) else 1 if YAML.fullmatch(member.path) else 2
    return kind, member.path.count("/"), member.path


def _reason(member: Member, *, second: bool) -> str:
    if _likeliest(member)[0] == 2 and member.name.lower().endswith(".log"):
        return "log"
    if CONFIGURATION.fullmatch(member.path):
        return "other_configuration" if second else "no_configuration"
    return "not_part_of_a_dump"
