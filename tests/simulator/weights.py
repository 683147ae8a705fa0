"""Random weights under Hugging Face names, rounded to the model's dtype.

Scales follow the usual initialisation (embedding 0.02, linears 1/sqrt(fan in), norms 1 ± 0.1, biases 0.1), so the residual stream
starts small and grows with depth. Options add what trained models have and random ones lack: norm weights with heavy channels,
large key biases, and a "massive activation", one channel of the first token that an early MLP drives to hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.simulator.families import Family, Size
from tests.simulator.precision import Array, Precision

Weights = dict[str, Array]
LAYER_LINEARS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


@dataclass(frozen=True)
class Character:
    """What a set of weights is like. `scale` multiplies all linears, `heavy` is the number of norm channels made 6 times larger,
    `massive` drives one channel of token 0, `key_bias` is the standard deviation of the key bias (Qwen2 has large ones)."""

    scale: float = 1.0
    heavy: int = 0
    massive: float = 0.0
    key_bias: float = 0.1
    embedding: float = 0.02


def make_weights(family: Family, size: Size, precision: Precision, seed: int, character: Character) -> Weights:
    rng = np.random.default_rng(seed)
    weights: Weights = {}

    def put(name: str, values: Array) -> None:
        weights[name] = precision.round(values.astype(np.float32))

    def norm(name: str, width: int) -> None:
        values = 1.0 + 0.1 * rng.standard_normal(width)
        if character.heavy:
            values[rng.choice(width, size=min(character.heavy, width), replace=False)] *= 6.0
        put(name, values)

    put("model.embed_tokens.weight", character.embedding * rng.standard_normal((size.vocabulary, size.hidden)))
    for layer in range(size.layers):
        prefix = f"model.layers.{layer}"
        norm(f"{prefix}.input_layernorm.weight", size.hidden)
        for part in layer_linears(family):
            rows, columns = linear_shape(part, size, family)
            put(f"{prefix}.{part}.weight", character.scale * rng.standard_normal((rows, columns)) / np.sqrt(columns))
            if family.qkv_bias and part.split(".")[1] in ("q_proj", "k_proj", "v_proj"):
                spread = character.key_bias if "k_proj" in part else 0.1
                put(f"{prefix}.{part}.bias", spread * rng.standard_normal(rows))
        if family.qk_norm:
            for part in ("q_norm", "k_norm"):
                put(f"{prefix}.self_attn.{part}.weight", 1.0 + 0.1 * rng.standard_normal(size.head_dim))
        if family.latent:
            for part in ("q_a_layernorm", "kv_a_layernorm"):
                norm(f"{prefix}.self_attn.{part}.weight", size.latent_width)
        if family.experts:
            width, hidden = size.expert_width, size.hidden
            put(f"{prefix}.mlp.experts.gate_up_proj", rng.standard_normal((family.experts, 2 * width, hidden)) / np.sqrt(hidden))
            put(f"{prefix}.mlp.experts.down_proj", rng.standard_normal((family.experts, hidden, width)) / np.sqrt(width))
        norm(f"{prefix}.post_attention_layernorm.weight", size.hidden)
    norm("model.norm.weight", size.hidden)
    put("lm_head.weight", character.scale * rng.standard_normal((size.vocabulary, size.hidden)) / np.sqrt(size.hidden))
    if character.massive:
        _drive_first_token(weights, size, precision, character.massive, rng)
    return weights


def layer_linears(family: Family) -> tuple[str, ...]:
    """The linears of a layer, in the order in which their weights are drawn."""
    attention = LATENT_LINEARS if family.latent else LAYER_LINEARS[:4]
    if not family.experts:
        return (*attention, *LAYER_LINEARS[4:])
    shared = [f"mlp.shared_experts.{part}" for part in ("gate_proj", "up_proj", "down_proj")] if family.shared else []
    return (*attention, "mlp.gate", *shared)


LATENT_LINEARS = ("self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj", "self_attn.o_proj")


def linear_shape(part: str, size: Size, family: Family) -> tuple[int, int]:
    """(output width, input width) of a layer's linear."""
    inner = size.expert_width if part.startswith("mlp.shared") else size.intermediate
    plain = size.head_dim - size.rotated
    return {
        "q_proj": (size.q_width, size.hidden),
        "k_proj": (size.kv_width, size.hidden),
        "v_proj": (size.kv_width, size.hidden),
        "o_proj": (size.hidden, size.q_width),
        "gate_proj": (inner, size.hidden),
        "up_proj": (inner, size.hidden),
        "down_proj": (size.hidden, inner),
        "gate": (family.experts, size.hidden),
        "q_a_proj": (size.latent_width, size.hidden),
        "q_b_proj": (size.q_width, size.latent_width),
        "kv_a_proj_with_mqa": (size.latent_width + size.rotated, size.hidden),
        "kv_b_proj": (size.heads * (plain + size.head_dim), size.latent_width),
    }[part.rsplit(".", 1)[1]]


def _drive_first_token(weights: Weights, size: Size, precision: Precision, height: float, rng: np.random.Generator) -> None:
    """Token 0 gets a loud embedding; one neuron of layer 1's MLP listens to it and writes `height` into one channel."""
    layer = min(1, size.layers - 1)
    direction = rng.standard_normal(size.hidden)
    direction /= np.linalg.norm(direction)
    embedding = weights["model.embed_tokens.weight"].copy()
    embedding[0] = direction * 6.0 * np.sqrt(size.hidden)
    weights["model.embed_tokens.weight"] = precision.round(embedding)
    neuron, channel = int(rng.integers(size.intermediate)), int(rng.integers(size.hidden))
    gain = 4.0
    for part in ("gate_proj", "up_proj"):
        name = f"model.layers.{layer}.mlp.{part}.weight"
        matrix = weights[name].copy()
        matrix[neuron] = direction * gain / np.sqrt(size.hidden) * 4.0
        weights[name] = precision.round(matrix)
    name = f"model.layers.{layer}.mlp.down_proj.weight"
    matrix = weights[name].copy()
    matrix[channel, neuron] = height / (gain * 4.0) ** 2
    weights[name] = precision.round(matrix)
