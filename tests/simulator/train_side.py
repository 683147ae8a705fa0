"""A decoder the way Hugging Face transformers runs it in training: [B, S, H] tensors, separate projections, the residual added and
rounded before each norm, RMSNorm cast before it is multiplied by its weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.simulator.experts import train_block
from tests.simulator.families import Family, Size
from tests.simulator.latent import train_heads
from tests.simulator.precision import Array, Precision
from tests.simulator.recorder import Recorder, Tagged, single
from tests.simulator.weights import Weights


@dataclass(frozen=True)
class TrainStyle:
    """How this version of the library calls its modules. `attention` is `fused` (float32 inside, one rounding) or `eager` (scores
    and probabilities rounded). `recompute` runs a layer's modules again in the backward pass (gradient checkpointing). `extra_ops`
    lists layers that make two API calls more, as a debugging hook would."""

    wrapping: str = "plain"
    attention: str = "fused"
    layer_keyword: bool = False
    attention_positional: bool = False
    rotary_keyword: bool = False
    cache_name: str = "cache"
    recompute: bool = False
    extra_ops: tuple[int, ...] = ()


@dataclass
class Tape:
    """What the backward pass needs: layer → name → array, the ends of the network, and a call a layer that runs it again."""

    layers: list[dict[str, Array]] = field(default_factory=list)
    ends: dict[str, Array] = field(default_factory=dict)
    again: list[Callable[[], object]] = field(default_factory=list)


def rope_tables(positions: Array, dim: int, theta: float, precision: Precision) -> tuple[Array, Array]:
    """cos and sin of shape positions.shape + [dim], in the model's dtype."""
    inverse = (1.0 / theta ** (np.arange(0, dim, 2, dtype=np.float32) / dim)).astype(np.float32)
    angles = positions[..., None].astype(np.float32) * inverse
    full = np.concatenate([angles, angles], axis=-1)
    return precision.round(np.cos(full)), precision.round(np.sin(full))


def rotate_half(values: Array) -> Array:
    half = values.shape[-1] // 2
    return np.concatenate([-values[..., half:], values[..., :half]], axis=-1)


def silu(values: Array) -> Array:
    with np.errstate(over="ignore"):
        return (values / (1.0 + np.exp(-values))).astype(np.float32)


def softmax(scores: Array) -> Array:
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)


class TrainModel:
    """Runs and records forward calls; one instance is one process."""

    def __init__(
        self, family: Family, size: Size, precision: Precision, weights: Weights, recorder: Recorder, style: TrainStyle, root: bool
    ) -> None:
        self.family, self.size, self.precision, self.weights = family, size, precision, weights
        self.recorder, self.style, self.root = recorder, style, root
        self.recomputing = False

    def forward(self, tokens: Array, positions: Array, keep_mask: Array | None, tape: Tape | None = None) -> Array:
        """tokens, positions int64 [B, S]; keep_mask int64 [B, S] with 0 on padding, or None. Returns logits [B, S, V]."""
        rec, family, style = self.recorder, self.family, self.style
        shared = {"attention_mask": keep_mask, "position_ids": positions}
        if not self.root:
            return self._forward(tokens, positions, keep_mask, tape)
        with rec.module(
            "",
            family.class_of("ForCausalLM"),
            [],
            {"input_ids": tokens, "position_ids": positions, "attention_mask": shared["attention_mask"], "use_cache": False},
        ) as call:
            logits = self._forward(tokens, positions, keep_mask, tape)
            call.output = [{"loss": None, "logits": logits, style.cache_name: None, "hidden_states": None, "attentions": None}]
        return logits

    def _forward(self, tokens: Array, positions: Array, keep_mask: Array | None, tape: Tape | None) -> Array:
        rec, family, weights, style = self.recorder, self.family, self.weights, self.style
        mask = None if keep_mask is None else _full_mask(keep_mask)
        with rec.module(
            "model",
            family.class_of("Model"),
            [],
            {
                "input_ids": tokens,
                "attention_mask": keep_mask,
                "position_ids": positions,
                style.cache_name: None,
                "inputs_embeds": None,
                "use_cache": False,
            },
        ) as model:
            embedding = weights["model.embed_tokens.weight"]
            with rec.module("model.embed_tokens", "Embedding", [tokens], parameters={"weight": embedding}) as call:
                hidden = embedding[tokens]
                rec.api("Functional.embedding", [tokens, embedding, None, None, 2.0, False, False], [hidden])
                call.output = [hidden]
            if mask is None:
                self._mask_calls(positions)
            args, kwargs = ([hidden], {"position_ids": positions}) if style.rotary_keyword else ([hidden, positions], {})
            with rec.module("model.rotary_emb", family.class_of("RotaryEmbedding"), args, kwargs) as call:
                width = self.size.rotated if family.latent else self.size.head_dim
                cos, sin = rope_tables(positions, width, family.rope_theta, self.precision)
                self._rotary_calls(positions)
                tables = [Tagged(cos, grad=False), Tagged(sin, grad=False)]
                call.output = list(tables)
            for layer in range(self.size.layers):
                hidden = self._layer(layer, hidden, positions, cos, sin, tables, mask, tape)
            if tape is not None:
                tape.ends["stream"] = hidden
            hidden = self.norm("model.norm", hidden)
            model.output = [{"last_hidden_state": hidden, style.cache_name: None, "hidden_states": None, "attentions": None}]
        if tape is not None:
            tape.ends["final"] = hidden
        return self.linear("lm_head", hidden)

    def _mask_calls(self, positions: Array) -> None:
        """API calls with which the library finds out whether several prompts are packed in a row."""
        rec, first = self.recorder, np.zeros((positions.shape[0], 1), dtype=np.int64)
        steps = np.diff(positions, prepend=first - 1)
        jumps = steps != 1
        packed = jumps.cumsum(axis=-1)
        single_row = packed[:, -1] == 0
        rec.api("Tensor.__sub__", [first, 1], [first - 1])
        rec.api("Torch.diff", [positions], [steps], {"prepend": first - 1, "dim": -1})
        rec.api("Tensor.__ne__", [steps, 1], [jumps])
        rec.api("Tensor.cumsum", [jumps, -1], [packed])
        rec.api("Tensor.__eq__", [packed[:, -1], 0], [single_row])
        rec.api("Tensor.all", [single_row], [np.array(single_row.all())])
        rec.quiet("Tensor.__bool__")

    def _rotary_calls(self, positions: Array) -> None:
        rec, dim = self.recorder, self.size.head_dim
        inverse = (1.0 / self.family.rope_theta ** (np.arange(0, dim, 2, dtype=np.float32) / dim)).astype(np.float32)
        places = positions[..., None].astype(np.float32)
        angles = places * inverse
        full = np.concatenate([angles, angles], axis=-1)
        rec.quiet("Tensor.float", "Tensor.to")
        rec.api("Tensor.__mul__", [single(places, False), single(inverse, False)], [single(angles, False)])
        rec.quiet("Torch.cat")
        for name, table in (("cos", np.cos(full)), ("sin", np.sin(full))):
            rec.api(f"Tensor.{name}", [single(full, False)], [single(table, False)])
            rec.api("Tensor.__mul__", [single(table, False), 1.0], [single(table, False)])
        rec.quiet("Tensor.to", "Tensor.to")

    def _again(self, body: Callable[[], object]) -> None:
        """A recomputation stops as soon as the last saved tensor is there, so its last modules have no output."""
        self.recomputing = True
        body()
        self.recomputing = False

    def norm(self, path: str, values: Array) -> Array:
        rec, p, weight, eps = self.recorder, self.precision, self.weights[f"{path}.weight"], self.family.eps
        with rec.module(path, self.family.class_of("RMSNorm"), [values], parameters={"weight": weight}) as call:
            square = values * values
            mean = np.mean(square, axis=-1, keepdims=True, dtype=np.float32)
            shifted = mean + np.float32(eps)
            inverse = (1.0 / np.sqrt(shifted)).astype(np.float32)
            scaled = values * inverse
            rounded = p.round(scaled)
            output = p.round(weight * rounded)
            rec.quiet("Tensor.to")
            rec.api("Tensor.pow", [single(values), 2], [single(square)])
            rec.api("Tensor.mean", [single(square), -1], [single(mean)], {"keepdim": True})
            rec.api("Tensor.__add__", [single(mean), float(eps)], [single(shifted)])
            rec.api("Torch.rsqrt", [single(shifted)], [single(inverse)])
            rec.api("Tensor.__mul__", [single(values), single(inverse)], [single(scaled)])
            rec.quiet("Tensor.to")
            rec.api("Tensor.__mul__", [weight, rounded], [output])
            call.output = [output]
        return output

    def linear(self, path: str, values: Array) -> Array:
        rec, weight, bias = self.recorder, self.weights[f"{path}.weight"], self.weights.get(f"{path}.bias")
        with rec.module(path, "Linear", [values], parameters={"weight": weight} | ({} if bias is None else {"bias": bias})) as call:
            product = values.reshape(-1, values.shape[-1]) @ weight.T
            output = self.precision.round(product if bias is None else product + bias).reshape(*values.shape[:-1], -1)
            rec.api("Functional.linear", [values, weight, bias], [output])
            call.output = [None if self.recomputing and path.endswith("down_proj") else output]
        return output

    def _layer(
        self,
        layer: int,
        hidden: Array,
        positions: Array,
        cos: Array,
        sin: Array,
        tables: list[Tagged],
        mask: Array | None,
        tape: Tape | None,
    ) -> Array:
        rec, p, family, style = self.recorder, self.precision, self.family, self.style
        path = f"model.layers.{layer}"
        kept: dict[str, Array] = {"in": hidden}
        kwargs: dict[str, Any] = {
            "attention_mask": mask,
            "position_embeddings": tables,
            "position_ids": positions,
            style.cache_name: None,
            "use_cache": False,
        }
        args: list[Any] = [hidden]
        if style.layer_keyword:
            args, kwargs = [], {"hidden_states": hidden, **kwargs}
        with rec.module(path, family.class_of("DecoderLayer"), args, kwargs) as call:

            def body(kept: dict[str, Array]) -> tuple[Array, Array]:
                normed = kept["normed"] = self.norm(f"{path}.input_layernorm", hidden)
                if layer in style.extra_ops:
                    rec.api("Tensor.__add__", [normed, 0.0], [normed])
                    rec.api("Tensor.__mul__", [normed, 1.0], [normed])
                attended = self._attention(f"{path}.self_attn", normed, positions, cos, sin, tables, mask, kept)
                middle = kept["middle"] = p.round(hidden + attended)
                rec.api("Tensor.__add__", [hidden, attended], [middle])
                normed = kept["normed2"] = self.norm(f"{path}.post_attention_layernorm", middle)
                if family.experts:
                    return middle, train_block(self, f"{path}.mlp", normed)
                return middle, self._mlp(f"{path}.mlp", normed, kept)

            middle, fed = body(kept)
            output = p.round(middle + fed)
            rec.api("Tensor.__add__", [middle, fed], [output])
            call.output = [output]
        if tape is not None:
            tape.layers.append(kept)
            tape.again.append(lambda: self._again(lambda: body({})))
        return output

    def _attention(
        self,
        path: str,
        normed: Array,
        positions: Array,
        cos: Array,
        sin: Array,
        tables: list[Tagged],
        mask: Array | None,
        kept: dict[str, Array],
    ) -> Array:
        rec, size, family, style = self.recorder, self.size, self.family, self.style
        batch, length = normed.shape[:2]
        kwargs: dict[str, Any] = {
            "hidden_states": normed,
            "attention_mask": mask,
            "position_ids": positions,
            style.cache_name: None,
            "use_cache": False,
            "position_embeddings": tables,
        }
        args: list[Any] = []
        if style.attention_positional:
            args = [kwargs.pop("hidden_states")]
        with rec.module(path, family.class_of("Attention"), args, kwargs) as call:

            def heads(part: str, count: int) -> Array:
                values = self.linear(f"{path}.{part}_proj", normed)
                kept[f"{part}_linear"] = values
                values = values.reshape(batch, length, count, size.head_dim)
                if family.qk_norm and part != "v":
                    values = self.norm(f"{path}.{part}_norm", values)
                rec.quiet("Tensor.transpose")
                return values.transpose(0, 2, 1, 3)

            if family.latent:
                q, k, v = train_heads(self, path, normed, cos, sin)
            else:
                q, k, v = heads("q", size.heads), heads("k", size.kv_heads), heads("v", size.kv_heads)
                kept["q_plain"], kept["k_plain"], kept["v"] = q, k, v
                rec.quiet("Tensor.unsqueeze", "Tensor.unsqueeze")
                q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
            attended = self._attend(q, k, v, mask, kept)
            rec.quiet("Tensor.reshape", "Tensor.transpose", "Tensor.reshape")
            joined = kept["joined"] = attended.transpose(0, 2, 1, 3).reshape(batch, length, -1)
            output = self.linear(f"{path}.o_proj", joined)
            call.output = [output, None]
        return output

    def rotate(self, values: Array, cos: Array, sin: Array) -> Array:
        rec, p = self.recorder, self.precision
        cos, sin = cos[:, None], sin[:, None]
        direct, turned = p.round(values * cos), rotate_half(values)
        crossed = p.round(turned * sin)
        output = p.round(direct + crossed)
        rec.api("Tensor.__mul__", [values, Tagged(cos, grad=False)], [direct])
        rec.quiet("Torch.cat")
        rec.api("Tensor.__mul__", [turned, Tagged(sin, grad=False)], [crossed])
        rec.api("Tensor.__add__", [direct, crossed], [output])
        return output

    def _attend(self, q: Array, k: Array, v: Array, mask: Array | None, kept: dict[str, Array]) -> Array:
        rec, p, size = self.recorder, self.precision, self.size
        group = q.shape[1] // k.shape[1]
        wide_k, wide_v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scale = np.float32(size.head_dim**-0.5)
        length = q.shape[2]
        allowed = np.tril(np.ones((length, length), dtype=bool)) if mask is None else mask
        eager = self.style.attention == "eager"
        scores = q @ wide_k.transpose(0, 1, 3, 2)
        scores = p.round(p.round(scores) * scale) if eager else scores * scale
        probabilities = softmax(np.where(allowed, scores, np.float32(-3e38)))
        probabilities = p.round(probabilities) if eager else probabilities
        output = p.round(probabilities @ wide_v)
        kept["q"], kept["k"], kept["probabilities"] = q, k, probabilities
        if eager:
            rec.api("Torch.matmul", [q, wide_k.transpose(0, 1, 3, 2)], [scores])
            rec.api("Functional.softmax", [scores], [single(probabilities)], {"dim": -1})
            rec.api("Torch.matmul", [probabilities, wide_v], [output])
        else:
            rec.api(
                "Functional.scaled_dot_product_attention",
                [q, k, v],
                [output],
                {"attn_mask": mask, "dropout_p": 0.0, "scale": float(scale), "is_causal": mask is None, "enable_gqa": True},
            )
        return output

    def _mlp(self, path: str, normed: Array, kept: dict[str, Array]) -> Array:
        rec, p = self.recorder, self.precision
        with rec.module(path, self.family.class_of("MLP"), [normed]) as call:
            gate = kept["gate"] = self.linear(f"{path}.gate_proj", normed)
            with rec.module(f"{path}.act_fn", self.family.activation_class, [gate]) as act:
                active = kept["active"] = p.round(silu(gate))
                rec.api("Functional.silu", [gate], [active])
                act.output = [active]
            up = kept["up"] = self.linear(f"{path}.up_proj", normed)
            product = kept["product"] = p.round(active * up)
            rec.api("Tensor.__mul__", [active, up], [product])
            output = self.linear(f"{path}.down_proj", product)
            call.output = [None if self.recomputing else output]
        return output


def _full_mask(keep: Array) -> Array:
    """bool [B, 1, S, S]: causal, and keys that are no padding; a padded query looks at itself."""
    length = keep.shape[1]
    causal = np.tril(np.ones((length, length), dtype=bool))
    allowed = causal[None] & (keep[:, None, :] > 0)
    return (allowed | np.eye(length, dtype=bool)[None])[:, None]
