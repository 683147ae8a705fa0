"""The published Qwen2 walkthrough: what looks like 20 and 27 % off by name is no divergence, and the answer says why.

Training returns hidden states; inference returns (MLP output, residual) and adds the two inside the next norm. The published figures:
layer 1 79.00 / 63.25, layer 5 1723.28 / 1696, layer 10 1725.05 / 1728, layer 15 1728.08 / 1728, layer 20 1767.31 / 1760, layer 23
538.36 / 684.
"""

from __future__ import annotations

import pytest

from compare.engine.diagnose.rollup import Role
from compare.engine.diagnose.tree import tree_of
from compare.engine.measure.grades import Grade
from compare.engine.model import JsonObject
from tests.engine.build import part, verdict

BOTH = pytest.mark.parametrize("form", ["", "_bare"], ids=["whole", "dump_only"])
# layer: (training norm, norm of the same-named output, how far off that looks)
PUBLISHED = {
    1: (79.00, 63.25, 0.199),
    5: (1723.28, 1696.0, 0.0158),
    10: (1725.05, 1728.0, 0.0017),
    15: (1728.08, 1728.0, 0.0),
    20: (1767.31, 1760.0, 0.0041),
    23: (538.36, 684.0, 0.271),
}


def answer(form: str) -> JsonObject:
    return verdict(f"seed24_train{form}", f"seed24_infer{form}")


def row(form: str, index: int) -> JsonObject:
    return next(row for row in answer(form)["layers"] if row["index"] == index)


@BOTH
@pytest.mark.parametrize("index", PUBLISHED)
def test_the_published_figures_stand_in_by_name(form: str, index: int) -> None:
    train, named, off = PUBLISHED[index]
    found = row(form, index)
    assert found["left_norm"] == pytest.approx(train, abs=1e-6)
    assert found["by_name"]["norm"] == named
    assert found["by_name"]["norm_rel"] == pytest.approx(off, abs=6e-4)


@BOTH
@pytest.mark.parametrize("index", range(24))
def test_no_layer_is_flagged(form: str, index: int) -> None:
    found = row(form, index)
    assert found["grade"] in ("equal", "rounding", "noise")
    assert found["norm_rel"] < 0.004
    assert abs(found["ulps"]) <= 1


@BOTH
def test_what_was_compared_is_the_sum_that_the_next_norm_puts_out(form: str) -> None:
    for index in range(23):
        assert row(form, index)["compared"] == f"residual stream: right layers.{index + 1}.input_layernorm output.1"
    assert row(form, 23)["compared"] == "residual stream: right norm output.1"


@BOTH
def test_the_verdict_is_consistent_and_nothing_is_blamed(form: str) -> None:
    document = answer(form)
    assert document["verdict"] == "consistent"
    assert document["origins"] == []
    assert document["first_divergence"] is None
    assert document["counts"]["diverged"] == 0
    assert document["headline"]["en"].startswith("Consistent")
    assert "24" in document["headline"]["zh"]


@BOTH
def test_the_finding_says_which_layers_would_look_wrong_and_why_they_are_not(form: str) -> None:
    found = next(finding for finding in answer(form)["findings"] if finding["code"] == "residual_pair_output")
    assert found["severity"] == "info"
    assert found["modules"] == [f"model.layers.{index}" for index in range(24)]
    shown = {entry["index"]: entry for entry in found["evidence"]["layers"]}
    assert shown[1]["norm"] == 63.25
    assert shown[23]["norm"] == 684.0
    off = sum(entry["norm_rel"] > 0.01 for entry in shown.values())
    assert f"{off} of 24 layers" in found["text"]["en"]
    assert f"24 层中有 {off} 层" in found["text"]["zh"]
    assert "next norm" in found["text"]["en"]


@BOTH
def test_no_row_of_the_tree_is_flagged(form: str) -> None:
    judged = part(f"seed24_train{form}", f"seed24_infer{form}")
    columns = tree_of(judged.cases, judged.origins).columns
    assert not (columns["grade"] == Grade.DIVERGED).any()
    assert not ((columns["role"] >= Role.ORIGIN) & (columns["role"] <= Role.AMPLIFIED)).any()


def test_a_dump_without_construct_gives_the_same_answer() -> None:
    whole, bare = answer(""), answer("_bare")
    assert [(r["index"], r["grade"], r["right_norm"], r["compared"]) for r in whole["layers"]] == [
        (r["index"], r["grade"], r["right_norm"], r["compared"]) for r in bare["layers"]
    ]
    assert "structure_from_names" in {finding["code"] for finding in bare["findings"]}
    assert "structure_from_names" not in {finding["code"] for finding in whole["findings"]}
