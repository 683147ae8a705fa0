"""Whole RL runs: from the table that parts first to the module inside."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest

from compare.engine.diagnose.run_chain import chain_lines
from compare.engine.diagnose.run_drift import Drift
from compare.engine.errors import DumpError
from compare.engine.ingest import Source
from compare.engine.keydata.published import KeyDataReader
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths, compare_runs, read_run, silent
from tests.engine.build import call, tensor
from tests.engine.build import write as dump
from tests.engine.keydata.trees import array, write

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
RUN_A, RUN_B = CORPUS / "rl_run_a.zip", CORPUS / "rl_run_b.zip"


def compared(left: Path, right: Path, **options: str) -> JsonObject:
    return compare_paths([left], [right], Options(**options)).document


@pytest.fixture(scope="module")
def document() -> JsonObject:
    return compared(RUN_A, RUN_B)


def test_everything_is_identical_up_to_step_1_and_parts_at_the_reference_model_of_step_2(document: JsonObject) -> None:
    assert document["verdict"] == "diverged"
    assert {part["verdict"] for part in document["parts"] if part["step"] < 2} == {"identical"}
    assert document["first"] == {
        "key_data": "ref_log_prob",
        "stage": "reference_compute_log_prob",
        "step": 2,
        "rank": 0,
        "module": "model.layers.1.mlp.down_proj",
    }
    assert [(row["key"], row["state"]) for row in document["key_data"] if row["state"] != "equal"] == [
        ("ref_log_prob", "differs"),
        ("advantages", "consequence"),
        ("kl_loss", "consequence"),
        ("loss", "consequence"),
    ]
    assert document["key_data"][3]["order"] == 3
    (part,) = [part for part in document["parts"] if (part["stage"], part["step"]) == ("reference_compute_log_prob", 2)]
    assert part["first_divergence"]["kind"] == "weights"
    assert part["first_divergence"]["module"] == "model.layers.1.mlp.down_proj"


def test_the_headline_names_table_step_meaning_and_module_in_both_languages(document: JsonObject) -> None:
    assert document["headline"]["en"] == (
        "First difference: ref_log_prob from step 2 on — reference model; inside reference_compute_log_prob: layers.1 · mlp.down_proj"
    )
    assert (
        document["headline"]["zh"]
        == "首个差异：ref_log_prob 从第 2 步起不同 — 参考模型；reference_compute_log_prob 内首先是 layers.1 · mlp.down_proj"
    )
    assert document["findings"][0]["text"]["en"].startswith("responses equal, ref_log_prob differs from step 2 on: reference model")


def test_the_chain_can_be_read_in_a_terminal(document: JsonObject) -> None:
    lines = chain_lines(document)
    assert lines[0] == "configuration: 1 setting differs: rl/run run_a / run_b"
    assert "responses =, values =, ref_log_prob ≠, old_log_prob =, advantages →" in lines[1]
    assert "stage: reference_compute_log_prob, step 2, rank 0" in lines
    assert "module: model.layers.1.mlp.down_proj" in lines
    assert chain_lines({"headline": {}}) == []


def test_configurations_checks_and_stages_are_told(document: JsonObject) -> None:
    assert [(row["path"], row["left"], row["right"], row["matters"]) for row in document["configurations"]] == [
        ("rl/run", "run_a", "run_b", False)
    ]
    assert {row["state"] for row in document["checks"]} == {"ok"}
    assert {row["side"] for row in document["checks"]} == {"left", "right"}
    used = [pair for pair in document["stage_pairs"] if pair["used"]]
    assert [(pair["left"], pair["reason"], pair["parts"]) for pair in used] == [
        (stage, "same_name", 3)
        for stage in ("actor_generate_sequences", "reference_compute_log_prob", "actor_compute_log_prob", "actor_update")
    ]
    assert "actor_compute_log_prob:actor_generate_sequences" in [pair["option"] for pair in document["stage_pairs"] if not pair["used"]]
    assert [(row["stage"] or row["key"], row["kind"]) for row in document["drift"] if row["kind"] != "none"] == [
        *((key, "late") for key in ("ref_log_prob", "advantages", "kl_loss", "loss")),
        ("reference_compute_log_prob", "late"),
        ("actor_update", "late"),
    ]


def test_swapping_the_runs_changes_no_state() -> None:
    there, back = compared(RUN_A, RUN_B), compared(RUN_B, RUN_A)
    assert there["first"] == back["first"]
    assert [(row["key"], row["state"]) for row in there["key_data"]] == [(row["key"], row["state"]) for row in back["key_data"]]


def test_a_run_is_identical_to_itself() -> None:
    document = compared(RUN_A, RUN_A)
    assert document["verdict"] == "identical"
    assert document["first"] is None
    assert document["headline"]["en"] == "Identical — 12 parts and 51 key-data tables compared, nothing beyond noise"


def test_a_chosen_step_chooses_among_the_tables_too() -> None:
    document = compared(RUN_A, RUN_B, step="1")
    assert document["verdict"] == "identical"
    assert {row["tables"] for row in document["key_data"]} == {1, 2}
    assert compared(RUN_A, RUN_B, step="2", stage="reference_compute_log_prob")["schema"] == "probe-web/verdict/1"


@pytest.mark.parametrize(("steps", "first"), [("0:1", 0), ("1:0", 1)])
def test_two_chosen_steps_meet_in_every_stage_and_table(tmp_path: Path, steps: str, first: int) -> None:
    run = tmp_path / "run"
    for stage in ("actor_generate_sequences", "reference_compute_log_prob"):
        for step in (0, 1):
            norm = 9.0 if (stage, step) == ("reference_compute_log_prob", 1) else 8.0
            dump(run / stage / f"step{step}" / "rank0", {"Module.a.L.forward.0": call(tensor(), output=[tensor(norm)])})
    tables = {"responses": (array(1, 2), array(1, 2)), "ref_log_prob": (array(-1, -2), array(-1, -3))}
    write({(key, step, 0, 0): values[step] for key, values in tables.items() for step in (0, 1)}, run)
    document = compared(run, run, step=steps)
    assert document["verdict"] == "diverged"
    assert [(part["left"]["step"], part["right"]["step"], part["verdict"]) for part in document["parts"]] == [
        (first, 1 - first, "identical"),
        (first, 1 - first, "diverged"),
    ]
    assert [(row["key"], row["state"]) for row in document["key_data"]] == [("responses", "equal"), ("ref_log_prob", "differs")]
    chain = {"key_data": "ref_log_prob", "stage": "reference_compute_log_prob", "step": first, "rank": 0, "module": "a"}
    assert document["first"] == chain
    proposed = [pair for pair in document["stage_pairs"] if not pair["used"]]
    assert {pair["parts"] for pair in proposed} == {1}


def test_runs_that_hold_nothing_but_tables_are_compared(tmp_path: Path) -> None:
    tree = {("responses", step, 0, 0): [array(1, 2)] for step in range(2)} | {("loss", step, 0, 0): array(0.5) for step in range(2)}
    left = write(tree, tmp_path / "left")
    right = write({**tree, ("loss", 1, 0, 0): array(0.75)}, tmp_path / "right")
    document = compared(left, right)
    assert document["verdict"] == "diverged"
    assert document["first"] == {"key_data": "loss", "stage": None, "step": 1, "rank": 0, "module": None}
    assert document["parts"] == []
    assert compared(left, left)["verdict"] == "identical"
    only = compared(left, write({("values", 0, 0, 0): array(1)}, tmp_path / "other"))
    assert only["verdict"] == "not_comparable"
    del tree["loss", 1, 0, 0]
    fewer = compared(left, write(tree, tmp_path / "fewer"))  # its last loss was never written: nothing differs, and nothing is hidden
    assert fewer["verdict"] == "consistent"
    assert [finding["evidence"]["tables"] for finding in fewer["findings"]] == [{"loss": 1}]


def test_a_table_that_could_not_be_read_is_not_taken_for_equal(tmp_path: Path) -> None:
    left = write({("loss", 0, 0, 0): array(0.5), ("values", 0, 0, 0): array(1)}, tmp_path / "left")
    (left / "data/loss/step0/rank0/micro_step0/loss.npy").write_bytes(b"broken")
    document = compared(left, left)
    assert document["verdict"] == "consistent"
    assert "key_data_not_read" in {finding["code"] for finding in document["findings"]}


def test_a_stored_comparison_says_the_same_and_opens_every_table(tmp_path: Path, document: JsonObject) -> None:
    for name, path in (("a", RUN_A), ("b", RUN_B)):
        inventory = read_run([Source(path, path.name)], path.name, tmp_path / name, silent)
        assert inventory["key_data"]["tables"] == 51
        assert inventory["configuration"] == "configurations.json"
        assert inventory["left_aside"] == []
    told: list[JsonObject] = []
    stored = compare_runs(tmp_path / "a", tmp_path / "b", Options(), tmp_path / "c", silent, told.append)
    assert {**stored, "timing": None} == {**document, "timing": None}
    assert told == [stored]
    reader = KeyDataReader(tmp_path / "c", tmp_path / "a", tmp_path / "b")
    overview = json.loads((tmp_path / "c" / "key_data" / "overview.json").read_text())
    assert sum(overview["cells"]["tables"]) == 51
    for row in overview["keys"]:
        for t in range(row["tables"]):
            table = reader.table(row["n"], t, 0, 0)
            assert len(table["left"]) == len(table["right"]) == table["of"]
            assert (table["left"] == table["right"]) is (table["table"]["state"] == "equal")
    values = reader.table(2, 0, 1, 2)
    assert values["rows_of"] == 2
    assert values["left"] == pytest.approx([0.8625] * 3)


def test_nan_and_infinity_travel_as_words(tmp_path: Path) -> None:
    for name, value in (("left", array(math.nan, math.inf, 1)), ("right", array(math.nan, 2, 1))):
        folder = write({("values", 0, 0, 0): value}, tmp_path / name)
        read_run(
            [Source(path, str(path.relative_to(folder))) for path in folder.rglob("*.npy")], name, tmp_path / f"{name}.columns", silent
        )
    sides = tmp_path / "left.columns", tmp_path / "right.columns"
    compare_runs(*sides, Options(), tmp_path / "c", silent, lambda _: None)
    table = KeyDataReader(tmp_path / "c", *sides).table(0, 0, 0, 0)
    assert table["left"] == ["NaN", "Infinity", 1.0]
    assert (table["table"]["max_abs"], table["table"]["nan"], table["table"]["inf"]) == ("Infinity", [1, 1, 1], [1, 0])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 0, 0], "none"),
        ([0.5, 0.51, 0.5, 0.52, 0.49, 0.5], "from_start"),
        ([0.01, 0.02, 0.04, 0.08, 0.16, 0.3], "growing"),
        ([0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3], "growing"),
        ([0, 0, 0.04], "late"),
        ([0, 0, 0.04, 0.05, 0.04, 0.05], "late"),
        ([0.3], "from_start"),
        ([0, math.inf, 1], "late"),
    ],
)
def test_a_difference_that_was_always_there_grows_or_sets_in(values: list[float], kind: str) -> None:
    drift = Drift("loss", None, "max_abs", range(len(values)), values)
    assert drift.kind == kind
    assert drift.text.keys() == {"en", "zh"}


def test_padding_that_is_no_token_is_numbered_to_the_reader(tmp_path: Path) -> None:
    tree = {("responses", 0, 0, 0): [array(1, 2), array(3)], ("log_prob", 0, 0, 0): np.array([[-1, -2], [-3, 0]], np.float32)}
    folder = write(tree, tmp_path / "run")
    read_run([Source(path, str(path.relative_to(folder))) for path in folder.rglob("*.npy")], "run", tmp_path / "columns", silent)
    compare_runs(tmp_path / "columns", tmp_path / "columns", Options(), tmp_path / "c", silent, lambda _: None)
    table = KeyDataReader(tmp_path / "c", tmp_path / "columns", tmp_path / "columns").table(1, 0, 1, 0)
    assert [row["valid"] for row in table["rows"]] == [2, 1]
    assert table["table"]["masked"]["compared"] == 3


def test_the_probabilities_of_rollout_and_training_are_followed_over_the_steps(tmp_path: Path) -> None:
    """verl's token-level check: [batch, length] and a mask, one file a step."""
    for step, size in enumerate((0.01, 0.02, 0.04, 0.08)):
        np.save(tmp_path / f"prob_diff_step_{step}.npy", np.array([[size, -size], [size, 99.0]], np.float32))
        np.save(tmp_path / f"prob_mask_step_{step}.npy", np.array([[True, True], [True, False]]))
    document = compared(tmp_path, tmp_path)
    assert document["verdict"] == "identical"
    drift = document["drift"][0]
    assert (drift["key"], drift["side"], drift["kind"], drift["measure"]) == ("prob_diff", "left", "growing", "mean_abs")
    assert drift["values"] == pytest.approx([0.01, 0.02, 0.04, 0.08])
    assert "probabilities_growing" in {finding["code"] for finding in document["findings"]}


def test_what_train_against_inference_needs_is_said_where_they_stand_against_each_other(tmp_path: Path) -> None:
    for name in ("left", "right"):
        with zipfile.ZipFile(RUN_A) as archive:
            archive.extractall(tmp_path / name)
        settings = {"actor": {"use_dynamic_bsz": True, "use_remove_padding": "true"}}
        (tmp_path / name / "configurations.json").write_text(json.dumps(settings))
    crossed = compared(tmp_path / "left", tmp_path / "right", stage="actor_compute_log_prob:actor_generate_sequences")
    (finding,) = crossed["findings"]
    assert finding["code"] == "preconditions_failed"
    assert finding["evidence"] == {"codes": ["dynamic_batches"]}
    assert crossed["headline"]["en"] == "Not comparable — 22 against 12 tokens; so are all 3 parts"
    assert {"state": "ok", "path": "actor/use_remove_padding", "value": "true"} in [row["left"] for row in crossed["preconditions"]]
    assert [finding["code"] for finding in compared(tmp_path / "left", tmp_path / "right")["findings"]] == ["same_input"]


def test_a_single_part_says_what_its_configurations_lack(tmp_path: Path) -> None:
    """A train dump with the trainer's log beside it against the engine's dump: one part, no key data."""
    for side, name in (("train", "q2_fsdp2_stat"), ("infer", "q2_infer_stat")):
        with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
            archive.extractall(tmp_path / side)
    before = compared(tmp_path / "train", tmp_path / "infer")
    assert "preconditions" not in before
    settings = {"actor_rollout_ref": {"actor": {"ppo_mini_batch_size": 64}}, "data": {"train_batch_size": 256}}
    (tmp_path / "train" / "verl.log").write_text(f"(TaskRunner pid=1) {settings}\nstep:1\n")
    after = compared(tmp_path / "train", tmp_path / "infer")
    rows = {row["code"]: row for row in after["preconditions"]}
    text = "train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1"
    assert rows["mini_batch_num"]["left"]["text"]["en"] == text
    one_sided, finding = [finding for finding in after["findings"] if finding not in before["findings"]]
    assert one_sided["code"] == "configuration_one_sided"
    assert finding["code"] == "preconditions_failed"
    assert finding["text"]["en"].endswith(f"these are not: {text}")
    assert after["configurations"] == []
    changed = {"timing", "findings", "preconditions", "configurations"}
    assert {key: value for key, value in after.items() if key not in changed} == {
        key: value for key, value in before.items() if key not in changed
    }


def test_two_logs_alone_are_two_configurations(tmp_path: Path) -> None:
    settings = "{'actor_rollout_ref': {'rollout': {'temperature': %s, 'seed': 1}},\n 'trainer': {'nnodes': %s}}\n"
    for name, values in (("left.log", (1.0, 1)), ("right.txt", (0.7, 2))):
        (tmp_path / name).write_text("starting\n" + settings % values + "step:1\n")
    document = compared(tmp_path / "left.log", tmp_path / "right.txt")
    assert [row["path"] for row in document["configurations"]] == ["actor_rollout_ref/rollout/temperature", "trainer/nnodes"]
    assert document["verdict"] == "not_comparable"
    assert document["headline"] == {
        "en": "Not comparable — no dumps, configurations alone: 2 settings differ, 1 of them matters",
        "zh": "无法比较 — 没有 dump，只有配置：2 项设置不同，其中 1 项影响一致性",
    }
    assert (document["parts"], document["key_data"], document["first"]) == ([], [], None)
    (tmp_path / "other.log").write_text("step:1\n")
    with pytest.raises(DumpError, match=r"dump\.json") as refused:
        compared(tmp_path / "left.log", tmp_path / "other.log")
    assert refused.value.code == "no_dump"


def test_a_json_under_another_name_is_still_the_dump_beside_a_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(CORPUS / "q2_infer_stat.zip") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("dump.json")]
        (tmp_path / "renamed.json").write_bytes(archive.read(name))
    (tmp_path / "train.log").write_text("{'actor_rollout_ref': {'actor': {'lr': 1}}}\n")
    document = compared(tmp_path, tmp_path)
    assert document["verdict"] == "identical"
    assert document["configurations"] == []


def test_tables_of_a_run_that_read_the_prompts_alone_say_what_a_zero_means(tmp_path: Path) -> None:
    tree = {("log_prob", 0, 0, 0): np.zeros((2, 3), np.float32)}
    sides = [write(tree, tmp_path / name) for name in ("left", "right")]
    assert compared(*sides)["findings"] == []
    for side, value in zip(sides, ("1", "0"), strict=True):
        (side / "configurations.json").write_text(json.dumps({"runtime_env": {"env_vars": {"PROMPTS_ONLY": value}}}))
    findings = {finding["code"]: finding for finding in compared(*sides)["findings"]}
    assert findings["prompts_only"]["evidence"] == {"sides": ["left"]}
    assert "“not run”, not “equal”" in findings["prompts_only"]["text"]["en"]
    assert "configuration_matters" in findings


def loop_of_stages(root: Path, *stages: tuple[str, str, int]) -> Path:
    """A tree of two equal steps: (stage, dump of the corpus, rank)."""
    for stage, name, rank in stages:
        for step in (0, 1):
            target = root / stage / f"step{step}" / f"rank{rank}"
            target.mkdir(parents=True)
            with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
                for member in archive.namelist():
                    if member.endswith(".json"):
                        (target / member.rpartition("/")[2]).write_bytes(archive.read(member))
    return root


def test_a_train_tree_meets_an_inference_tree_on_cards_of_its_own(tmp_path: Path) -> None:
    """slime: other stages, other ranks, the same forward pass."""
    left = loop_of_stages(tmp_path / "train", ("old_log_prob", "q2_train_stat", 0), ("actor_train", "q2_train_stat", 0))
    right = loop_of_stages(tmp_path / "infer", ("generate", "q2_infer_stat", 4))
    document = compared(left, right)
    parts = {(part["stage"], part["step"]): part["verdict"] for part in document["parts"]}
    assert parts == {
        ("old_log_prob", 0): "consistent",
        ("old_log_prob", 1): "consistent",
        ("actor_train", 0): "left_only",
        ("actor_train", 1): "left_only",
    }
    assert [(pair["left"], pair["right"], pair["reason"]) for pair in document["stage_pairs"] if pair["used"]] == [
        ("old_log_prob", "generate", "train_infer")
    ]
    proposed = next(pair for pair in document["stage_pairs"] if not pair["used"])
    assert proposed["option"] == "actor_train:generate"
    other = compared(left, right, stage=proposed["option"])
    assert [(part["left"]["stage"], part["right"]["stage"], part["verdict"]) for part in other["parts"]] == [
        ("actor_train", "generate", "consistent")
    ] * 2


def test_within_one_loop_a_train_stage_stands_against_the_generate_stage(tmp_path: Path) -> None:
    run = loop_of_stages(
        tmp_path / "run", ("actor_compute_log_prob", "q2_train_stat", 0), ("actor_generate_sequences", "q2_infer_down2_stat", 0)
    )
    document = compared(run, run, stage="actor_compute_log_prob:actor_generate_sequences")
    assert document["verdict"] == "diverged"
    assert document["first"] == {
        "key_data": None,
        "stage": "actor_compute_log_prob",
        "step": 0,
        "rank": 0,
        "module": "model.layers.2.mlp.down_proj",
    }
    drift = {row["stage"]: row["kind"] for row in document["drift"]}
    assert drift == {"actor_compute_log_prob": "from_start"}
    assert "drift_from_start" in {finding["code"] for finding in document["findings"]}


def test_a_step_that_a_side_does_not_hold_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    """Its only step is compared instead, as other data may stand in it, and that has to be said."""
    with zipfile.ZipFile(CORPUS / "rl_run_a.zip") as whole, zipfile.ZipFile(tmp_path / "one.zip", "w") as one:
        for name in whole.namelist():
            if "/step0/" not in name and "/step2/" not in name:
                one.writestr(name, whole.read(name))
    sides = [CORPUS / "rl_run_a.zip"], [tmp_path / "one.zip"]
    for swapped, side in ((False, "right"), (True, "left")):
        document = compare_paths(*(reversed(sides) if swapped else sides), Options(step="2")).document
        assert document["headline"]["en"].endswith(f"; step 1 of the {side} side was compared, it has no 2")
        found = [finding for finding in document["findings"] if finding["code"] == "choice_not_held"]
        assert [finding["evidence"] for finding in found] == [{"side": side, "name": "step", "wanted": "2", "held": "1"}]
    assert "choice_not_held" not in str(compare_paths(*sides, Options(step="2:1")).document)
    single = compare_paths(*sides, Options(step="2", stage="actor_update")).document
    assert single["headline"]["en"].count("it has no 2") == 1
