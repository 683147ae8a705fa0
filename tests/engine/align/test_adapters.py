"""Adapters that one side merged into its weights."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import CORPUS

ADAPTED, MERGED = CORPUS / "q2b_lora_train_stat.zip", CORPUS / "q2b_infer_clean_stat.zip"


def changed(folder: Path, module: str) -> JsonObject:
    """The verdict on the adapted training side against an engine whose weight of ``module`` is another."""
    with zipfile.ZipFile(MERGED) as archive:
        document = json.loads(archive.read(next(name for name in archive.namelist() if name.endswith("dump.json"))))
    for name, record in document["data"].items():
        if f".{module}." in name:
            record["parameters"]["weight"]["Max"] *= 1.25
    (folder / "dump.json").write_text(json.dumps(document), "utf-8")
    return compare_paths([ADAPTED], [folder], Options()).document


@pytest.mark.parametrize("module", ["layers.1.self_attn.qkv_proj", "layers.2.mlp.down_proj", "layers.0.mlp.gate_up_proj"])
def test_a_weight_with_a_merged_adapter_may_differ(tmp_path: Path, module: str) -> None:
    document = changed(tmp_path, module)
    assert document["verdict"] == "consistent", document["headline"]["en"]
    assert document["counts"]["diverged"] == 0


@pytest.mark.parametrize("module", ["layers.1.input_layernorm", "embed_tokens"])
def test_a_weight_beside_which_there_is_no_adapter_may_not(tmp_path: Path, module: str) -> None:
    document = changed(tmp_path, module)
    assert document["verdict"] == "diverged"
    assert document["first_divergence"]["module"] == f"model.{module}"


def test_modules_of_the_adapter_are_explained() -> None:
    document = compare_paths([ADAPTED], [MERGED], Options()).document
    left = document["coverage"]["left"]
    assert left["records"] - left["explained"] <= 1
