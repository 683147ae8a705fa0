"""A folder of columns: one ``.npy`` a column, strings packed as bytes and offsets, the rest in ``meta.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from compare.engine.errors import DumpError
from compare.engine.model import JsonObject

FORMAT = 2


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
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    for name, texts in strings.items():
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        np.save(folder / f"{name}.text.npy", np.frombuffer(b"".join(encoded), np.uint8), allow_pickle=False)
        np.save(folder / f"{name}.offsets.npy", offsets, allow_pickle=False)
    document = {"format": FORMAT, **meta}
    (folder / "meta.json").write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")


class Columns:
    """The columns of a folder, memory-mapped. Raises DumpError ``stored_format`` for a folder written by another format."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: dict[str, NDArray[Any]] = {}
        self.meta: JsonObject = json.loads((folder / "meta.json").read_text("utf-8"))
        if self.meta.get("format") != FORMAT:
            raise DumpError("stored_format", folder.name, found=self.meta.get("format"), known=FORMAT)

    def array(self, name: str) -> NDArray[Any]:
        if name not in self._opened:
            self._opened[name] = np.load(self.folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return self._opened[name]

    def strings(self, name: str) -> PackedStrings:
        return PackedStrings(self.array(f"{name}.text"), self.array(f"{name}.offsets"))
