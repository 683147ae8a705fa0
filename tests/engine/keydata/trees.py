"""Trees of key data that tests write: ``{(key, step, rank, micro_step): value}`` → files as MindSpeed-RL lays them out."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.keydata.alignment import Tables
from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.key_comparison import KeyComparison, KeyDataComparison
from compare.engine.keydata.places import TablePlace
from compare.engine.keydata.tables import TableReader
from compare.engine.model import KeyData, Side

Tree = Mapping[tuple[str, int, int, int], Any]


def write(tree: Tree, root: Path) -> Path:
    """An array is one table, a list or dict one file an entry; micro_step -1 has no folder of its own."""
    for (key, step, rank, micro_step), value in tree.items():
        folder = root / "data" / key / f"step{step}" / f"rank{rank}"
        folder = folder / f"micro_step{micro_step}" if micro_step >= 0 else folder
        folder.mkdir(parents=True, exist_ok=True)
        entries = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else None
        if entries is None:
            np.save(folder / f"{key}.npy", np.asarray(value))
        else:
            for name, entry in entries:
                np.save(folder / f"{key}.{name}.npy", np.asarray(entry))
        (folder / f"{key}.json").write_text(json.dumps({"data": _statistics(value)}))
    return root


def _statistics(value: Any) -> Any:
    if isinstance(value, list):
        return [_statistics(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _statistics(entry) for name, entry in value.items()}
    array = np.asarray(value, np.float32)
    if not array.size:
        return {"max": None, "min": None, "mean": None, "norm": None, "shape": list(array.shape)}
    numbers = {"max": array.max(), "min": array.min(), "mean": array.mean(), "norm": np.sqrt((array**2).sum())}
    return {**{name: float(number) for name, number in numbers.items()}, "shape": list(array.shape)}


def side(path: Path) -> Side:
    return read_side(paths_to_sources([path]), path.name)


def key_data(tree: Tree, root: Path) -> KeyData:
    found = side(write(tree, root)).loop.key_data
    assert found is not None
    return found


def in_memory(tree: Tree) -> KeyData:
    """The same without files: for tests that make many."""
    reader = TableReader()
    for (key, step, rank, micro_step), value in tree.items():
        for entry, array in enumerate(value) if isinstance(value, list) else [(0, value)]:
            stream = io.BytesIO()
            np.save(stream, np.asarray(array))
            stream.seek(0)
            reader.add(TablePlace("", key, step, rank, micro_step, str(entry)), "x", stream)
    found = reader.finish()
    assert found is not None
    return found


def tables(tree: Tree, root: Path) -> Tables:
    return Tables(key_data(tree, root))


def compared(left: Tree, right: Tree, folder: Path) -> KeyDataComparison:
    return compare_key_data(key_data(left, folder / "left"), key_data(right, folder / "right"))


def keys(comparison: KeyDataComparison) -> dict[str, KeyComparison]:
    return {key.name: key for key in comparison.keys}


def states(comparison: KeyDataComparison) -> dict[str, str]:
    return {key.name: key.state for key in comparison.keys}


def array(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)
