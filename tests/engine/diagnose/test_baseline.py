"""A second dump of the left side: what it measures is the noise floor, and what it cannot measure is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.ingest import paths_to_sources
from compare.engine.measure.grades import NO_FLOOR, FloorSource
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths, compare_runs, read_run, silent
from tests.engine.build import CORPUS, bf16
from tests.simulator import Scenario, simulate
from tests.simulator.faults import Fault


def judged(left: Path, right: Path, baseline: Path | None) -> JsonObject:
    return compare_paths([left], [right], Options(baseline=None if baseline is None else str(baseline))).document


def codes(document: JsonObject) -> set[str]:
    return {finding["code"] for finding in document["findings"] if finding["code"].startswith("baseline")}


def rewritten(dump: Path, to: Path, spread: float, seed: int) -> Path:
    """The same dump with every statistic of an activation moved by a random share of itself, as a nondeterministic run would."""
    rng = np.random.default_rng(seed)
    document = json.loads(next(dump.rglob("dump.json")).read_text("utf-8"))

    def moved(leaf: Any) -> Any:
        if isinstance(leaf, list):
            return [moved(one) for one in leaf]
        if not isinstance(leaf, dict) or leaf.get("Norm") is None or "shape" not in leaf:
            return leaf
        factor = {name: 1 + spread * rng.standard_normal() for name in ("Max", "Min", "Norm")}
        rms = leaf["Norm"] / np.sqrt(np.prod(leaf["shape"]))
        mean = leaf["Mean"] + spread * rms / np.sqrt(np.prod(leaf["shape"])) * rng.standard_normal()
        return {**leaf, **{name: bf16(leaf[name] * share) for name, share in factor.items()}, "Mean": bf16(mean)}

    for name, record in document["data"].items():
        if "embed_tokens" not in name:
            record["output"] = moved(record["output"])
    to.mkdir(parents=True)
    (to / "dump.json").write_text(json.dumps(document), "utf-8")
    return to


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same code on both sides, one of which has a slightly other weight in layer 1."""
    fault = Fault("weight_noise", 0.02, 1, "self_attn.o_proj")
    made = simulate(Scenario("p", "Qwen2", "tiny", right="train", fault=fault, seed=5), tmp_path_factory.mktemp("baseline") / "p")
    return made.left, made.right


def test_a_limit_that_the_baseline_gave_says_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    again = rewritten(pair[0], tmp_path / "again", 0.01, 1)
    judged_part = compare_paths([pair[0]], [pair[1]], Options(baseline=str(again))).parts[0][1]
    assert judged_part is not None
    sources = judged_part.cases[0].grades.floor_source
    assert FloorSource.BASELINE in sources
    assert sources[sources != NO_FLOOR][0] == FloorSource.BASELINE  # no pair before it has shown more


def test_a_side_that_repeats_itself_lowers_the_floor(tmp_path: Path) -> None:
    """A difference of one or two rounding units passes under the default floor, and not where the left side was shown to repeat itself."""
    made = simulate(Scenario("q", "Qwen2", "tiny", right="train", seed=6), tmp_path / "q")
    small = rewritten(made.right, tmp_path / "small", 0.003, 1)
    again = rewritten(made.left, tmp_path / "again", 1e-5, 2)
    assert judged(made.left, small, None)["verdict"] == "consistent"
    document = judged(made.left, small, again)
    assert document["verdict"] == "diverged"
    assert codes(document) == {"baseline_measured"}
    assert "measured" in document["headline"]["en"]
    assert "实测" in document["headline"]["zh"]


def test_a_side_that_does_not_repeat_itself_raises_the_floor(tmp_path: Path) -> None:
    """Five percent of difference are nothing beside a left side that moves by as much between two runs of itself."""
    made = simulate(Scenario("r", "Qwen2", "tiny", right="train", seed=7), tmp_path / "r")
    far = rewritten(made.right, tmp_path / "far", 0.05, 3)
    again = rewritten(made.left, tmp_path / "again", 0.05, 4)
    assert judged(made.left, far, None)["verdict"] == "diverged"
    document = judged(made.left, far, again)
    assert document["verdict"] == "consistent", document["headline"]["en"]
    evidence = next(finding["evidence"] for finding in document["findings"] if finding["code"] == "baseline_measured")
    assert 0.02 < evidence["norm_rel"] < 0.25
    assert evidence["pairs"] > evidence["of"] / 2


def test_the_left_dump_as_its_own_baseline_is_said_and_changes_nothing(pair: tuple[Path, Path]) -> None:
    document, plain = judged(*pair, pair[0]), judged(*pair, None)
    assert codes(document) == {"baseline_same_input"}
    assert document["counts"] == plain["counts"]
    assert document["headline"] == plain["headline"]


@pytest.mark.parametrize("other", ["q2b_train_stat", "q2_infer_stat"])
def test_a_dump_of_something_else_is_no_baseline(other: str) -> None:
    """Another prompt; another code base."""
    document = judged(CORPUS / "q2_shim_stat.zip", CORPUS / "q2_shim_pert1_stat.zip", CORPUS / f"{other}.zip")
    plain = judged(CORPUS / "q2_shim_stat.zip", CORPUS / "q2_shim_pert1_stat.zip", None)
    assert codes(document) == {"baseline_not_aligned"}
    assert document["counts"] == plain["counts"]


def test_other_weights_are_no_second_dump(pair: tuple[Path, Path]) -> None:
    document = judged(pair[0], pair[0], pair[1])
    assert codes(document) == {"baseline_not_aligned"}


def test_between_two_code_bases_a_repeating_left_side_does_not_make_rounding_a_divergence() -> None:
    document = judged(CORPUS / "q2_train_stat.zip", CORPUS / "q2_infer_stat.zip", CORPUS / "q2_shim_stat.zip")
    assert document["verdict"] == "consistent"
    finding = next(finding for finding in document["findings"] if finding["code"] == "baseline_measured")
    assert finding["evidence"]["replaces"] is False
    faulty = judged(CORPUS / "q2_train_stat.zip", CORPUS / "q2_infer_eps_stat.zip", CORPUS / "q2_shim_stat.zip")
    assert faulty["first_divergence"]["module"] == "model.layers.0.input_layernorm"


def test_folders_of_columns_say_the_same_as_the_dumps(pair: tuple[Path, Path], tmp_path: Path) -> None:
    again = rewritten(pair[0], tmp_path / "again", 0.001, 9)
    for number, path in enumerate((*pair, again)):
        read_run(paths_to_sources([path]), path.name, tmp_path / str(number), silent)
    folders = [tmp_path / str(number) for number in range(3)]
    stored = compare_runs(folders[0], folders[1], Options(), tmp_path / "out", silent, lambda _: None, baseline=folders[2])
    assert codes(stored) == {"baseline_measured"}
    assert stored["counts"] == judged(*pair, again)["counts"]
