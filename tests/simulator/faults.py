"""Faults on the inference side, and the canonical modules at which each first shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.simulator.families import Family, Size
from tests.simulator.precision import Array, Precision
from tests.simulator.weights import Weights

FUSED = {
    "q_proj": "self_attn.qkv_proj",
    "k_proj": "self_attn.qkv_proj",
    "v_proj": "self_attn.qkv_proj",
    "gate_proj": "mlp.gate_up_proj",
    "up_proj": "mlp.gate_up_proj",
    "q_a_proj": "self_attn.fused_qkv_a_proj",
    "kv_a_proj_with_mqa": "self_attn.fused_qkv_a_proj",
}
WEIGHT_KINDS = (
    "weight_noise",
    "weight_scaled",
    "weight_transposed",
    "weight_stale",
    "weight_zeroed",
    "weight_swapped",
    "bias_noise",
    "bias_removed",
)


@dataclass(frozen=True)
class Fault:
    """One fault. `layer` None = every layer (or outside the layers); `part` is a module inside the layer (`mlp.down_proj`) or a
    whole path (`model.norm`); `size` is the kind's own number."""

    kind: str
    size: float = 0.0
    layer: int | None = None
    part: str = ""

    @property
    def first_layer(self) -> int:
        return self.layer or 0

    @property
    def is_weight(self) -> bool:
        return self.kind in WEIGHT_KINDS

    def hits(self, kind: str, layer: int | None = None, part: str = "") -> bool:
        """Whether this fault is of `kind` and strikes `part` of `layer`."""
        return self.kind == kind and self.layer in (None, layer) and (not self.part or self.part == part)


# kind → (places inside a layer where it first shows, best first). The first one is where its size is measured.
ATTENTION = ("self_attn.attn", "self_attn.mla_attn", "self_attn", "self_attn.o_proj")
ROTATED = ("self_attn.attn", "self_attn.mla_attn", "self_attn.rotary_emb", "self_attn", "self_attn.o_proj")
EXPERTS = ("mlp.experts", "mlp")
PLACES: dict[str, tuple[str, ...]] = {
    "rope_theta": ROTATED,
    "rope_interleaved": ROTATED,
    "rope_missing": ROTATED,
    "positions_wrong": ROTATED,
    "positions_offset": ROTATED,
    "softmax_scale": ATTENTION,
    "mask_missing": ATTENTION,
    "window": ATTENTION,
    "kv_mapping": ATTENTION,
    "gelu": ("mlp.act_fn", "mlp", "mlp.down_proj"),
    "gate_up_swapped": ("mlp.act_fn", "mlp", "mlp.down_proj"),
    "routing_shifted": EXPERTS,
    "routing_unnormalised": EXPERTS,
    "shared_skipped": ("mlp",),
    "unreduced_attention": ("self_attn.o_proj", "self_attn"),
    "unreduced_mlp": ("mlp.down_proj", "mlp"),
    "qk_norm_identity": ("self_attn.q_norm",),
    "qk_norm_missing": ("self_attn.q_norm", "self_attn", "self_attn.rotary_emb", "self_attn.attn"),
}


def acceptable(fault: Fault, size: Size, *, fused: bool = True) -> tuple[str, ...]:
    """Canonical modules that are a right answer for the first divergence, the most precise first. `fused` = one side fuses
    projections, which then have the fused name."""
    layer = f"model.layers.{fault.first_layer}"
    if fault.kind in PLACES:
        return tuple(f"{layer}.{place}" for place in PLACES[fault.kind])
    if fault.part.startswith("model."):
        return (fault.part,)
    if fault.kind == "residual_scale":
        if fault.part == "self_attn":
            return (f"{layer}.post_attention_layernorm", layer)
        following = fault.first_layer + 1
        if following < size.layers:
            return (f"model.layers.{following}.input_layernorm", f"model.layers.{following}", layer)
        return ("model.norm", "model", layer)
    if fault.kind == "embedding_scale":
        return ("model.embed_tokens",)
    if fault.kind in ("nan", "inf") and fault.part == "self_attn.attn":
        return tuple(f"{layer}.{place}" for place in ATTENTION)
    if fault.part == "mlp.experts":
        return tuple(f"{layer}.{place}" for place in EXPERTS)
    leaf = fault.part.split(".")[-1]
    if fault.part == "" and fault.kind in ("eps", "norm_plus_one"):
        return (f"{layer}.input_layernorm",)
    if fault.kind == "weight_swapped":  # the fused statistics are a permutation of the right ones; only finer q, k, v show it
        return tuple(f"{layer}.{place}" for place in ("self_attn.qkv_proj", "self_attn.rotary_emb", *ATTENTION))
    if fault.part == "mlp.act_fn":
        return tuple(f"{layer}.{place}" for place in ("mlp.act_fn", "mlp", "mlp.down_proj"))
    return (f"{layer}.{FUSED.get(leaf, fault.part) if fused else fault.part}",)


def damage_weights(weights: Weights, fault: Fault, size: Size, family: Family, precision: Precision, seed: int) -> Weights:
    """A copy of `weights` with a weight fault applied; the input is left alone."""
    rng = np.random.default_rng(seed + 7919)
    damaged = dict(weights)
    layers = range(size.layers) if fault.layer is None else [fault.layer]
    paths = [fault.part] if fault.part.startswith("model.") else [f"model.layers.{layer}.{fault.part}" for layer in layers]
    for path in paths:
        if fault.kind == "weight_swapped":  # k and v exchanged in the fused tensor
            for kind in ("weight", "bias") if family.qkv_bias else ("weight",):
                k, v = f"{path.replace('q_proj', 'k_proj')}.{kind}", f"{path.replace('q_proj', 'v_proj')}.{kind}"
                damaged[k], damaged[v] = weights[v], weights[k]
            continue
        name = f"{path}.bias" if fault.kind.startswith("bias") else f"{path}.weight"
        if path.endswith("mlp.experts"):
            name = f"{path}.down_proj"
        if fault.kind == "bias_removed":
            for part in ("q_proj", "k_proj", "v_proj"):
                damaged.pop(f"{path.rsplit('.', 1)[0]}.{part}.bias")
            continue
        damaged[name] = precision.round(_damaged(weights[name], fault, rng))
    return damaged


def _damaged(values: Array, fault: Fault, rng: np.random.Generator) -> Array:
    spread = np.float32(np.std(values) if values.ndim > 1 else np.sqrt(np.mean(values**2)))
    noise = rng.standard_normal(values.shape).astype(np.float32) * spread
    if fault.kind in ("weight_noise", "bias_noise"):
        return values + np.float32(fault.size) * noise
    if fault.kind == "weight_scaled":
        return values * np.float32(1.0 + fault.size)
    if fault.kind == "weight_stale":  # an older checkpoint: the same distribution, partly other values
        share = np.float32(fault.size)
        return values * np.sqrt(1 - share**2) + share * noise
    if fault.kind == "weight_zeroed":
        kept = values.copy()
        kept[: max(1, int(fault.size * values.shape[0]))] = 0
        return kept
    if fault.kind == "weight_transposed":
        return np.ascontiguousarray(values.T)
    raise ValueError(f"unknown weight fault {fault.kind!r}")
