"""Sides that hold other ranks: some are missing, or worked on other tokens, or the model is cut otherwise."""

from __future__ import annotations

import copy
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compare.engine.keydata.comparison import compare_key_data
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.parts.pairing import rank_shift
from compare.engine.pipeline import compare_paths
from tests.engine.build import CORPUS
from tests.engine.keydata.trees import array, key_data, write

FAULTY = "layers.1.mlp.down_proj"
STATISTICS = ("Max", "Min", "Mean", "Norm")


@cache
def _members(name: str) -> dict[str, Any]:
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
        return {member.rpartition("/")[2]: json.loads(archive.read(member)) for member in archive.namelist() if member.endswith(".json")}


def rank(folder: Path, *, fault: bool = False, tokens: int = 0, source: str = "q2_train_stat") -> None:
    """A dump of a real model. ``fault``: what one linear puts out is 5 % too large; ``tokens``: makes its ids those of other data."""
    members = copy.deepcopy(_members(source))
    for name, record in members["dump.json"]["data"].items():
        if fault and ".layers.1." in name and ".down_proj." in name and "forward" in name:
            for leaf in record["output"]:
                leaf.update({name: leaf[name] * 1.05 for name in STATISTICS})
        if ".embed_tokens." in name and "forward" in name:
            for leaf in record["input_args"]:
                leaf["Max"] += tokens
    folder.mkdir(parents=True)
    for name, member in members.items():
        (folder / name).write_text(json.dumps(member), "utf-8")


def run(root: Path, *ranks: int, faults: tuple[int, ...] = (), steps: int = 1, data: dict[int, int] | None = None, **source: str) -> Path:
    for step in range(steps):
        for number in ranks:
            rank(root / f"step{step}" / f"rank{number}", fault=number in faults, tokens=(data or {}).get(number, 0), **source)
    return root


def compared(left: Path, right: Path) -> JsonObject:
    return compare_paths([left], [right], Options()).document


def findings(document: JsonObject) -> dict[str, JsonObject]:
    return {finding["code"]: finding for finding in document["findings"]}


@pytest.mark.parametrize("data", [{}, {0: 10, 1: 20, 2: 30}], ids=["copies", "data_parallel"])
def test_a_missing_rank_does_not_hide_a_fault_on_another(tmp_path: Path, data: dict[int, int]) -> None:
    left, right = run(tmp_path / "l", 0, 1, 2, data=data), run(tmp_path / "r", 0, 1, faults=(1,), data=data)
    for a, b, alone in ((left, right, "left"), (right, left, "right")):
        document = compared(a, b)
        assert document["verdict"] == "diverged"
        assert (document["first_divergence"]["module"], document["first_divergence"]["rank"]) == (f"model.{FAULTY}", 1)
        assert document["by_rank"] == [
            {"rank": 0, "verdict": "identical"},
            {"rank": 1, "verdict": "diverged"},
            {"rank": 2, "verdict": f"{alone}_only"},
        ]
        assert findings(document)["ranks_one_sided"]["evidence"] == {"side": alone, "ranks": [2]}


def test_a_rank_on_one_side_only_is_named_and_stops_identical(tmp_path: Path) -> None:
    data = {number: 10 * number for number in range(4)}
    left, right = run(tmp_path / "l", 0, 1, 2, 3, steps=2, data=data), run(tmp_path / "r", 0, 2, 3, steps=2, data=data)
    document = compared(left, right)
    assert document["verdict"] == "consistent"
    assert [part["verdict"] for part in document["parts"]] == ["consistent", "consistent"]
    assert [part["ranks_alone"] for part in document["parts"]] == [{"left": [1], "right": []}] * 2
    assert document["headline"]["en"].endswith("; rank 1 on the left only")
    assert document["headline"]["zh"].endswith("；rank 1 仅左侧有")
    assert findings(document)["ranks_one_sided"]["text"] == {
        "en": "On the left side only, not compared: rank 1, in 2 parts",
        "zh": "仅左侧有、未参与比较：rank 1（2 个部分）",
    }
    back = compared(right, left)
    assert [part["ranks_alone"] for part in back["parts"]] == [{"left": [], "right": [1]}] * 2


def test_ranks_whose_numbers_overlap_are_not_counted_from_elsewhere(tmp_path: Path) -> None:
    data = {number: 10 * number for number in range(4)}
    document = compared(run(tmp_path / "l", 0, 1, 2, data=data), run(tmp_path / "r", 1, 2, 3, data=data))
    assert document["by_rank"] == [
        {"rank": 0, "verdict": "left_only"},
        {"rank": 1, "verdict": "identical"},
        {"rank": 2, "verdict": "identical"},
        {"rank": 3, "verdict": "right_only"},
    ]
    tables = {name: {("loss", 0, number, 0): array(number) for number in numbers} for name, numbers in (("l", (0, 1, 2)), ("r", (1, 2, 3)))}
    keys = compare_key_data(*(key_data(tree, tmp_path / f"{name}_tables") for name, tree in tables.items()))
    assert keys.shift == 0
    assert [pair.state for pair in keys.keys[0].pairs] == ["left_only", "equal", "equal", "right_only"]


@pytest.mark.parametrize(
    ("left", "right", "shift"),
    [([0, 1], [4, 5], 4), ([4, 5], [0, 1], -4), ([0, 1, 2], [4, 5], 4), ([0, 1], [1, 2], 0), ([0, 1], [0, 1], 0), ([], [3], 0)],
)
def test_ranks_are_counted_from_elsewhere_only_where_no_number_is_on_both_sides(left: list[int], right: list[int], shift: int) -> None:
    assert rank_shift(left, right) == shift


@pytest.mark.parametrize("steps", [1, 2])
def test_a_second_rank_that_is_an_exact_copy_was_passed_over_without_a_word(tmp_path: Path, steps: int) -> None:
    one, two = run(tmp_path / "one", 0, steps=steps), run(tmp_path / "two", 0, 1, steps=steps)
    assert findings(compared(one, two))["ranks_copied"]["text"] == {
        "en": "Ranks 0, 1 of the right were taken for copies of one another: rank 0 of the left was compared with the first of them",
        "zh": "右侧 rank 0、1 视为互为副本：左侧 rank 0 与其中第一个比较",
    }
    assert findings(compared(two, one))["ranks_copied"]["evidence"] == {"side": "left", "ranks": [0, 1], "against": [0]}
    assert "ranks_copied" not in findings(compared(two, two))


def test_a_run_of_several_parts_against_itself_did_not_say_that_it_is_the_same_upload(tmp_path: Path) -> None:
    whole, other = run(tmp_path / "whole", 0, steps=2), run(tmp_path / "other", 0, steps=2, faults=(0,))
    assert findings(compared(whole, whole))["same_input"]["severity"] == "info"
    assert "same_input" not in findings(compared(whole, other))


def test_ranks_that_are_counted_from_elsewhere_are_told(tmp_path: Path) -> None:
    left, right = run(tmp_path / "l", 0, 1, steps=2), run(tmp_path / "r", 4, 5, steps=2)
    document = compared(left, right)
    assert document["verdict"] == "identical"
    assert findings(document)["ranks_shifted"]["evidence"] == {"left": [0, 1], "right": [4, 5]}
    assert findings(document)["ranks_shifted"]["text"]["zh"] == (
        "两侧 rank 编号不同：左侧 rank 0、1 依次对应右侧 rank 4、5。可用选项 rank 另选"
    )
    assert "ranks_shifted" not in findings(compared(left, left))
    tables = [write({("loss", 0, number, 0): array(1)}, tmp_path / str(number)) for number in (0, 4)]
    document = compared(*tables)
    assert document["verdict"] == "identical"
    assert findings(document)["ranks_shifted"]["evidence"] == {"left": [0], "right": [4]}


def test_ranks_that_worked_on_the_same_tokens_meet_where_one_side_has_fewer(tmp_path: Path) -> None:
    """Four replicas of a trainer against two of an engine, which served what the last two trained on."""
    left = run(tmp_path / "l", 0, 1, 2, 3, data={number: 10 * number for number in range(4)})
    right = run(tmp_path / "r", 0, 1, data={0: 30, 1: 20}, source="q2_infer_stat")
    for a, b, side, ranks in ((left, right, "left", [2, 3]), (right, left, "right", [0, 1])):
        document = compared(a, b)
        assert document["verdict"] == "consistent"
        assert document["ranks_alone"][side] == [0, 1]
        assert sorted(document["left"]["ranks"]) == ranks


def test_other_data_on_one_rank_is_told_although_another_rank_is_missing(tmp_path: Path) -> None:
    left = run(tmp_path / "l", 0, 1, 2, data={0: 10, 1: 20, 2: 30})
    document = compared(left, run(tmp_path / "r", 0, 1, data={0: 10, 1: 99}))
    assert document["verdict"] == "not_comparable"
    assert {premise["code"]: premise["state"] for premise in document["premises"]}["tokens"] == "failed"


def test_a_wrong_copy_on_one_of_two_ranks_is_no_part_of_a_sum(tmp_path: Path) -> None:
    left, right = run(tmp_path / "l", 0, 1, faults=(1,)), run(tmp_path / "r", 0)
    for a, b in ((left, right), (right, left)):
        document = compared(a, b)
        assert document["verdict"] == "consistent"
        assert findings(document)["ranks_disagree"]["modules"] == [f"model.{FAULTY}"]
        assert "partial_sums" not in findings(document)


def test_a_rank_alone_of_data_parallel_ones_meets_its_namesake(tmp_path: Path) -> None:
    left = run(tmp_path / "l", 0, 1, 2, data={0: 10, 1: 20, 2: 30})
    document = compared(left, run(tmp_path / "r", 1, data={1: 20}))
    assert document["verdict"] == "consistent"
    assert (document["left"]["ranks"], document["ranks_alone"]["left"]) == ([1], [0, 2])
