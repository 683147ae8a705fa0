"""Which slot is paired with which: the identities between a Hugging Face decoder and a vLLM-style one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from compare.engine.align.pairs import Reason, Relation
from compare.engine.diagnose.case import Case
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import call, case, pairs, part, tensor
from tests.simulator import scenarios, simulate

LAYERS = range(4)
End = tuple[str, str]  # (module path without wrappers, slot)


def bare(record: str, slot: str) -> End:
    """Module path without wrappers, class and call: by a regular expression of this test's own."""
    path = re.sub(r"^Module\.(.*?)\.?[A-Za-z0-9]+\.(forward|backward)\.\d+$", r"\1", record)
    return re.sub(r"_fsdp_wrapped_module\.?", "", path).strip("."), slot


@cache
def clean() -> Case:
    return part("q2_train_stat", "q2_infer_stat").cases[0]


@cache
def partners() -> list[tuple[frozenset[End], frozenset[End]]]:
    return [(frozenset(bare(*slot) for slot in left), frozenset(bare(*slot) for slot in right)) for left, right in pairs(clean())]


def paired(left: End | set[End], right: End | set[End]) -> bool:
    sides = [frozenset(side if isinstance(side, set) else {side}) for side in (left, right)]
    return (sides[0], sides[1]) in partners()


def layer(n: int, rest: str, slot: str) -> End:
    return f"model.layers.{n}.{rest}".rstrip("."), slot


def test_i1_the_embedding_is_paired_with_the_embedding() -> None:
    assert paired(("model.embed_tokens", "output.0"), ("model.embed_tokens", "output.0"))
    assert paired(("model.embed_tokens", "input.0"), ("model.embed_tokens", "input.0"))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_i2_a_layer_output_is_the_residual_stream_that_the_next_norm_puts_out(n: int) -> None:
    assert paired(layer(n, "", "output.0"), layer(n + 1, "input_layernorm", "output.1"))


def test_i3_the_last_layer_output_is_what_the_final_norm_adds_up() -> None:
    assert paired(layer(3, "", "output.0"), ("model.norm", "output.1"))
    assert paired(("model.norm", "input.0"), ("model.norm", "output.1"))


@pytest.mark.parametrize("n", LAYERS)
def test_i4_a_layer_output_is_never_paired_with_an_output_of_the_same_layer(n: int) -> None:
    """output.0 is the MLP's and output.1 the stream after attention: neither is the layer's output."""
    for left, right in partners():
        if layer(n, "", "output.0") in left:
            assert not {layer(n, "", "output.0"), layer(n, "", "output.1")} & right


@pytest.mark.parametrize("n", [1, 2, 3])
def test_i5_i7_what_enters_a_layer_is_the_stream_that_its_first_norm_puts_out(n: int) -> None:
    assert paired(layer(n, "", "input.0"), layer(n, "input_layernorm", "output.1"))
    assert paired(layer(n, "input_layernorm", "input.0"), layer(n, "input_layernorm", "output.1"))
    for left, right in partners():
        if left & {layer(n, "", "input.0"), layer(n, "input_layernorm", "input.0")}:
            assert not right & {layer(n, "", "input.1"), layer(n, "", "input.2"), layer(n, "input_layernorm", "input.0")}


def test_what_enters_the_first_layer_is_the_embedding() -> None:
    assert paired(layer(0, "input_layernorm", "input.0"), layer(0, "input_layernorm", "input.0"))
    assert paired(layer(0, "", "input.0"), layer(0, "", "input.1"))


@pytest.mark.parametrize("n", LAYERS)
def test_i6_the_stream_after_attention_is_what_the_second_norm_puts_out(n: int) -> None:
    """Besides, the engine passes it on: out of the layer and into the next norm."""
    name, after = layer(n, "post_attention_layernorm", "input.0"), f"model.layers.{n + 1}" if n < 3 else "model.norm"
    assert paired(name, layer(n, "post_attention_layernorm", "output.1"))
    same = {
        layer(n, "post_attention_layernorm", "output.1"),
        layer(n, "", "output.1"),
        (f"{after}.input_layernorm", "input.1"),
        (after, "input.2"),
    }
    same |= {("model.norm", "input.1")} if n == 3 else set()
    for left, right in partners():
        if name in left:
            assert right <= same


@pytest.mark.parametrize(
    "name", [*(f"model.layers.{n}.{norm}" for n in LAYERS for norm in ("input_layernorm", "post_attention_layernorm")), "model.norm"]
)
def test_i8_normed_tensors_are_paired_by_name(name: str) -> None:
    assert paired((name, "output.0"), (name, "output.0"))


@pytest.mark.parametrize("n", LAYERS)
def test_i9_query_key_and_value_side_by_side_are_the_fused_projection(n: int) -> None:
    parts = {layer(n, f"self_attn.{part}_proj", "output.0") for part in "qkv"}
    assert paired(parts, layer(n, "self_attn.qkv_proj", "output.0"))


@pytest.mark.parametrize("n", LAYERS)
def test_i10_gate_and_up_side_by_side_are_the_fused_projection(n: int) -> None:
    parts = {layer(n, f"mlp.{part}_proj", "output.0") for part in ("gate", "up")}
    assert paired(parts, layer(n, "mlp.gate_up_proj", "output.0"))


@pytest.mark.parametrize("n", LAYERS)
def test_i11_the_activation_is_never_paired_by_name(n: int) -> None:
    """silu(gate) on one side, silu(gate) · up on the other."""
    own = {layer(n, "mlp.act_fn", "input.0"), layer(n, "mlp.act_fn", "output.0")}
    assert not [1 for left, right in partners() if left & own and right & own]
    assert not [1 for left, _ in partners() if layer(n, "mlp.act_fn", "output.0") in left]


@pytest.mark.parametrize("n", LAYERS)
def test_i12_what_enters_down_proj_is_what_the_fused_activation_puts_out(n: int) -> None:
    found = [right for left, right in partners() if left == {layer(n, "mlp.down_proj", "input.0")}]
    assert found
    assert all(right <= {layer(n, "mlp.act_fn", "output.0"), layer(n, "mlp.down_proj", "input.0")} for right in found)
    assert any(layer(n, "mlp.act_fn", "output.0") in right for left, right in partners())


@pytest.mark.parametrize("n", LAYERS)
def test_i13_what_enters_o_proj_is_the_attention_result(n: int) -> None:
    found = [right for left, right in partners() if left == {layer(n, "self_attn.o_proj", "input.0")}]
    assert found
    assert all(right <= {layer(n, "self_attn.attn", "output.0"), layer(n, "self_attn.o_proj", "input.0")} for right in found)
    assert any(layer(n, "self_attn.attn", "output.0") in right for left, right in partners())


@pytest.mark.parametrize("n", LAYERS)
@pytest.mark.parametrize("module", ["self_attn", "self_attn.o_proj", "mlp", "mlp.down_proj"])
def test_i14_i15_branch_outputs_are_paired_by_name(n: int, module: str) -> None:
    assert paired(layer(n, module, "output.0"), layer(n, module, "output.0"))


@pytest.mark.parametrize("n", LAYERS)
def test_i20_weights_are_paired_with_what_they_became(n: int) -> None:
    for leaf in ("parameters.weight", "parameters.bias"):
        assert paired({layer(n, f"self_attn.{part}_proj", leaf) for part in "qkv"}, layer(n, "self_attn.qkv_proj", leaf))
    assert paired(
        {layer(n, f"mlp.{part}_proj", "parameters.weight") for part in ("gate", "up")}, layer(n, "mlp.gate_up_proj", "parameters.weight")
    )
    for module in ("input_layernorm", "post_attention_layernorm", "self_attn.o_proj", "mlp.down_proj"):
        assert paired(layer(n, module, "parameters.weight"), layer(n, module, "parameters.weight"))


def test_i20_holds_outside_the_layers_too() -> None:
    for module in ("model.embed_tokens", "model.norm"):
        assert paired((module, "parameters.weight"), (module, "parameters.weight"))


def test_no_slot_of_the_engine_side_that_has_other_rows_is_compared() -> None:
    """logits_processor saw the last row only, lm_head all twelve: different sizes, not compared."""
    case = clean()
    for row, (left, right) in enumerate(pairs(case)):
        if any("logits_processor" in name for name, _ in right) and any("lm_head" in name for name, _ in left):
            assert case.differences.size[row]
            assert not case.grades.comparable[row]


def test_parts_of_a_fused_projection_are_concatenated_in_the_order_of_the_fused_tensor() -> None:
    case = clean()
    for row, (left, _) in enumerate(pairs(case)):
        if len(left) > 1:
            assert case.pairs.relation[row] == Relation.CONCAT
            assert case.pairs.reason[row] == Reason.FUSED_PARTS


def test_a_partner_in_another_module_is_marked_as_elsewhere() -> None:
    case = clean()
    for row, (left, right) in enumerate(pairs(case)):
        modules = ({bare(*slot)[0] for slot in left}, {bare(*slot)[0] for slot in right})
        node = case.nodes.names[int(case.nodes.path[case.pairs.node[row]])]
        fused = (
            {f"{node.rpartition('.')[0]}.{part}_proj" for part in ("q", "k", "v", "gate", "up")}
            if node.endswith(("qkv_proj", "gate_up_proj"))
            else set()
        )
        renamed = {"logits_processor"} if node == "lm_head" else {""} if node == "(root)" else set()
        renamed |= {"model.layers.0.self_attn.rotary_emb"} if node.endswith(".rotary_emb") and "layers" in node else set()  # shared
        at_home = [found <= {node} | fused | renamed for found in modules]
        assert case.pairs.elsewhere[row] == (0 if at_home[0] else 1) + (0 if at_home[1] else 2), (node, modules)
        assert any(at_home)


def test_no_slot_is_in_two_pairs_of_one_module_but_parts_of_a_fused_tensor() -> None:
    """q, k and v count together against qkv, and each alone where the engine shows it alone."""
    case = clean()
    seen: set[tuple[int, str, str, int]] = set()
    for row, sides in enumerate(pairs(case)):
        for side, slots in enumerate(sides):
            keys = {(int(case.pairs.node[row]), record, slot, side) for record, slot in slots}
            if case.pairs.relation[row] != Relation.CONCAT:
                assert not keys & seen
                seen |= keys


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[frozenset[End], frozenset[End]]]:
    scenario = next(one for one in scenarios() if one.name == "clean_qwen3_tiny")
    simulated = simulate(scenario, tmp_path_factory.mktemp("qwen3"))
    judged = compare_paths([simulated.left], [simulated.right], Options()).parts[0][1]
    assert judged is not None
    return [(frozenset(bare(*slot) for slot in left), frozenset(bare(*slot) for slot in right)) for left, right in pairs(judged.cases[0])]


@pytest.mark.parametrize("norm", ["q_norm", "k_norm"])
def test_i16_normed_query_and_key_are_paired_by_name(norm: str, qwen3: list[tuple[frozenset[End], frozenset[End]]]) -> None:
    name = f"model.layers.1.self_attn.{norm}"
    assert (frozenset({(name, "output.0")}), frozenset({(name, "output.0")})) in qwen3
    assert (frozenset({(name, "parameters.weight")}), frozenset({(name, "parameters.weight")})) in qwen3


def test_the_query_before_its_norm_is_readable_on_the_engine_side_too(qwen3: list[tuple[frozenset[End], frozenset[End]]]) -> None:
    found = [right for left, right in qwen3 if ("model.layers.0.self_attn.q_norm", "input.0") in left]
    assert found == [frozenset({("model.layers.0.self_attn.q_norm", "input.0")})]


def test_mix_dumps_pair_the_rotated_query_inside_attention() -> None:
    """The training side's scaled_dot_product_attention call sees what the engine's Attention module sees."""
    case = part("q2_train_mix", "q2_infer_mix").cases[0]
    context = [
        (left, right) for left, right in pairs(case) if any(name.startswith("Functional.scaled_dot_product_attention") for name, _ in left)
    ]
    assert context
    allowed = ("self_attn.attn", "self_attn.rotary_emb", "self_attn.o_proj", "scaled_dot_product_attention", "self_attn.qkv_proj")
    assert all(any(word in name for word in allowed) for _, right in context for name, _ in right)


def test_the_walkthrough_pairs_every_layer_with_the_norm_after_it() -> None:
    case = part("seed24_train", "seed24_infer").cases[0]
    found = [(frozenset(bare(*slot) for slot in left), frozenset(bare(*slot) for slot in right)) for left, right in pairs(case)]
    for n in range(23):
        assert (frozenset({layer(n, "", "output.0")}), frozenset({layer(n + 1, "input_layernorm", "output.1")})) in found
    assert (frozenset({layer(23, "", "output.0")}), frozenset({("model.norm", "output.1")})) in found


def test_a_first_layer_that_is_given_a_residual_is_paired(tmp_path: Path) -> None:
    """Two floating inputs in layer 0: there is no layer before it whose output they could be."""
    norm, attention = "Module.model.layers.0.input_layernorm", "Module.model.layers.0.self_attn"
    left = {f"{norm}.Qwen2RMSNorm.forward.0": call(tensor()), f"{attention}.q_proj.Linear.forward.0": call(tensor())}
    right = {
        f"{norm}.RMSNorm.forward.0": call(tensor(), tensor(), output=[tensor(), tensor()]),
        f"{attention}.qkv_proj.QKVParallelLinear.forward.0": call(tensor()),
    }
    found = pairs(case(tmp_path, left, right))
    assert (frozenset({(f"{norm}.Qwen2RMSNorm.forward.0", "output.0")}), frozenset({(f"{norm}.RMSNorm.forward.0", "output.0")})) in found
