"""Writes a pair of large statistics dumps in the shape of a mixed-level training dump: modules, API calls, gradients.

A decoder layer has 13 modules; every linear makes one API call and the others share the rest, five a module on average. Forward and
backward make (1 + 5) · 13 · 2 = 156 nodes a layer and micro-batch: 64 layers are about 10 000 nodes, with five micro-batches 50 000.
Numbers are drawn, not computed: nothing here is a model, only its size is real.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Node = dict[str, Any]
# path in the layer → (class, whether it has a weight)
MODULES: dict[str, tuple[str, bool]] = {
    "": ("DecoderLayer", False),
    "input_layernorm": ("RMSNorm", True),
    "self_attn": ("Attention", False),
    "self_attn.q_proj": ("Linear", True),
    "self_attn.k_proj": ("Linear", True),
    "self_attn.v_proj": ("Linear", True),
    "self_attn.o_proj": ("Linear", True),
    "post_attention_layernorm": ("RMSNorm", True),
    "mlp": ("MLP", False),
    "mlp.gate_proj": ("Linear", True),
    "mlp.up_proj": ("Linear", True),
    "mlp.act_fn": ("SiLU", False),
    "mlp.down_proj": ("Linear", True),
}
CALLS_PER_MODULE = 5
CALLS = (
    "Torch.matmul",
    "Functional.softmax",
    "Tensor.__add__",
    "Tensor.__mul__",
    "Tensor.__truediv__",
    "Functional.silu",
    "Torch.rsqrt",
    "Tensor.pow",
    "Tensor.mean",
    "Torch.cat",
    "Functional.dropout",
    "Tensor.masked_fill",
    "Torch.cos",
    "Torch.sin",
)
FRAMES = (
    "File /opt/train/model/modeling.py, line {line}, in forward, \n hidden_states = self.block(hidden_states)",
    "File /opt/train/lib/python3.11/site-packages/torch/nn/modules/module.py, line {line}, in _call_impl, \n return self._call(*args)",
)
LINEARS = [path for path, (kind, _) in MODULES.items() if kind == "Linear"]
OTHERS = [path for path in MODULES if path not in LINEARS]
SHARE, LEFT_OVER = divmod(CALLS_PER_MODULE * len(MODULES) - len(LINEARS), len(OTHERS))


@dataclass(frozen=True)
class Extent:
    """How large a dump is. `drift_from` is the first layer whose numbers differ from the undisturbed dump's, None = none."""

    layers: int = 64
    micro_batches: int = 1
    hidden: int = 4096
    tokens: int = 2048
    drift_from: int | None = None


def children_of(parent: str) -> list[str]:
    return [path for path in MODULES if path and path.rpartition(".")[0] == parent]


def calls_of(path: str) -> int:
    return 1 if path in LINEARS else SHARE + (LEFT_OVER if path == "" else 0)


class _Writer:
    def __init__(self, extent: Extent, seed: int) -> None:
        self.extent = extent
        self.draw = random.Random(seed)  # noqa: S311  the same numbers on both sides
        self.drift = random.Random(seed + 1)  # noqa: S311  on a disturbed side alone
        self.data: dict[str, Node] = {}
        self.construct: dict[str, str | None] = {}
        self.stacks: dict[str, tuple[list[str], list[str]]] = {}
        self.counts: dict[str, int] = {}

    def tensor(self, shape: list[int], layer: int, *, grad: bool, scale: float = 1.0) -> Node:
        top, bottom = abs(self.draw.gauss(3, 1)) * scale, -abs(self.draw.gauss(3, 1)) * scale
        mean, norm = self.draw.gauss(0, 0.01) * scale, abs(self.draw.gauss(45, 5)) * scale
        if self.extent.drift_from is not None and layer >= self.extent.drift_from:
            factor = 1 + 0.02 * (0.5 + self.drift.random())
            top, bottom, mean, norm = top * factor, bottom * factor, mean * factor, norm * factor
        return {
            "type": "torch.Tensor",
            "dtype": "torch.bfloat16",
            "shape": shape,
            "Max": top,
            "Min": bottom,
            "Mean": mean,
            "Norm": norm,
            "requires_grad": grad,
        }

    def stack(self, place: str, name: str) -> None:
        if place not in self.stacks:
            lines = random.Random(place)  # noqa: S311
            frames = [FRAMES[min(index % 3, 1)].format(line=lines.randint(20, 2000)) for index in range(14)]
            self.stacks[place] = ([], frames)
        self.stacks[place][0].append(name)

    def forward(self, layer: int, batch: int, path: str) -> list[tuple[str, str, str]]:
        """Record a module's forward call after its children's. Returns (path, record, parent) of its backward nodes; read from the end,
        a module comes after its children."""
        extent, weighted = self.extent, MODULES[path][1]
        stream, square = [1, extent.tokens, extent.hidden], [extent.hidden, extent.hidden]
        base = self.base(layer, path)
        name = f"{base}.forward.{batch}"
        self.construct[name] = self.parent(layer, path, f"forward.{batch}") or None
        children, total = children_of(path), calls_of(path)
        made, backward = 0, [(path, f"{base}.backward.{batch}", self.parent(layer, path, f"backward.{batch}"))]
        for child in [*children, None]:
            share = total - made if child is None else total // (len(children) + 1)
            for index in range(made, made + share):
                api = "Functional.linear" if path in LINEARS else CALLS[index % len(CALLS)]
                number = self.counts[api] = self.counts.get(api, -1) + 1
                call = f"{api}.{number}.forward"
                second = self.tensor(square if path in LINEARS else stream, layer, grad=True)
                extra = [] if path in LINEARS else [{"type": "float", "value": 1.0}]
                self.data[call] = {
                    "input_args": [self.tensor(stream, layer, grad=True), second, *extra],
                    "input_kwargs": {},
                    "output": [self.tensor(stream, layer, grad=True)],
                }
                self.construct[call] = name
                self.stack(f"{path}/{index}", call)
                backward.append((path, f"{api}.{number}.backward", f"{base}.backward.{batch}"))
            made += share
            if child is not None:
                backward += self.forward(layer, batch, child)
        parameters = {"weight": self.tensor(square if path in LINEARS else square[:1], layer, grad=True, scale=0.02)} if weighted else {}
        self.data[name] = {
            "input_args": [self.tensor(stream, layer, grad=True)],
            "input_kwargs": {},
            "output": [self.tensor(stream, layer, grad=True)],
            "parameters": parameters,
        }
        self.stack(f"{path}/module", name)
        return backward

    def parent(self, layer: int, path: str, suffix: str) -> str:
        return f"{self.base(layer, path.rpartition('.')[0])}.{suffix}" if path else ""

    @staticmethod
    def base(layer: int, path: str) -> str:
        return ".".join(part for part in ("Module.model.layers", str(layer), path, MODULES[path][0]) if part)

    def run(self) -> None:
        stream = [1, self.extent.tokens, self.extent.hidden]
        for batch in range(self.extent.micro_batches):
            pending = [(layer, self.forward(layer, batch, "")) for layer in range(self.extent.layers)]
            for layer, nodes in reversed(pending):
                for path, name, parent in reversed(nodes):
                    self.construct[name] = parent or None
                    if name.startswith("Module.") and MODULES[path][1]:
                        gradient = self.tensor(stream[-1:], layer, grad=False, scale=1e-4)
                        self.data[f"{self.base(layer, path)}.parameters_grad.{batch}"] = {"weight": [gradient]}
                    outputs = 1 if name.startswith("Module.") else 2
                    self.data[name] = {
                        "input": [self.tensor(stream, layer, grad=False, scale=1e-3)],
                        "output": [self.tensor(stream, layer, grad=False, scale=1e-3) for _ in range(outputs)],
                    }


def write_large_dump(folder: Path, extent: Extent, seed: int = 0) -> int:
    """Write dump.json, construct.json and stack.json; returns the number of construct nodes."""
    writer = _Writer(extent, seed)
    writer.run()
    folder.mkdir(parents=True, exist_ok=True)
    dump = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": writer.data}
    shared = {str(index): stack for index, stack in enumerate(writer.stacks.values())}
    for name, content in (("dump.json", dump), ("construct.json", writer.construct), ("stack.json", shared)):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return len(writer.construct)
