"""Against configurations as the trainers write them, and numbers worked out by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compare.engine.keydata.formula import names
from compare.engine.keydata.preconditions import holding, knowledge, known, preconditions
from compare.engine.model import Configuration

Tree = dict[str, Any]

# verl with Megatron, as it prints itself: 256 prompts a step in mini-batches of 64, 8 responses each, 8 cards.
VERL: Tree = {
    "actor_rollout_ref": {
        "actor": {
            "megatron": {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1, "context_parallel_size": 1, "seed": 1},
            "ppo_epochs": 1, "ppo_micro_batch_size": None, "ppo_micro_batch_size_per_gpu": 4, "ppo_mini_batch_size": 64,
            "strategy": "megatron", "use_dynamic_bsz": False, "use_torch_compile": True,
        },
        "model": {"path": "/models/Qwen2.5-7B", "use_remove_padding": True},
        "ref": {"megatron": {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 1}},
        "rollout": {
            "enable_chunked_prefill": True, "enforce_eager": True, "n": 8, "tensor_model_parallel_size": 4, "val_kwargs": {"n": 1},
        },
    },
    "critic": {"ppo_mini_batch_size": 16, "ppo_micro_batch_size_per_gpu": 1, "megatron": {"tensor_model_parallel_size": 8}},
    "data": {"max_prompt_length": 512, "shuffle": False, "train_batch_size": 256},
    "trainer": {"balance_batch": False, "n_gpus_per_node": 8, "nnodes": 1, "val_before_train": False},
    "ray_kwargs": {"ray_init": {"runtime_env": {"env_vars": {"PROMPTS_ONLY": "1", "TORCHDYNAMO_DISABLE": "0"}}}},
}  # fmt: skip

# MindSpeed-RL's configurations.json: 32 prompts of 8 responses, mini-batches of 256 responses, 16 cards of which 4 hold one copy.
MINDSPEED: Tree = {
    "actor": {
        "global_batch_size": 32, "micro_batch_size": 16, "tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 1,
        "context_parallel_size": 1, "bf16": True, "lr": 1e-06,
    },
    "ref": {"global_batch_size": 32, "micro_batch_size": 1, "tensor_model_parallel_size": 4},
    "rl": {
        "actor_resource": {"num_npus": 16}, "epochs": 1, "guarantee_order": True, "max_prompt_length": 2048, "mini_batch_size": 256,
        "n_samples_per_prompt": 8, "update_micro_batch_size": None, "use_dynamic_bsz": False, "use_remove_padding": True,
    },
    "generate": {
        "infer_tensor_parallel_size": 4, "infer_pipeline_parallel_size": 1, "enforce_eager": True, "enable_prefix_caching": False,
        "sampling_config": {"temperature": 1.0, "max_tokens": 2048},
    },
}  # fmt: skip

# slime's arguments as a flat YAML file, in the spelling of its command line.
SLIME: Tree = {
    "actor-num-nodes": 1, "actor-num-gpus-per-node": 8, "rollout-num-gpus-per-engine": 2, "rollout-batch-size": 1,
    "n-samples-per-prompt": 4, "global-batch-size": 4, "micro-batch-size": 1, "tensor-model-parallel-size": 2,
    "pipeline-model-parallel-size": 1, "context-parallel-size": 1, "data-pad-size-multiplier": 1, "sglang-chunked-prefill-size": 4096,
    "sglang-dp-size": 8, "rollout-max-prompt-len": 1024, "sglang-disable-cuda-graph": True, "sglang-disable-radix-cache": True,
    "use-dynamic-batch-size": False, "balance-data": False, "rollout-shuffle": False,
}  # fmt: skip


def configuration(content: Tree) -> Configuration:
    return Configuration("configurations.json", content)


def changed(content: Tree, **values: Any) -> Tree:
    """The same with other values, by paths joined with __; ... takes a setting away."""
    content = copy.deepcopy(content)
    for path, value in values.items():
        *above, last = path.split("__")
        place = content
        for name in above:
            place = place[name]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return content


def asked(content: Tree, code: str, language: str = "en") -> tuple[str, Any, str | None]:
    """What one configuration says: state, value, and the sentence with the numbers put in."""
    (row,) = [row for row in preconditions(configuration(content), None) if row["code"] == code]
    assert row["right"]["state"] == "unknown"
    side = row["left"]
    return side["state"], side["value"], side["text"][language] if "text" in side else None


def test_verl_splits_its_batch_into_four_mini_batches() -> None:
    assert asked(VERL, "mini_batch_num") == ("failed", 4, "train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1")
    assert asked(VERL, "mini_batch_num", "zh")[2] == "train_batch_size 256 / ppo_mini_batch_size 64 = 4，应为 1"
    whole = changed(VERL, actor_rollout_ref__actor__ppo_mini_batch_size="256")
    assert asked(whole, "mini_batch_num") == ("ok", 1, "train_batch_size 256 / ppo_mini_batch_size 256 = 1, wanted 1")


def test_gradient_accumulation_in_verl_counts_responses_over_the_data_parallel_ranks() -> None:
    """64 prompts x 8 responses over 8 / (2 x 1 x 1) = 4 ranks are 128 a rank: 32 micro-batches of 4."""
    assert asked(VERL, "gradient_accumulation") == (
        "failed",
        32,
        (
            "ppo_mini_batch_size 64 × rollout/n 8 / (ppo_micro_batch_size_per_gpu 4 × DP 4) = 32, wanted 1; DP = training cards 8 / "
            "(tensor_model_parallel_size 2 × pipeline_model_parallel_size 1 × context_parallel_size 1) = 4; training cards = nnodes 1 × "
            "n_gpus_per_node 8 = 8"
        ),
    )
    assert asked(changed(VERL, actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu=128), "gradient_accumulation")[:2] == ("ok", 1)


def test_a_size_that_is_not_set_is_named_as_the_one_that_trainers_take() -> None:
    _, _, text = asked(changed(VERL, actor_rollout_ref__actor__megatron__context_parallel_size=...), "gradient_accumulation")
    assert text is not None
    assert "× actor CP 1 (not set)) = 4" in text


def test_fsdp_has_as_many_data_parallel_ranks_as_cards_without_sequence_parallelism() -> None:
    """64 x 8 / (32 x 16 / 2) = 2."""
    fsdp = changed(
        VERL,
        actor_rollout_ref__actor__megatron=...,
        actor_rollout_ref__actor__ulysses_sequence_parallel_size=2,
        actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu=32,
        trainer__nnodes=2,
    )
    state, value, text = asked(fsdp, "gradient_accumulation")
    assert (state, value) == ("failed", 2)
    assert text is not None
    assert "DP = training cards 16 / ulysses_sequence_parallel_size 2 = 8" in text
    assert asked(fsdp, "same_tensor_parallel") == ("unknown", None, "actor TP not set")


def test_a_micro_batch_of_all_cards_needs_no_ranks() -> None:
    """The older setting of verl: 64 x 8 / 512 = 1."""
    old = changed(
        VERL, actor_rollout_ref__actor__ppo_micro_batch_size=512, actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu=None, trainer=...
    )
    text = "ppo_mini_batch_size 64 × rollout/n 8 / ppo_micro_batch_size 512 = 1, wanted 1"
    assert asked(old, "gradient_accumulation") == ("ok", 1, text)


def test_mini_batches_of_mindspeed_rl_count_responses() -> None:
    """32 prompts x 8 responses are one mini-batch of 256, on 16 / 4 = 4 ranks 64 each: four micro-batches of 16."""
    text = "global_batch_size 32 × n_samples_per_prompt 8 / mini_batch_size 256 = 1, wanted 1"
    assert asked(MINDSPEED, "mini_batch_num") == ("ok", 1, text)
    assert asked(MINDSPEED, "gradient_accumulation") == (
        "failed",
        4,
        (
            "mini_batch_size 256 / (micro_batch_size 16 × DP 4) = 4, wanted 1; DP = num_npus 16 / (tensor_model_parallel_size 4 × "
            "pipeline_model_parallel_size 1 × context_parallel_size 1) = 4"
        ),
    )
    assert asked(changed(MINDSPEED, rl__update_micro_batch_size="64"), "gradient_accumulation")[:2] == ("ok", 1)


def test_cards_of_mindspeed_rl_are_told_by_its_rollout_where_the_resources_are_opaque() -> None:
    opaque = changed(MINDSPEED, rl__actor_resource="<Resource {'num_npus': 16}>", generate__data_parallel_size=4)
    state, value, text = asked(opaque, "gradient_accumulation")
    assert (state, value) == ("failed", 4)
    assert text is not None
    assert text.endswith("training cards = data_parallel_size 4 × infer_tensor_parallel_size 4 × infer_pipeline_parallel_size 1 = 16")
    without = changed(MINDSPEED, rl__actor_resource="<Resource {'num_npus': 16}>")
    assert asked(without, "gradient_accumulation")[0] == "unknown"


def test_slime_is_read_in_the_spelling_of_its_command_line() -> None:
    """1 prompt x 4 responses = one global batch of 4, one on each of 8 / 2 = 4 ranks; a prefill takes 4096 / 8 = 512 tokens at a time."""
    assert asked(SLIME, "pad_multiplier") == ("ok", 1, "data-pad-size-multiplier 1, wanted 1")
    assert asked(SLIME, "rollout_batch")[:2] == ("ok", 1)
    assert asked(SLIME, "samples_per_rank")[:2] == ("ok", 4)
    assert asked(SLIME, "mini_batch_num")[:2] == ("ok", 1)
    assert asked(SLIME, "gradient_accumulation")[:2] == ("ok", 1)
    assert asked(SLIME, "chunked_prefill") == (
        "failed",
        512,
        "sglang-chunked-prefill-size 4096 / sglang-dp-size 8 = 512, wanted > rollout-max-prompt-len 1024",
    )
    assert asked(SLIME, "same_tensor_parallel")[0] == "ok"
    for code in ("eager", "graphs", "prefix_caching", "dynamic_batches", "balance_batch", "shuffle"):
        assert asked(SLIME, code)[0] == "ok", code


@pytest.mark.parametrize(
    ("settings", "state", "value"),
    [
        ({"sglang-dp-size": 2}, "ok", 2048),
        ({"sglang-dp-size": 4}, "failed", 1024),  # a prompt of 1024 tokens is not less than a piece of 1024
        ({"sglang-dp-size": ...}, "ok", 4096),  # one where nothing is set
        ({"sglang-chunked-prefill-size": -1}, "ok", -1),  # switched off
        ({"rollout-max-prompt-len": None}, "unknown", None),
    ],
)
def test_slime_prefills_a_prompt_in_one_piece(settings: Tree, state: str, value: Any) -> None:
    found = changed(SLIME)
    for name, given in settings.items():
        if given is ...:
            del found[name]
        else:
            found[name] = given
    if state == "unknown":  # then what is set is not as it would be without pieces
        assert asked(found, "chunked_prefill") == ("failed", 4096, None)
    else:
        assert asked(found, "chunked_prefill")[:2] == (state, value)


def test_trainers_are_not_asked_for_each_other_s_settings() -> None:
    for code in ("pad_multiplier", "rollout_batch", "samples_per_rank"):
        assert asked(VERL, code) == asked(MINDSPEED, code) == ("unknown", None, None)


def test_sizes_of_training_and_rollout_are_compared_within_one_configuration() -> None:
    text = "megatron/tensor_model_parallel_size 2, wanted rollout/tensor_model_parallel_size 4"
    assert asked(VERL, "same_tensor_parallel") == ("failed", 2, text)
    assert asked(VERL, "same_pipeline_parallel") == ("ok", 1, "pipeline_model_parallel_size 1, wanted rollout PP 1 (not set)")
    assert asked(MINDSPEED, "same_tensor_parallel")[0] == "ok"
    assert asked(changed(MINDSPEED, actor__context_parallel_size=2), "same_context_parallel")[:2] == ("failed", 2)


def test_sizes_of_a_train_and_an_inference_configuration_are_compared_with_each_other() -> None:
    engine = {"tensor_parallel_size": "4", "pipeline_parallel_size": 1, "enforce_eager": "true"}
    train = configuration(changed(VERL, actor_rollout_ref__actor__megatron__tensor_model_parallel_size=4, actor_rollout_ref__rollout=...))
    for sides, roles in (((train, configuration(engine)), ("train", "infer")), ((configuration(engine), train), ("infer", "train"))):
        (row,) = [row for row in preconditions(*sides, roles) if row["code"] == "same_tensor_parallel"]
        assert row["left"] == row["right"]
        assert row["left"]["state"] == "ok"
        assert row["left"]["text"]["en"] == "tensor_model_parallel_size 4, wanted tensor_parallel_size 4"


def test_each_side_takes_its_own_part_where_both_configurations_hold_both() -> None:
    """A train dump of one run against an inference dump of another: training on 2, the engine on 8."""
    left, right = VERL, changed(VERL, actor_rollout_ref__rollout__tensor_model_parallel_size=8)
    rows = preconditions(configuration(left), configuration(right), ("train", "infer"))
    (row,) = [row for row in rows if row["code"] == "same_tensor_parallel"]
    assert row["left"] == row["right"]
    assert row["left"]["text"]["en"] == "megatron/tensor_model_parallel_size 2, wanted rollout/tensor_model_parallel_size 8"
    alone = preconditions(configuration(left), configuration(right))
    (row,) = [row for row in alone if row["code"] == "same_tensor_parallel"]
    assert (row["left"]["text"]["en"][-1], row["right"]["text"]["en"][-1]) == ("4", "8")


def test_environment_variables_are_taken_where_they_stand_and_never_guessed() -> None:
    assert asked(VERL, "prompts_only") == ("ok", "1", None)
    assert asked(VERL, "dynamo") == ("failed", "0", None)
    assert asked(MINDSPEED, "prompts_only") == asked(MINDSPEED, "dynamo") == ("unknown", None, None)
    assert asked({"runtime_env": {"env_vars": {"TORCHDYNAMO_DISABLE": 1}}}, "dynamo")[0] == "ok"
    assert holding(preconditions(configuration(MINDSPEED), configuration(VERL)), "prompts_only") == ["right"]


@pytest.mark.parametrize(
    ("settings", "eager", "graphs"),
    [
        ({"enforce_eager": True}, "ok", "ok"),
        ({"enforce_eager": False}, "failed", "failed"),
        ({"enforce_eager": False, "compilation_config": {"cudagraph_mode": "NONE"}}, "failed", "ok"),
        ({"compilation_config": {"cudagraph_mode": "FULL_AND_PIECEWISE"}}, "unknown", "failed"),
        ({"disable_cuda_graph": False}, "failed", "failed"),
        ({"cudagraph_capture_sizes": None}, "unknown", "unknown"),  # what verl prints where nothing is chosen
        ({"enforce_eager": None}, "unknown", "unknown"),
        ({"env_vars": {"VLLM_ENABLE_GRAPH_MODE": "1"}}, "unknown", "failed"),
    ],
)
def test_graphs_are_off_by_any_of_the_settings_that_switch_them_off(settings: Tree, eager: str, graphs: str) -> None:
    assert (asked(settings, "eager")[0], asked(settings, "graphs")[0]) == (eager, graphs)


@pytest.mark.parametrize(
    ("mini", "text"),
    [
        (0, "train_batch_size 256 / ppo_mini_batch_size 0: division by 0"),
        ("0.0", "train_batch_size 256 / ppo_mini_batch_size 0: division by 0"),
        (None, "ppo_mini_batch_size not set"),
        (..., "ppo_mini_batch_size not set"),
        ([64, 64], "ppo_mini_batch_size is no number: [64, 64]"),
        ("auto", "ppo_mini_batch_size is no number: auto"),
        (True, "ppo_mini_batch_size is no number: true"),
        (float("nan"), "ppo_mini_batch_size is no number: NaN"),
        ("1e999", "ppo_mini_batch_size is no number: 1e999"),
        ({}, "ppo_mini_batch_size is no number: {}"),
    ],
)
def test_what_cannot_be_computed_is_unknown_and_says_why(mini: Any, text: str) -> None:
    assert asked(changed(VERL, actor_rollout_ref__actor__ppo_mini_batch_size=mini), "mini_batch_num") == ("unknown", None, text)


def test_a_number_that_is_set_twice_differently_is_not_chosen_from() -> None:
    twice = changed(VERL)
    twice["other"] = {"data": {"train_batch_size": 512}}
    assert asked(twice, "mini_batch_num") == ("unknown", None, "train_batch_size is set twice: 256 and 512")
    twice["other"] = {"data": {"train_batch_size": "256.0"}}
    assert asked(twice, "mini_batch_num")[0] == "failed"


def test_both_sides_are_asked_each_for_itself_and_neither_without_a_configuration() -> None:
    rows = {row["code"]: row for row in preconditions(configuration(VERL), configuration(MINDSPEED))}
    row = rows["mini_batch_num"]
    assert (row["left"]["state"], row["right"]["state"]) == ("failed", "ok")
    assert row["wanted"] == "train_batch_size / ppo_mini_batch_size = 1 | global_batch_size × n_samples_per_prompt / mini_batch_size = 1"
    assert preconditions(None, None) == []
    alone = {row["code"]: row for row in preconditions(None, configuration(VERL), ("train", "infer"))}
    assert {row["left"]["state"] for row in alone.values()} == {"unknown"}
    assert alone["same_tensor_parallel"]["right"]["state"] == "failed"


def test_a_configuration_that_says_nothing_decides_nothing() -> None:
    rows = preconditions(configuration({"trainer": {"project_name": "x"}}), None)
    assert {row["left"]["state"] for row in rows} == {"unknown"}
    assert not any("text" in row["left"] for row in rows)


def test_the_file_asks_only_for_numbers_that_it_knows_and_none_is_computed_of_itself() -> None:
    numbers = knowledge().numbers
    assert len({one.code for one in knowledge().preconditions}) == len(knowledge().preconditions)
    used = {name for one in knowledge().preconditions for asked in one.equations for name in asked.names}
    used |= {name for one in numbers.values() for formula in one.formulas for name in names(formula)}
    assert used == set(numbers)
    row = {"code": "c", "equations": ["a = 1"], "en": "e", "zh": "z"}
    with pytest.raises(KeyError):
        known({"numbers": {}, "preconditions": [row]})
    with pytest.raises(ValueError, match="computed of itself"):
        known({"numbers": {"a": {"is": ["b + 1"], "as": {}}, "b": {"is": ["a - 1"], "as": {}}}, "preconditions": [row]})
