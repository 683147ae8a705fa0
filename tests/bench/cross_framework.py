"""Writes a large pair across frameworks: a Hugging Face dump of level mix (API calls) against a vLLM dump of level L0.

80 layers × 20 micro-batches are about 138 000 records on the training side, forward and backward, and 19 000 on the engine's, which has no
backward pass. Every tensor of the decoder is one
set of drawn statistics that both sides write, each under its own names, fused and unfused, so that the verdict is known: the engine's MLP
output in layer `fault` is off, and with it everything after it. Numbers are drawn, only names and sizes are real.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.simulator.precision import Array, round_bfloat16

HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY, TOKENS = 4096, 11008, 32, 8, 128, 151_936, 512
WIDTHS = {
    "query": HEADS * HEAD_DIM,
    "key": KV_HEADS * HEAD_DIM,
    "value": KV_HEADS * HEAD_DIM,
    "rotated_query": HEADS * HEAD_DIM,
    "rotated_key": KV_HEADS * HEAD_DIM,
    "context": HEADS * HEAD_DIM,
    "gate": INTERMEDIATE,
    "up": INTERMEDIATE,
    "active": INTERMEDIATE,
    "product": INTERMEDIATE,
}
TENSORS = (
    *("stream", "normed", *WIDTHS, "attended", "middle", "mlp_normed", "fed"),
    *("square", "mean_square", "inverse", "scaled"),  # inside the norms
)
TENSOR = '{{"type": "torch.Tensor", "dtype": "torch.{}", "shape": {}, "Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": {}}}'
POSITIONS = '{{"type": "torch.Tensor", "dtype": "torch.int64", "shape": {}, "Max": 511, "Min": 0, "Mean": null, "Norm": null}}'
TOKEN_IDS = '{{"type": "torch.Tensor", "dtype": "torch.int64", "shape": {}, "Max": 151000, "Min": 11, "Mean": null, "Norm": null}}'
FAULT_FACTOR = 1.05


@dataclass(frozen=True)
class Extent:
    """``fault``: the layer whose MLP output differs on the engine's side, None = none."""

    layers: int = 80
    micro_batches: int = 20
    fault: int | None = 40


def write_pair(folder: Path, extent: Extent, seed: int = 0) -> tuple[Path, Path, tuple[int, int]]:
    """Writes ``folder``/train and ``folder``/infer; returns both and their numbers of records."""
    rng = np.random.default_rng(seed)
    numbers = _statistics(rng, extent.micro_batches, extent.layers)
    train = _Train(folder / "train", numbers, extent)
    infer = _Infer(folder / "infer", numbers, extent)
    return train.folder, infer.folder, (train.count, infer.count)


def _statistics(rng: np.random.Generator, batches: int, layers: int) -> dict[str, Array]:
    """Tensor → [micro-batches, layers + 1, 4]: Max, Min, Mean, Norm as bf16 numbers."""
    found = {}
    for name in TENSORS:
        elements = TOKENS * WIDTHS.get(name, HIDDEN)
        scale = rng.uniform(0.5, 1.5, (batches, layers + 1))
        top, bottom = (rng.uniform(3.5, 5.5, scale.shape) * scale for _ in range(2))
        mean = rng.standard_normal(scale.shape) * 0.01 * scale
        found[name] = round_bfloat16(np.stack([top, -bottom, mean, scale * np.sqrt(elements)], axis=-1).astype(np.float32))
    return found


class _Side:
    """One dump.json with its construct.json and stack.json, written record by record as text."""

    level = "L0"

    def __init__(self, folder: Path, numbers: dict[str, Array], extent: Extent) -> None:
        self.folder, self.numbers, self.extent = folder, numbers, extent
        self.records: list[str] = []
        self.construct: list[str] = []
        self.stack: list[str] = []
        self.calls: dict[str, int] = {}
        for batch in range(extent.micro_batches):
            self.batch = batch
            self.run()
        self.count = len(self.records)
        folder.mkdir(parents=True)
        head = f'{{"task": "statistics", "level": "{self.level}", "framework": "pytorch", "dump_data_dir": null, "data": {{'
        (folder / "dump.json").write_text(head + ",\n".join(self.records) + "}}", encoding="utf-8")
        (folder / "construct.json").write_text("{" + ",\n".join(self.construct) + "}", encoding="utf-8")
        frames = ["File /opt/venv/lib/python3.11/site-packages/model.py, line 212, in forward, \n hidden_states = self.mlp(hidden_states)"]
        (folder / "stack.json").write_text(json.dumps({"0": [self.stack, frames]}), encoding="utf-8")

    def run(self) -> None:
        raise NotImplementedError

    def shape(self, width: int) -> str:
        raise NotImplementedError

    def leaf(self, name: str, layer: int, *parts: str, dtype: str = "bfloat16") -> str:
        """The tensor ``name`` of a layer, or ``parts`` side by side."""
        rows = [self.values(part, layer) for part in (parts or (name,))]
        widths = [WIDTHS.get(part, HIDDEN) for part in (parts or (name,))]
        top, bottom = max(row[0] for row in rows), min(row[1] for row in rows)
        mean = sum(row[2] * width for row, width in zip(rows, widths, strict=True)) / sum(widths)
        norm = sum(row[3] ** 2 for row in rows) ** 0.5
        if parts:
            mean, norm = round_bfloat16(np.array([mean, norm], np.float32)).tolist()
        return TENSOR.format(dtype, self.shape(sum(widths)), top, bottom, mean, norm, self.requires_grad)

    requires_grad = "false"

    def values(self, name: str, layer: int) -> list[float]:
        found: list[float] = self.numbers[name][self.batch, layer].tolist()
        return found

    def weight(self, layer: int, *shape: int) -> str:
        """A parameter: the same in every micro-batch, and fused what its parts come to."""
        norm = round_bfloat16(np.array([0.02 * np.sqrt(np.prod(shape)) * (1 + 0.001 * layer)], np.float32)).item()
        return TENSOR.format("bfloat16", list(shape), 0.09375, -0.09375, 2.0**-16, norm, self.requires_grad)

    def module(self, path: str, kind: str, parent: str | None, given: list[str], out: list[str], weight: str | None = None) -> None:
        name = f"Module.{path}.{kind}.forward.{self.call(path)}"
        parameters = f'{{"weight": {weight}}}' if weight else "{}"
        self.record(name, parent, given, out, f', "parameters": {parameters}')

    def call(self, path: str) -> int:
        return self.batch

    def record(self, name: str, parent: str | None, given: list[str], out: list[str], more: str = "") -> None:
        values = f'"input_args": [{", ".join(given)}], "input_kwargs": {{}}, "output": [{", ".join(out)}]'
        self.records.append(f'"{name}": {{{values}{more}}}')
        self.construct.append(f'"{name}": ' + ("null" if parent is None else f'"{parent}"'))
        self.stack.append(name)


def _backward(name: str) -> str:
    """``….forward.3`` → ``….backward.3`` of a module, ``….3.forward`` → ``….3.backward`` of an API call."""
    head, _, tail = name.rpartition("forward")
    return f"{head}backward{tail}"


class _Train(_Side):
    """Hugging Face names, [1, T, H], one projection a module, API calls."""

    level = "mix"
    requires_grad = "true"

    def shape(self, width: int) -> str:
        return f"[1, {TOKENS}, {width}]"

    def api(self, name: str, parent: str, given: list[str], out: list[str]) -> None:
        number = self.calls[name] = self.calls.get(name, -1) + 1
        self.record(f"{name}.{number}.forward", parent, given, out)

    def record(self, name: str, parent: str | None, given: list[str], out: list[str], more: str = "") -> None:
        super().record(name, parent, given, out, more)
        self.made.append((name, parent, given, out))

    def run(self) -> None:
        self.made: list[tuple[str, str | None, list[str], list[str]]] = []
        self.forward()
        for name, parent, given, out in reversed(self.made):
            backward = _backward(name)
            self.records.append(f'"{backward}": {{"input": [{", ".join(out)}], "output": [{", ".join(given)}]}}')
            self.construct.append(f'"{backward}": ' + ("null" if parent is None else f'"{_backward(parent)}"'))

    def forward(self) -> None:
        batch, layers = self.batch, self.extent.layers
        root, model = f"Module.Qwen2ForCausalLM.forward.{batch}", f"Module.model.Qwen2Model.forward.{batch}"
        ids = TOKEN_IDS.format(f"[1, {TOKENS}]")
        table = self.weight(0, VOCABULARY, HIDDEN)
        self.module("model.embed_tokens", "Embedding", model, [ids], [self.leaf("stream", 0)], table)
        for layer in range(layers):
            self.layer(layer, f"Module.model.layers.{layer}.Qwen2DecoderLayer.forward.{batch}", model)
        self.norm("model.norm", model, layers, "stream", "normed")
        self.record(model, root, [ids], [self.leaf("normed", layers)])
        logits = TENSOR.format("bfloat16", f"[1, {TOKENS}, {VOCABULARY}]", 12.5, -9.5, 0.01, 9000.0, "true")
        self.module("lm_head", "Linear", root, [self.leaf("normed", layers)], [logits], self.weight(0, VOCABULARY, HIDDEN))
        self.record(root, None, [ids], [logits])

    def layer(self, layer: int, name: str, parent: str) -> None:
        path, batch = f"model.layers.{layer}", self.batch
        attention, mlp = (f"Module.{path}.{part}.forward.{batch}" for part in ("self_attn.Qwen2Attention", "mlp.Qwen2MLP"))
        tensor = {name: self.leaf(name, layer) for name in TENSORS}
        self.norm(f"{path}.input_layernorm", name, layer, "stream", "normed")
        for part, made in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value")):
            self.linear(f"{path}.self_attn.{part}", attention, layer, "normed", made)
        for made, rotated in (("query", "rotated_query"), ("key", "rotated_key")):
            self.api("Tensor.__mul__", attention, [tensor[made], tensor[made]], [tensor[rotated]])
            self.api("Tensor.__mul__", attention, [tensor[made], tensor[made]], [tensor[rotated]])
            self.api("Tensor.__add__", attention, [tensor[rotated], tensor[rotated]], [tensor[rotated]])
        given = [tensor["rotated_query"], tensor["rotated_key"], tensor["value"]]
        self.api("Functional.scaled_dot_product_attention", attention, given, [tensor["context"]])
        self.linear(f"{path}.self_attn.o_proj", attention, layer, "context", "attended")
        self.record(attention, name, [tensor["normed"]], [tensor["attended"]])
        self.api("Tensor.__add__", name, [tensor["stream"], tensor["attended"]], [tensor["middle"]])
        self.norm(f"{path}.post_attention_layernorm", name, layer, "middle", "mlp_normed")
        self.linear(f"{path}.mlp.gate_proj", mlp, layer, "mlp_normed", "gate")
        act = f"Module.{path}.mlp.act_fn.SiLUActivation.forward.{batch}"
        self.api("Functional.silu", act, [tensor["gate"]], [tensor["active"]])
        self.record(act, mlp, [tensor["gate"]], [tensor["active"]])
        self.linear(f"{path}.mlp.up_proj", mlp, layer, "mlp_normed", "up")
        self.api("Tensor.__mul__", mlp, [tensor["active"], tensor["up"]], [tensor["product"]])
        self.linear(f"{path}.mlp.down_proj", mlp, layer, "product", "fed")
        self.record(mlp, name, [tensor["mlp_normed"]], [tensor["fed"]])
        after = self.leaf("stream", layer + 1)
        self.api("Tensor.__add__", name, [tensor["middle"], tensor["fed"]], [after])
        self.record(name, parent, [tensor["stream"]], [after])

    def norm(self, path: str, parent: str, layer: int, given: str, made: str) -> None:
        name = f"Module.{path}.Qwen2RMSNorm.forward.{self.batch}"
        into, out = self.leaf(given, layer), self.leaf(made, layer)
        inner = [self.leaf(step, layer, dtype="float32") for step in ("square", "mean_square", "mean_square", "inverse", "scaled")]
        for api, value in zip(("pow", "mean", "__add__", "__rsub__", "__mul__"), inner, strict=True):
            self.api(f"Tensor.{api}", name, [into], [value])
        self.api("Tensor.__mul__", name, [inner[-1]], [out])
        self.record(name, parent, [into], [out], f', "parameters": {{"weight": {self.weight(layer, HIDDEN)}}}')

    def linear(self, path: str, parent: str, layer: int, given: str, made: str) -> None:
        weight = self.weight(layer, WIDTHS.get(made, HIDDEN), WIDTHS.get(given, HIDDEN))
        into, out = self.leaf(given, layer), self.leaf(made, layer)
        name = f"Module.{path}.Linear.forward.{self.batch}"
        self.api("Functional.linear", name, [into, weight, "null"], [out])
        self.record(name, parent, [into], [out], f', "parameters": {{"weight": {weight}}}')


class _Infer(_Side):
    """vLLM names, [T, H], fused projections, two tensors a layer; one rotary embedding called by every layer."""

    def shape(self, width: int) -> str:
        return f"[{TOKENS}, {width}]"

    def call(self, path: str) -> int:
        if path != "model.layers.0.self_attn.rotary_emb":
            return self.batch
        number = self.calls[path] = self.calls.get(path, -1) + 1
        return number

    def values(self, name: str, layer: int) -> list[float]:
        values, fault = super().values(name, layer), self.extent.fault
        if fault is not None and ((name == "fed" and layer == fault) or layer > fault):
            return round_bfloat16(np.array(values, np.float32) * np.float32(FAULT_FACTOR)).tolist()  # type: ignore[no-any-return]
        return values

    def run(self) -> None:
        batch, layers = self.batch, self.extent.layers
        model = f"Module.model.Qwen2Model.forward.{batch}"
        ids, positions = TOKEN_IDS.format(f"[{TOKENS}]"), POSITIONS.format(f"[{TOKENS}]")
        table = self.weight(0, VOCABULARY, HIDDEN)
        self.module("model.embed_tokens", "VocabParallelEmbedding", model, [ids], [self.leaf("stream", 0)], table)
        for layer in range(layers):
            self.layer(layer, positions, model)
        before = [self.leaf("fed", layers - 1), self.leaf("middle", layers - 1)]
        self.norm("model.norm", model, before, [self.leaf("normed", layers), self.leaf("stream", layers)], layers)
        self.record(model, None, [ids, positions], [self.leaf("normed", layers)])
        logits = TENSOR.format("bfloat16", f"[1, {VOCABULARY}]", 12.5, -9.5, 0.01, 400.0, "false")
        row = TENSOR.format("bfloat16", f"[1, {HIDDEN}]", 4.5, -4.5, 0.01, 64.0, "false")
        self.module("logits_processor", "LogitsProcessor", None, ["null", row], [logits])

    def layer(self, layer: int, positions: str, parent: str) -> None:
        path, batch = f"model.layers.{layer}", self.batch
        name = f"Module.{path}.Qwen2DecoderLayer.forward.{batch}"
        attention, mlp = (f"Module.{path}.{part}.forward.{batch}" for part in ("self_attn.Qwen2Attention", "mlp.Qwen2MLP"))
        tensor = {name: self.leaf(name, layer) for name in TENSORS}
        qkv, gate_up = self.leaf("", layer, "query", "key", "value"), self.leaf("", layer, "gate", "up")
        first = layer == 0
        before = [tensor["stream"]] if first else [self.leaf("fed", layer - 1), self.leaf("middle", layer - 1)]
        self.norm(f"{path}.input_layernorm", name, before, [tensor["normed"]] if first else [tensor["normed"], tensor["stream"]], layer)
        qkv_weight = self.weight(layer, sum(WIDTHS[part] for part in ("query", "key", "value")), HIDDEN)
        self.module(f"{path}.self_attn.qkv_proj", "QKVParallelLinear", attention, [tensor["normed"]], [qkv, "null"], qkv_weight)
        given, rotated = [positions, tensor["query"], tensor["key"]], [tensor["rotated_query"], tensor["rotated_key"]]
        self.module("model.layers.0.self_attn.rotary_emb", "RotaryEmbedding", attention, given, rotated)
        self.module(f"{path}.self_attn.attn", "Attention", attention, [*rotated, tensor["value"]], [tensor["context"]])
        self.row(f"{path}.self_attn.o_proj", attention, layer, "context", "attended")
        self.record(attention, name, [positions, tensor["normed"]], [tensor["attended"]])
        self.norm(
            f"{path}.post_attention_layernorm",
            name,
            [tensor["attended"], tensor["stream"]],
            [tensor["mlp_normed"], tensor["middle"]],
            layer,
        )
        gate_up_weight = self.weight(layer, 2 * INTERMEDIATE, HIDDEN)
        kind = "MergedColumnParallelLinear"
        self.module(f"{path}.mlp.gate_up_proj", kind, mlp, [tensor["mlp_normed"]], [gate_up, "null"], gate_up_weight)
        self.module(f"{path}.mlp.act_fn", "SiluAndMul", mlp, [gate_up], [tensor["product"]])
        self.row(f"{path}.mlp.down_proj", mlp, layer, "product", "fed")
        self.record(mlp, name, [tensor["mlp_normed"]], [tensor["fed"]])
        residual = ["null"] if first else [before[1]]
        self.record(name, parent, [positions, before[0], *residual], [tensor["fed"], tensor["middle"]])

    def norm(self, path: str, parent: str, given: list[str], out: list[str], layer: int) -> None:
        self.module(path, "RMSNorm", parent, given, out, self.weight(layer, HIDDEN))

    def row(self, path: str, parent: str, layer: int, given: str, made: str) -> None:
        weight = self.weight(layer, WIDTHS.get(made, HIDDEN), WIDTHS.get(given, HIDDEN))
        self.module(path, "RowParallelLinear", parent, [self.leaf(given, layer)], [self.leaf(made, layer), "null"], weight)


def right_answer(document: dict[str, object], extent: Extent) -> Iterator[str]:
    """What is wrong with a verdict on such a pair, in words."""
    first = document["first_divergence"]
    module = first["module"] if isinstance(first, dict) else None
    wanted = None if extent.fault is None else f"model.layers.{extent.fault}.mlp.down_proj"
    if module != wanted:
        yield f"first divergence {module}, not {wanted}"
