"""What dumps without modules, without values, without statistics or without a model may be said to show: from file to verdict."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compare.engine.ingest import paths_to_sources
from compare.engine.pipeline import Options, compare_paths, compare_runs, read_run, silent
from tests.engine.ingest.dumps import CORPUS, TENSOR, call, dump_json, write, zip_bytes

Document = dict[str, Any]
Change = Callable[[Document], Document]


def rewritten(folder: Path, name: str, change: Change, construct: bool = True) -> Path:
    """A dump of the corpus with its dump.json changed."""
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as files:
        held = {member: files.read(member) for member in files.namelist() if member.endswith(".json")}
    place = folder / f"{name}.zip"
    for member, content in held.items():
        if member.endswith("/dump.json"):
            held[member] = json.dumps(change(json.loads(content))).encode()
        elif member.endswith("/construct.json") and not construct:
            held[member] = b"{}"
    place.write_bytes(zip_bytes(held))
    return place


def verdict(tmp_path: Path, left: Path, right: Path, **options: Any) -> Document:
    """The verdict from the two paths, after the stored way gave the same."""
    document = compare_paths([left], [right], Options(**options)).document
    for side, path in (("left", left), ("right", right)):
        read_run(paths_to_sources([path]), path.name, tmp_path / "stored" / side, silent)
    stored = compare_runs(
        tmp_path / "stored/left", tmp_path / "stored/right", Options(**options), tmp_path / "compared", silent, lambda _: None
    )
    assert {name: value for name, value in stored.items() if name != "timing"} == {
        name: value for name, value in document.items() if name != "timing"
    }
    return document


def codes(document: Document) -> set[str]:
    return {finding["code"] for finding in document["findings"]}


def names_only(dump: Document) -> Document:
    return dump | {"task": "structure", "data": {}}


def calls_only(dump: Document) -> Document:
    return dump | {"level": "L1", "data": {name: record for name, record in dump["data"].items() if not name.startswith("Module.")}}


def checksums_only(dump: Document) -> Document:
    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(item) for item in value]
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if "md5" not in value or key not in ("Max", "Min", "Mean", "Norm")}
        return value

    return dump | {"data": bare(dump["data"])}


def test_sequences_of_calls_are_compared_and_said_to_be_no_more(tmp_path: Path) -> None:
    left = rewritten(tmp_path, "q2_shim_mix", calls_only, construct=False)
    document = verdict(tmp_path, left, left)
    assert document["verdict"] == "identical"
    assert document["left"]["level"] == "L1"
    assert document["coverage"]["left"] == {"records": 271, "matched": 271, "explained": 271}
    assert "api_sequence_only" in codes(document)


def test_names_alone_are_laid_side_by_side_without_a_word_about_numbers(tmp_path: Path) -> None:
    left = rewritten(tmp_path, "q2_shim_mix", names_only)
    right = rewritten(tmp_path, "q2b_shim_extraops_mix", names_only)
    document = verdict(tmp_path, left, right)
    assert document["verdict"] == "not_comparable"
    assert document["headline"]["en"] == (
        "Not comparable — names only, no values: 509 modules and calls are on both sides, 0 on the left alone, 4 on the right alone"
    )
    assert document["headline"]["zh"]
    assert codes(document) == {"names_only"}
    assert (document["first_difference"], document["origins"], document["counts"]["pairs"]) == (None, [], 0)


def test_names_against_statistics_are_no_difference_of_kind(tmp_path: Path) -> None:
    document = verdict(tmp_path, rewritten(tmp_path, "q2_train_stat", names_only), CORPUS / "q2_infer_stat.zip")
    assert document["verdict"] == "not_comparable"
    assert codes(document) == {"names_only"}


@pytest.mark.parametrize("change", [checksums_only, lambda dump: dump], ids=["checksums alone", "checksums beside statistics"])
def test_equal_checksums_are_identical_and_others_are_found_where_they_begin(tmp_path: Path, change: Change) -> None:
    left = rewritten(tmp_path, "q2_shim_md5", change)
    same, other = rewritten(tmp_path, "q2_shim_md5_again", change), rewritten(tmp_path, "q2_shim_pert1_md5", change)
    document = compare_paths([left], [same], Options()).document
    assert document["verdict"] == "identical"
    document = verdict(tmp_path, other, left)
    assert document["verdict"] == "diverged"
    assert document["first_divergence"]["module"] == "model.layers.1.self_attn.o_proj"
    assert document["first_divergence"]["kind"] == "weights"
    assert "checksum" in document["headline"]["en"]
    assert ("checksums_only" in codes(document)) == (change is checksums_only)


def test_a_checksum_that_differs_under_equal_statistics_is_not_equal(tmp_path: Path) -> None:
    pair = []
    for side, checksum in (("a", "00000000"), ("b", "00000001")):
        write(tmp_path / side, {"dump.json": dump_json({"Module.fc.Linear.forward.0": call(TENSOR, output=[TENSOR | {"md5": checksum}])})})
        pair.append(tmp_path / side)
    document = verdict(tmp_path, *pair)
    assert (document["verdict"], document["counts"]["rounding"]) == ("consistent", 1)
    assert verdict(tmp_path / "exact", *pair, exact=True)["verdict"] == "diverged"


def test_checksums_of_other_dtypes_say_nothing(tmp_path: Path) -> None:
    pair = []
    for side, dtype in (("a", "torch.bfloat16"), ("b", "torch.float32")):
        tensor = TENSOR | {"dtype": dtype, "md5": side * 8}
        write(tmp_path / side, {"dump.json": dump_json({"Module.fc.Linear.forward.0": call(tensor, output=[tensor])})})
        pair.append(tmp_path / side)
    assert verdict(tmp_path, *pair)["counts"]["equal"] == 2


def test_values_saved_by_hand_are_compared(tmp_path: Path) -> None:
    for side, maximum in (("a", 0.5), ("b", 0.9)):
        saved = {"loss.0.debug": TENSOR, "hidden.0.debug": [TENSOR, {"x": TENSOR | {"Max": maximum}}], "hidden_grad.0.debug": TENSOR}
        write(tmp_path / side / "step0/rank0", {"debug.json": dump_json(saved, level="debug")})
    document = verdict(tmp_path, tmp_path / "a", tmp_path / "b")
    assert document["verdict"] == "diverged"
    assert (document["first_divergence"]["module"], document["first_divergence"]["slot"]) == ("hidden", "output.1.x")


def test_the_two_sides_of_a_database_are_compared_again_and_are_not_the_same_input(tmp_path: Path) -> None:
    held = gzip.decompress((CORPUS.parent / "databases" / "pert1_stat.compare.vis.db.gz").read_bytes())
    (tmp_path / "a.vis.db").write_bytes(held)
    document = verdict(tmp_path, tmp_path / "a.vis.db", tmp_path / "a.vis.db", stage="NPU:Bench")
    original = compare_paths([CORPUS / "q2_shim_pert1_stat.zip"], [CORPUS / "q2_shim_stat.zip"], Options()).document
    assert document["counts"] == original["counts"]
    assert document["first_difference"] == original["first_difference"]
    assert "same_input" not in codes(document)
