"""Where two sides first part: the earliest output that differs while its inputs and parameters agree, and how that is told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from compare.engine.measure.grades import Grade
from compare.engine.model import JsonObject
from tests.engine.build import call, compare, integers, next_bf16, number, part, tensor, verdict

CHAIN = ["a", "b", "c", "d", "e"]


def chain(wrong: dict[str, float] | None = None, *, bias: str = "", slots: int = 1) -> dict[str, Any]:
    """Five modules in a row, each taking what the one before put out; ``wrong``: the Norm of an output, by module."""
    wrong = wrong or {}
    records: dict[str, Any] = {}
    into = 8.0
    for name in CHAIN:
        out = wrong.get(name, 8.0)
        weight = tensor(4.0 if name != bias else 4.5, shape=(64, 64))
        records[f"Module.{name}.Linear.forward.0"] = call(tensor(into), output=[tensor(out)], parameters={"weight": weight})
        into = out
    return records


def after(first: str, norm: float) -> dict[str, float]:
    """Everything from ``first`` on puts out ``norm``."""
    return dict.fromkeys(CHAIN[CHAIN.index(first) :], norm)


def first(document: JsonObject) -> JsonObject:
    found: JsonObject = document["first_divergence"]
    return found


@pytest.mark.parametrize("at", CHAIN)
def test_the_origin_is_where_a_clean_input_meets_a_dirty_output(at: str, tmp_path: Path) -> None:
    document = compare(tmp_path, chain(), chain(after(at, 12.0)))
    assert document["verdict"] == "diverged"
    assert [(origin["module"], origin["kind"], origin["slot"]) for origin in document["origins"]] == [(at, "origin", "output.0")]
    assert first(document)["left"] == first(document)["right"] == [f"Module.{at}.Linear.forward.0"]
    assert first(document)["evidence"]["norm_rel"] == pytest.approx(4 / 12)
    assert first(document)["evidence"]["ulps"] == 64.0  # (12 − 8) / 2⁻⁴, the bf16 unit at 12
    assert first(document)["confidence"] == "high"


def test_what_follows_an_origin_is_no_origin(tmp_path: Path) -> None:
    document = compare(tmp_path, chain(), chain(after("b", 12.0)))
    assert len(document["origins"]) == 1
    assert document["counts"]["diverged"] == 1 + 2 * 3  # the origin's output; inputs and outputs of the three after it


def test_the_step_into_a_dirty_input_happened_between_what_was_dumped(tmp_path: Path) -> None:
    """c takes in something else than b put out: the fault lies between the two."""
    right = chain(after("c", 12.0))
    right["Module.c.Linear.forward.0"]["input_args"] = [tensor(12.0)]
    document = compare(tmp_path, chain(), right)
    found = first(document)
    assert (found["kind"], found["after"], found["before"], found["module"]) == ("between", "b", "c", "(root)")


def test_a_differing_parameter_is_an_origin_of_its_own_kind_and_comes_first(tmp_path: Path) -> None:
    document = compare(tmp_path, chain(), chain(after("c", 12.0), bias="c"))
    assert [(origin["module"], origin["kind"], origin["slot"]) for origin in document["origins"]] == [("c", "weights", "parameters.weight")]


def test_a_parameter_that_differs_behind_an_activation_that_parts_does_not_hide_it(tmp_path: Path) -> None:
    document = compare(tmp_path, chain(), chain(after("b", 12.0), bias="d"))
    assert [(origin["module"], origin["kind"]) for origin in document["origins"]] == [("b", "origin"), ("d", "weights")]


def test_a_parameter_whose_difference_moves_nothing_is_still_found(tmp_path: Path) -> None:
    document = compare(tmp_path, chain(), chain(bias="d"))
    assert document["verdict"] == "diverged"
    assert [(origin["module"], origin["kind"]) for origin in document["origins"]] == [("d", "weights")]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_or_inf_on_one_side_is_an_origin_of_its_own_kind(value: float, tmp_path: Path) -> None:
    document = compare(tmp_path, chain(), chain(after("d", value)))
    assert (first(document)["module"], first(document)["kind"]) == ("d", "nonfinite")
    assert first(document)["causes"][0]["code"] == "overflow"
    assert "right" in first(document)["causes"][0]["text"]["en"]
    assert first(document)["confidence"] == "high"


def test_the_same_nan_on_both_sides_is_no_divergence(tmp_path: Path) -> None:
    document = compare(tmp_path, chain(after("d", math.nan)), chain(after("d", math.nan)))
    assert document["verdict"] == "identical"


def test_a_constant_factor_is_named(tmp_path: Path) -> None:
    half = tensor(4.0, largest=0.5, smallest=-0.5)
    right = chain()
    right["Module.c.Linear.forward.0"]["output"] = [half]
    right["Module.d.Linear.forward.0"]["input_args"] = [half]
    found = first(compare(tmp_path, chain(), right))
    assert found["module"] == "c"
    cause = next(cause for cause in found["causes"] if cause["code"] == "constant_factor")
    assert "1/2" in cause["text"]["en"]
    assert cause["score"] >= 0.5


def test_one_unit_of_rounding_is_a_difference_and_no_divergence(tmp_path: Path) -> None:
    right = chain()
    right["Module.c.Linear.forward.0"]["output"] = [tensor(next_bf16(8.0))]
    document = compare(tmp_path, chain(), right)
    assert document["verdict"] == "consistent"
    assert document["first_divergence"] is None
    difference = document["first_difference"]
    assert (difference["module"], difference["slot"], difference["grade"], difference["order"]) == ("c", "output.0", "rounding", 8)


def test_in_a_determinism_check_one_unit_is_a_divergence(tmp_path: Path) -> None:
    right = chain()
    right["Module.c.Linear.forward.0"]["output"] = [tensor(next_bf16(8.0))]
    document = compare(tmp_path, chain(), right, exact=True)
    assert document["verdict"] == "diverged"
    assert first(document)["module"] == "c"
    assert document["first_difference"]["order"] == first(document)["order"] == 8


def test_a_determinism_check_of_equal_dumps_is_identical(tmp_path: Path) -> None:
    assert compare(tmp_path, chain(), chain(), exact=True)["verdict"] == "identical"


def test_identical_needs_nothing_unmatched_that_the_other_side_could_have(tmp_path: Path) -> None:
    longer = chain() | {"Module.f.Linear.forward.0": call(tensor())}
    document = compare(tmp_path, chain(), longer)
    assert document["verdict"] == "consistent"
    assert document["counts"]["unmatched_right"] == 1


@pytest.mark.parametrize("leaf", [tensor(), number(3, "int"), {"type": "str", "value": "x"}], ids=["tensor", "number", "text"])
@pytest.mark.parametrize("swap", [False, True])
def test_a_value_against_null_is_not_identical(leaf: dict[str, Any], swap: bool, tmp_path: Path) -> None:
    sides = [{"Module.a.L.forward.0": call(tensor(), leaf)}, {"Module.a.L.forward.0": call(tensor(), None)}]
    assert compare(tmp_path, *(sides[::-1] if swap else sides))["verdict"] == "consistent"


def test_tensors_of_other_sizes_are_not_identical(tmp_path: Path) -> None:
    sides = [{"Module.a.L.forward.0": call(tensor(), tensor(shape=shape))} for shape in ((4, 4), (4, 5))]
    assert compare(tmp_path, *sides)["verdict"] == "consistent"


def test_dumps_of_nulls_alone_agree_on_nothing(tmp_path: Path) -> None:
    record = {"Module.a.L.forward.0": {"input_args": [None], "input_kwargs": {}, "output": [None]}}
    assert compare(tmp_path, record, record)["verdict"] == "not_comparable"


def test_an_argument_that_differs_stops_identical_and_is_a_finding(tmp_path: Path) -> None:
    def records(dropout: float) -> dict[str, Any]:
        found = chain()
        found["Module.c.Linear.forward.0"]["input_kwargs"] = {"dropout_p": number(dropout)}
        return found

    document = compare(tmp_path, records(0.0), records(0.1))
    assert document["verdict"] == "consistent"
    finding = next(finding for finding in document["findings"] if finding["code"] == "argument_differs")
    assert finding["evidence"]["arguments"] == [{"module": "c", "slot": "input.dropout_p", "left": "0", "right": "0.1"}]


def test_an_integer_tensor_that_differs_is_an_origin(tmp_path: Path) -> None:
    """The experts that a router chose, say."""

    def records(chosen: int) -> dict[str, Any]:
        return {"Module.gate.Router.forward.0": call(tensor(), output=[tensor(), integers(chosen)]), **chain()}

    document = compare(tmp_path, records(5), records(6))
    assert (first(document)["module"], first(document)["slot"]) == ("gate", "output.1")


def test_forward_is_told_before_backward(tmp_path: Path) -> None:
    def records(forward: float, backward: float) -> dict[str, Any]:
        gradient = {"Module.e.Linear.backward.0": {"input": [tensor()], "output": [tensor(backward)]}}
        return chain(after("b", forward)) | gradient

    both = compare(tmp_path / "both", records(8.0, 8.0), records(12.0, 12.0))
    assert (first(both)["module"], first(both)["direction"]) == ("b", "forward")
    gradient = compare(tmp_path / "gradient", records(8.0, 8.0), records(8.0, 12.0))
    assert (first(gradient)["module"], first(gradient)["direction"]) == ("e", "backward")


def test_the_order_is_that_of_the_dump_and_counts_compared_pairs(tmp_path: Path) -> None:
    """Each of the five modules has an input, a weight and an output: the output of the third is the ninth pair."""
    document = compare(tmp_path, chain(), chain(after("c", 12.0)))
    assert (first(document)["order"], first(document)["of"]) == (8, 15)


def test_the_earlier_of_two_calls_of_one_module_is_named_by_its_record(tmp_path: Path) -> None:
    def records(norm: float) -> dict[str, Any]:
        found = chain()
        found |= {
            name.replace("forward.0", "forward.1"): call(tensor(), output=[tensor(norm if ".c." in name else 8.0)]) for name in list(found)
        }
        return found

    document = compare(tmp_path, records(8.0), records(12.0))
    assert first(document)["module"] == "c"
    assert first(document)["left"] == ["Module.c.Linear.forward.1"]


@pytest.mark.parametrize(
    "pair", [("q2_train_stat", "q2_infer_rope_stat"), ("q2_train_stat", "q2_infer_down2_stat"), ("q2_train_stat", "q2_infer_eps_stat")]
)
def test_a_real_fault_has_one_origin_with_evidence_and_a_cause(pair: tuple[str, str]) -> None:
    document = verdict(*pair)
    assert len(document["origins"]) == 1
    found = first(document)
    assert found["left"]
    assert found["right"]
    assert found["causes"]
    assert all(0 < cause["score"] < 1 for cause in found["causes"])
    assert any(value is not None for value in found["evidence"].values())


def test_a_divergence_in_the_middle_of_attention_names_what_lies_around_it() -> None:
    """Hugging Face dumps no rotated query: rope is told between the projections and the attention result."""
    found = first(verdict("q2_train_stat", "q2_infer_rope_stat"))
    assert (found["kind"], found["module"]) == ("between", "model.layers.0.self_attn")
    assert found["before"] == "model.layers.0.self_attn.attn"
    assert found["after"] in ("model.layers.0.self_attn.qkv_proj", "model.layers.0.self_attn.rotary_emb")
    assert found["causes"][0]["code"] == "rotary_embedding"


def test_a_gradient_that_is_off_does_not_raise_the_bar_for_what_follows() -> None:
    """The gradient at layer 1's MLP output is times 1.5: what is a third off from there on has diverged, and is no noise."""
    case = part("q2b_shim_clean_stat", "q2b_shim_grad15_stat").cases[0]
    far = (case.pairs.direction == 1) & case.grades.comparable & (case.grades.difference > 0.3)
    assert far.sum() >= 16
    assert (case.grades.grade[far] == Grade.DIVERGED).all()


def test_a_wrong_epsilon_is_blamed_on_the_norm() -> None:
    assert "norm_epsilon" in {cause["code"] for cause in first(verdict("q2_train_stat", "q2_infer_eps_stat"))["causes"]}


def test_a_perturbed_weight_that_its_rounded_statistics_hide_is_found_by_what_it_does() -> None:
    """Two of the statistics of down_proj's weight would have to move; the fault is found whichever way it shows."""
    found = first(verdict("q2_train_stat", "q2_infer_down2_stat"))
    assert found["module"] == "model.layers.2.mlp.down_proj"
    assert found["kind"] in ("weights", "origin")


def test_the_same_dump_on_both_sides_is_compared_and_told() -> None:
    document = verdict("q2_train_stat", "q2_train_stat")
    assert document["verdict"] == "identical"
    assert "same_input" in {finding["code"] for finding in document["findings"]}
    assert "same_input" not in {finding["code"] for finding in verdict("q2_shim_stat", "q2_infer_stat")["findings"]}
