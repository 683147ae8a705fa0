"""What honest noise looks like in a pair of dumps, role by role: `python -m tests.simulator.noise FOLDER …` prints a table.

Each FOLDER holds left/ and right/ of a clean pair (or two folders are given as LEFT,RIGHT). Measures, for outputs that hold the same
numbers: uNorm and uExtreme, differences of Norm and of Max and Min in ulps of the coarser dtype, and z = ΔMean·√n / RMS.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

MANTISSA = {"torch.bfloat16": 8, "torch.float16": 11, "torch.float32": 24}
Leaf = dict[str, Any]
# role → (training side: modules in a layer and slot, inference side: module in a layer and slot)
ROLES: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    "input norm": (("input_layernorm",), "output.0", "input_layernorm", "output.0"),
    "qkv": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "output.0", "self_attn.qkv_proj", "output.0"),
    "attention": (("self_attn.o_proj",), "input.0", "self_attn.attn", "output.0"),
    "o_proj": (("self_attn.o_proj",), "output.0", "self_attn.o_proj", "output.0"),
    "mid stream": (("post_attention_layernorm",), "input.0", "post_attention_layernorm", "output.1"),
    "post norm": (("post_attention_layernorm",), "output.0", "post_attention_layernorm", "output.0"),
    "gate_up": (("mlp.gate_proj", "mlp.up_proj"), "output.0", "mlp.gate_up_proj", "output.0"),
    "activation": (("mlp.down_proj",), "input.0", "mlp.act_fn", "output.0"),
    "down_proj": (("mlp.down_proj",), "output.0", "mlp.down_proj", "output.0"),
}


def first_calls(folder: Path) -> dict[str, Leaf]:
    """Canonical module path → first forward record of the one dump below `folder`."""
    path = next(folder.rglob("dump.json"))
    records: dict[str, Leaf] = {}
    for name, record in json.loads(path.read_text(encoding="utf-8"))["data"].items():
        if name.startswith("Module.") and name.endswith(".forward.0"):
            bare = re.sub(r"\b(_fsdp_wrapped_module|_checkpoint_wrapped_module|_orig_mod|module)\.", "", name.split(".", 1)[1])
            records[bare.rsplit(".", 3)[0]] = record
    return records


# Below the smallest normal number the steps stop shrinking. Only float16 gets there: weights' means of 1e-5 are subnormal in it.
SMALLEST_STEP = {"torch.bfloat16": 2.0**-133, "torch.float16": 2.0**-24, "torch.float32": 2.0**-149}


def step(value: float, dtype: str) -> float:
    """Distance of neighbouring numbers of `dtype` at `value`."""
    return max(2.0 ** (math.frexp(value)[1] - MANTISSA[dtype]), SMALLEST_STEP[dtype])


def ulps(one: float, other: float, dtype: str) -> float:
    """Difference in units of the last place of the larger value."""
    largest = max(abs(one), abs(other))
    if one == other or largest == 0:
        return 0.0
    return abs(one - other) / step(largest, dtype)


def combine(leaves: list[Leaf]) -> Leaf:
    """Statistics of the concatenation."""
    counts = [math.prod(leaf["shape"]) for leaf in leaves]
    return {
        "dtype": leaves[0]["dtype"],
        "n": sum(counts),
        "Max": max(leaf["Max"] for leaf in leaves),
        "Min": min(leaf["Min"] for leaf in leaves),
        "Norm": math.sqrt(sum(leaf["Norm"] ** 2 for leaf in leaves)),
        "Mean": sum(leaf["Mean"] * count for leaf, count in zip(leaves, counts, strict=True)) / sum(counts),
    }


def measure(left: Leaf, right: Leaf) -> dict[str, float]:
    """uNorm, uExtreme and z of two combined leaves."""
    rms = left["Norm"] / math.sqrt(left["n"]) or 1.0
    coarser = min(left["dtype"], right["dtype"], key=MANTISSA.__getitem__)
    return {
        "uNorm": ulps(left["Norm"], right["Norm"], coarser),
        "uExtreme": max(ulps(left[key], right[key], coarser) for key in ("Max", "Min")),
        "z": abs(left["Mean"] - right["Mean"]) * math.sqrt(left["n"]) / rms,
    }


def noise_of_pair(left: Path, right: Path) -> dict[str, list[tuple[int, dict[str, float]]]]:
    """role → [(layer, measures)]."""
    ours, theirs = first_calls(left), first_calls(right)
    found: dict[str, list[tuple[int, dict[str, float]]]] = defaultdict(list)
    layer = 0
    while f"model.layers.{layer}" in ours:
        for role, (parts, slot, other, other_slot) in ROLES.items():
            mine = [_leaf(ours.get(f"model.layers.{layer}.{part}"), slot) for part in parts]
            other_leaf = _leaf(theirs.get(f"model.layers.{layer}.{other}"), other_slot)
            if other_leaf and all(mine):
                found[role].append((layer, measure(combine([leaf for leaf in mine if leaf]), combine([other_leaf]))))
        layer += 1
    return found


def _leaf(record: Leaf | None, slot: str) -> Leaf | None:
    if record is None:
        return None
    group, index = slot.split(".")
    values = record["input_args" if group == "input" else "output"]
    leaf = values[int(index)] if int(index) < len(values) else None
    return None if leaf is None or leaf["Norm"] is None else leaf


def table(pairs: list[tuple[Path, Path]]) -> str:
    """Median / 90th percentile / maximum of every measure for each role."""
    gathered: dict[str, list[tuple[int, dict[str, float]]]] = defaultdict(list)
    for left, right in pairs:
        for role, values in noise_of_pair(left, right).items():
            gathered[role] += values
    lines = [f"{'role':12s} {'uNorm 50/90/max':>18s} {'uExtreme 50/90/max':>20s} {'z layer 0 max':>14s} {'z 50/90/max':>20s}"]
    for role, values in gathered.items():

        def spread(key: str, rows: list[tuple[int, dict[str, float]]] = values) -> str:
            ordered = sorted(row[key] for _, row in rows)
            picks = (ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)], ordered[-1])
            return "/".join(f"{pick:.3f}" if key == "z" else f"{pick:.2f}" for pick in picks)

        first = max(row["z"] for layer, row in values if layer == 0)
        lines.append(f"{role:12s} {spread('uNorm'):>18s} {spread('uExtreme'):>20s} {first:14.3f} {spread('z'):>20s}")
    return "\n".join(lines)


if __name__ == "__main__":
    sides = [
        tuple(Path(side) for side in text.split(",")) if "," in text else (Path(text) / "left", Path(text) / "right")
        for text in sys.argv[1:]
    ]
    sys.stdout.write(table([(one, two) for one, two in sides]) + "\n")
