"""Simulated pairs of experts, latent attention and ranks: honest pairs never diverge and are explained, faults are found where they are.
The scoreboard of the benchmarks judges the whole catalogue; these are the fast ones of it."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.simulator import Scenario, Truth, scenarios, simulate

HONEST = [
    "clean_moe_tiny",
    "clean_listed_tiny",
    "clean_latent_tiny",
    "clean_latent_moe_tiny",
    "clean_moe_sglang",
    "clean_listed_fp16",
    "clean_tp2",
    "clean_tp4_shared_heads",
    "clean_pp2",
    "clean_megatron",
    "clean_megatron_tp2_pp2",
    "clean_megatron_four_each",
    "clean_megatron_chunks",
    "clean_megatron_chunks_tp2",
    "clean_megatron_sequence",
    "clean_partial_outputs",
]
FAULTS = [
    "fault_moe_routing_shifted",
    "fault_listed_routing_shifted",
    "fault_moe_gate_noise",
    "fault_moe_experts_halved",
    "fault_listed_moe_nan",
    "fault_shared_skipped_latent",
    "fault_latent_rope",
    "fault_latent_scale",
    "fault_latent_kv_down_noise",
    "fault_latent_latent_norm",
    "fault_latent_gelu",
    "fault_tp2_unreduced",
    "fault_tp2_unreduced_mlp",
    "fault_tp4_shared_heads_mask",
    "fault_pp2_gelu",
    "fault_megatron_eps",
    "fault_megatron_tp2_pp2_gelu",
    "fault_megatron_four_each_down",
    "fault_megatron_chunks_mask",
    "fault_megatron_sequence_qkv",
    "fault_partial_outputs_unreduced",
    "fault_tp2_float16_scale",
]


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in scenarios()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@cache
def answer(place: Path, name: str) -> tuple[JsonObject, Truth]:
    pair = simulate(catalogue()[name], place / name)
    return compare_paths([pair.left], [pair.right], Options()).document, pair.truth


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_pair_is_consistent_and_explained(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    assert document["verdict"] in ("consistent", "identical"), document["headline"]["en"]
    for side in ("left", "right"):
        assert document["coverage"][side]["explained"] == document["coverage"][side]["records"]
    assert [row["index"] for row in document["layers"]] == list(range(len(document["layers"])))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_is(name: str, place: Path) -> None:
    document, truth = answer(place, name)
    first = document["first_divergence"]
    assert first is not None, document["headline"]["en"]
    assert first["module"] in truth.modules
    assert all(cause["text"]["zh"] for cause in first["causes"])


@pytest.mark.parametrize("name", ["fault_tp2_unreduced", "fault_partial_outputs_unreduced"])
def test_a_sum_that_no_rank_has_is_a_missing_reduction(name: str, place: Path) -> None:
    document, _ = answer(place, name)
    assert document["first_divergence"]["causes"][0]["code"] == "reduction_missing"
    assert "ranks_disagree" in {finding["code"] for finding in document["findings"]}


def test_sums_left_as_parts_on_purpose_are_no_divergence(place: Path) -> None:
    """SGLang adds up what its row-parallel linears put out only before the next norm."""
    document, _ = answer(place, "clean_partial_outputs")
    assert "ranks_disagree" not in {finding["code"] for finding in document["findings"]}
    assert document["counts"]["incomparable"] > 0


def test_layers_of_interleaved_chunks_have_their_global_numbers(place: Path) -> None:
    document, _ = answer(place, "fault_megatron_chunks_mask")
    assert document["first_divergence"]["module"].startswith("model.layers.3.")
    assert "decoder.layers.1." in document["first_divergence"]["left"][0]  # the second layer of the second stage's first chunk
