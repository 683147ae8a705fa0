"""Key data, configuration and request logs as files beside a run's dumps."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from compare.engine.model import Configuration, JsonObject, KeyData, LoopData

FOLDER = "key_data"
CONFIGURATION = "configuration.json"
REQUESTS = "requests.json"
FORMAT = 1
TEXTS = ("keys", "ids", "dtypes", "problems")


def write_loop(loop: LoopData, run: Path) -> None:
    if loop.key_data is not None:
        folder = run / FOLDER
        folder.mkdir(parents=True)
        table = loop.key_data
        for column in fields(table):
            values = getattr(table, column.name)
            if isinstance(values, np.ndarray):
                np.save(folder / f"{column.name}.npy", values, allow_pickle=False)
        texts: JsonObject = {name: list(getattr(table, name)) for name in TEXTS}
        document = {"format": FORMAT, **texts, "shapes": [list(shape) for shape in table.shapes]}
        (folder / "meta.json").write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8", "surrogatepass")
    if loop.configuration is not None:
        document = {"path": loop.configuration.path, "content": loop.configuration.content}
        (run / CONFIGURATION).write_text(json.dumps(document, ensure_ascii=False), "utf-8", "surrogatepass")
    if loop.requests:
        (run / REQUESTS).write_text(json.dumps(list(loop.requests), ensure_ascii=False), "utf-8", "surrogatepass")


def read_loop(run: Path) -> LoopData:
    """What ``write_loop`` wrote; the numbers are memory-mapped."""
    return LoopData(read_key_data(run), _configuration(run), _rows(run / REQUESTS))


def read_key_data(run: Path) -> KeyData | None:
    folder = run / FOLDER
    if not folder.is_dir():
        return None
    meta = _json(folder / "meta.json") or {}
    columns = {
        column.name: np.load(folder / f"{column.name}.npy", mmap_mode="r", allow_pickle=False)
        for column in fields(KeyData)
        if column.name not in (*TEXTS, "shapes")
    }
    return KeyData(**columns, **{name: meta[name] for name in TEXTS}, shapes=[tuple(shape) for shape in meta["shapes"]])


def _configuration(run: Path) -> Configuration | None:
    document = _json(run / CONFIGURATION)
    return None if document is None else Configuration(document["path"], document["content"])


def _json(path: Path) -> JsonObject | None:
    document: JsonObject | None = _read(path)
    return document


def _rows(path: Path) -> list[JsonObject]:
    rows: list[JsonObject] | None = _read(path)
    return rows or []


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8", "surrogatepass"))
    except FileNotFoundError:
        return None
