"""Both sides of one loop without request logs: the trainer counts updates, the engine forward passes. Dumps pair by their tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.ingest import Source
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths, compare_runs, read_run, silent
from tests.simulator import Scenario
from tests.simulator.faults import Fault
from tests.simulator.loop import Request, prompt, write_engine, write_training
from tests.simulator.parallel import Layout
from tests.simulator.train_side import TrainStyle

SCENARIO = Scenario("loop", style=TrainStyle("fsdp1"))
FAULT = Scenario("loop", style=TrainStyle("fsdp1"), fault=Fault("eps", 0.05, layer=2, part="input_layernorm"))
CULPRIT = "model.layers.2.input_layernorm"
A, B = prompt(1), prompt(2)
WARM_UP = Request(prompt(9, 1), (1,))
ANSWER = prompt(77, 8)


def served(tokens: Any, *widths: int) -> Request:
    """A prompt, prefilled in so many tokens at a time, and what was decoded after it."""
    return Request(np.concatenate([tokens, ANSWER]), widths)


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training(SCENARIO, tmp_path_factory.mktemp("train"), [A, B])


@pytest.fixture(scope="module")
def infer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Step 0 warm-up, 1 prefill of B, 2 and 3 decode, 4 prefill of A, 5 to 7 decode."""
    return write_engine(SCENARIO, tmp_path_factory.mktemp("infer"), [WARM_UP, served(B, 12, 1, 1), served(A, 12, 1, 1, 1)])


def compared(left: Path, right: Path, **options: str) -> JsonObject:
    return compare_paths([left], [right], Options(**options)).document


def steps(document: JsonObject) -> list[tuple[int | None, int | None]]:
    return [tuple(part[side] and part[side]["step"] for side in ("left", "right")) for part in document["parts"]]  # type: ignore[misc]


def finding(document: JsonObject, code: str) -> JsonObject:
    (found,) = [entry for entry in document["findings"] if entry["code"] == code]
    assert isinstance(found, dict)
    return found


def codes(document: JsonObject) -> set[str]:
    return {entry["code"] for entry in document["findings"]}


def test_training_steps_meet_the_prefill_of_their_tokens_wherever_it_was_counted(train: Path, infer: Path) -> None:
    document = compared(train, infer)
    assert steps(document)[:2] == [(0, 4), (1, 1)]
    assert [part["verdict"] for part in document["parts"][:2]] == ["consistent", "consistent"]
    assert {part["verdict"] for part in document["parts"][2:]} == {"right_only"}
    assert document["verdict"] == "consistent"
    assert [part["reason"]["code"] for part in document["parts"][:2]] == ["tokens", "tokens"]
    assert document["parts"][0]["reason"]["text"]["en"].startswith(f"12 tokens, ids {A.min()} to {A.max()}, embedding Norm")
    assert [(pair["reason"], pair["parts"]) for pair in document["stage_pairs"]] == [("tokens", 2)]
    decode = finding(document, "decode_not_compared")
    assert [part["step"] for part in decode["evidence"]["parts"][0]["parts"]] == [0, 2, 3, 5, 6, 7]
    assert "1 token each" in decode["text"]["en"]


def test_swapped_sides_pair_the_same_dumps(train: Path, infer: Path) -> None:
    document = compared(infer, train)
    assert steps(document)[:2] == [(4, 0), (1, 1)]
    assert {part["verdict"] for part in document["parts"][2:]} == {"left_only"}
    assert document["verdict"] == "consistent"


def test_a_stored_run_pairs_as_its_files_do(train: Path, infer: Path, tmp_path: Path) -> None:
    """A plan knows nothing but the two inventories."""
    for name, folder in (("train", train), ("infer", infer)):
        sources = [Source(path, str(path.relative_to(folder))) for path in sorted(folder.rglob("*.json"))]
        read_run(sources, name, tmp_path / name, silent)
    stored = compare_runs(tmp_path / "train", tmp_path / "infer", Options(), tmp_path / "c", silent, lambda _: None)
    assert steps(stored) == steps(compared(train, infer))


def test_one_training_step_finds_its_prefill_and_says_by_what(train: Path, infer: Path) -> None:
    document = compared(train / "step0", infer)
    assert document["schema"] == "probe-web/verdict/1"
    assert (document["verdict"], document["right"]["step"]) == ("consistent", 4)
    paired = finding(document, "paired_by_tokens")
    assert paired["evidence"]["left"]["ids"] == paired["evidence"]["right"]["ids"] == [A.min(), A.max()]
    assert 4 not in [part["step"] for part in finding(document, "parts_not_compared")["evidence"]["parts"]]


def test_the_choice_of_steps_stands_above_the_tokens(train: Path, infer: Path) -> None:
    document = compared(train, infer, step="0:1")
    assert (document["left"]["step"], document["right"]["step"], document["verdict"]) == (0, 1, "not_comparable")
    assert "paired_by_tokens" not in codes(document)
    assert compared(train, infer, step="1:1")["verdict"] == "consistent"


def test_steps_that_are_counted_alike_stay_as_they_are(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path, [served(A, 12), served(B, 12)])
    document = compared(train, infer)
    assert steps(document) == [(0, 0), (1, 1)]
    assert [part["reason"]["code"] for part in document["parts"]] == ["step", "step"]
    assert document["stage_pairs"][0]["reason"] == "same_name"
    assert document["findings"] == []


def test_equal_prompts_are_proposed_and_never_chosen(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path, [WARM_UP, served(A, 12, 1), served(A, 12, 1)])
    document = compared(train, infer)
    assert (0, None) in steps(document)
    told = finding(document, "several_same_tokens")
    assert [other["step"] for other in told["evidence"]["parts"][0]["others"]] == [1, 3]
    assert "step 0:1" in told["text"]["en"]
    assert "step 0:1" in told["text"]["zh"]
    swapped = finding(compared(infer, train), "several_same_tokens")
    assert "step 1:0" in swapped["text"]["en"]
    assert compared(train, infer, step="0:3")["verdict"] == "consistent"


def test_a_refusal_names_the_closest_with_both_fingerprints(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path, [WARM_UP, WARM_UP, served(A, 12, 1, 1)])
    document = compared(train, infer)
    assert steps(document)[0] == (0, 2)
    assert (1, None) in steps(document)
    told = finding(document, "no_same_tokens")
    (row,) = told["evidence"]["parts"]
    assert (row["parts"], row["against"], row["others"][0]["step"]) == ([{"stage": None, "step": 1}], "ids", 2)
    for language in ("en", "zh"):
        assert f"{B.min()}" in told["text"][language]
        assert f"{A.max()}" in told["text"][language]


def test_other_weights_of_the_embedding_are_no_reason_to_pair_others(train: Path, tmp_path: Path) -> None:
    """As many tokens between the same ids, another embedding: other tokens, or other weights. The numbers of the steps stand."""
    swapped = A.copy()
    middle = np.argsort(A)[3:9]
    swapped[middle] = A[middle][0]
    infer = write_engine(SCENARIO, tmp_path, [WARM_UP, served(swapped, 12)])
    document = compared(train / "step0", infer)
    assert document["verdict"] == "not_comparable"
    assert "paired_by_tokens" not in codes(document)


def test_stages_of_several_engine_processes_meet_one_trainer(tmp_path: Path) -> None:
    """verl ≥ 0.7 without its logs: process folders whose steps have the same numbers."""
    write_training(SCENARIO, tmp_path / "train" / "update_actor", [A, B])
    write_engine(SCENARIO, tmp_path / "infer" / "generate" / "4711", [WARM_UP, served(B, 12, 1)])
    write_engine(SCENARIO, tmp_path / "infer" / "generate" / "4712", [WARM_UP, served(A, 12, 1)])
    document = compared(tmp_path / "train", tmp_path / "infer")
    pairs = [(part["left"], part["right"], part["verdict"]) for part in document["parts"][:2]]
    assert pairs == [
        ({"stage": "update_actor", "step": 0}, {"stage": "generate/4712", "step": 1}, "consistent"),
        ({"stage": "update_actor", "step": 1}, {"stage": "generate/4711", "step": 1}, "consistent"),
    ]


def test_a_prefill_in_chunks_is_compared_as_one_pass(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path / "clean", [WARM_UP, served(A, 5, 7, 1, 1)])
    for left, right in ((train / "step0", infer), (infer, train / "step0")):
        document = compared(left, right)
        assert document["verdict"] == "consistent"
        assert document["counts"]["diverged"] == 0
        assert [row["grade"] for row in document["layers"]].count("incomparable") == 0
        paired = finding(document, "paired_by_tokens")
        assert paired["evidence"]["steps"] == [1, 2]
        assert "2 chunks" in paired["text"]["en"]
        assert [part["step"] for part in finding(document, "parts_not_compared")["evidence"]["parts"]] == [0, 3, 4]


@pytest.mark.parametrize("widths", [(5, 7), (4, 4, 4), (1, 11)])
def test_a_fault_under_chunks_is_found_where_it_is(train: Path, tmp_path: Path, widths: tuple[int, ...]) -> None:
    infer = write_engine(FAULT, tmp_path, [WARM_UP, served(A, *widths)])
    for left, right in ((train / "step0", infer), (infer, train / "step0")):
        document = compared(left, right)
        assert document["verdict"] == "diverged"
        assert document["first_divergence"]["module"] == CULPRIT


def test_a_last_row_alone_is_not_taken_for_a_copy_of_another_chunks(train: Path, tmp_path: Path) -> None:
    """Each chunk puts out the logits of its own last row: neither is the other's copy, and nothing is red."""
    infer = write_engine(SCENARIO, tmp_path, [served(A, 5, 7)])
    document = compared(infer, infer, step="0:1")
    assert document["verdict"] == "not_comparable"
    document = compared(train / "step0", infer)
    assert not [entry for entry in document["findings"] if "copies" in entry["code"]]
    assert document["counts"]["diverged"] == 0


TWO_RANKS = Scenario("loop", style=TrainStyle("fsdp1"), right_layout=Layout(2))
TWO_RANKS_FAULT = replace(TWO_RANKS, fault=FAULT.fault)


def test_chunks_of_an_engine_on_two_ranks_are_one_pass(train: Path, tmp_path: Path) -> None:
    """Each chunk is cut over the ranks, and each rank holds both chunks."""
    clean = write_engine(TWO_RANKS, tmp_path / "clean", [WARM_UP, served(A, 5, 7, 1)])
    for left, right in ((train / "step0", clean), (clean, train / "step0")):
        document = compared(left, right)
        assert document["verdict"] == "consistent"
        assert [row["grade"] for row in document["layers"]].count("incomparable") == 0
        whole = compared(train / "step0", write_engine(TWO_RANKS, tmp_path / f"whole{left.name}", [served(A, 12)]))
        assert document["counts"]["incomparable"] <= whole["counts"]["incomparable"]
    faulty = write_engine(TWO_RANKS_FAULT, tmp_path / "faulty", [WARM_UP, served(A, 5, 7, 1)])
    assert compared(train / "step0", faulty)["first_divergence"]["module"] == CULPRIT


@pytest.mark.parametrize("scenario", [SCENARIO, TWO_RANKS], ids=["one rank", "two ranks"])
@pytest.mark.parametrize(
    ("requests", "prefill", "decode"),
    [
        ([served(A, 12, 1, 1, 1)], [0], [1, 2, 3]),
        ([WARM_UP, served(A, 12, 1, 1)], [1], [0, 2, 3]),
        ([served(A, 5, 7, 1, 1)], [0, 1], [2, 3]),
        ([served(B, 12, 1), served(A, 4, 4, 4, 1)], [2, 3, 4], [1, 5]),
    ],
    ids=["prefill and decode", "warm-up first", "chunks", "another request first"],
)
def test_of_many_calls_in_one_dump_the_prefill_is_compared(
    train: Path, tmp_path: Path, scenario: Scenario, requests: list[Request], prefill: list[int], decode: list[int]
) -> None:
    infer = write_engine(scenario, tmp_path / "clean", requests, apart=False)
    faulty = write_engine(replace(scenario, fault=FAULT.fault), tmp_path / "faulty", requests, apart=False)
    for swapped in (False, True):
        left, right = (infer, train / "step0") if swapped else (train / "step0", infer)
        document = compared(left, right)
        assert document["verdict"] == "consistent"
        assert document["counts"]["diverged"] == 0
        told = finding(document, "decode_not_compared")
        assert told["evidence"] == {"side": "left" if swapped else "right", "calls": decode, "count": len(decode), "tokens": 1}
        if prefill == [0]:
            assert "calls_by_tokens" not in codes(document)
        else:
            assert finding(document, "calls_by_tokens")["evidence"]["calls"] == [[0, prefill]]
        assert document["coverage"]["left"]["explained"] == document["coverage"]["left"]["records"]
        assert document["coverage"]["right"]["explained"] == document["coverage"]["right"]["records"]
        left, right = (faulty, train / "step0") if swapped else (train / "step0", faulty)
        assert compared(left, right)["first_divergence"]["module"] == CULPRIT


def test_micro_batches_meet_the_requests_that_were_served_in_another_order(tmp_path: Path) -> None:
    """Two sequences in one training step, each a forward call; the engine had the second first."""
    micro = replace(SCENARIO, micro_batches=2)
    train = write_training(micro, tmp_path / "train", [A])
    second = np.random.default_rng(micro.seed + 15485863).integers(1, 256, size=micro.tokens + 1)
    requests = [served(second, 13, 1), served(A, 12, 1)]
    infer = write_engine(SCENARIO, tmp_path / "infer", requests, apart=False)
    document = compared(train, infer)
    assert document["verdict"] == "consistent"
    assert finding(document, "calls_by_tokens")["evidence"]["calls"] == [[1, [0]], [0, [2]]]
    faulty = write_engine(replace(SCENARIO, fault=FAULT.fault), tmp_path / "faulty", requests, apart=False)
    assert compared(faulty, train)["first_divergence"]["module"] == CULPRIT


def test_calls_stay_as_they_are_where_nothing_was_fed_the_same(train: Path, tmp_path: Path) -> None:
    infer = write_engine(SCENARIO, tmp_path, [served(B, 11, 1, 1)], apart=False)
    document = compared(train / "step0", infer)
    assert document["verdict"] == "not_comparable"
    assert document["headline"]["en"] == "Not comparable — 12 against 11 tokens"
    assert document["origins"] == []


def test_two_runs_of_one_trainer_are_never_paired_by_tokens(tmp_path: Path) -> None:
    """A determinism check must see that the second run was fed its batches in another order."""
    one = write_training(SCENARIO, tmp_path / "one", [A, B])
    other = write_training(SCENARIO, tmp_path / "other", [B, A])
    document = compared(one, other)
    assert steps(document) == [(0, 0), (1, 1)]
    assert document["verdict"] == "not_comparable"


def test_a_trainer_that_nothing_shows_to_be_one_is_paired_by_tokens_too(tmp_path: Path) -> None:
    """No wrapper, no gradients: its role is not known, that of the engine is."""
    plain = replace(SCENARIO, style=TrainStyle("plain"))
    train = write_training(plain, tmp_path / "train", [A, B])
    infer = write_engine(plain, tmp_path / "infer", [WARM_UP, served(B, 12, 1), served(A, 12, 1)])
    document = compared(train, infer)
    assert (document["left"]["role"], document["right"]["role"]) == ("unknown", "infer")
    assert steps(document)[:2] == [(0, 3), (1, 1)]
    assert document["verdict"] == "consistent"
