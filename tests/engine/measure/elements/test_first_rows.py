"""Which rows of a longer pass are those of a shorter one, by the ids themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compare.engine.measure.elements.first_rows import first_rows
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.simulator import Scenario
from tests.simulator.faults import Fault
from tests.simulator.loop import Request, prompt, write_engine, write_training
from tests.simulator.train_side import TrainStyle

SCENARIO = Scenario("rows", style=TrainStyle("fsdp1"))
FAULT = Scenario("rows", style=TrainStyle("fsdp1"), fault=Fault("eps", 0.05, layer=2, part="input_layernorm"))
PROMPT, RESPONSE = prompt(1), prompt(77, 10)
WHOLE = np.concatenate([PROMPT, RESPONSE])


def ids(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers)


@pytest.mark.parametrize(
    ("longer", "shorter", "expected"),
    [
        ([ids(1, 2, 3, 4)], [ids(1, 2)], [0, 1]),
        ([ids(1, 2, 3), ids(4, 5, 6)], [ids(1, 2), ids(4)], [0, 1, 3]),
        ([ids(1, 2, 3), ids(4, 5, 6)], [ids(4, 5), ids(1, 2)], [3, 4, 0, 1]),  # served in another order
        ([ids(1, 2, 3), ids(1, 2, 4)], [ids(1, 2), ids(1, 2)], [0, 1, 3, 4]),  # one prompt, two samples
        ([ids(1, 2, 3)], [ids(2, 3)], None),
        ([ids(1, 2, 3)], [ids(1, 2), ids(1, 2)], None),  # each sequence once
        ([ids(1)], [ids(1, 2)], None),
        ([], [], None),
    ],
)
def test_each_shorter_sequence_is_the_beginning_of_one_of_its_own(longer: list, shorter: list, expected: list[int] | None) -> None:
    found = first_rows(longer, shorter)
    assert found is None if expected is None else found is not None and found.tolist() == expected


def compared(left: Path, right: Path) -> JsonObject:
    return compare_paths([left], [right], Options()).document


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training(SCENARIO, tmp_path_factory.mktemp("train"), [WHOLE], tensors=True)


def test_with_tensors_the_rows_of_the_prompt_are_compared(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path, [Request(WHOLE, (12, 1, 1))], apart=False, tensors=True)
    for left, right in ((train, infer), (infer, train)):
        document = compared(left, right)
        assert document["verdict"] == "consistent"
        assert "first 12 of the training pass's 22 tokens" in document["headline"]["en"]
        assert "22 个词元中的前 12 个" in document["headline"]["zh"]
        assert document["counts"]["diverged"] == 0
        assert {entry["code"] for entry in document["findings"]} >= {"first_rows", "decode_not_compared"}
        assert all(row["rel_l2"] is not None for row in document["layers"])


def test_a_fault_in_the_rows_of_the_prompt_is_found(train: Path, tmp_path: Path) -> None:
    infer = write_engine(FAULT, tmp_path, [Request(WHOLE, (12, 1))], apart=False, tensors=True)
    for left, right in ((train, infer), (infer, train)):
        document = compared(left, right)
        assert document["verdict"] == "diverged"
        assert document["first_divergence"]["module"] == "model.layers.2.input_layernorm"


def test_only_equal_ids_are_compared(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path, [Request(prompt(5), (12,))], tensors=True)
    document = compared(train, infer)
    assert document["headline"]["en"] == "Not comparable — 22 against 12 tokens"


def test_statistics_alone_cannot_be_cut_to_the_prompt(tmp_path: Path) -> None:
    train = write_training(SCENARIO, tmp_path / "train", [WHOLE])
    infer = write_engine(SCENARIO, tmp_path / "infer", [Request(WHOLE, (12, 1))], apart=False)
    document = compared(train, infer)
    assert document["headline"]["en"] == "Not comparable — 22 against 12 tokens"
    assert document["counts"]["diverged"] == 0
