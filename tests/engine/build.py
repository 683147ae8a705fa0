"""Small dumps made by hand, compared by the real engine: what the tests of align, measure, diagnose and store share."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.diagnose.case import Case, build_case
from compare.engine.diagnose.verdict import PartVerdict
from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.model import Dump
from compare.engine.options import Options
from compare.engine.pipeline import Comparison, compare_paths

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
Records = Mapping[str, Any]


def tensor(
    norm: float | None = 8.0,
    *,
    shape: Sequence[int] = (1, 12, 64),
    dtype: str = "torch.bfloat16",
    mean: float | None = 0.0,
    largest: float | None = 1.0,
    smallest: float | None = -1.0,
) -> dict[str, Any]:
    """A tensor leaf. By default its statistics are exact in bf16 and its RMS is plausible."""
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), "Max": largest, "Min": smallest, "Mean": mean, "Norm": norm}


def integers(largest: int, smallest: int = 0, *, shape: Sequence[int] = (12,), dtype: str = "torch.int64") -> dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), "Max": largest, "Min": smallest, "Mean": None, "Norm": None}


def number(value: float, kind: str = "float") -> dict[str, Any]:
    return {"type": kind, "value": value}


def call(*inputs: Any, output: Sequence[Any] | None = None, parameters: Mapping[str, Any] | None = None, **keywords: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "input_args": list(inputs),
        "input_kwargs": keywords,
        "output": [tensor()] if output is None else list(output),
    }
    return record | ({"parameters": dict(parameters)} if parameters else {})


def write(folder: Path, records: Records, construct: Mapping[str, Any] | None = None, stack: Any = None, *, level: str = "L0") -> Path:
    """A rank folder; returns its dump.json."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"task": "statistics", "level": level, "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps(head | {"data": dict(records)}), "utf-8")
    for name, document in (("construct", construct), ("stack", stack)):
        if document is not None:
            (folder / f"{name}.json").write_text(json.dumps(document), "utf-8")
    return folder / "dump.json"


def dump(folder: Path, records: Records, construct: Mapping[str, Any] | None = None) -> Dump:
    return read_side(paths_to_sources([write(folder, records, construct)]), "side").dumps[0]


def case(folder: Path, left: Records, right: Records, *, primary: int = 0, exact: bool = False, **construct: Mapping[str, Any]) -> Case:
    """Both sides aligned and measured; construct.json by side as left_construct=…, right_construct=…."""
    sides = [dump(folder / name, records, construct.get(f"{name}_construct")) for name, records in (("left", left), ("right", right))]
    spent = {"align_s": 0.0, "measure_s": 0.0}
    return build_case([sides[0]], [sides[1]], primary=primary, exact=exact, spent=spent, watch=lambda *_: None)


def compare(folder: Path, left: Records, right: Records, *, level: str = "L0", **options: Any) -> dict[str, Any]:
    """The verdict document of two dumps made by hand."""
    paths = [write(folder / name, records, level=level) for name, records in (("left", left), ("right", right))]
    return compare_paths([paths[0]], [paths[1]], Options(**options)).document


@cache
def corpus(left: str, right: str, **options: Any) -> Comparison:
    """Two dumps of the corpus, compared once a session."""
    return compare_paths([CORPUS / f"{left}.zip"], [CORPUS / f"{right}.zip"], Options(**options))


def verdict(left: str, right: str, **options: Any) -> dict[str, Any]:
    return corpus(left, right, **options).document


def part(left: str, right: str, **options: Any) -> PartVerdict:
    """The only part of a comparison of the corpus, with its cases."""
    judged = corpus(left, right, **options).parts[0][1]
    assert judged is not None
    return judged


Slot = tuple[str, str]  # (record name, slot name)


def slots_of(found: Case, pair: int, side: int) -> list[Slot]:
    dump = found.dumps[side]
    rows = found.pairs.slots[side][pair].tolist()
    return [(dump.records.name[int(dump.slots.record[row])], dump.slot_names[int(dump.slots.name[row])]) for row in rows]


def pairs(found: Case) -> list[tuple[frozenset[Slot], frozenset[Slot]]]:
    """Every pair as the slots of both sides."""
    return [(frozenset(slots_of(found, row, 0)), frozenset(slots_of(found, row, 1))) for row in range(len(found.pairs))]


def stored(dump: Dump, record: str, slot: str) -> dict[str, float]:
    """The statistics of a slot by name."""
    row = dump.records.name.index(record) if isinstance(dump.records.name, list) else list(dump.records.name).index(record)
    for at in range(int(dump.records.slot_start[row]), int(dump.records.slot_start[row + 1])):
        if dump.slot_names[int(dump.slots.name[at])] == slot:
            return dict(zip(("max", "min", "mean", "norm"), dump.slots.statistics[at].tolist(), strict=True))
    raise KeyError(slot)


def bf16(value: float) -> float:
    """The nearest bf16 number (ties to even), by bit patterns."""
    if not math.isfinite(value):
        return value
    pattern = int(np.float32(value).view(np.uint32))
    rounded = (pattern + 0x7FFF + ((pattern >> 16) & 1)) & 0xFFFF0000
    return float(np.uint32(rounded).view(np.float32))


def next_bf16(value: float, steps: int = 1) -> float:
    """The bf16 number ``steps`` further from zero: one unit in the last place each."""
    pattern = (int(np.float32(bf16(value)).view(np.uint32)) >> 16) + steps
    return float(np.uint32(pattern << 16).view(np.float32))
