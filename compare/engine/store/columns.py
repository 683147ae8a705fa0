"""A folder of columns: all of them in one file, strings packed as bytes and offsets; what they are called and the rest in ``meta.json``.

One file and not one a column: a run of 960 dumps would be 50,000 files, and opening them took longer than comparing what is in them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from compare.engine.errors import DumpError
from compare.engine.model import JsonObject

FORMAT = 2
COLUMNS = "columns.bin"
MAGIC = b"PWCOLS\0\2"
ALIGNMENT = 64  # of each column in the file: what numpy wants of its own memory


class PackedStrings(Sequence[str]):
    """Many strings in two arrays, decoded one by one: opening a table of 50,000 names costs nothing."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._data = data
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._data[self._offsets[index] : self._offsets[index + 1]].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        data, offsets = self._data.tobytes(), self._offsets.tolist()
        for begin, end in pairwise(offsets):
            yield data[begin:end].decode("utf-8", "surrogatepass")


def write_columns(folder: Path, arrays: Mapping[str, NDArray[Any]], strings: Mapping[str, Sequence[str]], meta: JsonObject) -> None:
    folder.mkdir(parents=True)
    columns = dict(arrays)
    for name, texts in strings.items():
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        columns[f"{name}.text"] = np.frombuffer(b"".join(encoded), np.uint8)
        columns[f"{name}.offsets"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    places = {}
    with (folder / COLUMNS).open("wb") as out:
        out.write(MAGIC)
        for name, array in columns.items():
            out.write(bytes(-out.tell() % ALIGNMENT))
            places[name] = {"dtype": array.dtype.str, "shape": array.shape, "offset": out.tell()}
            out.write(np.ascontiguousarray(array).data)
    document = {"format": FORMAT, **meta, "columns": places}
    (folder / "meta.json").write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")


class Columns:
    """The columns of a folder, memory-mapped. Raises DumpError ``stored_format`` for a folder written by another format."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta: JsonObject = json.loads((folder / "meta.json").read_text("utf-8"))
        if self.meta.get("format") != FORMAT or "columns" not in self.meta:
            raise DumpError("stored_format", folder.name, found=self.meta.get("format"), known=FORMAT)
        self._bytes = np.asarray(np.memmap(folder / COLUMNS, np.uint8, "r"))

    def array(self, name: str) -> NDArray[Any]:
        place = self.meta["columns"][name]
        dtype, shape, begin = np.dtype(place["dtype"]), tuple(place["shape"]), place["offset"]
        column: NDArray[Any] = self._bytes[begin : begin + math.prod(shape) * dtype.itemsize].view(dtype)
        return column.reshape(shape)

    def strings(self, name: str) -> PackedStrings:
        return PackedStrings(self.array(f"{name}.text"), self.array(f"{name}.offsets"))
