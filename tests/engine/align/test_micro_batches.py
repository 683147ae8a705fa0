"""Several micro-batches on both sides: each call faces the call of the same micro-batch, API calls included."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.bench.cross_framework import Extent, write_pair


def verdict(folder: Path, fault: int | None) -> JsonObject:
    left, right, _ = write_pair(folder, Extent(layers=4, micro_batches=3, fault=fault))
    return compare_paths([left], [right], Options()).document


def test_an_api_call_of_the_second_micro_batch_does_not_face_a_tensor_of_the_first(tmp_path: Path) -> None:
    """scaled_dot_product_attention number 5 of a 4-layer model is layer 1 of micro-batch 1, not the sixth call of layer 1."""
    document = verdict(tmp_path, None)
    assert document["verdict"] == "consistent", document["headline"]["en"]
    assert document["counts"]["diverged"] == 0
    assert document["coverage"]["right"]["explained"] == document["coverage"]["right"]["records"]


@pytest.mark.parametrize("fault", [0, 2, 3])
def test_a_fault_in_all_micro_batches_has_one_origin(tmp_path: Path, fault: int) -> None:
    document = verdict(tmp_path, fault)
    assert [origin["module"] for origin in document["origins"]] == [f"model.layers.{fault}.mlp.down_proj"]
