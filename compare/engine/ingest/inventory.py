"""What a run holds, in the words of the card that the reader sees before comparing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from compare.engine.ingest import notes
from compare.engine.ingest.layout import CONSTRUCT, STACK
from compare.engine.ingest.passes import listed, passes
from compare.engine.loop import stage_kind
from compare.engine.model import FILE_MISSING, Direction, Dump, JsonObject, Leaf, RecordKind, Side

Value = TypeVar("Value")

FORMAT = 1
FSDP_WRAPPER = "_fsdp_wrapped_module"
# Classes and modules that only inference engines have; Megatron shares VocabParallelEmbedding and the parallel linear classes with them.
ENGINE_CLASSES = frozenset({"LogitsProcessor", "ParallelLMHead", "QKVParallelLinear", "MergedColumnParallelLinear"})
ENGINE_MODULES = frozenset({"qkv_proj", "gate_up_proj"})
FLOAT_DTYPES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


def inventory(side: Side, total_bytes: int) -> JsonObject:
    """The inventory document of a run (``docs/architecture.md``). ``total_bytes`` is the size of what was uploaded."""
    role, evidence = role_of(side.dumps)
    first = side.dumps[0] if side.dumps else None
    return {
        "format": FORMAT,
        "name": side.name,
        "role": role,
        "role_evidence": evidence,
        "framework": first.framework if first else None,
        "wrapping": _wrapping(side.dumps),
        "task": first.task if first else None,
        "level": first.level if first else None,
        "dtype": _dtype(side.dumps),
        "stages": _distinct(dump.stage for dump in side.dumps),
        "steps": sorted(_distinct(dump.step for dump in side.dumps)),
        "ranks": sorted(_distinct(dump.rank for dump in side.dumps)),
        "counts": {
            "dumps": len(side.dumps),
            "records": sum(_records(dump) for dump in side.dumps),
            "slots": sum(len(dump.slots) for dump in side.dumps),
            "bytes": total_bytes,
            "tensors": sum(int((dump.slots.file >= 0).sum()) for dump in side.dumps),
            "tensors_missing": sum(int((dump.slots.file == FILE_MISSING).sum()) for dump in side.dumps),
        },
        "dumps": [
            {
                "folder": f"dumps/{number}",
                "place": dump.place,
                "stage": dump.stage,
                "step": dump.step,
                "rank": dump.rank,
                "records": _records(dump),
                "slots": len(dump.slots),
                "construct": dump.has_construct,
                "stack": dump.has_stack,
                "passes": passes(dump) if role == "infer" or stage_kind(dump.stage) == "generate" else [],
                "tokens": listed(dump),
            }
            for number, dump in enumerate(side.dumps)
        ],
        "unreadable": [
            {"place": dump.place, "stage": dump.stage, "step": dump.step, "rank": dump.rank, "error": dump.error}
            for dump in side.unreadable
        ],
        "missing": [
            name
            for name, there in (
                (CONSTRUCT, all(dump.has_construct for dump in side.dumps)),
                (STACK, all(dump.has_stack for dump in side.dumps)),
            )
            if not there
        ],
        "notes": [notes.document(note) for note in notes.merged(note for dump in side.dumps for note in dump.notes)],
        "key_data": _key_data(side),
        "configuration": side.loop.configuration.path if side.loop.configuration else None,
        "requests": len(side.loop.requests),
        "left_aside": [{"path": left.path, "reason": left.reason} for left in side.left_aside],
        "digest": side.digest,
    }


def _key_data(side: Side) -> JsonObject | None:
    """Which keys, steps and ranks the tables between the stages are there for."""
    table = side.loop.key_data
    if table is None:
        return None
    numbers = {name: [int(n) for n in np.unique(getattr(table, name)) if n >= 0] for name in ("step", "rank")}
    return {"keys": list(table.keys), "steps": numbers["step"], "ranks": numbers["rank"], "tables": len(table)}


def _records(dump: Dump) -> int:
    return int(dump.records.recorded.sum())


def _distinct(values: Iterable[Value | None]) -> list[Value]:
    return list(dict.fromkeys(value for value in values if value is not None))


def role_of(dumps: Iterable[Dump]) -> tuple[str, str]:
    """train, infer or unknown, and what says so: FSDP wrappers, else gradients, else modules that only engines have."""
    gradients = engine = False
    for dump in dumps:
        if any(FSDP_WRAPPER in path for path in dump.paths):
            return "train", "fsdp_wrappers"
        recorded = dump.records.recorded
        gradients |= bool((dump.records.direction[recorded] == Direction.BACKWARD).any())
        engine |= _engine(dump)
    if gradients:
        return "train", "gradients"
    if engine:
        return "infer", "engine_modules"
    return "unknown", "none"


def _engine(dump: Dump) -> bool:
    if not ENGINE_CLASSES.isdisjoint(dump.classes):
        return True
    parallel = any(name.endswith("ParallelLinear") for name in dump.classes)
    return parallel and any(path.rpartition(".")[2] in ENGINE_MODULES for path in dump.paths)


def _wrapping(dumps: Iterable[Dump]) -> str | None:
    engine = False
    for dump in dumps:
        if any(FSDP_WRAPPER in path.split(".") for path in dump.paths):
            return "FSDP"
        if any(name.startswith("FSDP") and name != "FSDP" for name in dump.classes):
            return "FSDP2"
        modules = dump.records.path[dump.records.kind == RecordKind.MODULE]
        paths = [dump.paths[index] for index in np.unique(modules)]
        if "DistributedDataParallel" in dump.classes or (paths and all(path == "module" or path.startswith("module.") for path in paths)):
            return "DDP"
        engine |= _engine(dump)
    return "vLLM" if engine else None


def _dtype(dumps: Iterable[Dump]) -> str | None:
    """The float dtype that most tensors have, without its framework's name."""
    counts: Counter[str] = Counter()
    for dump in dumps:
        tensors = dump.slots.dtype[(dump.slots.leaf == Leaf.TENSOR) & (dump.slots.dtype >= 0)]
        for index, count in zip(*np.unique(tensors, return_counts=True), strict=True):
            name = dump.dtypes[index].rpartition(".")[2].lower()
            if name in FLOAT_DTYPES:
                counts[name] += int(count)
    return counts.most_common(1)[0][0] if counts else None
