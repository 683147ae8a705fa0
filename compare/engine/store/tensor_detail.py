"""What the elements of one pair say, out of the stored columns (``docs/formats.md``: a node in full, ``tensor``)."""

from __future__ import annotations

import math
from typing import Any

from compare.engine.errors import DumpError
from compare.engine.model import JsonObject
from compare.engine.store.columns import Columns

PRECISION = {3: "fp8", 4: "fp8", 8: "bf16", 11: "fp16", 24: "fp32", 53: "fp64"}  # by significand bits


def as_json(value: float) -> float | str:
    """NaN and infinities as every document of the product writes them."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def tensor_detail(columns: Columns, pair: int) -> JsonObject | None:
    """None where the pair has no tensors at all."""
    if not columns.meta.get("tensors"):
        return None
    facts = columns.meta["tensors"]
    state = facts["states"][str(int(columns.array("tensor_state")[pair]))]
    if state == "none":
        return None
    row = int(columns.array("tensor_row")[pair])
    if row < 0:
        fault = next((known for known in facts["faults"] if known["pair"] == pair), None)
        return {"state": state, "fault": None if fault is None else _fault(fault)}

    def at(name: str) -> Any:
        return columns.array(f"tensor.{name}")[row]

    bits = int(at("bits"))
    count = int(at("count"))
    return {
        "state": state,
        "fault": None,
        "layout": facts["layouts"][int(at("layout"))],
        "elements": count,
        "identical": int(at("identical")),
        "cosine": as_json(float(at("cosine"))),
        "relative_l2": as_json(float(at("relative_l2"))),
        "max_absolute": as_json(float(at("largest"))),
        "max_relative": as_json(float(at("largest_relative"))),
        "within_thousandth": as_json(float(at("within")[0])),
        "within_five_thousandths": as_json(float(at("within")[1])),
        "nan": [int(n) for n in at("nan")],
        "infinite": [int(n) for n in at("infinite")],
        "misplaced": int(at("misplaced")),
        "ulps": {"of": PRECISION.get(bits), "edges": facts["ulp_edges"], "counts": [int(n) for n in at("ulps")]} if bits else None,
        "rows": _profile(columns, row, 0),
        "columns": _profile(columns, row, 1),
        "worst": [
            {"row": int(r), "column": int(c), "left": as_json(float(left)), "right": as_json(float(right)), "difference": as_json(float(d))}
            for d, r, c, left, right in at("worst").tolist()
            if not math.isnan(d)
        ],
    }


def _fault(fault: JsonObject) -> JsonObject:
    """With the sentence for a page that does not know the code."""
    known = {name: fault[name] for name in ("side", "file", "code", "params")}
    return {**known, "message": str(DumpError(fault["code"], "", **fault["params"])).removeprefix(": ")}


def _profile(columns: Columns, row: int, axis: int) -> JsonObject:
    start = columns.array("tensor.profile_start")
    values = columns.array("tensor.profile")[start[2 * row + axis] : start[2 * row + axis + 1]]
    return {"length": int(columns.array("tensor.shape")[row, axis]), "values": [as_json(float(value)) for value in values]}
