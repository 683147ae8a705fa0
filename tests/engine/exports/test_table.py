"""The pair table: msprobe's numbers under msprobe's names, and no row passes that was not compared."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from compare.engine.exports.finished import Finished, from_folder, from_memory
from compare.engine.exports.sheets import write_csv, write_xlsx
from compare.engine.ingest import paths_to_sources
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths, compare_runs, read_run
from tests.engine.build import CORPUS, call, corpus, tensor, write

TABLES = Path(__file__).parents[2] / "data" / "tables"
NOT_OURS = ("NPU Requires_grad", "Bench Requires_grad", "Requires_grad Consistent", "Result", "Err_message")
Rows = list[dict[str, str]]


def table(finished: Finished, folder: Path) -> Rows:
    target = folder / "table.csv"
    write_csv(finished, target)
    with target.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of(folder: Path, left: str, right: str, **options: Any) -> Rows:
    return table(from_memory(corpus(left, right, **options)), folder)


def by_hand(folder: Path, left: Any, right: Any) -> Rows:
    paths = [write(folder / name, records) for name, records in (("left", left), ("right", right))]
    return table(from_memory(compare_paths([paths[0]], [paths[1]], Options())), folder)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("perturbed_statistics", "q2_shim_pert1_stat", "q2_shim_stat"),
        ("perturbed_checksums", "q2_shim_pert1_md5", "q2_shim_md5"),
    ],
)
def test_every_number_is_the_one_that_msprobe_prints_under_that_name(tmp_path: Path, name: str, left: str, right: str) -> None:
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        theirs = list(csv.DictReader(file))
    ours = {row["NPU Name"]: row for row in of(tmp_path, left, right)}
    assert len(theirs) > 300
    assert list(ours[theirs[0]["NPU Name"]])[: len(theirs[0]) - 3][:8] == list(theirs[0])[:8]
    for row in theirs:
        mine = ours[row["NPU Name"]]
        # It hashes numbers and truths of its own accord; the dump holds checksums of tensors.
        columns = [c for c in row if c not in NOT_OURS and not ("MD5" in c and "class" in row["NPU Dtype"])]
        assert {c: mine[c] for c in columns} == {c: row[c] for c in columns}


def test_a_row_without_partner_never_passes_whichever_side_it_is_on(tmp_path: Path) -> None:
    rows = of(tmp_path, "q2_train_stat", "q2_infer_stat")
    alone = [row for row in rows if "N/A" in (row["NPU Name"], row["Bench Name"])]
    assert {row["NPU Name"] == "N/A" for row in alone} == {True, False}
    assert {(row["Result"], row["Grade"], row["Relation"]) for row in alone} == {("warning", "unmatched", "none")}
    assert all(json.loads(row["Err_message"])[0].startswith("No partner: ") for row in alone)
    assert "no_backward_on_other_side" in {row["Explanation"] for row in alone}


def test_nan_never_passes(tmp_path: Path) -> None:
    nan = {**tensor(), "Max": "NaN", "Min": "NaN", "Mean": "NaN", "Norm": "NaN"}
    left = {
        "Module.a.L.forward.0": call(tensor(), output=[nan]),
        "Module.b.L.forward.0": call(tensor(), output=[nan]),
        "Module.c.L.forward.0": call(tensor(), output=[tensor()]),
    }
    right = {**left, "Module.a.L.forward.0": call(tensor(), output=[tensor()])}
    results = {row["NPU Name"]: (row["Result"], row["NPU max"], row["Max diff"]) for row in by_hand(tmp_path, left, right)}
    assert results["Module.a.L.forward.0.output.0"] == ("error", "nan", "Nan")
    assert results["Module.b.L.forward.0.output.0"] == ("warning", "nan", "Nan")
    assert results["Module.c.L.forward.0.output.0"] == ("pass", "1.0", "0")


def test_a_difference_from_zero_is_infinite_and_one_from_infinity_too(tmp_path: Path) -> None:
    left = {"Module.a.L.forward.0": call(output=[tensor(mean=0.5, largest=float("inf"))])}
    right = {"Module.a.L.forward.0": call(output=[tensor(mean=0.0, largest=1.0)])}
    row = by_hand(tmp_path, left, right)[-1]
    assert (row["Mean diff"], row["MeanRelativeErr"]) == ("0.5", " inf")
    assert (row["NPU max"], row["Max diff"], row["MaxRelativeErr"]) == (" inf", " inf", " inf")


def test_parts_laid_side_by_side_stand_in_one_row(tmp_path: Path) -> None:
    rows = of(tmp_path, "q2_train_stat", "q2_infer_stat")
    joined = [
        row
        for row in rows
        if row["Relation"] == "concat" and row["Module"] == "model.layers.1.self_attn.qkv_proj" and row["Group"] == "output"
    ]
    assert [len(row["NPU Name"].split(";")) for row in joined] == [3]
    assert joined[0]["Bench Name"].endswith("qkv_proj.QKVParallelLinear.forward.0.output.0")


def test_rows_stand_in_order_of_execution_and_every_slot_is_there_once(tmp_path: Path) -> None:
    rows = of(tmp_path, "q2_shim_pert1_stat", "q2_shim_stat")
    order = [int(row["Order"]) for row in rows if row["Order"]]
    assert order == sorted(order)
    assert max(Counter(row["NPU Name"] for row in rows).values()) == 1


def test_a_run_of_several_steps_is_one_table_with_its_parts(tmp_path: Path) -> None:
    rows = of(tmp_path, "q2_train_steps2_stat", "q2_train_steps2_pert1_stat")
    assert {(row["Part"], row["Step"]) for row in rows} == {("0", "0"), ("1", "1")}


def test_a_spreadsheet_calculates_nothing_that_a_dump_says(tmp_path: Path) -> None:
    evil = '=HYPERLINK("http://example.invalid")'
    records = {evil: call(tensor()), "@SUM(A1)": call({"type": "str", "value": "+1+1"}), "-2": call(tensor()), "\t=1": call(tensor())}
    comparison = compare_paths([write(tmp_path / "a", records)], [write(tmp_path / "b", records)], Options())
    rows = table(from_memory(comparison), tmp_path)
    cells = [cell for row in rows for cell in row.values()]
    assert any(evil in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    assert not [cell for cell in cells if cell.startswith("-") and not re.fullmatch(r"-[0-9.e+-]+%?", cell)]
    write_xlsx(from_memory(comparison), tmp_path / "table.xlsx")
    with zipfile.ZipFile(tmp_path / "table.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    assert "<hyperlink" not in sheet


def sheet_rows(path: Path) -> list[list[str]]:
    """Cells of the first sheet as text: an XLSX reader of this test's own."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as book:
        root = ET.fromstring(book.read("xl/worksheets/sheet1.xml"))  # noqa: S314  written a moment ago
    found = []
    for row in root.iter(f"{space}row"):
        cells: dict[str, str] = {}
        for cell in row:
            cells[re.sub(r"\d", "", cell.attrib["r"])] = "".join(cell.itertext())
        found.append(list(cells.values()))
    return found


def test_the_workbook_holds_what_the_csv_holds(tmp_path: Path) -> None:
    finished = from_memory(corpus("q2_train_stat", "q2_infer_nan3_stat"))
    write_xlsx(finished, tmp_path / "table.xlsx")
    write_csv(finished, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))

    def plain(cells: list[str]) -> list[object]:
        found: list[object] = []
        for cell in cells:
            try:
                found.append(f"{float(cell):.14g}")  # a workbook keeps 16 digits
            except ValueError:
                found.append(cell)
        return [repr(cell) for cell in found if cell != ""]

    assert [plain(row) for row in sheet_rows(tmp_path / "table.xlsx")] == [plain(line) for line in lines]


@pytest.mark.parametrize(
    ("left", "right"), [("q2_train_stat", "q2_infer_down2_stat"), ("q2_train_steps2_stat", "q2_train_steps2_pert1_stat")]
)
def test_a_stored_comparison_gives_the_same_table_as_one_in_memory(tmp_path: Path, left: str, right: str) -> None:
    runs = []
    for name in (left, right):
        read_run(paths_to_sources([CORPUS / f"{name}.zip"]), f"{name}.zip", tmp_path / name, lambda *_: None)
        runs.append(tmp_path / name)
    compare_runs(runs[0], runs[1], Options(), tmp_path / "result", lambda *_: None, lambda _: None)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    stored = table(from_folder(tmp_path / "result", runs[0], runs[1]), tmp_path / "a")
    assert stored == of(tmp_path / "b", left, right)


def test_a_weight_has_no_floor_that_its_difference_could_lie_below(tmp_path: Path) -> None:
    """Weights are equal or not: a floor beside a diverged one, above its difference, contradicts the grade."""
    rows = of(tmp_path, "q2_train_stat", "q2_infer_down2_stat")
    weights = [row for row in rows if row["Group"] == "parameters" and row["Grade"] != "unmatched"]
    assert {row["Grade"] for row in weights} >= {"equal", "diverged"}
    assert {row["Floor"] for row in weights} == {""}
    outputs = [row for row in rows if row["Group"] == "output" and row["Grade"] in ("noise", "diverged")]
    assert outputs
    assert all(float(row["Floor"]) > 0 for row in outputs)
