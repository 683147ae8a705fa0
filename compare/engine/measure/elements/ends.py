"""One end of a pair as rows and columns: one tensor or several, laid side by side, one below the other or added up, read block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from compare.engine.measure.elements.metrics import BLOCK
from compare.engine.model import Int64
from compare.engine.tensors.description import ElementType
from compare.engine.tensors.file import Array, TensorFile
from compare.engine.tensors.limits import RELEASE


class How(Enum):
    BESIDE = "beside"  # columns of one after those of the other
    BELOW = "below"  # rows
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor brought to rows and columns.

    ``order`` permutes the dimensions that are longer than 1 (None: as they are); the last ``inner`` of them are the columns, the others the
    rows. ``rows`` chooses rows (None: all). ``columns`` and ``row_range`` cut a stretch out of it.
    """

    tensor: TensorFile
    order: tuple[int, ...] | None
    inner: int
    rows: Int64 | None = None
    columns: tuple[int, int] | None = None
    row_range: tuple[int, int] | None = None


class Reader:
    """A piece as blocks. Of a tensor without gaps they are views of the mapped file, of any other order copies of a block."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        tensor = piece.tensor
        stored: Array = tensor.stored
        stored = stored.reshape([length for length in stored.shape if length != 1])
        if piece.order is not None:
            stored = stored.transpose(piece.order)
        outer, inner = stored.shape[: stored.ndim - piece.inner], stored.shape[stored.ndim - piece.inner :]
        self.columns = int(np.prod(inner, dtype=np.int64))
        self.flat: Array | None = None
        self.outer = outer
        self.nested: Array = stored
        rows = int(np.prod(outer, dtype=np.int64))
        if stored.flags.c_contiguous:
            self.flat = stored.reshape(rows, self.columns)
        self.rows = rows if piece.rows is None else len(piece.rows)
        self.first_row, self.first_column = 0, 0
        if piece.row_range is not None:
            self.first_row = piece.row_range[0]
            self.rows = piece.row_range[1] - piece.row_range[0]
        if piece.columns is not None:
            self.first_column = piece.columns[0]
            self.columns = piece.columns[1] - piece.columns[0]
        self.read_bytes = 0

    def block(self, row: int, rows: int, column: int, columns: int) -> Array:
        """[rows, columns] C-contiguous, of the element's value dtype."""
        row, column = row + self.first_row, column + self.first_column
        if self.piece.rows is None and self.flat is not None:
            found = self.flat[row : row + rows, column : column + columns]
        else:
            chosen = np.arange(row, row + rows) if self.piece.rows is None else self.piece.rows[row : row + rows]
            if self.flat is not None:
                found = self.flat[chosen, column : column + columns]
            else:
                at = np.unravel_index(chosen, self.outer) if self.outer else ()
                taken = self.nested[at] if at else self.nested[None]
                found = taken.reshape(len(chosen), -1)[:, column : column + columns]
        self.read_bytes += found.nbytes
        if self.read_bytes > RELEASE:
            self.piece.tensor.memory.release()
            self.read_bytes = 0
        return np.ascontiguousarray(self.piece.tensor.decode(found))


class End:
    """Pieces put together: [rows, columns]."""

    def __init__(self, pieces: Sequence[Piece], how: How = How.BESIDE, rounded: ElementType | None = None) -> None:
        """``rounded``: the type that a sum had before it was written, where that is coarser than the files'."""
        self.rounded = rounded
        self.readers = [Reader(piece) for piece in pieces]
        self.how = how
        sizes = [(reader.rows, reader.columns) for reader in self.readers]
        if how is How.BELOW:
            self.rows, self.columns = sum(rows for rows, _ in sizes), sizes[0][1]
            self._starts = np.cumsum([0, *(rows for rows, _ in sizes)]).tolist()
        elif how is How.BESIDE:
            self.rows, self.columns = sizes[0][0], sum(columns for _, columns in sizes)
            self._starts = np.cumsum([0, *(columns for _, columns in sizes)]).tolist()
        else:
            self.rows, self.columns = sizes[0]
            self._starts = [0] * (len(sizes) + 1)

    @cached_property
    def element(self) -> ElementType:
        """The type of the elements: the coarsest of the pieces'."""
        return min((reader.piece.tensor.description.element for reader in self.readers), key=lambda element: element.width)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    def block(self, row: int, rows: int, column: int, columns: int) -> Array:
        if len(self.readers) == 1:
            return self.readers[0].block(row, rows, column, columns)
        if self.how is How.SUM:
            return self._sum([reader.block(row, rows, column, columns) for reader in self.readers])
        found: list[Array] = []
        below = self.how is How.BELOW
        begin, length = (row, rows) if below else (column, columns)
        for reader, start, stop in zip(self.readers, self._starts, self._starts[1:], strict=False):
            low, high = max(begin, start), min(begin + length, stop)
            if low >= high:
                continue
            if below:
                found.append(reader.block(low - start, high - low, column, columns))
            else:
                found.append(reader.block(row, rows, low - start, high - low))
        if len(found) == 1:
            return found[0]
        if len({array.dtype for array in found}) > 1:
            found = [array.astype(np.float64) for array in found]
        return np.concatenate(found, axis=0 if below else 1)

    def _sum(self, blocks: list[Array]) -> Array:
        """Added up as a kernel would: in float32 (float64 where a piece is), rounded once to the type that it had there."""
        wide: Any = np.float64 if any(block.dtype == np.float64 for block in blocks) else np.float32
        total = blocks[0].astype(wide)
        for block in blocks[1:]:
            total += block.astype(wide)
        if self.rounded is not None:
            total = total.astype(self.rounded.value)
        return total.astype(self.element.value)

    def sample(self) -> Array:
        """The first rows, about a block of elements, as float64: enough to tell a right layout from a wrong one."""
        columns = min(self.columns, 1024)
        rows = min(self.rows, max(1, BLOCK // max(columns, 1)))
        return self.block(0, rows, 0, columns).astype(np.float64)
