"""Where a run begins to differ: what happened first leads, and stage, rank, module and cause are of one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compare.engine.diagnose.run_chain import chain_lines
from compare.engine.loop import key_moment, stage_moment
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine import build
from tests.engine.keydata.trees import Tree, array, write

GENERATE, REFERENCE, FORWARD, UPDATE = "actor_generate_sequences", "reference_compute_log_prob", "actor_compute_log_prob", "actor_update"
KEYS = ("prompts", "responses", "ref_log_prob", "old_log_prob", "advantages", "log_prob", "loss")
Faults = Mapping[tuple[str, int, int], str]  # (stage, step, rank) → the module whose output is another


def tables(steps: int = 2, ranks: int = 2, micro_steps: int = 1) -> dict[tuple[str, int, int, int], Any]:
    """Every rank works on data of its own."""
    found: dict[tuple[str, int, int, int], Any] = {}
    for step in range(steps):
        for rank in range(ranks):
            for key in KEYS:
                for micro_step in range(1 if key in ("prompts", "responses") else micro_steps):
                    own = 1 + step + 10 * rank
                    found[key, step, rank, micro_step] = (
                        [array(own, 2, 3)] if key in ("prompts", "responses") else array(-own / 64 - micro_step)
                    )
    return found


def run(root: Path, tree: Tree, faults: Faults | None = None, *, stages: Sequence[str]) -> Path:
    """Key data, and a model of two layers dumped in ``stages``; what a faulty module puts out, and all behind it, is a quarter larger."""
    write(tree, root)
    modules = ("embed_tokens", *(f"layers.{layer}.mlp.{part}" for layer in range(2) for part in ("gate_proj", "down_proj")), "norm")
    for stage in stages:
        for step in range(2):
            for rank in range(2):
                bad = (faults or {}).get((stage, step, rank))
                at = len(modules) if bad is None else modules.index(bad)
                records = {
                    f"Module.model.{name}.Linear.forward.0": build.call(
                        build.tensor(10.0 if n > at else 8.0), output=[build.tensor(10.0 if n >= at else 8.0)]
                    )
                    for n, name in enumerate(modules)
                }
                build.write(root / stage / f"step{step}" / f"rank{rank}", records)
    return root


def compared(left: Path, right: Path, **options: str) -> JsonObject:
    return compare_paths([left], [right], Options(**options)).document


def place(stage: str | None, step: int, rank: int | None, module: str | None, key: str | None = None) -> JsonObject:
    return {"key_data": key, "stage": stage, "step": step, "rank": rank, "module": module and f"model.{module}"}


def numbered(document: JsonObject, stage: str, step: int) -> int:
    (n,) = [row["n"] for row in document["parts"] if (row["stage"], row["step"]) == (stage, step)]
    return n


def test_a_gradient_that_was_wrong_a_step_before_the_responses_part_is_not_called_a_rollout_problem(tmp_path: Path) -> None:
    tree = tables()
    other = {**tree, **{("responses", 1, rank, 0): [array(9, 9, 9)] for rank in (0, 1)}}
    left = run(tmp_path / "left", tree, stages=(GENERATE, UPDATE))
    right = run(tmp_path / "right", other, {(UPDATE, 0, rank): "layers.1.mlp.down_proj" for rank in (0, 1)}, stages=(GENERATE, UPDATE))
    for sides in ((left, right), (right, left)):
        document = compared(*sides)
        assert document["first"] == place(UPDATE, 0, 0, "layers.1.mlp.down_proj")
        assert document["first_part"] == numbered(document, UPDATE, 0)
        assert document["headline"] == {
            "en": "First divergence: actor_update, step 0, layers.1 · mlp.down_proj; then responses from step 1 on",
            "zh": "首个差异：actor_update，第 0 步，layers.1 · mlp.down_proj；其后 responses 从第 1 步起不同",
        }
        assert [finding["code"] for finding in document["findings"]][:2] == ["stage_first", "key_data_responses"]


def test_a_stage_further_up_in_the_step_of_the_table_comes_before_it(tmp_path: Path) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(REFERENCE,))
    late = {**tree, ("loss", 1, 0, 0): array(7)}
    right = run(tmp_path / "right", late, {(REFERENCE, 1, 0): "layers.0.mlp.gate_proj"}, stages=(REFERENCE,))
    assert compared(left, right)["first"] == place(REFERENCE, 1, 0, "layers.0.mlp.gate_proj")


def test_a_table_leads_over_the_stage_that_makes_it_and_over_those_that_come_later(tmp_path: Path) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(REFERENCE, FORWARD))
    other = {**tree, ("ref_log_prob", 1, 0, 0): array(-7)}
    faults = {(REFERENCE, 1, 0): "layers.0.mlp.gate_proj", (FORWARD, 1, 0): "embed_tokens"}
    document = compared(left, run(tmp_path / "right", other, faults, stages=(REFERENCE, FORWARD)))
    assert document["first"] == place(REFERENCE, 1, 0, "layers.0.mlp.gate_proj", "ref_log_prob")
    assert document["first_part"] == numbered(document, REFERENCE, 1)


def test_a_table_of_an_earlier_step_leads_over_a_stage_of_a_later_one(tmp_path: Path) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(GENERATE, UPDATE))
    right = run(tmp_path / "right", {**tree, ("loss", 0, 0, 0): array(7)}, {(GENERATE, 1, 0): "norm"}, stages=(GENERATE, UPDATE))
    document = compared(left, right)
    assert document["first"] == place(UPDATE, 0, 0, None, "loss")
    assert document["first_part"] is None


def test_a_stage_that_agrees_is_not_marked_as_the_place_where_its_table_went_wrong(tmp_path: Path) -> None:
    """Sampling: the modules of the stage agree, the responses do not."""
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(GENERATE,))
    document = compared(left, run(tmp_path / "right", {**tree, ("responses", 1, 1, 0): [array(9, 9)]}, stages=(GENERATE,)))
    assert document["first"] == place(GENERATE, 1, 1, None, "responses")
    assert (document["first_part"], document["first_origin"]) == (None, None)
    assert "made by: actor_generate_sequences, step 1, rank 1, which agrees" in chain_lines(document)
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "stage_agrees"]
    assert finding["evidence"] == {"part": numbered(document, GENERATE, 1)}


def test_module_and_cause_are_those_of_the_rank_whose_table_differs(tmp_path: Path) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(REFERENCE,))
    faults = {
        (REFERENCE, 1, 0): "layers.0.mlp.gate_proj",
        (REFERENCE, 1, 1): "layers.1.mlp.down_proj",
    }
    right = run(tmp_path / "right", {**tree, ("ref_log_prob", 1, 1, 0): array(-7)}, faults, stages=(REFERENCE,))
    for sides in ((left, right), (right, left)):
        document = compared(*sides)
        assert document["first"] == place(REFERENCE, 1, 1, "layers.1.mlp.down_proj", "ref_log_prob")
        assert document["first_origin"]["rank"] == 1
        causes = [line for line in chain_lines(document) if line.startswith("cause:")]
        assert causes == [f"cause: {cause['text']['en']} ({cause['score']:.2f})" for cause in document["first_origin"]["causes"][:3]]


def test_a_rank_whose_modules_agree_is_not_given_the_module_of_another_rank(tmp_path: Path) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(REFERENCE,))
    other = {**tree, ("ref_log_prob", 1, 1, 0): array(-7)}
    document = compared(left, run(tmp_path / "right", other, {(REFERENCE, 1, 0): "layers.0.mlp.gate_proj"}, stages=(REFERENCE,)))
    assert document["first"] == place(REFERENCE, 1, 1, None, "ref_log_prob")
    assert document["first_part"] is None


@pytest.mark.parametrize(
    ("places", "code"),
    [
        ([(0, 1)], "key_data_update_order"),
        ([(0, 1), (1, 1)], "key_data_update_order"),
        ([(0, 1), (1, 0)], "key_data_training_forward"),
        ([(0, 0), (1, 1)], "key_data_training_forward"),
    ],
)
def test_the_optimiser_is_suspected_only_where_no_rank_differs_in_the_first_micro_step(
    tmp_path: Path, places: list[tuple[int, int]], code: str
) -> None:
    tree = tables(micro_steps=2)
    other = {**tree, **{("log_prob", 1, rank, micro_step): array(-7) for rank, micro_step in places}}
    document = compared(write(tree, tmp_path / "left"), write(other, tmp_path / "right"))
    assert document["first"]["key_data"] == "log_prob"
    assert code in {finding["code"] for finding in document["findings"]}


def test_a_log_prob_that_differs_with_old_log_prob_or_advantages_is_shown_as_expected(tmp_path: Path) -> None:
    for name, keys in (("old", ("old_log_prob", "log_prob")), ("advantages", ("advantages", "log_prob"))):
        tree = tables()
        other = {**tree, **{(key, 1, rank, 0): array(-7) for key in keys for rank in (0, 1)}}
        document = compared(write(tree, tmp_path / name / "left"), write(other, tmp_path / name / "right"))
        states = {row["key"]: row["state"] for row in document["key_data"] if row["state"] != "equal"}
        assert states == {keys[0]: "differs", "log_prob": "consequence"}


def _break(run_folder: Path, stage: str, step: int) -> None:
    """As a job that was killed leaves it: every rank of the part ends in the middle."""
    for dump in run_folder.glob(f"{stage}/step{step}/rank*/dump.json"):
        dump.write_bytes(dump.read_bytes()[:-200])


@pytest.mark.parametrize("with_table", [False, True])
def test_what_is_first_was_said_with_high_confidence_although_an_earlier_part_had_failed(tmp_path: Path, *, with_table: bool) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(REFERENCE, UPDATE))
    other = {**tree, ("ref_log_prob", 1, 0, 0): array(-7)} if with_table else tree
    right = run(tmp_path / "right", other, {(REFERENCE, 1, rank): "layers.0.mlp.gate_proj" for rank in (0, 1)}, stages=(REFERENCE, UPDATE))
    known = compared(left, right)
    assert known["first_origin"]["confidence"] == "high"
    assert "earlier_parts_unknown" not in {finding["code"] for finding in known["findings"]}
    _break(right, UPDATE, 0)
    document = compared(left, right)
    said = {"en": "1 earlier part failed (actor_update step 0): the first difference may lie there"}
    said["zh"] = "更早的部分中有 1 个失败（actor_update 第 0 步）：首个差异可能在其中"
    finding = document["findings"][0]
    assert (finding["code"], finding["severity"], finding["text"]) == ("earlier_parts_unknown", "warning", said)
    assert finding["evidence"] == {"parts": [numbered(document, UPDATE, 0)]}
    assert document["first"] == known["first"]
    assert document["first_origin"] == {**known["first_origin"], "confidence": "medium"}
    assert document["headline"]["en"].endswith(
        "; 1 part failed: actor_update step 0; the first difference may lie in an earlier part that failed"
    )
    assert document["headline"]["zh"].endswith("；更早的部分中有 1 个失败，首个差异可能在其中")
    assert said["en"] in chain_lines(document)


@pytest.mark.parametrize(("stage", "step"), [(UPDATE, 1), (REFERENCE, 1)])
def test_a_part_that_failed_later_or_makes_the_first_table_casts_no_doubt_on_what_is_first(tmp_path: Path, stage: str, step: int) -> None:
    tree = tables()
    left = run(tmp_path / "left", tree, stages=(REFERENCE, UPDATE))
    right = run(tmp_path / "right", {**tree, ("ref_log_prob", 1, 0, 0): array(-7)}, stages=(REFERENCE, UPDATE))
    _break(right, stage, step)
    document = compared(left, right)
    assert "1 part failed" in document["headline"]["en"]
    assert "earlier_parts_unknown" not in {finding["code"] for finding in document["findings"]}


def test_stages_and_tables_stand_in_one_order() -> None:
    moments = [
        key_moment("prompts"),
        key_moment("responses"),
        stage_moment(GENERATE),
        stage_moment("decode"),
        key_moment("rm_scores"),
        stage_moment("reward"),
        key_moment("values"),
        stage_moment("critic_compute_values"),
        key_moment("ref_log_prob"),
        stage_moment(REFERENCE),
        key_moment("old_log_prob"),
        stage_moment(FORWARD),
        key_moment("advantages"),
        stage_moment("critic_update"),
        key_moment("log_prob"),
        key_moment("loss"),
        stage_moment(UPDATE),
        key_moment("elapsed_ms"),
        stage_moment("some_folder"),
        stage_moment(None),
    ]
    assert moments == sorted(moments)
    assert stage_moment("decode") == stage_moment("generate")
