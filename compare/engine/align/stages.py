"""Pipeline parallelism: which layers the ranks of a side hold, where each stage (and each chunk of a stage) counts its layers from 0.

Ranks are numbered with the pipeline outermost: the first R / P ranks are the first stage. The stages are told by who embeds and who norms
last; with interleaved chunks, chunk c of stage s comes after chunk c of every stage before it and after chunk c - 1 of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.align.canonical import canonical_path, entry_of, is_list_of_models, layer_of, plain_class
from compare.engine.align.conventions import Convention, tell
from compare.engine.model import Dump, RecordKind

FIRST, LAST, LAYER = "model.embed_tokens", "model.norm", "model.layers.<n>"


@dataclass(frozen=True, slots=True)
class _Held:
    """What one rank's dump holds: chunk → number of layers."""

    embeds: bool
    ends: bool
    chunks: Mapping[int, int]


def chunk_of(raw: str, listed: bool) -> int:
    """The position in the list of models in front of a path: the chunk of an interleaved pipeline."""
    first = raw.partition(".")[0]
    return int(first) if listed and first.isdecimal() and len(first) < 4 else 0


def starts_of(dumps: Sequence[Dump]) -> list[dict[int, int]]:
    """For each rank: chunk → the global number of its first layer; empty where numbers are global already, or nothing tells the stage."""
    held = [_held(dump) for dump in dumps]
    known = [one for one in held if one is not None]
    if len(known) < len(dumps) or not any(one.chunks for one in known):
        return [{} for _ in dumps]
    stages = _stages(known)
    if stages == 0:
        return [{} for _ in dumps]
    size = len(known) // stages
    starts: list[dict[int, int]] = [{} for _ in dumps]
    begin = 0
    for chunk in sorted({chunk for one in known for chunk in one.chunks}):
        for stage in range(stages):
            ranks = range(stage * size, (stage + 1) * size)
            for rank in ranks:
                starts[rank][chunk] = begin
            begin += max(known[rank].chunks.get(chunk, 0) for rank in ranks)
    return starts


def _stages(held: Sequence[_Held]) -> int:
    """The number of pipeline stages, 0 where the dumps do not tell."""
    embedding = [rank for rank, one in enumerate(held) if one.embeds]
    ending = [rank for rank, one in enumerate(held) if one.ends]
    size = len(embedding)
    if not size or len(held) % size or embedding != list(range(size)):
        return 0
    stages = len(held) // size
    return stages if stages == 1 or not ending or ending == list(range(len(held) - size, len(held))) else 0


def _held(dump: Dump) -> _Held | None:
    raw = [dump.paths[path] for path in np.unique(dump.records.path[dump.records.kind != RecordKind.API]).tolist()]
    listed = is_list_of_models(raw)
    canonical = [canonical_path(path, listed=listed) for path in raw]
    convention = tell(canonical, [plain_class(name) for name in dump.classes])
    if convention is None or not convention.local_layers:
        return None
    chunks: dict[int, int] = {}
    named = [_named(path, convention) for path in canonical]
    for path, name, at in zip(raw, named, canonical, strict=True):
        if name == LAYER:
            chunk = chunk_of(path, listed)
            chunks[chunk] = max(chunks.get(chunk, 0), layer_of(at) + 1)
    return _Held(FIRST in named, LAST in named, chunks)


def _named(path: str, convention: Convention) -> str:
    """The entry of the path's module, under its canonical name."""
    return convention.rename.get(entry_of(path), entry_of(path))
