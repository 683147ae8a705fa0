"""One run as the engine holds it: read into columns, and opened again, or held in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compare.engine.appearing import appearing
from compare.engine.ingest import KEPT_FILE, Progress, Source, inventory, paths_to_sources, read_side
from compare.engine.ingest.layout import process_of
from compare.engine.keydata.store import read_loop, write_loop
from compare.engine.model import Dump, JsonObject, LoopData
from compare.engine.parts.tokens import Tokens
from compare.engine.store.dumps import read_dump, write_dump
from compare.engine.tensors import HeldTensors

INVENTORY = "inventory.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One dump of a run as its inventory names it."""

    folder: str
    stage: str | None
    step: int | None
    rank: int | None
    process: int | None  # of an asynchronous rollout
    tokens: Sequence[Tokens]  # that its forward passes saw
    error: JsonObject | None = None  # why it cannot be read; it has no folder then


@dataclass(frozen=True, slots=True)
class Run:
    """One side: what its inventory says, and its dumps, opened one by one when a part asks for them."""

    name: str
    role: str
    digest: str
    entries: Sequence[Entry]
    dump: Callable[[int], Dump]
    tensors: Callable[[], HeldTensors]  # to be opened anew for a part, so that a plan holds no file open
    logged: bool  # whether it holds request logs
    looped: bool  # whether it holds key data or a configuration
    loop: Callable[[], LoopData]  # key data, configuration and request logs; their numbers are opened when asked for


def read_run(sources: Sequence[Source], name: str, destination: Path, progress: Progress) -> JsonObject:
    """Reads an upload into one column folder a dump below ``destination``, which appears complete or not at all; returns the inventory.

    Raises DumpError for what cannot be read, and whatever ``progress`` raises.
    """
    size = sum(source.path.stat().st_size for source in sources)
    with appearing(destination) as folder:
        side = read_side(sources, name, progress, folder / KEPT_FILE)
        document = inventory(side, size)
        for number, (dump, entry) in enumerate(zip(side.dumps, document["dumps"], strict=True)):
            progress("store", number / len(side.dumps), {"dumps": number, "of": len(side.dumps)})
            write_dump(dump, folder / entry["folder"])
        write_loop(side.loop, folder)
        (folder / INVENTORY).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")
    return document


def held_run(paths: Sequence[Path], progress: Progress, kept: Path) -> Run:
    name = " + ".join(path.resolve().name for path in paths)
    sources = paths_to_sources(paths)
    side = read_side(sources, name, progress, kept)
    document = inventory(side, 0)
    tensors = partial(HeldTensors, [source.path for source in sources], kept)
    dumps, entries = side.dumps.__getitem__, _entries(document)
    return Run(
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


def stored_run(folder: Path, files: Sequence[Path]) -> Run:
    document: JsonObject = json.loads((folder / INVENTORY).read_text("utf-8"))
    entries = _entries(document)
    return Run(
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


def _entries(document: JsonObject) -> list[Entry]:
    """The dumps that were read, in their order, then those that could not be. An inventory of an older version has none of these, and says
    nothing of tokens."""
    return [
        Entry(
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
