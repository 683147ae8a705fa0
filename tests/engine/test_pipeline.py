"""The engine's face: reading runs, comparing them, publishing at once or not at all, parts, choices, progress."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compare.engine.errors import Cancelled, DumpError
from compare.engine.ingest import paths_to_sources
from compare.engine.ingest.source import Meter
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_part, compare_paths, compare_runs, plan_runs, read_run, reduce_parts
from compare.engine.store.columns import Columns
from compare.engine.store.dumps import read_dump
from tests.engine.build import CORPUS, call, tensor, verdict, write

Report = tuple[str, float, dict[str, int]]


def quiet(stage: str, fraction: float, numbers: dict[str, int]) -> None:
    """Progress that nobody watches."""


def run(place: Path, name: str) -> Path:
    """A corpus archive, read once into a folder of columns."""
    folder = place / name
    if not folder.exists():
        read_run(paths_to_sources([CORPUS / f"{name}.zip"]), f"{name}.zip", folder, quiet)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def without_seconds(document: JsonObject) -> JsonObject:
    return {key: value for key, value in document.items() if key != "timing"}


# --- stored and direct ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "options"),
    [
        ("q2_train_stat", "q2_infer_eps_stat", {}),
        ("q2_shim_pert1_stat", "q2_shim_stat", {"exact": True}),
        ("q2_train_micro2_stat", "q2_infer_stat", {}),
        ("q2_train_steps2_stat", "q2_train_steps2_pert1_stat", {}),
        ("q2_train_steps2_stat", "q2_train_steps2_pert1_stat", {"step": "1"}),
        ("q2_infer_tp2_stat", "q2_infer_tp2_stat", {}),
    ],
)
def test_stored_runs_give_the_verdict_of_the_files_themselves(
    left: str, right: str, options: dict[str, Any], place: Path, tmp_path: Path
) -> None:
    chosen = Options(**options)
    stored = compare_runs(run(place, left), run(place, right), chosen, tmp_path / "out", quiet, lambda _: None)
    direct = compare_paths([CORPUS / f"{left}.zip"], [CORPUS / f"{right}.zip"], chosen).document
    assert without_seconds(stored) == without_seconds(direct)


def test_the_verdict_is_told_before_the_tree_is_written(place: Path, tmp_path: Path) -> None:
    told: list[JsonObject] = []
    stages: list[str] = []

    def progress(stage: str, fraction: float, numbers: dict[str, int]) -> None:
        stages.append(f"{stage}{' after the verdict' if told else ''}")

    returned = compare_runs(run(place, "q2_train_stat"), run(place, "q2_infer_stat"), Options(), tmp_path / "out", progress, told.append)
    assert told == [returned]
    assert [stage for stage in stages if stage.startswith("store")] == ["store after the verdict"] * len(
        [s for s in stages if s.startswith("store")]
    )
    assert not [stage for stage in stages if stage.startswith(("align", "measure", "diagnose")) and "after" in stage]


def test_a_stored_dump_is_the_dump(place: Path) -> None:
    folder = run(place, "q2_train_stat")
    inventory = json.loads((folder / "inventory.json").read_text("utf-8"))
    stored = read_dump(folder / inventory["dumps"][0]["folder"])
    from compare.engine.ingest import read_side

    direct = read_side(paths_to_sources([CORPUS / "q2_train_stat.zip"]), "x").dumps[0]
    assert list(stored.records.name) == list(direct.records.name)
    for table in ("records", "slots"):
        for column in type(getattr(direct, table)).__slots__:
            ours, theirs = getattr(getattr(stored, table), column), getattr(getattr(direct, table), column)
            if column != "name" or table == "slots":
                assert ours.dtype == theirs.dtype
                assert ours.tobytes() == theirs.tobytes(), column
    for name in (
        "paths",
        "classes",
        "slot_names",
        "types",
        "dtypes",
        "shapes",
        "texts",
        "place",
        "task",
        "level",
        "step",
        "rank",
        "has_construct",
    ):
        assert getattr(stored, name) == getattr(direct, name)
    assert list(stored.stacks) == list(direct.stacks)


@pytest.mark.parametrize("text", ["", "äöü 层", "𝛼", "line\nbreak\x00"])
def test_odd_texts_survive_being_stored(text: str, tmp_path: Path) -> None:
    records = {f"Module.m{text}.L.forward.0": call(tensor(), {"type": "str", "value": text})}
    read_run(paths_to_sources([write(tmp_path / "dump", records)]), "odd", tmp_path / "run", quiet)
    stored = read_dump(tmp_path / "run" / "dumps" / "0")
    assert list(stored.records.name) == list(records)
    assert text in list(stored.texts)


def test_columns_of_another_format_are_refused(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "columns"
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"format": 99}), "utf-8")
    with pytest.raises(DumpError) as refused:
        Columns(folder)
    assert (refused.value.code, refused.value.params) == ("stored_format", {"found": 99, "known": 2})


# --- complete or not at all -------------------------------------------------------------------------------------------------------------


def reports_of(work: Callable[[Callable[..., None]], Any]) -> list[Report]:
    seen: list[Report] = []
    work(lambda stage, fraction, numbers: seen.append((stage, fraction, dict(numbers))))
    return seen


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_progress_goes_through_the_stages_with_fractions_and_numbers(place: Path, tmp_path: Path) -> None:
    left, right = run(place, "q2_train_stat"), run(place, "q2_infer_stat")
    seen = reports_of(lambda progress: compare_runs(left, right, Options(), tmp_path / "out", progress, lambda _: None))
    stages = list(dict.fromkeys(stage for stage, _, _ in seen))
    assert stages == ["align", "measure", "diagnose", "store"]
    for stage, fraction, numbers in seen:
        assert 0.0 <= fraction <= 1.0, stage
        assert all(isinstance(value, int) for value in numbers.values())
    for stage in stages:
        fractions = [fraction for name, fraction, _ in seen if name == stage]
        assert fractions == sorted(fractions)
    assert seen[-1][:2] == ("store", 1.0)


def test_a_comparison_that_is_cancelled_at_any_report_leaves_nothing_behind(place: Path, tmp_path: Path) -> None:
    left, right = run(place, "q2_train_steps2_stat"), run(place, "q2_train_steps2_pert1_stat")
    total = len(reports_of(lambda progress: compare_runs(left, right, Options(), tmp_path / "first", progress, lambda _: None)))
    assert total >= 8
    for stop in range(total):
        seen = 0

        def cancel(stage: str, fraction: float, numbers: dict[str, int], stop: int = stop) -> None:
            nonlocal seen
            seen += 1
            if seen > stop:
                raise Cancelled

        with pytest.raises(Cancelled):
            compare_runs(left, right, Options(), tmp_path / "out", cancel, lambda _: None)
        assert left_behind(tmp_path) == ["first"]


def test_reading_that_is_cancelled_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "INTERVAL", 0.0)  # each block is reported: how many reports there are does not depend on the machine
    sources = paths_to_sources([CORPUS / "q2_train_steps2_stat.zip"])
    total = len(reports_of(lambda progress: read_run(sources, "x", tmp_path / "first", progress)))
    for stop in range(total):
        seen = 0

        def cancel(stage: str, fraction: float, numbers: dict[str, int], stop: int = stop) -> None:
            nonlocal seen
            seen += 1
            if seen > stop:
                raise Cancelled

        with pytest.raises(Cancelled):
            read_run(sources, "x", tmp_path / "out", cancel)
        assert left_behind(tmp_path) == ["first"]


def test_a_listener_that_fails_leaves_nothing_behind(place: Path, tmp_path: Path) -> None:
    def fails(document: JsonObject) -> None:
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError, match="database"):
        compare_runs(run(place, "q2_train_stat"), run(place, "q2_infer_stat"), Options(), tmp_path / "out", quiet, fails)
    assert left_behind(tmp_path) == []


def test_a_refused_choice_leaves_nothing_behind(place: Path, tmp_path: Path) -> None:
    left, right = run(place, "q2_train_steps2_stat"), run(place, "q2_train_steps2_pert1_stat")
    with pytest.raises(DumpError) as refused:
        compare_runs(left, right, Options(step="7"), tmp_path / "out", quiet, lambda _: None)
    assert refused.value.code == "no_such_choice"
    assert refused.value.params == {"name": "step", "value": "7", "held": "0, 1"}
    assert left_behind(tmp_path) == []


def test_a_run_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text("{", "utf-8")
    with pytest.raises(DumpError):
        read_run(paths_to_sources([tmp_path / "dump.json"]), "x", tmp_path / "out", quiet)
    assert left_behind(tmp_path) == ["dump.json"]


def test_a_finished_folder_holds_what_the_architecture_says(place: Path, tmp_path: Path) -> None:
    compare_runs(
        run(place, "q2_train_steps2_stat"), run(place, "q2_train_steps2_pert1_stat"), Options(), tmp_path / "out", quiet, lambda _: None
    )
    assert left_behind(tmp_path / "out") == ["parts", "verdict.json"]
    assert left_behind(tmp_path / "out" / "parts") == ["0", "1"]
    for number in ("0", "1"):
        assert left_behind(tmp_path / "out" / "parts" / number) == ["columns", "tree.bin.gz", "verdict.json"]


def test_the_same_comparison_twice_writes_the_same_tree(place: Path, tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        compare_runs(run(place, "q2_train_stat"), run(place, "q2_infer_stat"), Options(), tmp_path / name, quiet, lambda _: None)
        trees.append((tmp_path / name / "parts" / "0" / "tree.bin.gz").read_bytes())
    assert trees[0] == trees[1]


@pytest.mark.parametrize("records", [{"Module.b.M.forward.0": call(tensor())}, {"Module.a.L.forward.0": {"input_args": [], "output": []}}])
def test_two_dumps_without_a_pair_are_published_as_not_comparable(records: dict[str, Any], tmp_path: Path) -> None:
    for name, data in (("left", {"Module.a.L.forward.0": call(tensor())}), ("right", records)):
        read_run(paths_to_sources([write(tmp_path / f"{name}_dump", data)]), name, tmp_path / name, quiet)
    document = compare_runs(tmp_path / "left", tmp_path / "right", Options(), tmp_path / "out", quiet, lambda _: None)
    assert document["verdict"] == "not_comparable"
    assert (tmp_path / "out" / "parts" / "0" / "tree.bin.gz").exists()


@pytest.mark.parametrize("number", ["²", "٣", "40000", "999999999", "99999999999", "9" * 5000])
def test_an_odd_number_in_a_path_is_a_name_and_costs_nothing(number: str, tmp_path: Path) -> None:
    path = write(tmp_path / "dump", {f"Module.model.layers.{number}.fc.Linear.forward.0": call(tensor())})
    begin = time.monotonic()
    read_run(paths_to_sources([path]), "odd", tmp_path / "run", quiet)
    document = compare_runs(tmp_path / "run", tmp_path / "run", Options(), tmp_path / "out", quiet, lambda _: None)
    assert document["verdict"] == "identical"
    assert document["layers"] == []
    assert time.monotonic() - begin < 10


# --- parts and choices ------------------------------------------------------------------------------------------------------------------


def steps(*numbers: int, folder: Path, norms: dict[int, float] | None = None, ranks: tuple[int, ...] = (0,)) -> Path:
    """A run of one module, one dump a step and rank."""
    for number in numbers:
        for rank in ranks:
            norm = (norms or {}).get(number, 8.0)
            write(folder / f"step{number}" / f"rank{rank}", {"Module.a.L.forward.0": call(tensor(), output=[tensor(norm)])})
    return folder


def test_several_steps_give_a_run_verdict_with_the_earliest_bad_part_first(tmp_path: Path) -> None:
    left, right = steps(0, 1, 2, folder=tmp_path / "l"), steps(0, 1, 2, folder=tmp_path / "r", norms={1: 12.0, 2: 12.0})
    document = compare_paths([left], [right], Options()).document
    assert document["schema"] == "probe-web/run-verdict/1"
    assert document["verdict"] == "diverged"
    assert [(part["n"], part["step"], part["verdict"]) for part in document["parts"]] == [
        (0, 0, "identical"),
        (1, 1, "diverged"),
        (2, 2, "diverged"),
    ]
    assert document["first"] == {"key_data": None, "stage": None, "step": 1, "rank": 0, "module": "a"}
    assert "step 1" in document["headline"]["en"]
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_part_on_one_side_only_is_listed_and_stops_identical(tmp_path: Path) -> None:
    document = compare_paths([steps(0, 1, 2, folder=tmp_path / "l")], [steps(1, 2, 3, folder=tmp_path / "r")], Options()).document
    assert [(part["step"], part["verdict"]) for part in document["parts"]] == [
        (0, "left_only"),
        (1, "identical"),
        (2, "identical"),
        (3, "right_only"),
    ]
    assert document["verdict"] == "consistent"
    assert document["first"] is None
    assert document["parts"][0]["right"] is None
    assert document["parts"][3]["left"] is None


def test_a_run_of_equal_parts_is_identical(tmp_path: Path) -> None:
    document = compare_paths([steps(0, 1, folder=tmp_path / "l")], [steps(0, 1, folder=tmp_path / "r")], Options()).document
    assert document["verdict"] == "identical"


@pytest.mark.parametrize(
    ("choice", "schema"), [("1", "probe-web/verdict/1"), ("0:2", "probe-web/verdict/1"), (None, "probe-web/run-verdict/1")]
)
def test_choosing_a_step_gives_the_verdict_of_that_part_alone(choice: str | None, schema: str, tmp_path: Path) -> None:
    left, right = steps(0, 1, 2, folder=tmp_path / "l"), steps(0, 1, 2, folder=tmp_path / "r", norms={2: 12.0})
    document = compare_paths([left], [right], Options(step=choice)).document
    assert document["schema"] == schema
    if choice == "1":
        assert document["verdict"] == "identical"
    if choice == "0:2":
        assert (document["left"]["step"], document["right"]["step"], document["verdict"]) == (0, 2, "diverged")


def test_one_part_is_paired_with_the_part_of_its_step_else_with_the_first(tmp_path: Path) -> None:
    several = steps(4, 5, folder=tmp_path / "many")
    same = compare_paths([steps(5, folder=tmp_path / "five")], [several], Options()).document
    assert (same["left"]["step"], same["right"]["step"]) == (5, 5)
    other = compare_paths([steps(0, folder=tmp_path / "zero")], [several], Options()).document
    assert (other["left"]["step"], other["right"]["step"]) == (0, 4)


def test_steps_that_one_part_leaves_uncompared_are_named_unless_a_choice_left_them_out(tmp_path: Path) -> None:
    one, many = steps(0, folder=tmp_path / "one"), steps(0, 1, 2, folder=tmp_path / "many")
    told = [f for f in compare_paths([one], [many], Options()).document["findings"] if f["code"] == "parts_not_compared"]
    assert [f["evidence"] for f in told] == [{"side": "right", "parts": [{"stage": None, "step": 1}, {"stage": None, "step": 2}]}]
    assert "step 1, step 2" in told[0]["text"]["en"]
    for left, right, options in ((one, many, Options(step="0:2")), (one, one, Options()), (many, many, Options(step="1"))):
        assert all(f["code"] != "parts_not_compared" for f in compare_paths([left], [right], options).document["findings"])


def test_a_step_that_a_side_of_one_step_lacks_is_no_error_there(tmp_path: Path) -> None:
    document = compare_paths([steps(0, folder=tmp_path / "l")], [steps(2, 3, folder=tmp_path / "r")], Options(step="3")).document
    assert (document["left"]["step"], document["right"]["step"]) == (0, 3)


def test_ranks_of_one_layout_go_rank_by_rank_into_one_verdict(tmp_path: Path) -> None:
    left, right = steps(0, folder=tmp_path / "l", ranks=(0, 1)), steps(0, folder=tmp_path / "r", ranks=(0, 1))
    write(right / "step0" / "rank1", {"Module.a.L.forward.0": call(tensor(), output=[tensor(12.0)])})
    document = compare_paths([left], [right], Options()).document
    assert document["left"]["ranks"] == document["right"]["ranks"] == [0, 1]
    assert [(origin["module"], origin["rank"]) for origin in document["origins"]] == [("a", 1)]
    assert document["coverage"]["left"]["records"] == 2
    alone = compare_paths([left], [right], Options(rank="0")).document
    assert alone["verdict"] == "identical"
    crossed = compare_paths([left], [right], Options(rank="0:1")).document
    assert crossed["verdict"] == "diverged"


def test_each_rank_has_a_verdict_of_its_own_where_it_was_compared_alone(tmp_path: Path) -> None:
    left = steps(0, 1, folder=tmp_path / "l", ranks=(0, 1))
    right = steps(0, 1, folder=tmp_path / "r", ranks=(0,))
    steps(0, folder=tmp_path / "r", ranks=(1,))
    steps(1, folder=tmp_path / "r", norms={1: 9.0}, ranks=(1,))
    document = compare_paths([left], [right], Options(), quiet).document
    assert [part["by_rank"] for part in document["parts"]] == [
        [{"rank": 0, "verdict": "identical"}, {"rank": 1, "verdict": "identical"}],
        [{"rank": 0, "verdict": "identical"}, {"rank": 1, "verdict": "diverged"}],
    ]
    assert [part["verdict"] for part in document["parts"]] == ["identical", "diverged"]
    # Two against one are compared together: nothing is said of one of them.
    assert compare_paths([left], [steps(0, folder=tmp_path / "one")], Options(), quiet).document["by_rank"] == []


def test_copies_on_two_ranks_are_compared_with_the_one_they_copy(tmp_path: Path) -> None:
    left, right = steps(0, folder=tmp_path / "l", ranks=(0, 1)), steps(0, folder=tmp_path / "r", ranks=(0,))
    for sides in ((left, right), (right, left)):
        document = compare_paths([sides[0]], [sides[1]], Options()).document
        assert document["verdict"] == "identical"
        assert sorted((document["left"]["ranks"], document["right"]["ranks"])) == [[0], [0, 1]]


def test_stages_are_read_in_pipeline_order_and_may_be_chosen(tmp_path: Path) -> None:
    for side in ("l", "r"):
        for stage in ("actor_update", "reference_compute_log_prob", "actor_generate_sequences"):
            write(tmp_path / side / stage / "step0" / "rank0", {"Module.a.L.forward.0": call(tensor())})
    document = compare_paths([tmp_path / "l"], [tmp_path / "r"], Options()).document
    assert [part["stage"] for part in document["parts"]] == ["actor_generate_sequences", "reference_compute_log_prob", "actor_update"]
    chosen = compare_paths([tmp_path / "l"], [tmp_path / "r"], Options(stage="actor_update:reference_compute_log_prob")).document
    assert (chosen["left"]["stage"], chosen["right"]["stage"]) == ("actor_update", "reference_compute_log_prob")


# --- options ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, Options()),
        ({"step": "2", "exact": True}, Options(step="2", exact=True)),
        ({"step": 0}, Options(step="0")),
        ({"step": None, "rank": "0:1", "stage": "a:b"}, Options(rank="0:1", stage="a:b")),
        ({"left_role": "train", "right_role": "infer"}, Options(left_role="train", right_role="infer")),
        ({"baseline": None, "mapping": ""}, Options()),
        ({"baseline": "a-run"}, Options(baseline="a-run")),
    ],
)
def test_options_are_read(document: dict[str, Any], expected: Options) -> None:
    assert Options.from_json(document) == expected


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"stpe": "2"}, "option_unknown"),
        ({"step": "two"}, "option_invalid"),
        ({"step": "0:x"}, "option_invalid"),
        ({"rank": "-1"}, "option_invalid"),
        ({"exact": "yes"}, "option_invalid"),
        ({"step": True}, "option_invalid"),
        ({"step": [0]}, "option_invalid"),
        ({"rank": 1.5}, "option_invalid"),
        ({"baseline": ["x"]}, "option_invalid"),
        ({"mapping": "rules"}, "mapping_shape"),
    ],
)
def test_options_that_cannot_be_are_refused(document: dict[str, Any], code: str) -> None:
    with pytest.raises(DumpError) as refused:
        Options.from_json(document)
    assert refused.value.code == code
    assert refused.value.sentence()


def test_a_role_that_a_person_gave_decides_whose_order_counts(tmp_path: Path) -> None:
    """Two dumps that look alike and ran in another order."""
    first, second = "Module.a.L.forward.0", "Module.b.L.forward.0"
    wrong = [tensor(12.0)]
    left = write(tmp_path / "l", {first: call(tensor()), second: call(tensor())})
    right = write(tmp_path / "r", {second: call(tensor(), output=wrong), first: call(tensor(), output=wrong)})
    for roles, module in (
        ({}, "a"),
        ({"left_role": "train", "right_role": "infer"}, "b"),
        ({"left_role": "infer", "right_role": "train"}, "a"),
    ):
        document = compare_paths([left], [right], Options(**roles)).document
        assert document["first_divergence"]["module"] == module


def test_the_corpus_archive_the_folder_and_the_loose_file_say_the_same(tmp_path: Path) -> None:
    with zipfile.ZipFile(CORPUS / "q2_infer_eps_stat.zip") as archive:
        archive.extractall(tmp_path)
    folder = next(path.parent for path in tmp_path.rglob("dump.json"))
    expected = without_seconds(verdict("q2_train_stat", "q2_infer_eps_stat"))
    for given in (folder / "dump.json", folder, folder.parent, tmp_path):
        found = without_seconds(compare_paths([CORPUS / "q2_train_stat.zip"], [given], Options()).document)
        assert found | {"right": None} == expected | {"right": None}


# --- part by part -----------------------------------------------------------------------------------------------------------------------


def read(folder: Path, place: Path) -> Path:
    read_run(paths_to_sources([folder]), folder.name, place, quiet)
    return place


def stepped(place: Path, norms: dict[int, float] | None = None) -> tuple[Path, Path]:
    """Two stored runs of three steps and two ranks."""
    left = steps(0, 1, 2, folder=place / "l", ranks=(0, 1))
    right = steps(0, 1, 2, folder=place / "r", ranks=(0, 1), norms=norms)
    return read(left, place / "left"), read(right, place / "right")


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.suffix in (".gz", ".bin")}


def test_parts_compared_one_by_one_in_any_order_come_to_what_one_process_finds(tmp_path: Path) -> None:
    left, right = stepped(tmp_path, {1: 12.0, 2: 12.0})
    whole = compare_runs(left, right, Options(), tmp_path / "whole", quiet, lambda _: None)
    documents = {}
    for n in (2, 0, 1):
        plan = plan_runs(left, right, Options())  # as each worker does
        documents[n] = compare_part(plan, n, tmp_path / "alone" / str(n), quiet, lambda _: None)
    assert without_seconds(reduce_parts(plan_runs(left, right, Options()), documents, {})) == without_seconds(whole)
    assert files(tmp_path / "alone") == files(tmp_path / "whole" / "parts")


def test_a_plan_opens_no_dump_and_a_part_only_its_own(tmp_path: Path) -> None:
    left, right = stepped(tmp_path)
    for side in (left, right):
        for dump in json.loads((side / "inventory.json").read_text("utf-8"))["dumps"]:
            if dump["step"] != 1:
                (side / dump["folder"] / "meta.json").unlink()
    plan = plan_runs(left, right, Options())
    assert [(part.n, part.left) for part in plan.compared] == [(0, (None, 0)), (1, (None, 1)), (2, (None, 2))]
    document = compare_part(plan, 1, tmp_path / "out", quiet, lambda _: None)
    assert (document["verdict"], document["left"]["ranks"]) == ("identical", [0, 1])
    with pytest.raises(FileNotFoundError):
        compare_part(plan, 0, tmp_path / "none", quiet, lambda _: None)
    assert not (tmp_path / "none").exists()


ERROR = {"code": "worker_killed", "params": {}, "message": "m", "where": ""}


def test_a_part_that_failed_is_named_and_hides_nothing_of_the_others(tmp_path: Path) -> None:
    left, right = stepped(tmp_path, {2: 12.0})
    plan = plan_runs(left, right, Options())
    documents = {n: compare_part(plan, n, tmp_path / str(n), quiet, lambda _: None) for n in (0, 2)}
    document = reduce_parts(plan, documents, {1: ERROR})
    assert document["verdict"] == "diverged"
    assert document["first"]["step"] == 2
    assert [(part["state"], part["verdict"], part["error"]) for part in document["parts"]] == [
        ("done", "identical", None),
        ("failed", "not_comparable", ERROR),
        ("done", "diverged", None),
    ]
    assert document["headline"]["en"].endswith("; 1 part failed: step 1; the first difference may lie in an earlier part that failed")
    assert document["headline"]["zh"].endswith("；1 个部分失败：第 1 步；更早的部分中有 1 个失败，首个差异可能在其中")


def test_parts_that_failed_do_not_pass_for_equal(tmp_path: Path) -> None:
    left, right = stepped(tmp_path)
    plan = plan_runs(left, right, Options())
    document = reduce_parts(plan, {0: compare_part(plan, 0, tmp_path / "0", quiet, lambda _: None)}, {1: ERROR, 2: ERROR})
    assert document["verdict"] == "not_comparable"
    assert document["headline"]["en"].endswith("; 2 parts failed: step 1, step 2")
