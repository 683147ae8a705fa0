"""Tensor dumps from the files to the verdict and the detail: wherever the tensor files lie, and whatever is wrong with some of them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.ingest import paths_to_sources
from compare.engine.pipeline import Options, compare_paths, compare_runs, read_run, silent
from compare.engine.store.reader import PartReader

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
ROOT = Path(__file__).resolve().parents[2]
TRAIN, ROPE = CORPUS / "q2_train_tensor.zip", CORPUS / "q2_infer_rope_tensor.zip"
Files = dict[str, bytes]
Document = dict[str, Any]
O_PROJ = "Module.model.layers.1.self_attn.o_proj.RowParallelLinear.forward.0"


@cache
def members(archive: Path) -> Files:
    with zipfile.ZipFile(archive) as files:
        return {name: files.read(name) for name in files.namelist()}


def as_folder(files: Files, place: Path) -> Path:
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def as_bytes_of_zip(files: Files) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def as_zip(files: Files, place: Path, method: int = zipfile.ZIP_STORED) -> Path:
    path = place.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return path


def as_tar(files: Files, place: Path, mode: str = "w") -> Path:
    path = place.with_suffix(".tar.gz" if mode == "w:gz" else ".tar")
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return path


def nested(inner: Callable[[Files, Path], Path]) -> Callable[[Files, Path], Path]:
    """One archive a rank inside a zip, as people send them."""

    def pack(files: Files, place: Path) -> Path:
        flat = {name.removeprefix("step0/rank0/"): content for name, content in files.items()}
        rank = inner(flat, place.with_name("rank0"))
        return as_zip({f"step0/{rank.name}": rank.read_bytes()}, place)

    return pack


PACKERS: dict[str, Callable[[Files, Path], Path]] = {
    "folder": as_folder,
    "stored zip": as_zip,
    "deflated zip": lambda files, place: as_zip(files, place, zipfile.ZIP_DEFLATED),
    "tar": as_tar,
    "tar.gz": lambda files, place: as_tar(files, place, "w:gz"),
    "zip in a zip": nested(lambda files, place: as_zip(files, place, zipfile.ZIP_DEFLATED)),
    "tar in a zip": nested(as_tar),
    "tar.gz in a zip": nested(lambda files, place: as_tar(files, place, "w:gz")),
}


def plain(document: Document) -> Document:
    sides = {side: {**document[side], "name": ""} for side in ("left", "right")}
    return {**document, **sides, "timing": None}


def stored(left: Path, right: Path, folder: Path) -> Document:
    """The way of the server: two runs read into columns, compared later from there and from the files that were sent."""
    sources = [paths_to_sources([path]) for path in (left, right)]
    for side, found in zip(("left", "right"), sources, strict=True):
        read_run(found, side, folder / side, silent)
    files = ([source.path for source in sources[0]], [source.path for source in sources[1]], [])
    return compare_runs(folder / "left", folder / "right", Options(), folder / "out", silent, lambda _: None, files=files)


def codes(document: Document) -> set[str]:
    return {finding["code"] for finding in document["findings"]}


def finding(document: Document, code: str) -> Document:
    return next(found for found in document["findings"] if found["code"] == code)


@cache
def truth() -> Document:
    return plain(compare_paths([TRAIN], [ROPE], Options()).document)


@pytest.mark.parametrize("packing", PACKERS)
def test_tensors_are_read_where_they_lie(packing: str, tmp_path: Path) -> None:
    right = PACKERS[packing](members(ROPE), tmp_path / "sent")
    document = plain(stored(TRAIN, right, tmp_path))
    assert document == truth()
    assert document["first_divergence"]["evidence"]["rel_l2"] == pytest.approx(0.1177996769, rel=1e-6)  # torch's figure
    kept = tmp_path / "right" / "tensors.bin"
    if packing != "folder":
        assert kept.exists() == (packing == "tar.gz" or "in a zip" in packing)


def test_a_dump_json_alone_brings_the_tensors_beside_it(tmp_path: Path) -> None:
    place = as_folder(members(ROPE), tmp_path / "right")
    assert plain(compare_paths([TRAIN], [place / "step0/rank0/dump.json"], Options()).document) == truth()


def without_tensors(files: Files) -> Files:
    return {name: content for name, content in files.items() if name.endswith(".json")}


def test_without_tensor_files_the_statistics_are_compared_and_that_is_said(tmp_path: Path) -> None:
    right = as_zip(without_tensors(members(ROPE)), tmp_path / "right")
    document = compare_paths([TRAIN], [right], Options()).document
    assert document["first_divergence"]["module"] == "model.layers.0.self_attn"
    assert document["first_divergence"]["evidence"]["rel_l2"] is None
    assert "tensors_not_sent" in codes(document)
    assert "tensors:" not in document["headline"]["en"]


def changed(tmp_path: Path, change: Callable[[Files], None]) -> Document:
    files = dict(members(ROPE))
    change(files)
    return compare_paths([TRAIN], [as_zip(files, tmp_path / "right")], Options()).document


def name_of(slot: str) -> str:
    return f"step0/rank0/dump_tensor_data/{O_PROJ}.{slot}.pt"


def test_a_missing_file_leaves_its_pair_to_the_statistics(tmp_path: Path) -> None:
    document = changed(tmp_path, lambda files: files.pop(name_of("output.0")) and None)
    assert document["first_divergence"] == truth()["first_divergence"]
    found = finding(document, "tensor_files_missing")
    assert found["evidence"] == {"pairs": 1, "left": 0, "right": 1}
    assert document["counts"]["pairs"] == truth()["counts"]["pairs"]


def npy(values: Any) -> bytes:
    held = io.BytesIO()
    np.save(held, values)
    return held.getvalue()


HELD = members(ROPE)[name_of("output.0")]
BROKEN = {
    "tensor_truncated": HELD[: len(HELD) // 2],
    "tensor_unknown": b"not a tensor at all",
    "file_empty": b"",
    "tensor_other_size": npy(np.zeros((3, 3), np.float32)),
    "tensor_legacy": b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00trueq\x00\x85Rq\x01.",
    "tensor_record_missing": as_bytes_of_zip({"archive/version": b"3"}),
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_file_is_named_with_its_code_and_spoils_nothing(code: str, tmp_path: Path) -> None:
    document = changed(tmp_path, lambda files: files.update({name_of("output.0"): BROKEN[code]}))
    assert document["first_divergence"] == truth()["first_divergence"]
    evidence = finding(document, "tensor_files_unusable")["evidence"]
    assert evidence["count"] == 1
    told = evidence["files"][0]
    assert (told["side"], told["file"], told["code"]) == ("right", f"{O_PROJ}.output.0.pt", code)


def test_a_name_that_leads_elsewhere_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.pt").write_bytes(members(ROPE)[name_of("output.0")])

    def climb(files: Files) -> None:
        dump = json.loads(files["step0/rank0/dump.json"])
        dump["data"][O_PROJ]["output"][0]["data_name"] = "../../../../secret.pt"
        files["step0/rank0/dump.json"] = json.dumps(dump).encode()

    document = changed(tmp_path, climb)
    assert finding(document, "tensor_files_missing")["evidence"]["pairs"] == 1


def test_one_changed_bit_is_a_difference_that_statistics_do_not_show(tmp_path: Path) -> None:
    """The same dump but for the last bit of one element of one weight; its statistics stay as they were."""
    weight = f"step0/rank0/dump_tensor_data/{O_PROJ}.parameters.weight.pt"
    values = np.zeros((64, 64), np.float32)  # any tensor of the right size does: .npy is read under this name too
    other = values.copy()
    other[63, 0] = np.float32(1e-45)
    files = dict(members(ROPE))
    sides = [as_zip(files | {weight: npy(side)}, tmp_path / name) for name, side in (("a", values), ("b", other))]
    document = compare_paths([sides[0]], [sides[1]], Options()).document
    assert document["first_difference"]["slot"] == "parameters.weight"
    assert document["verdict"] != "identical"
    assert compare_paths([sides[0]], [sides[0]], Options()).document["verdict"] == "identical"


def test_the_detail_of_a_row_says_how_far_and_where(tmp_path: Path) -> None:
    stored(TRAIN, ROPE, tmp_path)
    reader = PartReader(tmp_path / "out" / "parts" / "0", tmp_path / "left", tmp_path / "right")
    found = None
    for n in range(200):
        node = reader.node(n)
        if node["module"] == "model.layers.0.self_attn.attn" and node["direction"] == "forward":
            found = node
            break
    assert found is not None
    output = next(slot for slot in found["slots"] if slot["slot"] == "output.0")
    tensor = output["tensor"]
    assert (tensor["state"], tensor["elements"], tensor["layout"]) == ("compared", 768, "same")
    assert tensor["identical"] == 99  # 0.1289 of 768, as torch counts them
    assert tensor["max_absolute"] == 0.3203125
    assert sum(tensor["ulps"]["counts"]) == 768
    assert (tensor["rows"]["length"], tensor["columns"]["length"]) == (12, 64)
    assert tensor["rows"]["values"][0] == 0.0  # the first token has nothing to attend to but itself: a wrong rotation changes nothing
    first = tensor["worst"][0]
    assert abs(first["left"] - first["right"]) == first["difference"] == tensor["max_absolute"]
    json.dumps(found, allow_nan=False)


FAULTS = {
    "q2_infer_eps_tensor": {"model.layers.0.input_layernorm"},
    "q2_infer_rope_tensor": {"model.layers.0.self_attn", "model.layers.0.self_attn.attn", "model.layers.0.self_attn.o_proj"},
    "q2_infer_down2_tensor": {"model.layers.2.mlp.down_proj"},
    "q2_infer_nan3_tensor": {"model.layers.3.self_attn.attn", "model.layers.3.self_attn", "model.layers.3.self_attn.o_proj"},
    "q2_infer_tensor": None,
    "q2_infer_tp2_tensor": None,
}


@pytest.mark.parametrize("right", FAULTS)
def test_the_command_line_names_the_right_module_from_tensors_and_nothing_where_there_is_no_fault(right: str, tmp_path: Path) -> None:
    out = tmp_path / "verdict.json"
    command = [sys.executable, "manage.py", "compare", str(TRAIN), str(CORPUS / f"{right}.zip"), "--json", str(out)]
    status = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=120).returncode
    document = json.loads(out.read_text("utf-8"))
    expected = FAULTS[right]
    if expected is None:
        assert (status, document["origins"]) == (0, [])
        assert "tensors, element by element" in document["headline"]["en"]
    else:
        assert status == 1
        assert document["first_divergence"]["module"] in expected


def test_left_padding_is_taken_out_by_the_mask_that_was_dumped() -> None:
    document = compare_paths([CORPUS / "q2_train_padded_tensor.zip"], [CORPUS / "q2_infer_packed_tensor.zip"], Options()).document
    assert document["verdict"] == "consistent"
    assert "unpadded" in codes(document)
    premises = {premise["code"]: premise["state"] for premise in document["premises"]}
    assert (premises["tokens"], premises["length"]) == ("ok", "ok")


def test_left_padding_without_tensors_is_a_failed_premise(tmp_path: Path) -> None:
    sides = [
        as_zip(without_tensors(members(CORPUS / f"{name}.zip")), tmp_path / name)
        for name in ("q2_train_padded_tensor", "q2_infer_packed_tensor")
    ]
    document = compare_paths([sides[0]], [sides[1]], Options()).document
    assert document["verdict"] == "not_comparable"
    assert {premise["code"]: premise["state"] for premise in document["premises"]}["length"] == "failed"


def test_the_pair_table_has_msprobes_columns_of_tensors(tmp_path: Path) -> None:
    """In its order; a row without tensors says unsupported, and NaN on one side is never a pass."""
    place = tmp_path / "table.csv"
    command = [sys.executable, "manage.py", "compare", str(TRAIN), str(CORPUS / "q2_infer_nan3_tensor.zip"), "--table", str(place)]
    assert subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=120).returncode == 1
    with place.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    header = list(rows[0])
    begin = header.index("Bench Requires_grad") + 1
    metrics = ["Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio"]
    assert header[begin : begin + 6] == metrics
    assert header[begin + 6] == "NPU max"
    assert "Data_name" in header
    attention = next(row for row in rows if "layers.0.self_attn.attn" in row["Bench Name"] and row["Bench Name"].endswith(".output.0"))
    assert float(attention["MaxAbsErr"]) == 0.0078125  # torch's figure
    assert float(attention["Cosine"]) == pytest.approx(0.999998986, abs=1e-6)
    misplaced = [row for row in rows if row["Cosine"] == "N/A"]
    assert misplaced
    assert all(row["Result"] != "pass" for row in misplaced)
    assert {row["Cosine"] for row in rows if row["Bench Name"] == "N/A"} == {"unsupported"}


def test_copies_on_two_ranks_that_differ_in_one_bit_are_named(tmp_path: Path) -> None:
    """Their statistics agree; only the elements tell."""
    files = dict(members(CORPUS / "q2_infer_tp2_tensor.zip"))
    assert "ranks_disagree" not in codes(compare_paths([TRAIN], [CORPUS / "q2_infer_tp2_tensor.zip"], Options()).document)
    name = f"dump_tensor_data/{O_PROJ}.output.0.pt"
    with zipfile.ZipFile(io.BytesIO(files[f"step0/rank0/{name}"])) as held:
        record = next(record for record in held.namelist() if "/data/" in record)
        bits = np.frombuffer(held.read(record), np.uint16).copy()
    values = (bits.astype(np.uint32) << 16).view(np.float32).reshape(12, 64)
    other = values.copy()
    other[3, 5] = np.nextafter(other[3, 5], np.float32(np.inf))
    files |= {f"step0/rank0/{name}": npy(values), f"step0/rank1/{name}": npy(other)}
    document = compare_paths([TRAIN], [as_zip(files, tmp_path / "right")], Options()).document
    assert finding(document, "ranks_disagree")["modules"] == ["model.layers.1.self_attn.o_proj"]
