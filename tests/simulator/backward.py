"""The training side's backward pass, by hand: exact gradients of next-token cross-entropy, each rounded to the model's dtype where
a real run stores it. The gradient of the fused attention kernel uses the float32 probabilities of the forward pass.

Modules and parameters only: at level mix a real dump has backward records of API calls too, which are left out here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.simulator.faults import Fault
from tests.simulator.precision import Array
from tests.simulator.recorder import single
from tests.simulator.train_side import Tape, TrainModel, rope_tables, softmax


class _Backward:
    def __init__(self, model: TrainModel, number: int, placeholders: bool, fault: Fault | None) -> None:
        self.model, self.number, self.placeholders, self.fault = model, number, placeholders, fault
        self.recorder, self.precision = model.recorder, model.precision
        self.late: list[tuple[str, str, dict[str, Array | None]]] = []

    def gradient(self, path: str, kind: str, gradients: dict[str, Array]) -> None:
        """Parameter gradients: before the module's backward record, or null and late under FSDP1."""
        if self.placeholders:
            self.late.append((path, kind, dict.fromkeys(gradients)))
        else:
            self.recorder.parameters_grad(path, kind, {name: self.precision.round(value) for name, value in gradients.items()}, self.number)

    def flush(self) -> None:
        for path, kind, gradients in self.late:
            self.recorder.parameters_grad(path, kind, gradients, self.number)
        self.late.clear()

    def linear(self, path: str, received: Array, values: Array, parent: str | None, again: Callable[[], object] | None = None) -> Array:
        """`again` recomputes the layer when its first gradient needs it; its records are children of this one."""
        rec, weights = self.recorder, self.model.weights
        name = rec.begin_backward(path, "Linear", parent, self.number)
        if again is not None:
            with rec.inside(name):
                again()
        flat, rows = received.reshape(-1, received.shape[-1]), values.reshape(-1, values.shape[-1])
        gradients = {"weight": flat.T @ rows}
        if f"{path}.bias" in weights:
            gradients["bias"] = flat.sum(axis=0)
        self.gradient(path, "Linear", gradients)
        returned = self.precision.round(flat @ weights[f"{path}.weight"]).reshape(values.shape)
        rec.end_backward(name, [received], [returned])
        return returned

    def norm(self, path: str, received: Array, values: Array, parent: str | None) -> Array:
        rec, weight, kind = self.recorder, self.model.weights[f"{path}.weight"], self.model.family.class_of("RMSNorm")
        name = rec.begin_backward(path, kind, parent, self.number)
        inverse = 1.0 / np.sqrt(np.mean(values * values, axis=-1, keepdims=True) + np.float32(self.model.family.eps))
        unit = values * inverse
        self.gradient(path, kind, {"weight": (received * unit).reshape(-1, weight.size).sum(axis=0)})
        inner = received * weight
        returned = self.precision.round(inverse * (inner - unit * np.mean(inner * unit, axis=-1, keepdims=True)))
        rec.end_backward(name, [received], [returned])
        return returned

    def layer(self, index: int, received: Array, tape: Tape, cos: Array, sin: Array) -> Array:
        rec, family, rounded = self.recorder, self.model.family, self.precision.round
        path, kept = f"model.layers.{index}", tape.layers[index]
        again = tape.again[index] if self.model.style.recompute else None
        top = rec.begin_backward(path, family.class_of("DecoderLayer"), None, self.number)
        mlp = rec.begin_backward(f"{path}.mlp", family.class_of("MLP"), top, self.number)
        entering = received
        if self.fault and self.fault.hits("gradient_scale", index):
            entering = rounded(received * np.float32(self.fault.size))
        product = self.linear(f"{path}.mlp.down_proj", entering, kept["product"], mlp, again)
        up, active = rounded(product * kept["active"]), rounded(product * kept["up"])
        through_up = self.linear(f"{path}.mlp.up_proj", up, kept["normed2"], mlp)
        act = rec.begin_backward(f"{path}.mlp.act_fn", family.activation_class, mlp, self.number)
        slope = 1.0 / (1.0 + np.exp(-kept["gate"]))
        gate = rounded(active * (slope * (1.0 + kept["gate"] * (1.0 - slope))))
        rec.end_backward(act, [active], [gate])
        through_gate = self.linear(f"{path}.mlp.gate_proj", gate, kept["normed2"], mlp)
        fed = rounded(through_up + through_gate)
        rec.end_backward(mlp, [entering], [fed])
        middle = rounded(received + self.norm(f"{path}.post_attention_layernorm", fed, kept["middle"], top))
        normed = self.attention(index, middle, kept, cos, sin, top)
        returned = rounded(middle + self.norm(f"{path}.input_layernorm", normed, kept["in"], top))
        rec.end_backward(top, [received], [returned])
        if self.placeholders:
            self.late.sort(key=lambda item: "layernorm" not in item[0])
        self.flush()
        return returned

    def attention(self, index: int, received: Array, kept: dict[str, Array], cos: Array, sin: Array, top: str) -> Array:
        rec, size, family, rounded = self.recorder, self.model.size, self.model.family, self.precision.round
        path = f"model.layers.{index}.self_attn"
        own = rec.begin_backward(path, family.class_of("Attention"), top, self.number)
        rec.end_backward(own, [received], [])
        joined = self.linear(f"{path}.o_proj", received, kept["joined"], top)
        batch, length = joined.shape[:2]
        output = joined.reshape(batch, length, size.heads, size.head_dim).transpose(0, 2, 1, 3)
        group, probabilities = size.heads // size.kv_heads, kept["probabilities"]
        wide_k, wide_v = np.repeat(kept["k"], group, axis=1), np.repeat(kept["v"], group, axis=1)
        inner = output @ wide_v.transpose(0, 1, 3, 2)
        scores = probabilities * (inner - np.sum(inner * probabilities, axis=-1, keepdims=True)) * np.float32(size.head_dim**-0.5)

        def fold(values: Array) -> Array:
            return values.reshape(batch, size.kv_heads, group, length, size.head_dim).sum(axis=2)

        gradients = {
            "v": rounded(fold(probabilities.transpose(0, 1, 3, 2) @ output)),
            "k": rounded(fold(scores.transpose(0, 1, 3, 2) @ kept["q"])),
            "q": rounded(scores @ wide_k),
        }
        total: Array | None = None
        for part in ("v", "k", "q"):
            values = gradients[part]
            if part != "v":
                half = size.head_dim // 2
                turned = values * sin[:, None]
                back = np.concatenate([turned[..., half:], -turned[..., :half]], axis=-1)
                values = rounded(values * cos[:, None] + back)
            values = values.transpose(0, 2, 1, 3)
            if family.qk_norm and part != "v":
                plain = kept[f"{part}_linear"].reshape(values.shape)
                values = self.norm(f"{path}.{part}_norm", values, plain, top)
            returned = self.linear(f"{path}.{part}_proj", values.reshape(batch, length, -1), kept["normed"], top)
            total = returned if total is None else rounded(total + returned)
        assert total is not None
        return total


def _loss_calls(model: TrainModel, tokens: Array, logits: Array) -> None:
    """API calls of the loss, outside all modules."""
    rec, rows, targets = model.recorder, logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1)
    loss = -np.mean(np.log(np.take_along_axis(softmax(rows), targets[:, None], -1)), dtype=np.float32)
    rec.quiet("Tensor.float", "Tensor.reshape", "Tensor.reshape")
    rec.api("Functional.cross_entropy", [single(rows), targets], [single(np.array(loss))])
    rec.api("Tensor.__truediv__", [single(np.array(loss)), 1], [single(np.array(loss))])


def record_backward(
    model: TrainModel,
    tape: Tape,
    tokens: Array,
    positions: Array,
    logits: Array,
    number: int,
    *,
    placeholders: bool,
    fault: Fault | None = None,
) -> None:
    """Record the backward pass of one forward call. `number` is the micro-batch."""
    rec, family, precision = model.recorder, model.family, model.precision
    run = _Backward(model, number, placeholders, fault)
    count = tokens.shape[1] - 1
    slope = softmax(logits)
    np.put_along_axis(slope[:, :-1], tokens[:, 1:, None], np.take_along_axis(slope[:, :-1], tokens[:, 1:, None], -1) - 1.0, axis=-1)
    slope[:, -1] = 0.0
    received = precision.round(slope / np.float32(count))
    _loss_calls(model, tokens, logits)
    if model.root:
        rec.end_backward(rec.begin_backward("", family.class_of("ForCausalLM"), None, number), [received], [])
    hidden = run.linear("lm_head", received, tape.ends["final"], None)
    rec.end_backward(rec.begin_backward("model", family.class_of("Model"), None, number), [hidden], [])
    hidden = run.norm("model.norm", hidden, tape.ends["stream"], None)
    ends, run.late = run.late, []
    cos, sin = rope_tables(positions, model.size.head_dim, family.rope_theta, precision)
    for index in reversed(range(model.size.layers)):
        hidden = run.layer(index, hidden, tape, cos, sin)
    rec.end_backward(rec.begin_backward("model.embed_tokens", "Embedding", None, number), [hidden], [])
    run.late = ends
    embedding = model.weights["model.embed_tokens.weight"]
    gradient = np.zeros_like(embedding)
    np.add.at(gradient, tokens.reshape(-1), hidden.reshape(-1, hidden.shape[-1]))
    run.gradient("model.embed_tokens", "Embedding", {"weight": gradient})
    run.flush()
