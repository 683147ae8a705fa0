"""Why a record has no partner: one code of the contract's list, and coverage that counts only what was compared."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compare.engine.align.explain import Explanation
from compare.engine.diagnose.case import Case
from tests.engine.build import call, case, part, tensor

GRADIENT = {"input": [tensor()], "output": [tensor()]}


def unmatched(found: Case, side: int) -> dict[str, str]:
    codes = found.explanations[side]
    names = found.dumps[side].records.name
    return {names[row]: Explanation(int(code)).name.lower() for row, code in enumerate(codes) if code != Explanation.MATCHED}


def test_what_the_inference_side_lacks_is_explained_by_name() -> None:
    found = part("q2_train_stat", "q2_infer_stat").cases[0]
    left, right = unmatched(found, 0), unmatched(found, 1)
    assert {code for name, code in left.items() if ".backward." in name or "parameters_grad" in name} == {"no_backward_on_other_side"}
    forward = {name.replace("_fsdp_wrapped_module.", ""): code for name, code in left.items() if ".forward." in name}
    head = forward.pop("Module.lm_head.Linear.forward.0")
    assert forward == {f"Module.model.layers.{n}.mlp.act_fn.SiLUActivation.forward.0": "different_kind" for n in range(4)}
    assert head in ("not_called", "different_kind")  # the engine's logits are of the last row alone
    assert list(right) == ["Module.logits_processor.LogitsProcessor.forward.0"]


def test_recomputed_calls_are_explained_as_such() -> None:
    found = part("q2_ckpt_stat", "q2_shim_stat").cases[0]
    codes = Counter(unmatched(found, 0).values())
    assert codes == {"recompute": 48}
    assert unmatched(found, 1) == {}


def test_gradients_that_face_nulls_are_placeholders() -> None:
    found = part("q2_fsdp2_stat", "q2_train_stat").cases[0]
    for side in (0, 1):
        assert set(unmatched(found, side).values()) <= {"placeholder", "wrapper", "different_kind"}


def test_a_wrapper_record_around_the_model_is_explained() -> None:
    found = part("q2_plain_stat", "q2_shim_stat").cases[0]
    for side in (0, 1):
        assert set(unmatched(found, side).values()) <= {"wrapper", "placeholder"}


def test_an_inserted_api_call_is_explained_as_other_calls(tmp_path: Path) -> None:
    def records(*apis: str) -> dict[str, Any]:
        seen: Counter[str] = Counter()
        found: dict[str, Any] = {}
        for api in apis:
            found[f"Functional.{api}.{seen[api]}.forward"] = call(tensor())
            seen[api] += 1
        return found

    made = case(tmp_path, records("linear", "silu", "linear"), records("linear", "dropout", "silu", "linear"))
    assert unmatched(made, 0) == {}
    assert unmatched(made, 1) == {"Functional.dropout.0.forward": "other_calls"}


def test_a_module_without_a_partner_is_not_found_and_that_is_no_explanation(tmp_path: Path) -> None:
    made = case(
        tmp_path, {"Module.a.L.forward.0": call(tensor()), "Module.b.L.forward.0": call(tensor())}, {"Module.a.L.forward.0": call(tensor())}
    )
    assert unmatched(made, 0) == {"Module.b.L.forward.0": "not_found"}


def test_gradients_against_a_side_without_any_have_no_backward_there(tmp_path: Path) -> None:
    both = {"Module.a.L.forward.0": call(tensor()), "Module.a.L.backward.0": GRADIENT, "Module.a.L.parameters_grad": {"weight": [tensor()]}}
    made = case(tmp_path, both, {"Module.a.L.forward.0": call(tensor())})
    assert unmatched(made, 0) == dict.fromkeys(["Module.a.L.backward.0", "Module.a.L.parameters_grad"], "no_backward_on_other_side")


def test_a_record_whose_slots_are_all_null_is_a_placeholder(tmp_path: Path) -> None:
    nulls = {"input_args": [None], "input_kwargs": {}, "output": [None]}
    made = case(tmp_path, {"Module.a.L.forward.0": call(tensor()), "Module.b.L.forward.0": nulls}, {"Module.a.L.forward.0": call(tensor())})
    assert unmatched(made, 0) == {"Module.b.L.forward.0": "placeholder"}


def test_matched_means_compared_and_a_pair_of_other_sizes_is_not(tmp_path: Path) -> None:
    record = {"input_args": [], "input_kwargs": {}}
    left = {"Module.a.L.forward.0": record | {"output": [tensor(shape=(4, 4))]}}
    right = {"Module.a.L.forward.0": record | {"output": [tensor(shape=(4, 5))]}}
    made = case(tmp_path, left, right)
    assert not made.matched[0].any()
    assert unmatched(made, 0) == {"Module.a.L.forward.0": "different_kind"}


@pytest.mark.parametrize(
    ("left", "right"),
    [("q2_train_stat", "q2_infer_stat"), ("q2b_lora_train_stat", "q2b_infer_clean_stat"), ("moe_train_stat", "moe_infer_clean_stat")],
)
def test_every_unmatched_record_has_one_code_of_the_list(left: str, right: str) -> None:
    found = part(left, right).cases[0]
    for side in (0, 1):
        recorded = found.dumps[side].records.recorded
        codes = found.explanations[side][recorded]
        assert ((codes == Explanation.MATCHED) == found.matched[side][recorded]).all()
