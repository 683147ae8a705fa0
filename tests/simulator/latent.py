"""Multi-head latent attention in both conventions: query, key and value go through a narrow latent; part of a head is rotated, and the
rotated key is one for all heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.simulator.families import Size
from tests.simulator.precision import Array

if TYPE_CHECKING:
    from tests.simulator.inference_side import InferenceModel
    from tests.simulator.train_side import TrainModel


def heads_of(query: Array, key_value: Array, rotated_query: Array, rotated_key: Array, size: Size) -> tuple[Array, Array, Array]:
    """q, k, v of shape [T, heads, head_dim] from the latent's projections [T, …] and the rotated parts [T, heads or 1, rotated]."""
    plain, count = size.head_dim - size.rotated, query.shape[0]
    q = query.reshape(count, size.heads, size.head_dim).copy()
    q[..., plain:] = rotated_query
    parts = key_value.reshape(count, size.heads, plain + size.head_dim)
    k = np.concatenate([parts[..., :plain], np.repeat(rotated_key, size.heads, axis=1)], axis=-1)
    return q, k, np.ascontiguousarray(parts[..., plain:])


def train_heads(model: TrainModel, path: str, normed: Array, cos: Array, sin: Array) -> list[Array]:
    """q, k, v of shape [B, heads, S, head_dim] before attention."""
    size = model.size
    flat = normed.shape[:2]
    latent = model.norm(f"{path}.q_a_layernorm", model.linear(f"{path}.q_a_proj", normed))
    query = model.linear(f"{path}.q_b_proj", latent)
    narrow = model.linear(f"{path}.kv_a_proj_with_mqa", normed)
    inner = model.norm(f"{path}.kv_a_layernorm", np.ascontiguousarray(narrow[..., : size.latent_width]))
    key_value = model.linear(f"{path}.kv_b_proj", inner)
    count = flat[0] * flat[1]
    to_turn = query.reshape(*flat, size.heads, size.head_dim)[..., size.head_dim - size.rotated :].transpose(0, 2, 1, 3)
    shared = narrow[..., size.latent_width :][:, None]
    turned, key = model.rotate(to_turn, cos, sin), model.rotate(shared, cos, sin)
    q, k, v = heads_of(
        query.reshape(count, -1),
        key_value.reshape(count, -1),
        turned.transpose(0, 2, 1, 3).reshape(count, size.heads, -1),
        key.transpose(0, 2, 1, 3).reshape(count, 1, -1),
        size,
    )
    return [part.reshape(*flat, size.heads, size.head_dim).transpose(0, 2, 1, 3) for part in (q, k, v)]


def engine_attention(model: InferenceModel, layer: int, normed: Array, positions: Array) -> Array:
    """The attention result [T, heads · head_dim] before the output projection."""
    size, rec = model.size, model.recorder
    path = f"model.layers.{layer}.self_attn"
    names = [f"{path}.q_a_proj", f"{path}.kv_a_proj_with_mqa"]
    fused = model.linear(f"{path}.fused_qkv_a_proj", "MergedReplicatedLinear", names, normed, layer, "self_attn.fused_qkv_a_proj")
    latent, narrow = np.split(fused, [size.latent_width], axis=-1)
    latent = model.norm(f"{path}.q_a_layernorm", np.ascontiguousarray(latent), None, layer)[0]
    names = [f"{path}.q_b_proj"]
    query = model.linear(names[0], "ColumnParallelLinear", names, latent, layer, "self_attn.q_b_proj")
    inner = model.norm(f"{path}.kv_a_layernorm", np.ascontiguousarray(narrow[:, : size.latent_width]), None, layer)[0]
    to_turn = query.reshape(len(query), size.heads, size.head_dim)[..., size.head_dim - size.rotated :]
    shared = narrow[:, None, size.latent_width :]
    with rec.module("model.layers.0.self_attn.rotary_emb", "DeepseekScalingRotaryEmbedding", [positions, to_turn, shared]) as call:
        turned, key = (model.rotate(part, positions, layer, size.rotated) for part in (to_turn, shared))
        call.output = [turned, key]
    names = [f"{path}.kv_b_proj"]
    with rec.module(f"{path}.mla_attn", "Attention", [query, inner, key]) as call:
        key_value = model.linear(names[0], "ColumnParallelLinear", names, inner, layer, "self_attn.kv_b_proj")
        q, k, v = heads_of(query, key_value, turned.reshape(len(query), size.heads, -1), key.reshape(len(query), 1, -1), size)
        flat = [part.reshape(len(query), -1) for part in (q, k, v)]
        attended = model.stain(model.attend(*flat, layer), layer, "self_attn.attn")
        call.output = [attended]
    return attended
