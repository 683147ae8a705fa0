"""What a comparison rests on: tokens, length, positions, weights, overlap. Three of them end it, two are said and it goes on."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import CORPUS, bf16, call, compare, integers, tensor, verdict, write

Edit = Callable[[dict[str, Any]], None]


@lru_cache(maxsize=1)
def inference() -> dict[str, Any]:
    with zipfile.ZipFile(CORPUS / "q2_infer_stat.zip") as archive:
        member = next(entry for entry in archive.namelist() if entry.endswith("dump.json"))
        data: dict[str, Any] = json.loads(archive.read(member))["data"]
        return data


def edited(folder: Path, *edits: Edit) -> JsonObject:
    """The clean pair with the inference side's records changed."""
    records = copy.deepcopy(inference())
    for edit in edits:
        edit(records)
    return compare_paths([CORPUS / "q2_train_stat.zip"], [write(folder / "step0" / "rank0", records)], Options()).document


def leaves(records: dict[str, Any], choose: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Every tensor leaf of the records for which ``choose(leaf)`` holds."""
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "dtype" in value:
                if choose(value):
                    found.append(value)
                return
            value = list(value.values())
        if isinstance(value, list):
            for member in value:
                walk(member)

    for record in records.values():
        walk(record)
    return found


def state(document: JsonObject, code: str) -> str:
    return next(premise["state"] for premise in document["premises"] if premise["code"] == code)


def detail(document: JsonObject, code: str) -> JsonObject:
    return next(premise["detail"] for premise in document["premises"] if premise["code"] == code)


def scale(factor: float, leaf: dict[str, Any]) -> None:
    for name in ("Max", "Min", "Mean", "Norm"):
        leaf[name] = bf16(leaf[name] * factor)


def test_the_clean_pair_rests_on_all_of_them() -> None:
    document = verdict("q2_train_stat", "q2_infer_stat")
    assert {premise["code"]: premise["state"] for premise in document["premises"]} == dict.fromkeys(
        ["tokens", "length", "positions", "weights", "overlap"], "ok"
    )
    assert detail(document, "length") == {"left": 12, "right": 12}
    assert detail(document, "weights")["differing"] == 0


def test_other_token_ids_end_the_comparison(tmp_path: Path) -> None:
    def other(records: dict[str, Any]) -> None:
        for leaf in leaves(records, lambda leaf: leaf["dtype"] == "torch.int64" and leaf["Max"] == 246):
            leaf["Max"] = 240

    document = edited(tmp_path, other)
    assert document["verdict"] == "not_comparable"
    assert state(document, "tokens") == "failed"
    assert detail(document, "tokens")["max"] == [246.0, 240.0]
    assert "token" in document["headline"]["en"]


def test_another_embedding_with_equal_ids_and_weights_means_other_tokens_between_the_extremes(tmp_path: Path) -> None:
    """Max and Min of the ids agree; what the embedding put out is another tensor, of other statistics that are no multiple."""

    def other(records: dict[str, Any]) -> None:
        records["Module.model.embed_tokens.VocabParallelEmbedding.forward.0"]["output"][0] |= {
            "Norm": 0.640625,
            "Max": 0.06494140625,
            "Mean": 0.00189971923828125,
        }

    document = edited(tmp_path, other)
    assert document["verdict"] == "not_comparable"
    assert state(document, "tokens") == "failed"
    assert state(document, "weights") == "ok"


def test_an_embedding_times_a_factor_is_a_scale_and_no_other_tokens(tmp_path: Path) -> None:
    def scaled(records: dict[str, Any]) -> None:
        scale(8.0, records["Module.model.embed_tokens.VocabParallelEmbedding.forward.0"]["output"][0])

    document = edited(tmp_path, scaled)
    assert state(document, "tokens") == "ok"
    assert document["verdict"] == "diverged"
    assert document["first_divergence"]["module"] == "model.embed_tokens"
    assert "constant_factor" in {cause["code"] for cause in document["first_divergence"]["causes"]}


def test_other_embedding_weights_are_blamed_on_the_weights_and_not_on_the_tokens(tmp_path: Path) -> None:
    def other(records: dict[str, Any]) -> None:
        record = records["Module.model.embed_tokens.VocabParallelEmbedding.forward.0"]
        record["parameters"]["weight"]["Norm"] = 2.9375
        record["output"][0]["Norm"] = 0.640625

    document = edited(tmp_path, other)
    assert state(document, "tokens") != "failed"
    assert state(document, "weights") == "failed"
    assert document["verdict"] == "diverged"
    assert (document["first_divergence"]["module"], document["first_divergence"]["kind"]) == ("model.embed_tokens", "weights")


def test_another_number_of_tokens_ends_the_comparison() -> None:
    document = verdict("q2b_train_stat", "q2b_infer_len10_stat")
    assert detail(document, "length") == {"left": 12, "right": 10}
    assert "12" in document["headline"]["en"]
    assert "10" in document["headline"]["zh"]


def test_shifted_positions_are_reported_and_the_numbers_decide(tmp_path: Path) -> None:
    def shifted(records: dict[str, Any]) -> None:
        for leaf in leaves(records, lambda leaf: leaf["dtype"] == "torch.int64" and leaf["Max"] == 11):
            leaf |= {"Max": 16, "Min": 5}

    document = edited(tmp_path, shifted)
    assert document["verdict"] == "consistent"
    assert state(document, "positions") == "failed"
    assert "positions" in document["headline"]["en"]
    assert "位置" in document["headline"]["zh"]
    assert "positions_differ" in {finding["code"] for finding in document["findings"]}


def test_positions_in_a_floating_dtype_are_told(tmp_path: Path) -> None:
    def floating(records: dict[str, Any]) -> None:
        for leaf in leaves(records, lambda leaf: leaf["dtype"] == "torch.int64" and leaf["Max"] == 11):
            leaf |= {"dtype": "torch.bfloat16", "Mean": 5.5, "Norm": 22.5}

    document = edited(tmp_path, floating)
    assert state(document, "positions") == "failed"
    assert detail(document, "positions") == {"side": "right", "dtype": "torch.bfloat16"}


def test_a_differing_weight_never_ends_a_comparison_and_is_an_origin(tmp_path: Path) -> None:
    def other(records: dict[str, Any]) -> None:
        records["Module.model.layers.2.mlp.gate_up_proj.MergedColumnParallelLinear.forward.0"]["parameters"]["weight"]["Max"] = 0.75

    document = edited(tmp_path, other)
    assert document["verdict"] == "diverged"
    assert state(document, "weights") == "failed"
    assert detail(document, "weights")["modules"] == ["model.layers.2.mlp.gate_up_proj"]
    first = document["first_divergence"]
    assert (first["module"], first["kind"], first["slot"]) == ("model.layers.2.mlp.gate_up_proj", "weights", "parameters.weight")
    assert len(document["origins"]) == 1
    assert first["causes"][0]["code"] == "weight_not_synchronised"


def test_weights_that_all_differ_are_stale_and_named_only_sixteen_times(tmp_path: Path) -> None:
    def all_of_them(records: dict[str, Any]) -> None:
        for record in records.values():
            for leaf in record.get("parameters", {}).values():
                leaf["Norm"] = bf16(leaf["Norm"] * 1.05)

    document = edited(tmp_path, all_of_them)
    assert document["verdict"] == "diverged"
    assert len(document["origins"]) == 16
    assert {origin["kind"] for origin in document["origins"]} == {"weights"}
    assert document["first_divergence"]["causes"][0]["code"] == "stale_weights"
    assert detail(document, "weights")["differing"] == detail(document, "weights")["compared"]


def test_weights_that_one_side_lacks_are_assumed_and_that_is_said(tmp_path: Path) -> None:
    def without(records: dict[str, Any]) -> None:
        for record in records.values():
            record.pop("parameters", None)

    document = edited(tmp_path, without)
    assert state(document, "weights") == "unknown"
    assert document["verdict"] == "consistent"
    assert "weights_not_dumped" in {finding["code"] for finding in document["findings"]}


def test_a_weight_in_a_coarser_dtype_is_equal_after_rounding(tmp_path: Path) -> None:
    fine = tensor(8.1000003814697265625, dtype="torch.float32", largest=0.4107666015625, smallest=-0.4107666015625, shape=(64, 64))
    coarse = tensor(bf16(8.1), largest=bf16(0.4107666), smallest=-bf16(0.4107666), shape=(64, 64))
    left = {"Module.a.Linear.forward.0": call(tensor(), parameters={"weight": fine})}
    same = compare(tmp_path / "same", left, {"Module.a.Linear.forward.0": call(tensor(), parameters={"weight": coarse})})
    assert state(same, "weights") == "ok"
    apart = compare(
        tmp_path / "apart", left, {"Module.a.Linear.forward.0": call(tensor(), parameters={"weight": coarse | {"Max": 0.421875}})}
    )
    assert state(apart, "weights") == "failed"


def test_too_little_in_common_ends_the_comparison(tmp_path: Path) -> None:
    left = {f"Module.a{n}.Linear.forward.0": call(tensor()) for n in range(4)}
    right = {f"Module.b{n}.Linear.forward.0": call(tensor()) for n in range(3)} | {"Module.a0.Linear.forward.0": call(tensor())}
    document = compare(tmp_path, left, right)
    assert document["verdict"] == "not_comparable"
    assert state(document, "overlap") == "failed"
    assert detail(document, "overlap") == {"matched": [1, 1], "records": [4, 4], "layers": 0}


def test_half_of_the_smaller_side_is_enough(tmp_path: Path) -> None:
    left = {f"Module.a{n}.Linear.forward.0": call(tensor()) for n in range(20)}
    right = {f"Module.a{n}.Linear.forward.0": call(tensor()) for n in range(2)} | {
        f"Module.b{n}.Linear.forward.0": call(tensor()) for n in range(2)
    }
    document = compare(tmp_path, left, right)
    assert state(document, "overlap") == "ok"


def test_two_dumps_of_other_models_are_not_comparable(tmp_path: Path) -> None:
    """Nothing in common at all."""
    document = compare(tmp_path, {"Module.a.Linear.forward.0": call(tensor())}, {"Module.b.Conv2d.forward.0": call(tensor())})
    assert document["verdict"] == "not_comparable"
    assert document["coverage"]["left"] == {"records": 1, "matched": 0, "explained": 0}


@pytest.mark.parametrize("code", ["tokens", "length", "positions"])
def test_a_dump_without_ids_and_positions_leaves_those_premises_open(code: str, tmp_path: Path) -> None:
    records = {"Module.a.Linear.forward.0": call(tensor())}
    found = state(compare(tmp_path, records, records), code)
    assert found == "unknown" if code != "length" else found in ("ok", "unknown")


def test_ids_of_another_integer_dtype_are_the_same_tokens(tmp_path: Path) -> None:
    def narrower(records: dict[str, Any]) -> None:
        for leaf in leaves(records, lambda leaf: leaf["dtype"] == "torch.int64"):
            leaf["dtype"] = "torch.int32"

    document = edited(tmp_path, narrower)
    assert document["verdict"] == "consistent"
    assert state(document, "tokens") == state(document, "positions") == "ok"


def test_another_length_without_ids_is_told_by_the_sizes_of_outputs(tmp_path: Path) -> None:
    left = {f"Module.a{n}.Linear.forward.0": call(tensor(), integers(3)) for n in range(4)}
    right = {f"Module.a{n}.Linear.forward.0": call(tensor(), integers(3), output=[tensor(shape=(1, 10, 64))]) for n in range(4)}
    document = compare(tmp_path, left, right)
    assert state(document, "length") == "failed"
    assert document["verdict"] == "not_comparable"
    assert "size" in document["headline"]["en"]
