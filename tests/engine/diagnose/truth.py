"""Pairs of real dumps whose answer is known, and what the answer must be."""

from __future__ import annotations

from dataclasses import dataclass, field

AGREES = ("equal", "rounding", "noise")
EXIT = {"identical": 0, "consistent": 0, "diverged": 1, "not_comparable": 3}


@dataclass(frozen=True)
class Known:
    """``modules``, ``difference``: acceptable modules of the first divergence and first difference; ``clean``: layers that agree."""

    name: str
    left: str
    right: str
    verdicts: tuple[str, ...]
    modules: tuple[str, ...] = ()
    difference: tuple[str, ...] = ()
    clean: range = range(0)
    explained: float = 0.0
    matched: tuple[float, float] = (0.0, 0.0)
    findings: tuple[str, ...] = ()
    premise: str = ""
    options: dict[str, str | bool] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


OK = ("identical", "consistent")
ATTENTION = tuple(f"model.layers.0.{name}" for name in ("self_attn", "self_attn.rotary_emb", "self_attn.attn", "self_attn.o_proj"))
NAN = tuple(f"model.layers.3.{name}" for name in ("self_attn.attn", "self_attn", "self_attn.o_proj"))
O_PROJ, DOWN = ("model.layers.1.self_attn.o_proj",), ("model.layers.2.mlp.down_proj",)
HF_AGAINST_ENGINE = {"explained": 0.95, "matched": (0.3, 0.8)}

CORE = [
    Known(
        "clean", "q2_train_stat", "q2_infer_stat", ("consistent",), clean=range(4), findings=("residual_pair_output",), **HF_AGAINST_ENGINE
    ),
    Known("clean_mix", "q2_train_mix", "q2_infer_mix", ("consistent",), clean=range(4)),
    Known("eps", "q2_train_stat", "q2_infer_eps_stat", ("diverged",), ("model.layers.0.input_layernorm",), **HF_AGAINST_ENGINE),
    Known("rope", "q2_train_stat", "q2_infer_rope_stat", ("diverged",), ATTENTION, **HF_AGAINST_ENGINE),
    Known("down2", "q2_train_stat", "q2_infer_down2_stat", ("diverged",), DOWN, clean=range(2), **HF_AGAINST_ENGINE),
    Known("nan3", "q2_train_stat", "q2_infer_nan3_stat", ("diverged",), NAN, clean=range(3)),
    Known("identical", "q2_shim_stat", "q2_shim_stat_again", ("identical",), clean=range(4), explained=1.0),
    Known("perturbed", "q2_shim_pert1_stat", "q2_shim_stat", ("consistent", "diverged"), difference=O_PROJ),
    Known("perturbed_exact", "q2_shim_pert1_stat", "q2_shim_stat", ("diverged",), O_PROJ, O_PROJ, options={"exact": True}),
    Known("wrapper_names", "q2_plain_stat", "q2_shim_stat", OK, clean=range(4), explained=0.95),
    Known(
        "walkthrough",
        "seed24_train",
        "seed24_infer",
        ("consistent",),
        clean=range(24),
        explained=0.95,
        matched=(0.8, 0.8),
        findings=("residual_pair_output",),
    ),
    Known("walkthrough_dump_only", "seed24_train_bare", "seed24_infer_bare", ("consistent",), clean=range(24)),
    Known("other_tokens", "q2b_train_stat", "q2b_infer_tok_stat", ("not_comparable",), premise="tokens"),
    Known("other_length", "q2b_train_stat", "q2b_infer_len10_stat", ("not_comparable",), premise="length"),
]

# Beyond the dense one-rank pairs that the engine was made for first, what it already answers.
FURTHER = [
    Known("fsdp2_against_fsdp1", "q2_fsdp2_stat", "q2_train_stat", OK, clean=range(4), explained=0.95),
    Known("flat_parameters", "q2_fsdpflat_stat", "q2_train_stat", OK, clean=range(4)),
    Known("recomputation", "q2_ckpt_stat", "q2_shim_stat", OK, clean=range(4), explained=0.95),
    Known("backward_only", "q2b_shim_clean_stat", "q2b_shim_grad15_stat", ("diverged",)),
    Known("extra_calls", "q2b_shim_clean_mix", "q2b_shim_extraops_mix", OK, clean=range(4)),
    Known("zero_lora", "q2b_lora_train_stat", "q2b_infer_clean_stat", ("consistent",), clean=range(4)),
    Known("half_billion", "q05_train_stat", "q05_infer_clean_stat", ("consistent",), clean=range(24), explained=0.95),
    Known("clean_fp32", "q2f32_train_stat", "q2f32_infer_stat", OK, clean=range(4)),
    Known("down2_fp32", "q2f32_train_stat", "q2f32_infer_down2_stat", ("diverged",), DOWN, clean=range(2)),
    Known("two_ranks_against_one", "q2_infer_tp2_stat", "q2_infer_stat", ("consistent",), clean=range(4)),
    Known("megatron_two_ranks", "q2b_mcore_tp2_stat", "q2b_infer_clean_stat", ("consistent",), clean=range(4), explained=0.95),
    Known("checksums", "q2_shim_md5", "q2_shim_md5_again", ("identical",)),
    Known("checksums_perturbed", "q2_shim_pert1_md5", "q2_shim_md5", ("consistent", "diverged"), difference=O_PROJ),
    Known("checksums_across", "q2_train_md5", "q2_infer_md5", ("consistent",), clean=range(4)),
    Known("precision_high", "q2_train_high", "q2_infer_high", ("consistent",)),
    Known("first_of_three_steps", "q2_train_stat", "q2_infer_steps3_stat", ("consistent",), options={"step": "0"}),
]
