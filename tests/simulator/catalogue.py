"""The named catalogue of scenarios: clean pairs, faults, same-code pairs and broken premises."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace

from tests.simulator.faults import Fault
from tests.simulator.inference_side import Kernels
from tests.simulator.parallel import Layout
from tests.simulator.scenario import Scenario
from tests.simulator.train_side import TrainStyle
from tests.simulator.weights import Character

FSDP1, EAGER, KEYWORD = TrainStyle("fsdp1"), TrainStyle("fsdp1", attention="eager"), TrainStyle("plain", layer_keyword=True)
OLDER = TrainStyle("fsdp1", cache_name="past_key_values", rotary_keyword=True)
DEVICE = Kernels(split=5, partial_rounding=True, block=32, probability_rounding=True)
NATIVE = Kernels(split=2, norm_once=False, activation_once=False, block=64)
CUDA = Kernels(split=4, rope_once=True, add_rounding=True, probability_rounding=True)
TWIN = Kernels(split=1, norm_once=False, activation_once=False, block=100_000)
HEAVY, MASSIVE, LOUD = Character(heavy=4), Character(massive=400.0), Character(scale=2.0, key_bias=3.0)


def scenarios(shift: int = 0) -> Iterator[Scenario]:
    """Every scenario. A seed follows from the name, so that adding one leaves the others alone; `shift` changes all of them (a
    held-out catalogue)."""
    seen: set[str] = set()
    for scenario in [*_clean(), *_faults(), *_same_code(), *_premises(), *_families(), *_parallel()]:
        if scenario.name in seen:
            raise ValueError(f"two scenarios are called {scenario.name!r}")
        seen.add(scenario.name)
        yield replace(scenario, seed=zlib.crc32(scenario.name.encode()) % 1_000_000 + 1_000_000 * shift)


def _clean() -> Iterator[Scenario]:
    for family in ("Qwen2", "Qwen3", "Llama", "Mistral"):
        yield Scenario(f"clean_{family.lower()}_tiny", family, "tiny", style=FSDP1, backward="placeholders")
        yield Scenario(f"clean_{family.lower()}_small", family, "small", tokens=48, style=FSDP1)
        yield Scenario(f"clean_{family.lower()}_eager", family, "square", tokens=33, style=EAGER, kernels=NATIVE)
        yield Scenario(f"clean_{family.lower()}_device", family, "small", tokens=64, kernels=DEVICE)
        yield Scenario(f"clean_{family.lower()}_cuda", family, "medium", tokens=96, style=OLDER, kernels=CUDA)
    for family in ("Qwen2", "Qwen3", "Llama"):
        yield Scenario(f"clean_{family.lower()}_fp32", family, "small", "float32", tokens=24, style=FSDP1)
        yield Scenario(f"clean_{family.lower()}_fp16", family, "small", "float16", tokens=24, style=FSDP1, kernels=CUDA)
        yield Scenario(f"clean_{family.lower()}_mix", family, "tiny", tokens=16, style=FSDP1, mix=True)
    for wrapping in ("plain", "fsdp2", "ddp", "compile", "checkpoint", "fsdp1_checkpoint"):
        yield Scenario(f"clean_wrap_{wrapping}", "Qwen2", "nano", tokens=20, style=TrainStyle(wrapping), backward="gradients")
    yield Scenario("clean_keyword_calls", "Qwen2", "tiny", tokens=20, style=KEYWORD)
    yield Scenario("clean_positional_attention", "Llama", "tiny", tokens=20, style=TrainStyle("ddp", attention_positional=True))
    yield Scenario("clean_micro_batches", "Qwen2", "tiny", tokens=14, style=FSDP1, micro_batches=3, backward="placeholders")
    yield Scenario("clean_micro_batches_no_backward", "Qwen3", "tiny", tokens=14, micro_batches=2)
    yield Scenario("clean_deep", "Qwen2", "deep", tokens=64, style=FSDP1)
    yield Scenario("clean_deep_device", "Qwen3", "deep", tokens=96, style=FSDP1, kernels=DEVICE)
    yield Scenario("clean_thin_heavy", "Qwen2", "thin", tokens=80, style=FSDP1, character=HEAVY)
    yield Scenario("clean_massive", "Qwen2", "small", tokens=48, style=FSDP1, character=MASSIVE)
    yield Scenario("clean_massive_medium", "Llama", "medium", tokens=128, style=FSDP1, character=MASSIVE, kernels=CUDA)
    yield Scenario("clean_loud", "Qwen2", "small", tokens=48, style=FSDP1, character=LOUD)
    yield Scenario("clean_wide_long", "Llama", "wide", tokens=256, style=FSDP1, kernels=CUDA)
    yield Scenario("clean_half", "Qwen2", "half", tokens=190, style=FSDP1)
    yield Scenario("clean_large", "Qwen3", "large", tokens=64, kernels=CUDA)
    yield Scenario("clean_short", "Qwen2", "thin", tokens=8, style=FSDP1)
    yield Scenario(
        "clean_recompute", "Qwen2", "tiny", tokens=14, style=TrainStyle("fsdp1_checkpoint", recompute=True), backward="gradients"
    )
    yield Scenario(
        "clean_recompute_micro_batches",
        "Llama",
        "nano",
        tokens=14,
        style=TrainStyle("checkpoint", recompute=True),
        backward="gradients",
        micro_batches=2,
    )
    for family in ("Qwen2", "Qwen3"):
        yield Scenario(f"clean_{family.lower()}_twin", family, "small", tokens=40, style=FSDP1, kernels=TWIN)
        yield Scenario(f"clean_{family.lower()}_twin_fp32", family, "small", "float32", tokens=40, style=FSDP1, kernels=TWIN)
    for family in ("Qwen2", "Llama"):
        yield Scenario(f"clean_{family.lower()}_fp32_against_bf16", family, "small", "float32", "bfloat16", tokens=40, style=FSDP1)
    yield Scenario("clean_fp32_against_fp16", "Qwen3", "small", "float32", "float16", tokens=40, style=FSDP1)
    yield Scenario("clean_high", "Qwen2", "small", tokens=40, style=FSDP1, high=True)
    yield Scenario("clean_quiet", "Qwen2", "thin", tokens=40, style=FSDP1, character=Character(scale=0.5))
    yield Scenario("clean_loud_embedding", "Llama", "small", tokens=40, style=FSDP1, character=Character(embedding=1.0))
    yield Scenario("clean_mix_eager", "Qwen2", "tiny", tokens=12, style=EAGER, mix=True, backward="gradients")


def _weight_faults() -> Iterator[tuple[str, Fault, str]]:
    """(name, fault, size)."""
    for part in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ):
        short = part.split(".")[1]
        yield f"{short}_noise_small", Fault("weight_noise", 0.03, 2, part), "small"
        yield f"{short}_noise_large", Fault("weight_noise", 0.3, 1, part), "thin"
    yield "down_proj_noise_first", Fault("weight_noise", 0.1, 0, "mlp.down_proj"), "tiny"
    yield "down_proj_noise_last", Fault("weight_noise", 0.1, 7, "mlp.down_proj"), "small"
    yield "o_proj_noise_faint", Fault("weight_noise", 0.001, 1, "self_attn.o_proj"), "tiny"
    yield "o_proj_noise_permille_five", Fault("weight_noise", 0.005, 0, "self_attn.o_proj"), "small"
    yield "down_proj_scaled", Fault("weight_scaled", 0.02, 3, "mlp.down_proj"), "small"
    yield "v_proj_scaled", Fault("weight_scaled", 0.1, 5, "self_attn.v_proj"), "medium"
    yield "o_proj_transposed", Fault("weight_transposed", 0, 1, "self_attn.o_proj"), "square"
    yield "q_proj_transposed", Fault("weight_transposed", 0, 3, "self_attn.q_proj"), "square"
    yield "kv_swapped", Fault("weight_swapped", 0, 2, "self_attn.q_proj"), "small"
    yield "gate_stale", Fault("weight_stale", 0.2, 4, "mlp.gate_proj"), "thin"
    yield "all_stale", Fault("weight_stale", 0.05, None, "self_attn.q_proj"), "small"
    yield "down_zeroed", Fault("weight_zeroed", 0.1, 2, "mlp.down_proj"), "small"
    yield "input_norm_noise", Fault("weight_noise", 0.05, 3, "input_layernorm"), "small"
    yield "post_norm_scaled", Fault("weight_scaled", 0.05, 1, "post_attention_layernorm"), "tiny"
    yield "final_norm_noise", Fault("weight_noise", 0.1, None, "model.norm"), "tiny"
    yield "embedding_noise", Fault("weight_noise", 0.1, None, "model.embed_tokens"), "tiny"
    yield "deep_o_proj_noise", Fault("weight_noise", 0.2, 20, "self_attn.o_proj"), "deep"


def _operation_faults() -> Iterator[tuple[str, Fault, str]]:
    yield "eps_1e5", Fault("eps", 1e-5), "tiny"
    yield "eps_1e3", Fault("eps", 1e-3), "small"
    yield "eps_one_layer", Fault("eps", 0.05, 3), "small"
    yield "norm_plus_one", Fault("norm_plus_one", 0, 2, "input_layernorm"), "small"
    yield "post_norm_plus_one", Fault("norm_plus_one", 0, 1, "post_attention_layernorm"), "tiny"
    yield "final_norm_plus_one", Fault("norm_plus_one", 0, None, "model.norm"), "tiny"
    yield "rope_theta", Fault("rope_theta", 500.0), "tiny"
    yield "rope_theta_close", Fault("rope_theta", 50_000.0), "small"
    yield "rope_theta_long", Fault("rope_theta", 500.0), "thin"
    yield "rope_interleaved", Fault("rope_interleaved"), "small"
    yield "rope_interleaved_one", Fault("rope_interleaved", 0, 3), "small"
    yield "rope_missing", Fault("rope_missing"), "small"
    yield "positions_doubled", Fault("positions_wrong", 0), "small"
    yield "positions_reversed", Fault("positions_wrong", 1), "tiny"
    yield "positions_restarted", Fault("positions_wrong", 2), "small"
    yield "softmax_scale", Fault("softmax_scale", 0.7), "small"
    yield "softmax_scale_one", Fault("softmax_scale", 2.0, 4), "small"
    yield "mask_missing", Fault("mask_missing"), "small"
    yield "mask_missing_one", Fault("mask_missing", 0, 2), "small"
    yield "window", Fault("window", 4), "small"
    yield "window_deep", Fault("window", 8, 10), "deep"
    yield "kv_mapping", Fault("kv_mapping"), "small"
    yield "kv_mapping_one", Fault("kv_mapping", 0, 5), "thin"
    yield "gelu", Fault("gelu"), "small"
    yield "gelu_one", Fault("gelu", 0, 3), "small"
    yield "gate_up_swapped", Fault("gate_up_swapped", 0, 1), "tiny"
    yield "residual_attention", Fault("residual_scale", 0.5, 2, "self_attn"), "small"
    yield "residual_mlp", Fault("residual_scale", 0.9, 1, "mlp"), "small"
    yield "residual_last", Fault("residual_scale", 0.7, 3, "mlp"), "tiny"
    yield "embedding_scale", Fault("embedding_scale", 8.0), "tiny"
    yield "nan_attention", Fault("nan", 0, 3, "self_attn.attn"), "tiny"
    yield "nan_down", Fault("nan", 0, 1, "mlp.down_proj"), "small"
    yield "nan_norm", Fault("nan", 0, 2, "input_layernorm"), "small"
    yield "inf_qkv", Fault("inf", 0, 2, "self_attn.qkv_proj"), "small"
    yield "inf_gate_up", Fault("inf", 0, 0, "mlp.gate_up_proj"), "tiny"
    yield "fp8_down", Fault("low_precision", 0, 2, "mlp.down_proj"), "small"
    yield "fp8_qkv", Fault("low_precision", 0, 0, "self_attn.qkv_proj"), "tiny"
    yield "fp8_gate_up", Fault("low_precision", 0, 4, "mlp.gate_up_proj"), "thin"
    yield "o_proj_halved", Fault("output_scale", 0.5, 2, "self_attn.o_proj"), "small"
    yield "down_halved_all", Fault("output_scale", 0.5, None, "mlp.down_proj"), "small"
    yield "dropout_down", Fault("dropout", 0.1, 3, "mlp.down_proj"), "small"


def _faults() -> Iterator[Scenario]:
    styles = (FSDP1, TrainStyle(), TrainStyle("fsdp2"), EAGER, OLDER, TrainStyle("ddp"))
    kernels = (Kernels(), CUDA, NATIVE, DEVICE, TWIN)
    families = ("Qwen2", "Qwen3", "Llama")
    lengths = {"tiny": 12, "small": 40, "thin": 72, "square": 24, "medium": 64, "deep": 48}
    for number, (name, fault, size) in enumerate([*_weight_faults(), *_operation_faults()]):
        yield Scenario(
            f"fault_{name}",
            families[number % 3],
            size,
            tokens=lengths[size],
            style=styles[number % 6],
            kernels=kernels[number % 5],
            fault=fault,
        )
    yield Scenario("fault_bias_skipped", "Qwen2", "small", tokens=40, style=FSDP1, fault=Fault("bias_skipped", 0, 1, "self_attn.qkv_proj"))
    yield Scenario("fault_bias_skipped_all", "Qwen2", "tiny", style=FSDP1, fault=Fault("bias_skipped", 0, None, "self_attn.qkv_proj"))
    yield Scenario("fault_bias_noise", "Qwen2", "small", tokens=40, style=FSDP1, fault=Fault("bias_noise", 0.3, 3, "self_attn.k_proj"))
    yield Scenario("fault_bias_removed", "Qwen2", "small", tokens=40, style=FSDP1, fault=Fault("bias_removed", 0, 2, "self_attn.q_proj"))
    yield Scenario("fault_qk_norm_identity", "Qwen3", "small", tokens=40, style=FSDP1, fault=Fault("qk_norm_identity"))
    yield Scenario("fault_qk_norm_identity_one", "Qwen3", "small", tokens=40, style=FSDP1, fault=Fault("qk_norm_identity", 0, 3))
    yield Scenario("fault_qk_norm_missing", "Qwen3", "tiny", tokens=20, style=FSDP1, fault=Fault("qk_norm_missing"))
    yield Scenario("fault_rope_mix", "Qwen2", "tiny", tokens=16, style=FSDP1, mix=True, fault=Fault("rope_theta", 1000.0))
    yield Scenario(
        "fault_down_mix", "Llama", "tiny", tokens=16, style=FSDP1, mix=True, fault=Fault("weight_noise", 0.1, 2, "mlp.down_proj")
    )
    yield Scenario("fault_gelu_mix", "Qwen3", "tiny", tokens=16, mix=True, fault=Fault("gelu", 0, 1))
    for dtype in ("float32", "float16"):
        for name, fault in (
            ("down", Fault("weight_noise", 0.01, 3, "mlp.down_proj")),
            ("rope", Fault("rope_theta", 1000.0)),
            ("eps", Fault("eps", 1e-5)),
            ("scale", Fault("softmax_scale", 0.95, 4)),
        ):
            yield Scenario(f"fault_{name}_{dtype}", "Qwen2", "small", dtype, tokens=32, style=FSDP1, fault=fault)
    for name, fault in (
        ("down", Fault("weight_noise", 0.1, 4, "mlp.down_proj")),
        ("rope", Fault("rope_theta", 1000.0)),
        ("gelu", Fault("gelu", 0, 2)),
        ("halved", Fault("output_scale", 0.5, 5, "self_attn.o_proj")),
    ):
        yield Scenario(f"fault_{name}_massive", "Qwen2", "small", tokens=48, style=FSDP1, character=MASSIVE, fault=fault)
    for name, fault in (("down", Fault("weight_noise", 0.2, 4, "mlp.down_proj")), ("mask", Fault("mask_missing", 0, 2))):
        yield Scenario(f"fault_{name}_fp32_against_bf16", "Qwen2", "small", "float32", "bfloat16", tokens=40, style=FSDP1, fault=fault)
        yield Scenario(f"fault_{name}_high", "Llama", "small", tokens=40, style=FSDP1, high=True, fault=fault)
    yield Scenario("fault_half_rope", "Qwen2", "half", tokens=128, style=FSDP1, fault=Fault("rope_theta", 10_000.0))
    yield Scenario("fault_half_down", "Qwen2", "half", tokens=128, style=FSDP1, fault=Fault("weight_noise", 0.2, 15, "mlp.down_proj"))
    yield Scenario("fault_large_kv_mapping", "Qwen3", "large", tokens=48, style=FSDP1, kernels=CUDA, fault=Fault("kv_mapping", 0, 6))
    yield Scenario("fault_wide_mask", "Llama", "wide", tokens=128, style=FSDP1, fault=Fault("mask_missing", 0, 2))


def _same_code() -> Iterator[Scenario]:
    train = Scenario("same_identical", "Qwen2", "tiny", right="train", backward="gradients")
    yield train
    yield replace(train, name="same_identical_mix", mix=True)
    yield replace(train, name="same_identical_fsdp1", style=FSDP1, backward="placeholders", micro_batches=2)
    yield replace(train, name="same_recompute", style=TrainStyle("checkpoint", recompute=True), right_style=TrainStyle())
    yield replace(train, name="same_wrappers", right_style=FSDP1)
    yield replace(train, name="same_wrappers_fsdp2_ddp", style=TrainStyle("fsdp2"), right_style=TrainStyle("ddp"))
    yield replace(train, name="same_extra_ops", mix=True, right_style=TrainStyle(extra_ops=(1,)))
    yield replace(train, name="same_extra_ops_left", mix=True, style=TrainStyle(extra_ops=(0, 2)), right_style=TrainStyle())
    yield replace(train, name="same_perturbed", fault=Fault("weight_noise", 1e-3, 1, "self_attn.o_proj"))
    yield replace(train, name="same_perturbed_large", fault=Fault("weight_noise", 0.1, 2, "mlp.gate_proj"))
    yield replace(train, name="same_perturbed_mix", mix=True, fault=Fault("weight_noise", 0.01, 0, "mlp.down_proj"))
    yield replace(train, name="same_gradient_scaled", gradient_fault=Fault("gradient_scale", 1.5, 1))
    yield replace(train, name="same_qwen3_identical", family="Qwen3", size="small", tokens=30)


def _premises() -> Iterator[Scenario]:
    base = Scenario("", "Qwen2", "tiny", style=FSDP1)
    yield replace(base, name="premise_other_tokens", other="tokens")
    yield replace(base, name="premise_other_tokens_small", other="tokens", size="small", family="Llama", tokens=40)
    yield replace(base, name="premise_longer", other="length")
    yield replace(base, name="premise_shorter", other="shorter", family="Qwen3")
    yield replace(base, name="premise_padding", padding=5)
    yield replace(base, name="premise_padding_small", padding=24, size="small", tokens=40)
    yield replace(base, name="premise_positions_offset", fault=Fault("positions_offset", 1))
    yield replace(base, name="premise_positions_offset_small", size="small", tokens=40, fault=Fault("positions_offset", 17))


def _families() -> Iterator[Scenario]:
    """Experts, latent attention, and both."""
    families = {"moe": "Qwen3Moe", "listed": "Qwen2Moe", "latent": "DeepseekV2", "latent_moe": "DeepseekV3"}
    for short, family in families.items():
        yield Scenario(f"clean_{short}_tiny", family, "tiny", tokens=20, style=FSDP1)
        yield Scenario(f"clean_{short}_small", family, "small", tokens=48, kernels=CUDA)
        yield Scenario(f"clean_{short}_square", family, "square", tokens=30, style=TrainStyle("fsdp2"), kernels=DEVICE)
        yield Scenario(f"clean_{short}_fp32", family, "small", "float32", tokens=24)
        yield Scenario(f"clean_{short}_fp16", family, "small", "float16", tokens=24, kernels=NATIVE)
    yield Scenario("clean_moe_medium", "Qwen3Moe", "medium", tokens=64, style=FSDP1)
    yield Scenario("clean_moe_sglang", "Qwen3Moe", "small", tokens=40, style=FSDP1, engine="sglang")
    yield Scenario("clean_latent_sglang", "DeepseekV3", "small", tokens=40, engine="sglang")
    for number, (name, fault) in enumerate(
        (
            ("routing_shifted", Fault("routing_shifted", 0, 2)),
            ("routing_shifted_all", Fault("routing_shifted")),
            ("routing_unnormalised", Fault("routing_unnormalised", 0, 1)),
            ("gate_noise", Fault("weight_noise", 0.1, 2, "mlp.gate")),
            ("experts_noise", Fault("weight_noise", 0.2, 3, "mlp.experts")),
            ("experts_halved", Fault("output_scale", 0.5, 2, "mlp.experts")),
            ("moe_eps", Fault("eps", 0.01)),
            ("moe_nan", Fault("nan", 0, 3, "mlp.experts")),
            ("moe_mask", Fault("mask_missing", 0, 1)),
            ("moe_rope", Fault("rope_theta", 100.0)),
        )
    ):
        for short in ("moe", "listed"):
            size = "tiny" if short == "listed" else "small"
            yield Scenario(f"fault_{short}_{name}", families[short], size, tokens=32 + number, style=FSDP1, kernels=CUDA, fault=fault)
    yield Scenario("fault_shared_skipped", "Qwen2Moe", "small", tokens=32, style=FSDP1, fault=Fault("shared_skipped", 0, 2))
    yield Scenario("fault_shared_skipped_latent", "DeepseekV3", "tiny", tokens=32, fault=Fault("shared_skipped", 0, 1))
    yield Scenario(
        "fault_shared_noise", "DeepseekV3", "small", tokens=32, fault=Fault("weight_noise", 0.2, 3, "mlp.shared_experts.down_proj")
    )
    for name, fault in (
        ("rope", Fault("rope_theta", 200.0)),
        ("rope_one", Fault("rope_missing", 0, 2)),
        ("scale", Fault("softmax_scale", 0.7, 3)),
        ("mask", Fault("mask_missing", 0, 1)),
        ("kv_down_noise", Fault("weight_noise", 0.2, 2, "self_attn.kv_a_proj_with_mqa")),
        ("q_up_scaled", Fault("weight_scaled", 0.1, 4, "self_attn.q_b_proj")),
        ("kv_up_noise", Fault("weight_noise", 0.2, 1, "self_attn.kv_b_proj")),
        ("latent_norm", Fault("norm_plus_one", 0, 2, "self_attn.kv_a_layernorm")),
        ("positions", Fault("positions_wrong", 0)),
        ("gelu", Fault("gelu", 0, 3)),
    ):
        yield Scenario(f"fault_latent_{name}", "DeepseekV2", "small", tokens=40, style=FSDP1, fault=fault)


def _parallel() -> Iterator[Scenario]:
    """Ranks: tensor, sequence, pipeline parallelism; Megatron's names; engines that leave sums as parts."""
    megatron = TrainStyle("megatron")
    layouts = {
        "tp2": (Layout(), Layout(2)),
        "tp4_shared_heads": (Layout(), Layout(4)),
        "pp2": (Layout(), Layout(1, 2)),
        "tp2_pp2": (Layout(), Layout(2, 2)),
        "megatron": (Layout(local=True), Layout()),
        "megatron_tp2_pp2": (Layout(2, 2, local=True), Layout()),
        "megatron_tp2_tp4": (Layout(2, local=True), Layout(4)),
        "megatron_four_each": (Layout(2, 2, local=True), Layout(4)),
        "megatron_chunks": (Layout(1, 2, 2, local=True), Layout()),
        "megatron_chunks_tp2": (Layout(2, 2, 2, local=True), Layout(2)),
        "megatron_sequence": (Layout(2, sequence=True, local=True), Layout(2)),
    }
    families = ("Qwen2", "Qwen3", "Llama")
    for number, (name, (left, right)) in enumerate(layouts.items()):
        style = megatron if name.startswith("megatron") else FSDP1
        base = Scenario("", families[number % 3], "small", tokens=32 + number % 2 * 8, style=style, layout=left, right_layout=right)
        yield replace(base, name=f"clean_{name}")
        yield replace(base, name=f"fault_{name}_down", fault=Fault("weight_noise", 0.2, 5, "mlp.down_proj"))
        yield replace(base, name=f"fault_{name}_qkv", fault=Fault("weight_noise", 0.3, 2, "self_attn.v_proj"))
        yield replace(base, name=f"fault_{name}_gelu", fault=Fault("gelu", 0, 4))
        yield replace(base, name=f"fault_{name}_mask", fault=Fault("mask_missing", 0, 3))
        yield replace(base, name=f"fault_{name}_eps", fault=Fault("eps", 1e-2))
        if right.tensor > 1:
            yield replace(base, name=f"fault_{name}_unreduced", fault=Fault("unreduced_attention", 0, 3))
            yield replace(base, name=f"fault_{name}_unreduced_mlp", fault=Fault("unreduced_mlp", 0, 6))
    parts = Kernels(partial_outputs=True)
    yield Scenario("clean_partial_outputs", "Llama", "small", tokens=32, right_layout=Layout(2), kernels=parts, engine="sglang")
    yield Scenario("clean_partial_outputs_moe", "Qwen3Moe", "small", tokens=32, right_layout=Layout(2), kernels=parts, engine="sglang")
    yield Scenario(
        "fault_partial_outputs_unreduced",
        "Llama",
        "small",
        tokens=32,
        right_layout=Layout(2),
        kernels=parts,
        engine="sglang",
        fault=Fault("unreduced_mlp", 0, 3),
    )
    for dtype in ("float16", "float32"):
        yield Scenario(f"clean_tp2_{dtype}", "Qwen2", "small", dtype, tokens=24, right_layout=Layout(2))
        yield Scenario(
            f"fault_tp2_{dtype}_scale", "Qwen2", "small", dtype, tokens=24, right_layout=Layout(2), fault=Fault("softmax_scale", 0.8, 2)
        )
