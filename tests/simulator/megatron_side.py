"""A decoder the way Megatron-core runs it: [S, B, H] tensors, fused parallel linears, the residual added in the layer."""

from __future__ import annotations

import numpy as np

from tests.simulator.families import Family, Size
from tests.simulator.precision import Array, Precision
from tests.simulator.recorder import Recorder
from tests.simulator.train_side import rope_tables, rotate_half, silu, softmax
from tests.simulator.weights import Weights


class MegatronModel:
    """Runs and records forward calls of a dense model (the local layer spec: norms are modules)."""

    def __init__(self, family: Family, size: Size, precision: Precision, weights: Weights, recorder: Recorder) -> None:
        self.family, self.size, self.precision, self.weights, self.recorder = family, size, precision, weights, recorder

    def forward(self, tokens: Array, positions: Array) -> Array:
        """tokens, positions int64 [S]. Returns logits [S, 1, V]."""
        rec, weights = self.recorder, self.weights
        table = weights["model.embed_tokens.weight"]
        with rec.module("embedding.word_embeddings", "VocabParallelEmbedding", [tokens[None]], parameters={"weight": table}) as call:
            call.output = [table[tokens[None]]]
        hidden = table[tokens][:, None]
        for layer in range(self.size.layers):
            hidden = self._layer(layer, hidden, positions)
        hidden = self._norm("decoder.final_layernorm", "model.norm", hidden)
        return self._linear("output_layer", "ColumnParallelLinear", ["lm_head"], hidden)

    def _norm(self, path: str, name: str, values: Array) -> Array:
        p, weight = self.precision, self.weights[f"{name}.weight"]
        with self.recorder.module(path, "WrappedTorchNorm", [values], parameters={"weight": weight}) as call:
            mean = np.mean(values * values, axis=-1, keepdims=True, dtype=np.float32)
            output = p.round(p.round(values / np.sqrt(mean + np.float32(self.family.eps))) * weight)
            call.output = [output]
        return output

    def _linear(self, path: str, kind: str, names: list[str], values: Array) -> Array:
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        biases = [self.weights[f"{name}.bias"] for name in names if f"{name}.bias" in self.weights]
        parameters = {"weight": weight} | ({"bias": np.concatenate(biases)} if biases else {})
        with self.recorder.module(path, kind, [values], parameters=parameters) as call:
            product = values.reshape(-1, values.shape[-1]) @ weight.T
            output = self.precision.round(product + parameters["bias"] if biases else product).reshape(*values.shape[:-1], -1)
            call.output = [output, None]
        return output

    def _layer(self, layer: int, hidden: Array, positions: Array) -> Array:
        p, path, name = self.precision, f"decoder.layers.{layer}", f"model.layers.{layer}"
        with self.recorder.module(path, "TransformerLayer", [], {"hidden_states": hidden, "attention_mask": None}) as call:
            normed = self._norm(f"{path}.input_layernorm", f"{name}.input_layernorm", hidden)
            attended = self._attention(f"{path}.self_attention", f"{name}.self_attn", normed, positions)
            middle = p.round(hidden + attended)
            normed = self._norm(f"{path}.pre_mlp_layernorm", f"{name}.post_attention_layernorm", middle)
            with self.recorder.module(f"{path}.mlp", "MLP", [normed]) as mlp:
                parts = [f"{name}.mlp.{part}" for part in ("gate_proj", "up_proj")]
                gate, up = np.split(self._linear(f"{path}.mlp.linear_fc1", "ColumnParallelLinear", parts, normed), 2, axis=-1)
                product = p.round(p.round(silu(gate)) * up)
                fed = self._linear(f"{path}.mlp.linear_fc2", "RowParallelLinear", [f"{name}.mlp.down_proj"], product)
                mlp.output = [fed, None]
            output = p.round(middle + fed)
            call.output = [output, None]
        return output

    def _attention(self, path: str, name: str, normed: Array, positions: Array) -> Array:
        p, size = self.precision, self.size
        with self.recorder.module(path, "SelfAttention", [normed], {"attention_mask": None}) as call:
            parts = [f"{name}.{part}" for part in ("q_proj", "k_proj", "v_proj")]
            fused = self._linear(f"{path}.linear_qkv", "ColumnParallelLinear", parts, normed)
            split = np.split(fused, [size.q_width, size.q_width + size.kv_width], axis=-1)
            q, k, v = (part.reshape(len(part), 1, -1, size.head_dim) for part in split)
            if self.family.qk_norm:
                q = self._norm(f"{path}.q_layernorm", f"{name}.q_norm", q)
                k = self._norm(f"{path}.k_layernorm", f"{name}.k_norm", k)
            cos, sin = (table[:, None, None] for table in rope_tables(positions, size.head_dim, self.family.rope_theta, p))
            q, k = (p.round(p.round(part * cos) + p.round(rotate_half(part) * sin)) for part in (q, k))
            with self.recorder.module(f"{path}.core_attention", "DotProductAttention", [q, k, v, None]) as core:
                group = size.heads // size.kv_heads
                heads = [part[:, 0].transpose(1, 0, 2) for part in (q, np.repeat(k, group, axis=2), np.repeat(v, group, axis=2))]
                scores = heads[0] @ heads[1].transpose(0, 2, 1) * np.float32(size.head_dim**-0.5)
                allowed = np.tril(np.ones(scores.shape[-2:], dtype=bool))
                mixed = p.round(softmax(np.where(allowed, scores, np.float32(-3e38))) @ heads[2])
                context = np.ascontiguousarray(mixed.transpose(1, 0, 2)).reshape(len(q), 1, -1)
                core.output = [context]
            output = self._linear(f"{path}.linear_proj", "RowParallelLinear", [f"{name}.o_proj"], context)
            call.output = [output, None]
        return output
