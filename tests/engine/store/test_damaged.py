"""Real dumps damaged at random: whatever is missing, moved, null, NaN or of another kind, there is an answer or a refusal."""

from __future__ import annotations

import copy
import json
import random
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compare.engine.errors import DumpError
from compare.engine.ingest import paths_to_sources
from compare.engine.options import Options
from compare.engine.pipeline import compare_runs, read_run
from compare.engine.store.reader import PartReader
from tests.engine.build import CORPUS, write
from tests.engine.store.decoder import Tree

DUMPS = ("q2_train_stat", "q2_infer_stat", "q2_shim_stat", "q2_train_mix", "q2_infer_mix", "q2_train_micro2_stat", "q2b_lora_train_stat")
NUMBERS = (None, 0.0, float("nan"), float("inf"), float("-inf"), 1e30, 5, -3, "x", True)
DTYPES = ("torch.float32", "torch.int64", "torch.float16", "torch.bool", "unknown", None, "torch.float8_e4m3fn")
SHAPES = ([], [0], [1], [12], [3, 0], [2**40, 4], [12, 64], [1, 10, 64])
OTHERS = ({"type": "int", "value": 3}, {"type": "str", "value": "y"}, {"type": "float", "value": float("nan")}, None)


@cache
def members(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
        place = next(entry for entry in archive.namelist() if entry.endswith("rank0/dump.json"))
        return json.loads(archive.read(place))["data"], json.loads(archive.read(place.replace("dump.json", "construct.json")))


def leaves(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every leaf."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        if isinstance(member, dict) and "type" in member:
            found.append((value, key))
        else:
            found += leaves(member)
    return found


def damage(records: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice(list(records))
    kind = chance.randrange(8)
    inside = leaves(records[name])
    if kind == 0 and len(records) > 1:
        del records[name]
    elif kind == 1:
        records[name].pop(chance.choice(list(records[name])), None)
    elif kind == 2:
        moved = name.replace("layers.1", f"layers.{chance.choice(['7', '0', 'x', '4'])}")
        records.setdefault(moved, records.pop(name))
    elif kind == 3:
        records[name] = records.pop(name)
    elif inside:
        container, key = chance.choice(inside)
        if kind == 4:
            container[key] = chance.choice(OTHERS)
        else:
            container[key] |= chance.choice(
                [
                    {chance.choice(["Max", "Min", "Mean", "Norm"]): chance.choice(NUMBERS)},
                    {"dtype": chance.choice(DTYPES)},
                    {"shape": chance.choice(SHAPES)},
                ]
            )


@pytest.mark.parametrize("seed", range(24))
def test_a_damaged_pair_is_answered_or_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311  which damage, nothing secret
    for side in ("left", "right"):
        records, construct = copy.deepcopy(members(chance.choice(DUMPS)))
        for _ in range(chance.choice([1, 3, 10, 60])):
            damage(records, chance)
        sources = paths_to_sources([write(tmp_path / f"{side}_dump", records, construct if chance.random() < 0.6 else None)])
        try:
            read_run(sources, side, tmp_path / side, lambda *_: None)
        except DumpError as refused:
            assert refused.sentence()  # noqa: PT017  a refusal is one of the two answers
            return
    document = compare_runs(tmp_path / "left", tmp_path / "right", Options(), tmp_path / "out", lambda *_: None, lambda _: None)
    json.dumps(document, allow_nan=False)
    assert bool(document["origins"]) == (document["verdict"] == "diverged")
    if document["verdict"] == "identical":
        assert document["first_difference"] is None
    for side in ("left", "right"):
        coverage = document["coverage"][side]
        assert coverage["matched"] <= coverage["explained"] <= coverage["records"]
    tree = Tree.of(tmp_path / "out" / "parts" / "0" / "tree.bin.gz")
    reader = PartReader(tmp_path / "out" / "parts" / "0", tmp_path / "left", tmp_path / "right")
    for row in chance.sample(range(tree.rows), min(20, tree.rows)):
        json.dumps(reader.node(row), allow_nan=False)
    back = compare_runs(tmp_path / "right", tmp_path / "left", Options(), tmp_path / "back", lambda *_: None, lambda _: None)
    if document["left"]["role"] != document["right"]["role"]:
        assert back["verdict"] == document["verdict"]
        assert (back["first_divergence"] or {}).get("module") == (document["first_divergence"] or {}).get("module")
