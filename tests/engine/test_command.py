"""``manage.py compare``: exit statuses, one sentence for bad input, the document alone on stdout, nothing needed but packages."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compare.management.commands import compare as module
from compare.management.commands.compare import Command
from tests.engine.build import CORPUS, call, tensor, verdict, write
from tests.engine.diagnose.truth import CORE, EXIT, FURTHER, Known

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command in this process, as manage.py does."""

    def run(*arguments: str | Path) -> Said:
        with pytest.raises(SystemExit) as ended:
            Command().run_from_argv(["manage.py", "compare", *map(str, arguments)])
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, said.out, said.err)

    return run


def corpus(name: str) -> Path:
    return CORPUS / f"{name}.zip"


def arguments(known: Known) -> list[str]:
    found = ["--left", str(corpus(known.left)), "--right", str(corpus(known.right))]
    for name, value in known.options.items():
        found += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return found


CLEAN = (corpus("q2_train_stat"), corpus("q2_infer_stat"))


# --- exit status and document -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [*CORE, *FURTHER], ids=str)
def test_the_exit_status_is_the_verdict_and_stdout_the_document_alone(known: Known, compare: Any) -> None:
    said = compare(*arguments(known), "--json", "-")
    document = json.loads(said.out)
    assert said.status == EXIT[document["verdict"]]
    assert said.err == ""
    expected = verdict(known.left, known.right, **known.options)
    assert {key: value for key, value in document.items() if key != "timing"} == {
        key: value for key, value in expected.items() if key != "timing"
    }


def test_left_and_right_may_stand_alone(compare: Any) -> None:
    said = compare(*CLEAN)
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("Consistent")


def test_the_summary_names_the_place_its_certainty_and_its_causes(compare: Any) -> None:
    said = compare(corpus("q2_train_stat"), corpus("q2_infer_eps_stat"))
    assert said.status == 1
    lines = said.out.splitlines()
    assert lines[0].startswith("First divergence: layers.0 · input_layernorm")
    assert any("model.layers.0.input_layernorm" in line and "confidence" in line for line in lines)
    assert any("eps" in line for line in lines)


def test_the_summary_names_failed_premises(compare: Any) -> None:
    said = compare(corpus("q2b_train_stat"), corpus("q2b_infer_len10_stat"))
    assert said.status == 3
    assert "length" in said.out


def test_the_document_goes_to_a_file(tmp_path: Path, compare: Any) -> None:
    said = compare(*CLEAN, "--json", tmp_path / "v.json")
    assert json.loads((tmp_path / "v.json").read_text("utf-8"))["verdict"] == "consistent"
    assert said.out.startswith("Consistent")


def test_texts_in_the_document_are_readable(compare: Any) -> None:
    assert "一致" in compare(*CLEAN, "--json", "-").out


# --- sides and choices ------------------------------------------------------------------------------------------------------------------


def rank_archive(path: Path, rank: int, norm: float = 8.0) -> Path:
    record = {"Module.a.L.forward.0": call(tensor(), output=[tensor(norm)])}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"step0/rank{rank}/dump.json", json.dumps({"task": "statistics", "level": "L0", "framework": "pytorch", "data": record})
        )
    return path


def test_a_side_may_be_one_archive_a_rank(tmp_path: Path, compare: Any) -> None:
    left = [rank_archive(tmp_path / f"l{rank}.zip", rank) for rank in (0, 1)]
    right = [rank_archive(tmp_path / f"r{rank}.zip", rank, 8.0 if rank == 0 else 12.0) for rank in (0, 1)]
    sides = [part for name, paths in (("--left", left), ("--right", right)) for path in paths for part in (name, path)]
    said = compare(*sides, "--json", "-")
    document = json.loads(said.out)
    assert said.status == 1
    assert document["left"]["ranks"] == [0, 1]
    assert document["first_divergence"]["rank"] == 1
    assert compare(*sides, "--rank", "0").status == 0
    assert compare(*sides, "--rank", "0:1").status == 1


def test_a_step_is_chosen_for_both_sides_or_each(compare: Any) -> None:
    pair = (corpus("q2_train_steps2_stat"), corpus("q2_train_steps2_stat"))
    both = json.loads(compare(*pair, "--step", "1", "--json", "-").out)
    assert (both["left"]["step"], both["right"]["step"], both["verdict"]) == (1, 1, "identical")
    each = json.loads(compare(*pair, "--step", "0:1", "--json", "-").out)
    assert (each["left"]["step"], each["right"]["step"]) == (0, 1)


def test_several_parts_give_a_run_verdict(compare: Any) -> None:
    said = compare(corpus("q2_train_steps2_stat"), corpus("q2_train_steps2_stat"), "--json", "-")
    document = json.loads(said.out)
    assert (said.status, document["schema"], document["verdict"]) == (0, "probe-web/run-verdict/1", "identical")


# --- bad input --------------------------------------------------------------------------------------------------------------------------


def assert_refused(said: Said, *words: str) -> None:
    assert said.status == 2
    assert said.out == ""
    assert said.err.endswith("\n")
    assert len(said.err.splitlines()) == 1
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err


def test_a_missing_file_is_refused(tmp_path: Path, compare: Any) -> None:
    assert_refused(compare(tmp_path / "gone.zip", CLEAN[1]), "gone.zip", "does not exist")
    assert_refused(compare(CLEAN[0], tmp_path / "gone" / "dump.json"), "dump.json")


def test_a_file_that_is_not_json_is_refused(tmp_path: Path, compare: Any) -> None:
    (tmp_path / "dump.json").write_text("not json", "utf-8")
    assert_refused(compare(tmp_path / "dump.json", CLEAN[1]), "dump.json", "JSON")


def test_truncated_json_is_refused_with_its_last_complete_record(tmp_path: Path, compare: Any) -> None:
    path = write(tmp_path, {"Module.a.L.forward.0": call(tensor()), "Module.b.L.forward.0": call(tensor())})
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"Module.b") + 40])
    assert_refused(compare(path, CLEAN[1]), "dump.json", "Module.a.L.forward.0")


def test_an_archive_that_climbs_is_refused(tmp_path: Path, compare: Any) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../../dump.json", "{}")
    assert_refused(compare(tmp_path / "evil.zip", CLEAN[1]), "evil.zip", "../../dump.json")
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        info = tarfile.TarInfo("/etc/dump.json")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"{}"))
    assert_refused(compare(tmp_path / "evil.tar", CLEAN[1]), "evil.tar")


def test_a_side_without_records_is_refused(tmp_path: Path, compare: Any) -> None:
    assert_refused(compare(write(tmp_path, {}), CLEAN[1]), "dump.json")


def test_an_archive_without_a_dump_is_refused(tmp_path: Path, compare: Any) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert_refused(compare(tmp_path / "other.zip", CLEAN[1]), "other.zip", "dump.json")
    (tmp_path / "folder").mkdir()
    assert_refused(compare(tmp_path / "folder", CLEAN[1]), "folder")


def test_a_rank_given_twice_is_refused(tmp_path: Path, compare: Any) -> None:
    first, second = rank_archive(tmp_path / "one.zip", 1), rank_archive(tmp_path / "two.zip", 1)
    assert_refused(compare("--left", first, "--left", second, "--right", CLEAN[1]), "ank 1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--step", "two"], ["two"]),
        (["--step", "7"], ["step", "7", "0, 1"]),
        (["--rank", "0:x"], ["x"]),
        (["--stage"], ["--stage"]),
        (["--frobnicate"], ["--frobnicate"]),
        (["third.zip"], ["LEFT", "RIGHT"]),
        (["--left", "x.zip"], ["LEFT"]),
    ],
)
def test_usage_errors_are_one_line(options: list[str], words: list[str], compare: Any) -> None:
    several = corpus("q2_train_steps2_stat")
    assert_refused(compare(several, several, *options), *words)


def test_no_sides_at_all_are_a_usage_error(compare: Any) -> None:
    assert_refused(compare(), "side")
    assert_refused(compare("--left", CLEAN[0]), "side")


def test_a_document_that_cannot_be_written_is_one_line(tmp_path: Path, compare: Any) -> None:
    said = compare(*CLEAN, "--json", tmp_path / "no" / "such" / "v.json")
    assert_refused(said, "v.json")


def test_sides_with_other_rank_layouts_are_compared_together(compare: Any) -> None:
    said = compare(corpus("q2_infer_tp2_stat"), corpus("q2_infer_stat"))
    assert (said.status, said.err) == (0, "")


@pytest.mark.parametrize("name", ["new\nline.zip", "tab\t.zip", "esc\x1b[31m.zip"])
def test_a_hostile_file_name_stays_on_one_line(name: str, tmp_path: Path, compare: Any) -> None:
    said = compare(tmp_path / name, CLEAN[1])
    assert_refused(said)
    assert "\x1b" not in said.err


def test_a_fault_of_ours_is_one_line_with_a_log(compare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(module, "compare_paths", broken)
    said = compare(*CLEAN)
    log = Path(said.err.strip().rsplit(" ", 1)[1])
    try:
        assert said.status == 4
        assert len(said.err.splitlines()) == 1
        assert "ZeroDivisionError: a bug" in log.read_text("utf-8")
    finally:
        log.unlink()


# --- as a process of its own ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is needed: no built front end, no database file, no git, no tests."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("compare", "probe_web"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    shutil.copy(ROOT / "manage.py", tree)
    return tree


def process(tree: Path, *arguments: str | Path, **environment: str) -> Said:
    done = subprocess.run(
        [sys.executable, "manage.py", "compare", *map(str, arguments)],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def files(tree: Path) -> set[str]:
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if "__pycache__" not in path.parts and path.is_file()}


def test_it_runs_from_a_bare_copy_without_environment_and_writes_nothing(bare_tree: Path) -> None:
    before = files(bare_tree)
    said = process(bare_tree, corpus("q2_train_stat"), corpus("q2_infer_down2_stat"), "--json", "-")
    document = json.loads(said.out)
    assert (said.status, said.err) == (1, "")
    assert document["first_divergence"]["module"] == "model.layers.2.mlp.down_proj"
    assert files(bare_tree) == before


def test_bad_input_is_one_line_there_too(bare_tree: Path, tmp_path: Path) -> None:
    assert_refused(process(bare_tree, tmp_path / "gone.zip", CLEAN[1]), "gone.zip")


def test_usage_is_one_line_there_too(bare_tree: Path) -> None:
    assert_refused(process(bare_tree, "--nonsense"), "--nonsense")


@pytest.mark.parametrize(("encoding", "arguments"), [("ascii", ["--json", "-"]), ("latin-1", []), ("gbk", ["--json", "-"])])
def test_it_speaks_on_a_terminal_of_any_encoding(encoding: str, arguments: list[str], bare_tree: Path) -> None:
    said = subprocess.run(
        [sys.executable, "manage.py", "compare", *map(str, CLEAN), *arguments],
        cwd=bare_tree,
        env={"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, b"")
    if arguments:
        assert json.loads(said.stdout.decode("utf-8"))["headline"]["zh"]


def test_a_reader_that_goes_away_is_no_fault_of_ours(bare_tree: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "manage.py", "compare", *map(str, CLEAN), "--json", "-"],
            cwd=bare_tree,
            env={},
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode != 1
    assert "Traceback" not in done.stderr


# --- mapping ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mapping.yaml", "mapping.csv", "layer_mapping.yaml", "cell_mapping.yaml"])
def test_a_mapping_that_was_written_is_read_again(compare: Any, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert compare(*CLEAN, "--export-mapping", out).status == 0
    assert "qkv_proj" in out.read_text("utf-8")
    said = compare(*CLEAN, "--mapping", out, "--json", "-")
    document = json.loads(said.out)
    assert (said.status, document["verdict"]) == (0, "consistent")
    assert "mapping_used" in [finding["code"] for finding in document["findings"]]


def test_a_rule_of_a_mapping_changes_what_is_compared(compare: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("pairs:\n- {left: model.layers.1.mlp.down_proj, right: model.layers.2.mlp.down_proj}\n", "utf-8")
    assert compare(*CLEAN).status == 0
    assert compare(*CLEAN, "--mapping", rules).status == 1


def test_a_rule_that_matches_nothing_is_told_in_the_terminal(compare: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("pairs:\n- {left: model.layers.N.mlpp, right: model.layers.N.mlp}\n", "utf-8")
    said = compare(*CLEAN, "--mapping", rules)
    assert any(line.startswith("  note: ") and "mlpp" in line for line in said.out.splitlines()), said.out


def test_a_broken_mapping_is_one_sentence_with_file_and_line(compare: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("pairs:\n- {left: a, right: b, colour: red}\n", "utf-8")
    said = compare(*CLEAN, "--mapping", rules)
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert f"{rules}: Line 2" in said.err
    assert compare(*CLEAN, "--mapping", tmp_path / "missing.yaml").status == 2


def test_a_mapping_of_no_known_kind_is_refused_before_anything_is_read(compare: Any, tmp_path: Path) -> None:
    said = compare("/nowhere", "/nowhere", "--export-mapping", tmp_path / "mapping.txt")
    assert said.status == 2
    assert ".yaml" in said.err


# --- report and table -------------------------------------------------------------------------------------------------------------------


def test_report_and_table_are_written_beside_the_verdict(compare: Any, tmp_path: Path) -> None:
    report, table = tmp_path / "report.html", tmp_path / "table.csv"
    said = compare(*CLEAN, "--report", report, "--table", table, "--report-language", "zh")
    assert said.status == 0
    assert "前提" in report.read_text("utf-8")
    assert table.read_text("utf-8").startswith("NPU Name,Bench Name,")
    assert compare(*CLEAN, "--report", tmp_path / "report.md", "--table", tmp_path / "table.xlsx").status == 0
    assert (tmp_path / "report.md").read_text("utf-8").startswith("# ")
    assert zipfile.is_zipfile(tmp_path / "table.xlsx")


@pytest.mark.parametrize(("option", "name"), [("--report", "report.pdf"), ("--table", "table"), ("--table", "no/such/folder/table.csv")])
def test_a_file_that_cannot_be_written_is_a_2(compare: Any, tmp_path: Path, option: str, name: str) -> None:
    said = compare(*CLEAN, option, tmp_path / name)
    assert (said.status, said.err.count("\n")) == (2, 1)
