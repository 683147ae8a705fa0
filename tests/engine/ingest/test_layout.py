"""Trees of dumps: which folders are stages, steps and ranks, what is left aside, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from compare.engine.errors import DumpError
from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.ingest.layout import locate
from compare.engine.loop import stage_order
from compare.engine.model import Side
from tests.engine.ingest.dumps import CORPUS, dump_json, read, write, zip_bytes

DUMP = dump_json()


def keys(side: Side) -> list[tuple[str | None, int | None, int | None]]:
    return [(dump.stage, dump.step, dump.rank) for dump in side.dumps]


def code(tmp_path: Path, names: list[str]) -> DumpError:
    with pytest.raises(DumpError) as refused:
        read(tmp_path, dict.fromkeys(names, DUMP))
    return refused.value


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("", (None, None, None)),
        ("step0/rank0", (None, 0, 0)),
        ("run/step12/rank3", (None, 12, 3)),
        ("step_2/rank_7", (None, 2, 7)),
        ("step0/rank", (None, 0, 0)),
        ("step0/proc4242", (None, 0, None)),
        ("rank5", (None, None, 5)),
        ("step3", (None, 3, None)),
        ("exp/actor_update/step1/rank0", ("actor_update", 1, 0)),
        ("generate/4711/step_0/rank_0", ("generate", 0, 0)),
        ("ref_compute_log_prob/step0/rank4", ("ref_compute_log_prob", 0, 4)),
        ("train/step0/rank0", (None, 0, 0)),
        ("steps/ranked", (None, None, None)),
        ("graph/step0/rank0", ("graph", 0, 0)),
        ("run/pynative/step3/rank1", ("pynative", 3, 1)),
        ("actor_update/graph/step0/rank0", ("actor_update/graph", 0, 0)),
        ("generate/4711/4711/step2/rank1", ("generate", 2, 1)),
        ("4711/step2/rank1", (None, 2, 1)),
        ("prof/step_7/actor_update/rank_3/step0/rank3", ("actor_update", 7, 3)),
        ("prof/step_7/my_stage/rank_3/step0/rank3", ("my_stage", 7, 3)),
        ("prof/step_7/actor_update/rank_3/step0/proc99", ("actor_update", 7, 3)),
        ("exp/msprobe_dump/update_actor/old_log_prob/step0/rank2", ("old_log_prob", 0, 2)),
        ("exp/msprobe_dump/generate/step0/rank4", ("generate", 0, 4)),
        ("step0/pid77", (None, 0, None)),
        ("step9999999999/rank0", (None, None, 0)),
    ],
)
def test_stage_step_and_rank_are_read_off_the_folders(folder: str, expected: tuple[str | None, int | None, int | None]) -> None:
    assert locate(0, folder).key == expected


def test_dumps_come_by_stage_in_pipeline_order_then_step_then_rank(tmp_path: Path) -> None:
    names = [
        f"{stage}/step{step}/rank{rank}/dump.json"
        for stage in (
            "actor_update",
            "reference_compute_log_prob",
            "actor_compute_log_prob",
            "actor_generate_sequences",
            "critic_compute_values",
        )
        for step in (10, 2)
        for rank in (1, 0)
    ]
    assert keys(read(tmp_path, dict.fromkeys(names, DUMP))) == [
        (stage, step, rank)
        for stage in (
            "actor_generate_sequences",
            "reference_compute_log_prob",
            "critic_compute_values",
            "actor_compute_log_prob",
            "actor_update",
        )
        for step in (2, 10)
        for rank in (0, 1)
    ]
    stages = ["generate", "ref_log_prob", "reward", "values", "old_log_prob", "critic_update", "actor_train", "eval"]
    assert sorted(sorted(stages), key=stage_order) == stages


def test_a_real_reinforcement_learning_run_has_its_stages_and_leaves_nothing_aside() -> None:
    side = read_side(paths_to_sources([CORPUS / "rl_run_a.zip"]), "a")
    assert list(dict.fromkeys(dump.stage for dump in side.dumps)) == [
        "actor_generate_sequences",
        "reference_compute_log_prob",
        "actor_compute_log_prob",
        "actor_update",
    ]
    assert not side.left_aside
    assert side.loop.key_data is not None
    with zipfile.ZipFile(CORPUS / "rl_run_a.zip") as files:
        assert len(side.loop.key_data) == sum(name.endswith(".npy") for name in files.namelist()) == 51


def test_helper_processes_beside_ranks_are_left_aside(tmp_path: Path) -> None:
    side = read(tmp_path, {"step0/rank0/dump.json": DUMP, "step0/proc99/dump.json": b"not even read", "step0/proc99/stack.json": b""})
    assert keys(side) == [(None, 0, 0)]
    assert [(left.path, left.reason) for left in side.left_aside] == [
        ("step0/proc99/dump.json", "helper_process"),
        ("step0/proc99/stack.json", "helper_process"),
    ]


def test_a_lone_process_is_read_and_two_are_refused(tmp_path: Path) -> None:
    assert keys(read(tmp_path, {"step0/proc99/dump.json": DUMP, "step1/proc98/dump.json": DUMP})) == [(None, 0, None), (None, 1, None)]
    assert code(tmp_path, ["step0/proc99/dump.json", "step0/proc98/dump.json"]).code == "several_processes"


def test_one_rank_given_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    with pytest.raises(DumpError) as refused:
        read(tmp_path, {"a.zip": zip_bytes({"step0/rank0/dump.json": DUMP}), "b.zip": zip_bytes({"step0/rank0/dump.json": DUMP})})
    assert refused.value.code == "rank_twice"
    assert refused.value.where == "b.zip/step0/rank0/dump.json"
    assert "a.zip/step0/rank0/dump.json" in str(refused.value)
    assert "put the dump of the other run on the other side" in str(refused.value)
    assert code(tmp_path, ["first/step0/rank0/dump.json", "second/step0/rank0/dump.json"]).code == "rank_twice"
    assert code(tmp_path, ["step0/rank0/dump.json", "step_0/rank_0/dump.json"]).code == "rank_twice"
    assert code(tmp_path, ["step0/rank/dump.json", "step0/rank0/dump.json"]).code == "rank_twice"


def test_ranks_in_an_archive_each_make_one_side(tmp_path: Path) -> None:
    side = read(tmp_path, {f"rank{n}.zip": zip_bytes({f"node{n}/step0/rank{n}/dump.json": DUMP}) for n in (1, 0)})
    assert keys(side) == [(None, 0, 0), (None, 0, 1)]


def test_two_roots_in_one_archive_or_folder_are_refused(tmp_path: Path) -> None:
    for names in (["a/step0/rank0/dump.json", "b/step0/rank0/dump.json"], ["train/dump.json", "infer/dump.json"]):
        with pytest.raises(DumpError) as refused:
            read(tmp_path, {"both.zip": zip_bytes(dict.fromkeys(names, DUMP))})
        assert refused.value.code == "two_roots"
        assert names[0].removesuffix("/dump.json") in str(refused.value)
        assert code(tmp_path, [f"dropped/{name}" for name in names]).code == "two_roots"


def test_two_runs_that_share_no_step_are_not_one(tmp_path: Path) -> None:
    for names in (
        ["run1/step0/rank0/dump.json", "run2/step1/rank0/dump.json"],
        ["run1/actor_update/step0/rank0/dump.json", "run2/actor_update/step5/rank0/dump.json"],
        ["run1/data/loss/step0/rank0/loss.json", "run2/data/loss/step1/rank0/loss.json", "run1/actor_update/step0/rank0/dump.json"],
    ):
        refused = code(tmp_path, [f"dropped/{name}" for name in names])
        assert (refused.code, refused.params["first"], refused.params["second"]) == ("two_roots", "dropped/run1", "dropped/run2")
        with pytest.raises(DumpError, match="run2"):
            read(tmp_path, {"both.zip": zip_bytes(dict.fromkeys(names, DUMP))})


def test_what_lies_in_several_folders_of_one_run_stays_one(tmp_path: Path) -> None:
    for names in (
        [f"run/node{n}/step0/rank{n}/dump.json" for n in (0, 1)],
        [
            f"run/{side}/{stage}/step{n}/rank0/dump.json"
            for side, stage in (("infer", "generate"), ("train", "actor_update"))
            for n in (0, 1)
        ],
        [f"run/step_{n}/{stage}/rank_0/step0/rank0/dump.json" for stage in ("actor_update", "ref_log_prob") for n in (3, 4)],
        [f"run/{process}/step{step}/rank0/dump.json" for process, step in ((4711, 0), (4712, 1))],
    ):
        side = read(tmp_path, {"one.zip": zip_bytes(dict.fromkeys(names, DUMP))})
        assert len(side.dumps) == len(names)


def test_two_folders_of_one_name_cannot_hide_one_another(tmp_path: Path) -> None:
    for side in ("a", "b"):
        write(tmp_path / side, {"step0/rank0/dump.json": DUMP})
    with pytest.raises(DumpError) as refused:
        read_side(paths_to_sources([tmp_path / "a/step0/rank0", tmp_path / "b/step0/rank0"]), "left")
    assert refused.value.code == "file_twice"


def test_everything_else_is_left_aside_with_its_reason(tmp_path: Path) -> None:
    extra = {
        "run/step0/rank0/dump_tensor_data/a.npy": "tensor_without_slot",
        "run/step0/rank0/dump_error_info.log": "log",
        "run/other_log.jsonl": "request_log",
        "run/data/loss/step0/rank0/loss.json": "key_data_not_read",
        "run/compare.vis.db": "database_beside_dumps",
        "run/configurations.json": "no_configuration",
        "run/data/loss/step0/rank0/micro_step0/loss.json": "key_data_not_read",
        "run/data/loss/step0/rank0/micro_step0/loss.npy": "key_data_not_read",
        "run/step1/rank0/construct.json": "no_dump_beside",
        "run/step0/rank0/debug.json": "debug_beside_dump",
        "run/notes.md": "not_part_of_a_dump",
    }
    side = read(tmp_path, {"run/step0/rank0/dump.json": DUMP} | dict.fromkeys(extra, b"x"))
    assert {left.path: left.reason for left in side.left_aside} == extra


def test_a_single_json_file_of_another_name_is_taken_for_the_dump(tmp_path: Path) -> None:
    assert keys(read(tmp_path, {"train_dump (1).json": DUMP, "notes.md": b""})) == [(None, None, None)]


def test_file_names_may_be_written_in_capitals(tmp_path: Path) -> None:
    assert keys(read(tmp_path, {"step0/rank0/DUMP.JSON": DUMP})) == [(None, 0, 0)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("run", [("run", (None, 0, 0)), ("run", (None, 0, 1)), ("run", (None, 1, 0))]),
        ("run/step0", [("step0", (None, 0, 0)), ("step0", (None, 0, 1))]),
        ("run/step0/rank1", [("step0/rank1", (None, 0, 1))]),
        ("run/step1/rank0/dump.json", [("step1/rank0", (None, 1, 0))]),
    ],
)
def test_the_command_line_takes_a_dump_a_rank_a_step_or_a_run(tmp_path: Path, given: str, expected: list[object]) -> None:
    for place in ("step0/rank0", "step0/rank1", "step1/rank0"):
        write(tmp_path / "run" / place, {"dump.json": DUMP, "construct.json": b"{}", "stack.json": b"{}"})
    sources = paths_to_sources([tmp_path / given])
    side = read_side(sources, "left")
    assert len(sources) == 3 * len(expected)
    assert [
        (dump.place.split("/" if given == "run" else "/dump.json")[0], key) for dump, key in zip(side.dumps, keys(side), strict=True)
    ] == [
        (place if given != "run/step0" else f"step0/rank{key[2]}", key)  # type: ignore[misc,index]
        for place, key in expected  # type: ignore[misc]
    ]


def test_several_paths_make_one_side(tmp_path: Path) -> None:
    write(tmp_path, {"a/step0/rank0/dump.json": DUMP, "b/step0/rank1/dump.json": DUMP})
    (tmp_path / "c.zip").write_bytes(zip_bytes({"step0/rank2/dump.json": DUMP}))
    side = read_side(paths_to_sources([tmp_path / "a", tmp_path / "b/step0/rank1", tmp_path / "c.zip"]), "left")
    assert keys(side) == [(None, 0, 0), (None, 0, 1), (None, 0, 2)]


def test_process_folders_that_hold_the_same_rank_become_parts_of_their_own(tmp_path: Path) -> None:
    names = [f"gen/generate/{process}/step{step}/rank{rank}/dump.json" for process in (4711, 4712) for step in (0, 1) for rank in (0, 1)]
    assert keys(read(tmp_path, dict.fromkeys(names, DUMP))) == [
        (f"generate/{process}", step, rank) for process in (4711, 4712) for step in (0, 1) for rank in (0, 1)
    ]
    workers = [f"gen/{process}/step0/rank{process - 4711}/dump.json" for process in (4711, 4712)]
    assert keys(read(tmp_path, dict.fromkeys(workers, DUMP))) == [(None, 0, 0), (None, 0, 1)]


def test_inner_steps_of_one_trainer_step_become_parts_of_their_own(tmp_path: Path) -> None:
    names = [f"run/step_{step}/actor_update/rank_0/step{inner}/rank0/dump.json" for step in (1, 2) for inner in (0, 1)]
    assert keys(read(tmp_path, dict.fromkeys(names, DUMP))) == [
        ("actor_update/0", 1, 0),
        ("actor_update/0", 2, 0),
        ("actor_update/1", 1, 0),
        ("actor_update/1", 2, 0),
    ]


def test_both_modes_of_mindspore_are_parts_of_one_run(tmp_path: Path) -> None:
    names = [f"run/{mode}/step{step}/rank0/dump.json" for mode in ("graph", "pynative") for step in (0, 1)]
    assert keys(read(tmp_path, dict.fromkeys(names, DUMP))) == [(mode, step, 0) for mode in ("graph", "pynative") for step in (0, 1)]


def test_ranks_in_flat_archives_are_known_by_the_archives_names(tmp_path: Path) -> None:
    side = read(tmp_path, {f"step1/rank{n}.zip": zip_bytes({"dump.json": DUMP, "stack.json": b"{}"}) for n in (1, 0)})
    assert keys(side) == [(None, 1, 0), (None, 1, 1)]


def test_prefill_and_decode_that_were_dumped_apart_are_stages_of_one_run(tmp_path: Path) -> None:
    """An SGLang with prefill and decode on cards of their own: two dump paths."""
    side = read(tmp_path, {f"run/{stage}/step0/rank0/dump.json": DUMP for stage in ("decode", "prefill")})
    assert keys(side) == [("prefill", 0, 0), ("decode", 0, 0)]
