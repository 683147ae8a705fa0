"""The truth to hold the reader against: a whole dump with ``json.loads`` and a plain walk, and the columns told as the same plain lists."""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Any

from compare.engine.model import Dump, Group, Leaf, Statistic

TENSORS = {"torch.Tensor", "mindspore.Tensor", "numpy.ndarray"}
NULL_STATISTICS = [None, None, None, None]

Slot = dict[str, Any]


def slots_of_file(data: bytes) -> dict[str, list[Slot]]:
    """Record name → its slots, from the bytes of a dump.json."""
    records = json.loads(data)["data"]
    return {name: slots_of_record(name, record) for name, record in records.items() if not isinstance(record, bool)}


def slots_of_record(name: str, record: dict[str, Any]) -> list[Slot]:
    found: list[Slot] = []
    if re.fullmatch(r"(Module|Cell)\..+\.parameters_grad(\.[0-9]{1,9})?", name, re.DOTALL):
        for parameter, value in record.items():
            if isinstance(value, bool):
                continue
            base = f"parameters_grad.{parameter}"
            if isinstance(value, list):
                for index, leaf in enumerate(value):
                    walk(base if index == 0 else f"{base}.{index}", Group.PARAMETERS_GRAD, leaf, found)
            else:
                walk(base, Group.PARAMETERS_GRAD, value, found)
        return found
    if name.endswith(".debug"):
        walk("output", Group.OUTPUT, record, found)
        return found
    for member, prefix, group in (
        ("input_args", "input", Group.INPUT),
        ("input_kwargs", "input", Group.INPUT),
        ("input", "input", Group.INPUT),
        ("parameters", "parameters", Group.PARAMETERS),
        ("output", "output", Group.OUTPUT),
    ):
        if member in record and record[member] is not None and not isinstance(record[member], bool):
            walk(prefix, group, record[member], found)
    return found


def walk(name: str, group: Group, value: Any, found: list[Slot]) -> None:
    if value is None:
        found.append(slot(name, group, Leaf.NULL))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            walk(f"{name}.{index}", group, item, found)
    elif isinstance(value, dict):
        shape = value.get("shape")
        bare = isinstance(value.get("dtype"), str) or (isinstance(shape, list) and shape != [] and all(type(s) is int for s in shape))
        if isinstance(value.get("type"), str) or bare:
            found.append(leaf_slot(name, group, value))
        elif isinstance(value.get("class_type"), str) and "tensor" in value:
            walk(name, group, value["tensor"], found)
            for key, item in value.items():
                if key not in ("class_type", "tensor"):
                    walk(f"{name}.{key}", group, item, found)
        else:
            for key, item in value.items():
                walk(f"{name}.{key}", group, item, found)
    elif isinstance(value, str):
        found.append(slot(name, group, Leaf.TEXT, type="str", text=value))
    else:
        found.append(slot(name, group, Leaf.NUMBER, type=type(value).__name__, elements=1, statistics=[float(value)] * 4))


def leaf_slot(name: str, group: Group, leaf: dict[str, Any]) -> Slot:
    kind = leaf["type"] if isinstance(leaf.get("type"), str) else None
    dtype = leaf["dtype"] if isinstance(leaf.get("dtype"), str) else None
    shape = leaf.get("shape")
    if not (isinstance(shape, list) and all(type(size) is int for size in shape)):
        shape = None
    if dtype is not None or shape is not None or kind in TENSORS:
        statistics = [number(leaf.get(key)) for key in ("Max", "Min", "Mean", "Norm")]
        waiting = isinstance(leaf.get("tensor_stat_index"), int)
        waiting |= isinstance(leaf.get("md5_index"), int) and statistics == NULL_STATISTICS
        elements = 0
        if shape is not None and all(size >= 0 for size in shape):
            elements = math.prod(shape)
            elements = elements if elements < 2**63 else 0
        return slot(
            name,
            group,
            Leaf.PLACEHOLDER if waiting else Leaf.TENSOR,
            type=kind,
            dtype=dtype,
            shape=None if shape is None else tuple(shape),
            elements=elements,
            statistics=statistics,
            checksum=leaf["md5"] if isinstance(leaf.get("md5"), str) else None,
            text=placements(leaf.get("placements")),
        )
    value = leaf.get("value")
    if value is None:
        value = leaf["format"] if isinstance(leaf.get("format"), str) else leaf.get("group_ranks")
    if kind in ("int", "float", "bool", "complex") and isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, int | float):
        return slot(name, group, Leaf.NUMBER, type=kind, elements=1, statistics=[float(value)] * 4)
    if isinstance(value, str):
        return slot(name, group, Leaf.TEXT, type=kind, text=value)
    if value is not None:
        return slot(name, group, Leaf.TEXT, type=kind, text=json.dumps(value, ensure_ascii=False))
    if isinstance(leaf.get("tensor_stat_index"), int) or isinstance(leaf.get("md5_index"), int):
        return slot(name, group, Leaf.PLACEHOLDER, type=kind)
    return slot(name, group, Leaf.NULL)


def placements(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number(value: Any) -> float | None:
    if isinstance(value, str):
        return None if value.strip().lower() in ("", "none", "null", "n/a") else float(value)
    return None if value is None else float(value)


def slot(name: str, group: Group, leaf: Leaf, **rest: Any) -> Slot:
    plain: Slot = {
        "name": name, "group": group, "leaf": leaf, "type": None, "dtype": None, "shape": None, "elements": 0,
        "statistics": NULL_STATISTICS, "text": None, "checksum": None,
    }  # fmt: skip
    return comparable(plain | rest)


def comparable(found: Slot) -> Slot:
    """NaN is not equal to itself, so it is told as a word."""
    statistics = ["NaN" if value is not None and math.isnan(value) else value for value in found["statistics"]]
    return found | {"statistics": statistics}


def slots_of_columns(dump: Dump) -> dict[str, list[Slot]]:
    """The same told from the columns."""
    table, told = dump.slots, {}
    for row, name in enumerate(dump.records.name):
        if not dump.records.recorded[row]:
            continue
        told[name] = []
        for at in range(dump.records.slot_start[row], dump.records.slot_start[row + 1]):
            assert table.record[at] == row
            statistics: list[float | None] = []
            for statistic in Statistic:
                value = float(table.statistics[at, statistic])
                present = bool(table.present[at] >> statistic & 1)
                assert present or math.isnan(value)
                statistics.append(value if present else None)
            found: Slot = {
                "name": dump.slot_names[table.name[at]],
                "group": Group(table.group[at]),
                "leaf": Leaf(table.leaf[at]),
                "type": text(dump.types, table.type_name[at]),
                "dtype": text(dump.dtypes, table.dtype[at]),
                "shape": text(dump.shapes, table.shape[at]),
                "elements": int(table.elements[at]),
                "statistics": statistics,
                "text": text(dump.texts, table.text[at]),
                "checksum": text(dump.texts, table.checksum[at]),
            }
            told[name].append(comparable(found))
    return told


def text(strings: Any, index: int) -> Any:
    return None if index < 0 else strings[index]
