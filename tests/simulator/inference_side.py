"""The same decoder the way vLLM runs it: flat [T, H] tensors, fused projections, the residual carried apart and added in float32
inside the norm, one rounding per fused kernel, other summation orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.simulator.experts import engine_block
from tests.simulator.families import Family, Size
from tests.simulator.faults import Fault
from tests.simulator.latent import engine_attention
from tests.simulator.precision import Array, Precision, round_float8
from tests.simulator.recorder import Recorder, single
from tests.simulator.train_side import rope_tables, rotate_half, silu
from tests.simulator.weights import Weights

NO_FAULT = Fault("none")


@dataclass(frozen=True)
class Kernels:
    """Arithmetic of the inference engine, all of it honest.

    `split` cuts each matmul's inner dimension into that many float32 partial sums; with `partial_rounding` row-parallel partials are
    rounded before they are added (a split-K workspace or an all-reduce in the model's dtype). `norm_once`, `activation_once`,
    `rope_once`: one rounding a kernel instead of one an operation. `add_rounding` rounds the residual sum before the norm sees it.
    `block` is the number of keys an attention block takes, `probability_rounding` rounds probabilities before P·V.
    """

    split: int = 3
    partial_rounding: bool = False
    norm_once: bool = True
    activation_once: bool = True
    rope_once: bool = False
    add_rounding: bool = False
    block: int = 16
    probability_rounding: bool = False
    partial_outputs: bool = False  # row-parallel linears put out each rank's part of the sum; it is added up before the next norm


class InferenceModel:
    """Runs and records forward calls; one instance is one process."""

    def __init__(
        self,
        family: Family,
        size: Size,
        precision: Precision,
        weights: Weights,
        recorder: Recorder,
        kernels: Kernels,
        fault: Fault = NO_FAULT,
        tensor_ranks: int = 1,
        rank: int = 0,
    ) -> None:
        """`tensor_ranks`, `rank`: only for what a rank computes by itself, sums that a fault or the engine leaves as parts. `cache` holds
        keys and values of earlier passes over the same request by layer; None: every pass stands alone."""
        self.cache: dict[int, tuple[Array, Array]] | None = None
        self.tensor_ranks, self.rank = tensor_ranks, rank
        self.family, self.size, self.precision, self.weights = family, size, precision, weights
        self.recorder, self.kernels, self.fault = recorder, kernels, fault

    def forward(self, tokens: Array, positions: Array) -> Array:
        """tokens, positions int64 [T]. Returns the logits of the last row [1, V]."""
        rec, family, fault, weights = self.recorder, self.family, self.fault, self.weights
        with rec.module("model", family.class_of("Model"), [tokens, positions, None, None]) as model:
            embedding = weights["model.embed_tokens.weight"]
            with rec.module("model.embed_tokens", "VocabParallelEmbedding", [tokens], parameters={"weight": embedding}) as call:
                hidden = embedding[tokens]
                if fault.kind == "embedding_scale":
                    hidden = self.precision.round(hidden * np.float32(fault.size))
                rec.api("Functional.embedding", [tokens, embedding], [hidden])
                call.output = [hidden]
            residual: Array | None = None
            for layer in range(self.size.layers):
                hidden, residual = self._layer(layer, hidden, residual, positions)
            hidden, _ = self.norm("model.norm", hidden, residual, None)
            model.output = [hidden]
        last = np.ascontiguousarray(hidden[-1:])
        with rec.module("logits_processor", "LogitsProcessor", [None, last]) as call:
            logits = self.precision.round(self.product(last, weights["lm_head.weight"]))
            rec.api("Functional.linear", [last, weights["lm_head.weight"]], [logits])
            call.output = [logits]
        return logits

    # -- kernels -----------------------------------------------------------------------------------------------------
    def product(self, values: Array, weight: Array, *, partial: bool = False) -> Array:
        """values @ weight.T in float32 partial sums."""
        pieces = np.array_split(np.arange(values.shape[1]), max(1, min(self.kernels.split, values.shape[1] // 8)))
        total: Array | None = None
        for piece in reversed(pieces):
            part = values[:, piece[0] : piece[-1] + 1] @ weight[:, piece[0] : piece[-1] + 1].T
            if partial:
                part = self.precision.round(part)
            total = part if total is None else total + part
        assert total is not None
        return total

    def stain(self, values: Array, layer: int | None, part: str) -> Array:
        """NaN, Inf or a wrong factor at a module's output, where the fault says so."""
        fault = self.fault
        if fault.hits("nan", layer, part) or fault.hits("inf", layer, part):
            values = values.copy()
            values.reshape(-1)[values.size // 3] = np.nan if fault.kind == "nan" else np.inf
        if fault.hits("output_scale", layer, part):
            values = self.precision.round(values * np.float32(fault.size))
        if fault.hits("dropout", layer, part):
            keep = np.random.default_rng(17).random(values.shape) >= fault.size
            values = self.precision.round(values * keep / np.float32(1.0 - fault.size))
        return values

    def norm(self, path: str, hidden: Array, residual: Array | None, layer: int | None, kind: str = "RMSNorm") -> tuple[Array, Array]:
        """Fused add and RMSNorm over the last axis; returns (normed, new residual)."""
        rec, p, weight, fault = self.recorder, self.precision, self.weights[f"{path}.weight"], self.fault
        part = path.split(".", 3)[-1] if layer is not None else path
        args = [hidden] if residual is None else [hidden, residual]
        with rec.module(path, kind, list(args), parameters={"weight": weight}) as call:
            fed = hidden
            source = "self_attn" if part == "post_attention_layernorm" else "mlp"
            feeder = layer if source == "self_attn" else (self.size.layers if layer is None else layer) - 1
            if residual is not None and fault.kind == "residual_scale" and fault.layer == feeder and fault.part == source:
                fed = hidden * np.float32(fault.size)
            total = fed if residual is None else fed + residual
            total = p.round(total) if self.kernels.add_rounding else total
            eps = fault.size if fault.hits("eps", layer, part) else self.family.eps
            factor = weight + np.float32(1.0) if fault.hits("norm_plus_one", layer, part) else weight
            with np.errstate(invalid="ignore", over="ignore"):
                square = total * total
                mean = np.sum(square[..., ::-1], axis=-1, keepdims=True, dtype=np.float32) / np.float32(square.shape[-1])
                shifted = mean + np.float32(eps)
                inverse = (np.float32(1.0) / np.sqrt(shifted)).astype(np.float32)
                scaled = total * inverse
                normed = p.round(scaled * factor) if self.kernels.norm_once else p.round(p.round(scaled) * factor)
            normed = self.stain(normed, layer, part)
            new_residual = p.round(total)
            rec.quiet("Tensor.float")
            if residual is not None:
                rec.quiet("Tensor.float")
                rec.api("Tensor.__add__", [single(hidden), single(residual)], [single(total)])
                rec.quiet("Tensor.to")
            rec.api("Tensor.pow", [single(total), 2], [single(square)])
            rec.api("Tensor.mean", [single(square), -1], [single(mean)], {"keepdim": True})
            rec.api("Tensor.__add__", [single(mean), eps], [single(shifted)])
            rec.api("Torch.rsqrt", [single(shifted)], [single(inverse)])
            rec.api("Tensor.__mul__", [single(total), single(inverse)], [single(scaled)])
            rec.quiet("Tensor.to")
            rec.api("Tensor.__mul__", [single(scaled) if self.kernels.norm_once else p.round(scaled), weight], [normed])
            call.output = [normed] if residual is None else [normed, new_residual]
        return normed, new_residual

    def linear(self, path: str, kind: str, names: list[str], values: Array, layer: int, part: str, *, row: bool = False) -> Array:
        rec, weights, fault = self.recorder, self.weights, self.fault
        weight = np.concatenate([weights[f"{name}.weight"] for name in names]) if len(names) > 1 else weights[f"{names[0]}.weight"]
        biases = [weights[f"{name}.bias"] for name in names if f"{name}.bias" in weights]
        bias = np.concatenate(biases) if biases else None
        parameters = {"weight": weight} | ({} if bias is None else {"bias": bias})
        with rec.module(path, kind, [values], parameters=parameters) as call:
            left, right = values, weight
            if fault.hits("low_precision", layer, part):
                left, right = round_float8(values), round_float8(weight)
            with np.errstate(invalid="ignore", over="ignore"):
                product = self.product(left, right, partial=row and self.kernels.partial_rounding)
            if bias is not None and not fault.hits("bias_skipped", layer, part):
                product = product + bias
            output = self.stain(self.precision.round(product), layer, part)
            rec.api("Functional.linear", [values, weight] + ([] if bias is None else [bias]), [output])
            call.output = [output, None]
            if row and self.tensor_ranks > 1:
                cut = [np.array_split(whole, self.tensor_ranks, axis=-1) for whole in (left, right)]
                partial = [self.precision.round(one @ other.T) for one, other in zip(*cut, strict=True)]
                unreduced = "unreduced_attention" if part == "self_attn.o_proj" else "unreduced_mlp"
                if fault.hits(unreduced, layer):
                    output = partial[self.rank]
                    call.output = [output, None]
                elif self.kernels.partial_outputs:
                    call.output = [partial, None]
        return output

    # -- modules -----------------------------------------------------------------------------------------------------
    def _layer(self, layer: int, hidden: Array, residual: Array | None, positions: Array) -> tuple[Array, Array]:
        rec, path = self.recorder, f"model.layers.{layer}"
        with rec.module(path, self.family.class_of("DecoderLayer"), [positions, hidden, residual]) as call:
            normed, stream = self.norm(f"{path}.input_layernorm", hidden, residual, layer)
            attended = self._attention(layer, normed, positions)
            normed, stream = self.norm(f"{path}.post_attention_layernorm", attended, stream, layer)
            fed = engine_block(self, layer, normed) if self.family.experts else self._mlp(layer, normed)
            call.output = [fed, stream]
        return fed, stream

    def _attention(self, layer: int, normed: Array, positions: Array) -> Array:
        rec, size, family, fault = self.recorder, self.size, self.family, self.fault
        path = f"model.layers.{layer}.self_attn"
        with rec.module(path, family.class_of("Attention"), [], {"positions": positions, "hidden_states": normed}) as call:
            if family.latent:
                attended = engine_attention(self, layer, normed, positions)
                names = [f"{path}.o_proj"]
                output = self.linear(names[0], "RowParallelLinear", names, attended, layer, "self_attn.o_proj", row=True)
                call.output = [output]
                return output
            names = [f"{path}.{part}" for part in ("q_proj", "k_proj", "v_proj")]
            fused = self.linear(f"{path}.qkv_proj", "QKVParallelLinear", names, normed, layer, "self_attn.qkv_proj")
            rec.quiet("Tensor.split")
            q, k, v = np.split(fused, [size.q_width, size.q_width + size.kv_width], axis=-1)
            if family.qk_norm and not fault.hits("qk_norm_missing", layer):
                q, k = self._head_norm(f"{path}.q_norm", q, layer), self._head_norm(f"{path}.k_norm", k, layer)
            shared = "model.layers.0.self_attn.rotary_emb"
            with rec.module(shared, "RotaryEmbedding", [positions, q, k]) as rotary:
                rec.quiet("Tensor.unsqueeze", "Tensor.chunk")
                q, k = self.rotate(q, positions, layer), self.rotate(k, positions, layer)
                rotary.output = [q, k]
            with rec.module(f"{path}.attn", "Attention", [q, k, v]) as attn:
                attended = self.stain(self.attend(q, k, v, layer), layer, "self_attn.attn")
                attn.output = [attended]
            output = self.linear(f"{path}.o_proj", "RowParallelLinear", [f"{path}.o_proj"], attended, layer, "self_attn.o_proj", row=True)
            call.output = [output]
        return output

    def _head_norm(self, path: str, values: Array, layer: int) -> Array:
        shaped = values.reshape(values.shape[0], -1, self.size.head_dim)
        if not self.fault.hits("qk_norm_identity", layer):
            return self.norm(path, shaped, None, layer)[0].reshape(values.shape)
        with self.recorder.module(path, "RMSNorm", [shaped], parameters={"weight": self.weights[f"{path}.weight"]}) as call:
            call.output = [shaped]
        return values

    def rotate(self, values: Array, positions: Array, layer: int, dim: int | None = None) -> Array:
        rec, p, fault = self.recorder, self.precision, self.fault
        dim = self.size.head_dim if dim is None else dim
        theta = fault.size if fault.hits("rope_theta", layer) else self.family.rope_theta
        if fault.hits("rope_missing", layer):
            return values
        cos, sin = rope_tables(positions, dim, theta, p)
        shaped = values.reshape(values.shape[0], -1, dim)
        if fault.hits("rope_interleaved", layer):
            order = np.concatenate([np.arange(0, dim, 2), np.arange(1, dim, 2)])
            turned = self._turn(shaped[..., order], cos[:, None], sin[:, None])
            output = np.empty_like(turned)
            output[..., order] = turned
        else:
            output = self._turn(shaped, cos[:, None], sin[:, None])
        if rec.mix:
            self._rotary_calls(np.split(shaped, 2, axis=-1), cos[:, None, : dim // 2], sin[:, None, : dim // 2])
        return output.reshape(values.shape)

    def _rotary_calls(self, halves: list[Array], cos: Array, sin: Array) -> None:
        rec, p = self.recorder, self.precision
        rec.quiet("Tensor.chunk")
        for name, one, other in (("Tensor.__sub__", *halves), ("Tensor.__add__", *reversed(halves))):
            direct, crossed = p.round(one * cos), p.round(other * sin)
            rec.api("Tensor.__mul__", [one, cos], [direct])
            rec.api("Tensor.__mul__", [other, sin], [crossed])
            rec.api(name, [direct, crossed], [p.round(direct - crossed if name == "Tensor.__sub__" else direct + crossed)])
        rec.quiet("Torch.cat", "Tensor.reshape")

    def _turn(self, values: Array, cos: Array, sin: Array) -> Array:
        p = self.precision
        if self.kernels.rope_once:
            return p.round(values * cos + rotate_half(values) * sin)
        return p.round(p.round(values * cos) + p.round(rotate_half(values) * sin))

    def attend(self, q: Array, k: Array, v: Array, layer: int) -> Array:
        """Online softmax over blocks of keys, float32 inside."""
        rec, p, size, fault = self.recorder, self.precision, self.size, self.fault
        count, dim = q.shape[0], size.head_dim
        if self.cache is not None:
            if layer in self.cache:
                k, v = (np.concatenate([before, part]) for before, part in zip(self.cache[layer], (k, v), strict=True))
            self.cache[layer] = (k, v)
        length = k.shape[0]
        heads = [np.ascontiguousarray(part.reshape(len(part), -1, dim).transpose(1, 0, 2)) for part in (q, k, v)]
        mapping = np.arange(size.heads) // (size.heads // heads[1].shape[0])
        if fault.hits("kv_mapping", layer):
            mapping = np.arange(size.heads) % size.kv_heads
        wide_k, wide_v = heads[1][mapping], heads[2][mapping]
        scale = np.float32(dim**-0.5) * np.float32(fault.size if fault.hits("softmax_scale", layer) else 1.0)
        rows, block = np.arange(length - count, length)[:, None], self.kernels.block
        peak = np.full((size.heads, count, 1), -np.inf, dtype=np.float32)
        weight = np.zeros((size.heads, count, 1), dtype=np.float32)
        total = np.zeros((size.heads, count, dim), dtype=np.float32)
        for start in range(0, length, block):
            columns = np.arange(start, min(start + block, length))[None]
            allowed = np.ones((count, columns.size), dtype=bool) if fault.hits("mask_missing", layer) else columns <= rows
            if fault.hits("window", layer):
                allowed = allowed & (columns > rows - int(fault.size))
            with np.errstate(invalid="ignore", over="ignore"):
                scores = (heads[0] @ wide_k[:, start : start + block].transpose(0, 2, 1)) * scale
                scores = np.where(allowed, scores, np.float32(-np.inf))
                higher = np.maximum(peak, scores.max(axis=-1, keepdims=True))
                floor = np.where(np.isfinite(higher), higher, np.float32(0.0))
                powers = np.exp(scores - floor)
                fading = np.exp(np.where(np.isfinite(peak), peak, -np.inf) - floor)
                mixed = p.round(powers) if self.kernels.probability_rounding else powers
                weight = weight * fading + powers.sum(axis=-1, keepdims=True)
                total = total * fading + mixed @ wide_v[:, start : start + block]
            peak = higher
        with np.errstate(invalid="ignore", divide="ignore"):
            output = p.round((total / weight).transpose(1, 0, 2).reshape(count, -1))
        rec.quiet("Tensor.transpose", "Tensor.transpose", "Tensor.transpose")
        rec.api(
            "Functional.scaled_dot_product_attention",
            [part[None] for part in heads],
            [output.reshape(1, count, size.heads, dim).transpose(0, 2, 1, 3)],
            {"is_causal": True, "enable_gqa": True},
        )
        rec.quiet("Tensor.transpose", "Tensor.reshape", "Torch.cat")
        return output

    def _mlp(self, layer: int, normed: Array) -> Array:
        rec, p, fault, kernels = self.recorder, self.precision, self.fault, self.kernels
        path = f"model.layers.{layer}.mlp"
        with rec.module(path, self.family.class_of("MLP"), [normed]) as call:
            names = [f"{path}.gate_proj", f"{path}.up_proj"]
            fused = self.linear(f"{path}.gate_up_proj", "MergedColumnParallelLinear", names, normed, layer, "mlp.gate_up_proj")
            with rec.module(f"{path}.act_fn", "SiluAndMul", [fused]) as act:
                gate, up = np.split(fused, 2, axis=-1)
                if fault.hits("gate_up_swapped", layer):
                    gate, up = up, gate
                wrong = fault.hits("gelu", layer)
                active = gelu(gate) if wrong else silu(gate)
                product = p.round(active * up) if kernels.activation_once else p.round(p.round(active) * up)
                product = self.stain(product, layer, "mlp.act_fn")
                rec.api("Functional.gelu" if wrong else "Functional.silu", [gate], [p.round(active)])
                rec.api("Tensor.__mul__", [p.round(active), up], [product])
                act.output = [product]
            output = self.linear(f"{path}.down_proj", "RowParallelLinear", [f"{path}.down_proj"], product, layer, "mlp.down_proj", row=True)
            call.output = [output]
        return output


def gelu(values: Array) -> Array:
    """The tanh form of GELU."""
    cube: Any = values * values * values
    return (0.5 * values * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (values + 0.044715 * cube)))).astype(np.float32)
