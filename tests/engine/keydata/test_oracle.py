from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.documents import key_tables
from compare.engine.keydata.workbook import COLUMNS, cells
from compare.engine.model import KeyData
from tests.engine.keydata.trees import side, states

DATA = Path(__file__).parents[2] / "data"
KEYS = ("prompts", "responses", "values", "ref_log_prob", "old_log_prob", "advantages", "log_prob", "kl_loss", "loss")


@pytest.fixture(scope="module")
def runs() -> tuple[KeyData, KeyData]:
    found = [side(DATA / "corpus" / f"rl_run_{name}.zip").loop.key_data for name in "ab"]
    assert found[0] is not None
    assert found[1] is not None
    return found[0], found[1]


@pytest.mark.parametrize("key", KEYS)
def test_every_number_is_the_one_that_the_single_comparator_prints(key: str, runs: tuple[KeyData, KeyData]) -> None:
    comparison = compare_key_data(*runs)
    n = [each.name for each in comparison.keys].index(key)
    ours = [list(cells(table))[: len(COLUMNS)] for table in key_tables(n, comparison.keys[n], comparison)["tables"]]
    with (DATA / "single_comparator" / f"{key}.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    theirs = [[json.loads(cell) if cell and column not in (4, 5) else cell or None for column, cell in enumerate(row)] for row in rows]
    assert len(ours) == len(theirs)
    for here, there in zip(ours, theirs, strict=True):  # a workbook keeps 16 digits
        assert here == [pytest.approx(cell, rel=1e-15, abs=0) if isinstance(cell, float) else cell for cell in there]


def test_the_keys_come_in_pipeline_order_and_say_what_follows_from_what(runs: tuple[KeyData, KeyData]) -> None:
    comparison = compare_key_data(*runs)
    assert tuple(states(comparison)) == KEYS
    assert states(comparison) == {
        **dict.fromkeys(KEYS, "equal"),
        "ref_log_prob": "differs",
        **dict.fromkeys(("advantages", "kl_loss", "loss"), "consequence"),
    }
    first = comparison.first
    assert first is not None
    assert first.name == "ref_log_prob"
    assert first.first is not None
    assert first.first.place == (2, 0, 0, "0")


def test_swapping_the_runs_changes_no_number_but_the_sides(runs: tuple[KeyData, KeyData]) -> None:
    there, back = compare_key_data(*runs), compare_key_data(*runs[::-1])
    assert states(there) == states(back)
    for here, other in zip(there.keys, back.keys, strict=True):
        assert [pair.numbers for pair in here.pairs] == [pair.numbers for pair in other.pairs]
