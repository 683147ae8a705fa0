"""A dozen simulated pairs of other families, sizes, dtypes and wrappers: honest pairs never diverge, faults are found where they are."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.simulator import Scenario, Truth, scenarios, simulate

HONEST = [
    "clean_qwen2_tiny",
    "clean_qwen3_tiny",
    "clean_llama_tiny",
    "clean_mistral_tiny",
    "clean_qwen3_fp32",
    "clean_llama_fp16",
    "clean_qwen2_mix",
    "clean_wrap_fsdp2",
    "clean_wrap_ddp",
    "clean_wrap_compile",
    "clean_wrap_fsdp1_checkpoint",
    "clean_keyword_calls",
    "clean_micro_batches",
    "clean_recompute_micro_batches",
    "clean_llama_fp32_against_bf16",
    "clean_short",
]
SAME_CODE = [
    "same_identical",
    "same_identical_mix",
    "same_recompute",
    "same_wrappers",
    "same_wrappers_fsdp2_ddp",
    "same_extra_ops",
    "same_extra_ops_left",
]
FAULTS = [
    "fault_down_proj_noise_first",
    "fault_norm_plus_one",
    "fault_gate_up_swapped",
    "fault_nan_attention",
    "fault_inf_gate_up",
    "fault_residual_last",
    "fault_embedding_scale",
    "fault_bias_skipped_all",
    "fault_final_norm_noise",
    "fault_down_mix",
    "fault_gelu_mix",
]
PREMISES = {"premise_other_tokens": "tokens", "premise_longer": "length", "premise_shorter": "length", "premise_padding": "length"}


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in scenarios()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulated")


@cache
def answer(place: Path, name: str) -> tuple[JsonObject, Truth]:
    pair = simulate(catalogue()[name], place / name)
    return compare_paths([pair.left], [pair.right], Options()).document, pair.truth


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_pair_is_consistent(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    assert document["verdict"] in ("consistent", "identical"), document["headline"]["en"]
    assert document["origins"] == []
    assert {premise["state"] for premise in document["premises"]} == {"ok"}


@pytest.mark.parametrize("name", HONEST)
def test_every_layer_of_an_honest_pair_is_compared_and_agrees(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    assert [row["index"] for row in document["layers"]] == list(range(len(document["layers"])))
    assert len(document["layers"]) >= 2
    assert {row["grade"] for row in document["layers"]} <= {"equal", "rounding", "noise"}


@pytest.mark.parametrize("name", HONEST)
def test_nearly_every_record_of_an_honest_pair_is_explained(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    for side in ("left", "right"):
        coverage = document["coverage"][side]
        assert coverage["explained"] >= 0.95 * coverage["records"]


def test_further_micro_batches_are_explained(place: Path) -> None:
    """Three of training against one prefill: the engine makes fewer calls."""
    document, _ = answer(place, "clean_micro_batches")
    assert "not_found" not in {finding["code"] for finding in document["findings"]}


@pytest.mark.parametrize("name", SAME_CODE)
def test_the_same_numbers_from_the_same_code_are_equal_throughout(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    assert document["verdict"] in ("identical", "consistent")
    assert document["first_difference"] is None
    assert document["counts"]["rounding"] == document["counts"]["noise"] == document["counts"]["diverged"] == 0


@pytest.mark.parametrize("name", ["same_identical", "same_identical_mix", "same_recompute", "same_wrappers", "same_wrappers_fsdp2_ddp"])
def test_wrappers_and_recomputation_do_not_stop_identical(name: str, place: Path) -> None:
    assert answer(place, name)[0]["verdict"] == "identical"


@pytest.mark.parametrize(("name", "extra"), [("same_extra_ops", (0, 2)), ("same_extra_ops_left", (4, 0))])
def test_extra_calls_cost_themselves_alone(name: str, extra: tuple[int, int], place: Path) -> None:
    document, _ = answer(place, name)
    found = tuple(document["counts"][f"unmatched_{side}"] for side in ("left", "right"))
    assert [count > 0 for count in found] == [count > 0 for count in extra]
    assert max(found) <= 2 * max(extra)  # forward and, where it has one, backward


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_is(name: str, place: Path) -> None:
    document, truth = answer(place, name)
    assert truth.shown
    assert document["verdict"] == "diverged"
    first = document["first_divergence"]
    assert first["module"].split("/")[0] in truth.modules or (first["before"] or "").split("/")[0] in truth.modules, (
        first["module"],
        truth.modules,
    )
    assert len(document["origins"]) <= 16


@pytest.mark.parametrize("name", PREMISES)
def test_a_broken_premise_ends_the_comparison(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    assert document["verdict"] == "not_comparable"
    assert PREMISES[name] in {premise["code"] for premise in document["premises"] if premise["state"] == "failed"}
    assert document["origins"] == []


def test_shifted_positions_are_reported_and_harmless(place: Path) -> None:
    document, _ = answer(place, "premise_positions_offset")
    assert document["verdict"] in ("consistent", "identical")
    assert next(premise["state"] for premise in document["premises"] if premise["code"] == "positions") == "failed"
