"""Raw paths → canonical ones: wrappers, class prefixes and list positions say how a module was wrapped, not which module it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.align.canonical import (
    canonical_path,
    is_inside_wrapper,
    is_list_of_models,
    layer_of,
    plain_class,
    template_of,
    with_layer,
)

PLAIN = ["model.embed_tokens", "model.layers.0", "model.layers.17.self_attn.o_proj", "model.layers.3.mlp", "model.norm", "lm_head"]


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("model.layers.3.mlp.down_proj", "model.layers.3.mlp.down_proj"),
        # FSDP1 wraps the root and every layer
        ("_fsdp_wrapped_module.model.layers.3._fsdp_wrapped_module.mlp.down_proj", "model.layers.3.mlp.down_proj"),
        ("_fsdp_wrapped_module", "(root)"),
        ("_fsdp_wrapped_module.lm_head", "lm_head"),
        # DDP and Float16Module: module., any number of times
        ("module.model.norm", "model.norm"),
        ("module.module.model.norm", "model.norm"),
        ("module.module.module.model.norm", "model.norm"),
        ("module", "(root)"),
        ("module.module", "(root)"),
        # torch.compile
        ("_orig_mod.model.norm", "model.norm"),
        ("model.layers.2._orig_mod.mlp", "model.layers.2.mlp"),
        ("_orig_mod", "(root)"),
        # activation checkpointing
        ("model.layers.2._checkpoint_wrapped_module.mlp", "model.layers.2.mlp"),
        ("_fsdp_wrapped_module.model.layers.2._fsdp_wrapped_module._checkpoint_wrapped_module.mlp", "model.layers.2.mlp"),
        # PEFT: the whole model, and the layer inside a wrapper
        ("base_model.model.model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.q_proj"),
        ("base_model.model.model.layers.1.self_attn.q_proj.base_layer", "model.layers.1.self_attn.q_proj"),
        ("base_model.model.lm_head", "lm_head"),
        ("base_model.model", "(root)"),
        # all at once, in the orders in which frameworks nest them
        ("_fsdp_wrapped_module.base_model.model.model.layers.1._fsdp_wrapped_module.mlp", "model.layers.1.mlp"),
        ("module._orig_mod.base_model.model.model.layers.1.mlp", "model.layers.1.mlp"),
        ("_orig_mod.module.model.layers.1._checkpoint_wrapped_module._orig_mod.mlp", "model.layers.1.mlp"),
        # a dump of the root, and of the inner model alone
        ("", "(root)"),
        ("layers.4.mlp", "model.layers.4.mlp"),
        ("embed_tokens", "model.embed_tokens"),
        ("norm", "model.norm"),
    ],
)
def test_a_wrapped_path_is_called_as_the_module_inside(raw: str, canonical: str) -> None:
    assert canonical_path(raw) == canonical


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("0.model.layers.1.mlp", "model.layers.1.mlp"),
        ("1.module.module.model.layers.1.mlp", "model.layers.1.mlp"),
        ("0.module", "(root)"),
        ("0", "(root)"),
    ],
)
def test_the_position_in_a_list_of_models_is_left_out(raw: str, canonical: str) -> None:
    assert canonical_path(raw, listed=True) == canonical


@pytest.mark.parametrize(
    ("paths", "listed"),
    [
        (["0", "0.model", "0.model.layers.0.mlp", "0.lm_head"], True),
        (["0.module.module.decoder.layers.0", "1.module.module.decoder.layers.0"], True),
        (["model", "model.layers.0.mlp"], False),
        (["0", "1", "2"], False),  # the children of a sequence
        ([], False),
    ],
)
def test_a_list_of_models_is_told_from_a_sequence_of_layers(paths: list[str], listed: bool) -> None:
    assert is_list_of_models(paths) is listed


@pytest.mark.parametrize("name", ["module_list.0.mlp", "encoder.module_a", "orig_mod.x", "model.base_layers.0", "visual.blocks.2.attn"])
def test_names_that_only_resemble_wrappers_stay(name: str) -> None:
    assert canonical_path(name) == name


@given(
    st.sampled_from(PLAIN),
    st.lists(st.sampled_from(["_fsdp_wrapped_module", "_orig_mod", "module", "_checkpoint_wrapped_module", "_forward_module"]), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_any_stack_of_wrappers_around_the_root_is_taken_off(plain: str, wrappers: list[str], peft: bool, listed: bool) -> None:
    raw = ".".join([*(["0"] if listed else []), *wrappers, *(["base_model", "model"] if peft else []), plain])
    assert canonical_path(raw, listed=listed) == plain


@given(st.sampled_from(PLAIN))
def test_a_canonical_path_is_its_own_canonical_path(plain: str) -> None:
    assert canonical_path(plain) == plain


@pytest.mark.parametrize(
    ("raw", "inside"),
    [
        ("model.layers.0.self_attn.q_proj.base_layer", True),
        ("model.layers.0.self_attn.q_proj", False),
        ("model.base_layers.0", False),
    ],
)
def test_the_module_inside_a_peft_wrapper_is_known(raw: str, inside: bool) -> None:
    assert is_inside_wrapper(raw) is inside


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("FSDPQwen2DecoderLayer", "Qwen2DecoderLayer"),
        ("AscendRMSNorm", "RMSNorm"),
        ("AscendQKVParallelLinear", "QKVParallelLinear"),
        ("TELayerNormColumnParallelLinear", "LayerNormColumnParallelLinear"),
        ("NpuRMSNorm", "RMSNorm"),
        ("CustomQwen2Model", "Qwen2Model"),
        ("Qwen2RMSNorm", "Qwen2RMSNorm"),
        ("Linear", "Linear"),
        # a prefix is one only before another word
        ("TEncoder", "TEncoder"),
        ("FSDP", "FSDP"),
        ("Customised", "Customised"),
        ("Tensor", "Tensor"),
    ],
)
def test_a_class_prefix_names_a_variant(name: str, plain: str) -> None:
    assert plain_class(name) == plain


@pytest.mark.parametrize(
    ("path", "layer", "template", "moved"),
    [
        ("model.layers.3.mlp.down_proj", 3, "model.layers.<n>.mlp.down_proj", "model.layers.7.mlp.down_proj"),
        ("model.layers.12", 12, "model.layers.<n>", "model.layers.7"),
        ("model.layers.2.mlp.experts.5.up_proj", 2, "model.layers.<n>.mlp.experts.5.up_proj", "model.layers.7.mlp.experts.5.up_proj"),
        ("model.norm", -1, "model.norm", "model.norm"),
        ("(root)", -1, "(root)", "(root)"),
        # digits of other scripts, superscripts and numbers that no model reaches are names
        ("model.layers.².mlp", -1, "model.layers.².mlp", "model.layers.².mlp"),
        ("model.layers.٣.mlp", -1, "model.layers.٣.mlp", "model.layers.٣.mlp"),
        ("model.layers.999999999.mlp", -1, "model.layers.999999999.mlp", "model.layers.999999999.mlp"),
    ],
)
def test_the_layer_is_the_first_number_of_a_path(path: str, layer: int, template: str, moved: str) -> None:
    assert layer_of(path) == layer
    assert template_of(path) == template
    assert with_layer(path, 7) == moved
