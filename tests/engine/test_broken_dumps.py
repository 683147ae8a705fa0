"""A dump that was cut off when its process was killed, among others of the same run that are whole."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from compare.engine.errors import DumpError
from compare.engine.ingest import paths_to_sources
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths, compare_runs, read_run, silent
from tests.rooms import CORPUS

RUN = CORPUS / "rl_run_a.zip"
BROKEN = "reference_compute_log_prob/step2/rank0/dump.json"
STEP = "actor_update/step2"


def rewritten(target: Path, change: Callable[[str, bytes], dict[str, bytes]]) -> Path:
    """The example run with every member as ``change`` makes it: name and content → names and contents."""
    with zipfile.ZipFile(RUN) as whole, zipfile.ZipFile(target, "w") as out:
        for name in whole.namelist():
            for path, content in change(name, whole.read(name)).items():
                out.writestr(path, content)
    return target


def cut_off(name: str, content: bytes) -> dict[str, bytes]:
    return {name: content[: len(content) // 2] if name.endswith(BROKEN) else content}


def on_two_ranks(name: str, content: bytes) -> dict[str, bytes]:
    """One step of one stage, as two ranks wrote it."""
    return {name: content, name.replace("rank0", "rank1"): content} if STEP in name else {}


def second_rank_cut_off(name: str, content: bytes) -> dict[str, bytes]:
    whole = on_two_ranks(name, content)
    return {path: text[:200] if path.endswith("rank1/dump.json") else text for path, text in whole.items()}


def test_a_dump_that_was_cut_off_fails_its_cell_and_hides_no_other(tmp_path):
    broken = rewritten(tmp_path / "broken.zip", cut_off)
    for sides in ([RUN], [broken]), ([broken], [RUN]):
        document = compare_paths(*sides, Options()).document
        failed = [row for row in document["parts"] if row["state"] == "failed"]
        assert [(row["stage"], row["step"]) for row in failed] == [("reference_compute_log_prob", 2)]
        assert failed[0]["error"]["code"] == "json_truncated"
        assert failed[0]["error"]["where"].endswith(f"broken.zip!{BROKEN}") or BROKEN in failed[0]["error"]["where"]
        assert {row["verdict"] for row in document["parts"] if row["state"] == "done"} == {"identical"}
        assert document["verdict"] == "not_comparable"  # what could not be read is not said to agree
        assert "reference_compute_log_prob step 2" in document["headline"]["en"]


def test_a_worker_finds_the_same_and_the_run_says_which_dump_is_damaged(tmp_path):
    sides = []
    for name, archive in (("left", RUN), ("right", rewritten(tmp_path / "broken.zip", cut_off))):
        document = read_run(paths_to_sources([archive]), name, tmp_path / name, silent)
        sides.append(tmp_path / name)
    assert [(dump["stage"], dump["step"], dump["rank"], dump["error"]["code"]) for dump in document["unreadable"]] == [
        ("reference_compute_log_prob", 2, 0, "json_truncated")
    ]
    told: list[str] = []
    verdict = compare_runs(*sides, Options(), tmp_path / "result", silent, lambda document: told.append(document["verdict"]))
    assert [row["stage"] for row in verdict["parts"] if row["state"] == "failed"] == ["reference_compute_log_prob"]
    assert told == [verdict["verdict"]] == ["not_comparable"]


def test_a_rank_that_was_cut_off_leaves_the_other_ranks_compared_but_never_identical(tmp_path):
    whole, broken = rewritten(tmp_path / "whole.zip", on_two_ranks), rewritten(tmp_path / "broken.zip", second_rank_cut_off)
    assert compare_paths([whole], [whole], Options()).document["verdict"] == "identical"
    for side, sides in (("right", ([whole], [broken])), ("left", ([broken], [whole]))):
        document = compare_paths(*sides, Options()).document
        assert document["verdict"] == "consistent"
        assert "1 dump could not be read" in document["headline"]["en"]
        assert document["by_rank"] == [{"rank": 0, "verdict": "identical"}, {"rank": 1, "verdict": "not_comparable"}]
        found = [finding for finding in document["findings"] if finding["code"] == "dump_unreadable"]
        assert [(finding["severity"], finding["evidence"]["side"], finding["evidence"]["rank"]) for finding in found] == [
            ("error", side, 1)
        ]
        assert found[0]["evidence"]["error"]["code"] == "json_truncated"


def test_a_run_none_of_whose_dumps_can_be_read_is_refused(tmp_path):
    broken = rewritten(
        tmp_path / "broken.zip",
        lambda name, content: {
            path: text[:200] if path.endswith("dump.json") else text for path, text in on_two_ranks(name, content).items()
        },
    )
    with pytest.raises(DumpError) as refused:
        compare_paths([RUN], [broken], Options())
    assert refused.value.code == "json_truncated"
