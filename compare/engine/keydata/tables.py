"""The tables of a run's key data, read from .npy and .json. Nothing is unpickled; a file that cannot be read spoils its own table only."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import IO, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from compare.engine.errors import DumpError, printable
from compare.engine.keydata.places import TablePlace
from compare.engine.loop import key_order
from compare.engine.model import KeyData, Statistic
from compare.engine.tensors import open_tensor
from compare.engine.tensors.memory import Spool

LARGEST_JSON = 16 << 20
"""Bytes of one .json: about 200 an entry."""

MOST_TABLES = 2_000_000
MOST_DIMENSIONS = 32
ALIGNMENT = 8  # bytes; every table's numbers start at a multiple
STATISTICS = tuple(statistic.name.lower() for statistic in Statistic)
Array = NDArray[Any]
NUMBERS = "biuf"  # kinds of dtype that are compared: bool, int, uint, float


class Stream(Protocol):
    def read(self, size: int) -> bytes: ...


@dataclass(slots=True)
class _Row:
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    start: int = -1
    statistics: list[float | None] = field(default_factory=lambda: [None] * len(Statistic))
    problem: str | None = None
    where: str | None = None  # of the .npy


RowKey = tuple[str, int, int, int, str]


class TableReader:
    """Gathers the tables of one run, file by file in any order. The numbers go to memory while they are few, else to a temporary file."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, _Row] = {}
        self.spool = Spool("key data")

    def add(self, place: TablePlace, where: str, stream: Stream) -> bool:
        """Read one file; False where it does not hold what its name says.

        Raises DumpError for what its archive cannot give, and two_roots.
        """
        if len(self.rows) > MOST_TABLES:
            raise DumpError("archive_too_many", where, limit=MOST_TABLES)
        return self._json(place, stream) if place.id is None else self._npy(place, place.id, where, stream)

    def finish(self) -> KeyData | None:
        """Everything read, sorted; None where no file was added."""
        rows = sorted(self.rows.items(), key=lambda entry: _order(entry[0]))
        if not rows:
            self.spool.close()
            return None
        if not self.spool.size:
            self.spool.write(bytes(ALIGNMENT))
        keys, ids, dtypes, shapes, problems = (_Index() for _ in range(5))
        statistics = np.array([[math.nan if value is None else value for value in row.statistics] for _, row in rows], np.float64)
        present = [sum(1 << at for at, value in enumerate(row.statistics) if value is not None) for _, row in rows]
        return KeyData(
            key=np.array([keys[key[0]] for key, _ in rows], np.int32),
            step=np.array([key[1] for key, _ in rows], np.int32),
            rank=np.array([key[2] for key, _ in rows], np.int32),
            micro_step=np.array([key[3] for key, _ in rows], np.int32),
            id=np.array([ids[key[4]] for key, _ in rows], np.int32),
            dtype=np.array([dtypes[row.dtype] for _, row in rows], np.int32),
            shape=np.array([shapes[row.shape] for _, row in rows], np.int32),
            start=np.array([row.start for _, row in rows], np.int64),
            statistics=statistics,
            present=np.array(present, np.uint8),
            problem=np.array([problems[row.problem] for _, row in rows], np.int32),
            keys=keys.values,
            ids=ids.values,
            dtypes=dtypes.values,
            shapes=shapes.values,
            problems=problems.values,
            data=self.spool.finish().data,
        )

    def _row(self, place: TablePlace, entry: str) -> _Row:
        return self.rows.setdefault((*place.folder, printable(entry)), _Row())

    def _npy(self, place: TablePlace, entry: str, where: str, stream: Stream) -> bool:
        row = self._row(place, entry)
        if row.where is not None:
            raise DumpError("two_roots", where, first=row.where, second=where)
        row.where = where
        try:
            array = _numbers(stream, where)
        except DumpError as refusal:
            if not refusal.code.startswith(("tensor_", "npy_", "file_empty")):
                raise
            row.problem = json.dumps({"code": refusal.code, "params": refusal.params, "message": str(refusal)}, ensure_ascii=False)
            return False
        row.dtype, row.shape = array.dtype.name, array.shape
        row.start = self.spool.size
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()
        self.spool.write(plain + bytes(-len(plain) % ALIGNMENT))
        return True

    def _json(self, place: TablePlace, stream: Stream) -> bool:
        """Statistics as written beside the numbers, or alone. What is no such file says nothing: the numbers stand for themselves."""
        parts, size = [], 0
        while block := stream.read(1 << 18):
            size += len(block)
            if size <= LARGEST_JSON:
                parts.append(block)
        if size > LARGEST_JSON:
            return False
        try:
            document = json.loads(b"".join(parts))
        except (ValueError, RecursionError):
            return False
        content = document.get("data") if isinstance(document, dict) else None
        if isinstance(content, list):
            entries = [(str(at), value) for at, value in enumerate(content)]
        elif isinstance(content, dict) and any(isinstance(value, dict) for value in content.values()):
            entries = list(content.items())
        else:
            entries = [("0", content)]
        found = [(entry, value) for entry, value in entries if isinstance(value, dict)]
        for entry, value in found:
            self._statistics(self._row(place, entry), value)
        return bool(found) or content == []

    @staticmethod
    def _statistics(row: _Row, value: dict[str, Any]) -> None:
        for at, name in enumerate(STATISTICS):
            row.statistics[at] = _number(value.get(name))
        shape = value.get("shape")
        if row.shape is None and isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS and all(map(_is_length, shape)):
            row.shape = tuple(shape)


def _numbers(stream: Stream, where: str) -> Array:
    array = open_tensor(cast("IO[bytes]", stream), where).array()
    if array.dtype.kind not in NUMBERS:
        raise DumpError("tensor_dtype", where, dtype=array.dtype.name)
    return array


def _is_length(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 48


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _order(key: RowKey) -> tuple[object, ...]:
    name, step, rank, micro_step, entry = key
    return key_order(name), step, rank, micro_step, *entry_order(entry)


def entry_order(entry: str) -> tuple[int, int, str]:
    """Numbers by size, then names."""
    return (0, int(entry), "") if entry.isascii() and entry.isdigit() and len(entry) < 19 else (1, 0, entry)


class _Index:
    """Repeated values stored once; None is -1."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.at: dict[Any, int] = {}

    def __getitem__(self, value: Any) -> int:
        if value is None:
            return -1
        if value not in self.at:
            self.at[value] = len(self.values)
            self.values.append(value)
        return self.at[value]
