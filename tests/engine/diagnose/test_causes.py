"""What may be behind an origin, and what to try next."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from compare.engine.diagnose import advice, causes
from compare.engine.diagnose.advice import advice_for
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import compare, corpus, verdict
from tests.engine.diagnose.test_symmetry import members
from tests.simulator import scenarios, simulate


def test_every_cause_says_what_to_try_next() -> None:
    source = Path(causes.__file__).read_text("utf-8")
    codes = set(re.findall(r'Cause\(\s*"([a-z_]+)"', source)) | {"quantised", "other_dtype"}
    assert len(codes) > 15
    assert codes <= set(advice.ADVICE), codes - set(advice.ADVICE)
    for text in advice.ADVICE.values():
        assert text["en"].strip()
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text["zh"])


def test_a_next_step_names_the_modules_as_the_dumper_takes_them() -> None:
    text = advice_for("linear_computation", ["model.layers.0.mlp.down_proj.Linear.forward.0"])
    assert text is not None
    assert '"list": ["model.layers.0.mlp.down_proj.Linear.forward.0"]' in text["en"]
    assert advice_for("unheard_of", []) is None


def test_a_wrong_epsilon_is_told_with_the_setting_to_compare() -> None:
    first = verdict("q2_train_stat", "q2_infer_eps_stat")["first_divergence"]
    assert first["causes"][0]["code"] == "norm_epsilon"
    assert "rms_norm_eps" in first["causes"][0]["advice"]["en"]
    assert "dump_after_load" in first["causes"][0]["advice"]["zh"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("fault_moe_routing_shifted", "expert_routing"),
        ("fault_tp2_unreduced", "reduction_missing"),
        ("same_gradient_scaled", "gradient_only"),
        ("fault_mask_fp32_against_bf16", "other_dtype"),
    ],
)
def test_a_fault_is_told_with_its_cause(name: str, code: str, tmp_path: Path) -> None:
    pair = simulate(next(scenario for scenario in scenarios() if scenario.name == name), tmp_path / name)
    first = compare_paths([pair.left], [pair.right], Options()).document["first_divergence"]
    assert code in {cause["code"] for cause in first["causes"]}
    assert all(0 < cause["score"] < 1 for cause in first["causes"])


def test_the_other_weights_are_said_to_agree_only_where_they_do() -> None:
    """Eight weights of several modules differ at step 1; the cause said of the first of them that the others agree."""
    judged = corpus("q2_train_steps2_stat", "q2_train_steps2_pert1_stat").parts[1][1]
    assert judged is not None
    detail = next(premise["detail"] for premise in judged.document["premises"] if premise["code"] == "weights")
    assert (detail["differing"], detail["compared"]) == (8, 51)
    for cause in judged.document["first_divergence"]["causes"]:
        assert not cause["text"]["en"].startswith("this weight")
        assert "8 of the 51 weights" in cause["text"]["en"]
        assert "51 个权重中有 8 个" in cause["text"]["zh"]
        assert "the other weights agree" not in cause["text"]["en"]
        assert cause["score"] < 0.8


def test_one_weight_alone_is_told_with_the_number_of_those_that_agree(tmp_path: Path) -> None:
    left = members("q2_shim_stat")["dump.json"]["data"]
    right = copy.deepcopy(left)
    name = next(name for name in right if "layers.2." in name and ".down_proj." in name and name.endswith(".forward.0"))
    right[name]["parameters"]["weight"]["Norm"] *= 1.25
    cause = compare(tmp_path, left, right)["first_divergence"]["causes"][0]
    assert cause["code"] == "weight_changed"
    assert cause["text"]["en"].startswith("this weight")
    assert cause["text"]["en"].endswith("the other 50 compared agree")
    assert cause["text"]["zh"].endswith("其余 50 个一致")
