"""What the pair table says of one side of its rows: names, dtypes, shapes, checksums, statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.engine.exports.cells import MISSING, Cells, shown
from compare.engine.exports.finished import Table
from compare.engine.mapping.rules import slot_name
from compare.engine.model import Dump, Int64, Leaf, Statistic

SIDES = ("left", "right")
SHOWN = (Statistic.MAX, Statistic.MIN, Statistic.MEAN, Statistic.NORM)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a chunk: a pair, or (pair -1) the slot of one side that has none."""

    pair: Int64
    alone: tuple[Int64, Int64]  # a slot without partner, -1

    def __len__(self) -> int:
        return len(self.pair)


class End:
    """One side of the rows of a chunk. ``pair`` is -1 where a row is the slot ``alone`` of one side, which is -1 for the other."""

    def __init__(self, pairs: Table, dump: Dump, names: Sequence[str], side: int, rows: Rows) -> None:
        """``names``: those of the dump's records."""
        self.pairs, self.dump, self.record_names, self.side, self.rows = pairs, dump, names, side, rows
        start, slots = pairs.array(f"{SIDES[side]}_start"), pairs.array(f"{SIDES[side]}_slot")
        paired = rows.pair >= 0
        pair = np.where(paired, rows.pair, 0)
        self.first = np.where(paired, slots[start[pair]] if len(slots) else -1, rows.alone[side]).astype(np.int64)
        self.count = np.where(paired, start[pair + 1] - start[pair] if len(slots) else 0, rows.alone[side] >= 0)
        self.begin, self.slots = np.where(paired, start[pair], 0), slots
        self.there = self.first >= 0

    def _joined(self, one: Callable[[Int64], list[str]]) -> Cells:
        """The word of the first slot; where the end is several slots, all of theirs with ``;`` between them; N/A where there is none."""
        found: Cells = one(np.where(self.there, self.first, 0))
        for row in np.flatnonzero(self.count > 1).tolist():
            begin = int(self.begin[row])
            found[row] = ";".join(one(np.asarray(self.slots[begin : begin + int(self.count[row])]).astype(np.int64)))
        for row in np.flatnonzero(~self.there).tolist():
            found[row] = MISSING
        return found

    def names(self) -> Cells:
        names, slot_names = self.record_names, self.dump.slot_names
        record, name = np.asarray(self.dump.slots.record), np.asarray(self.dump.slots.name)
        return self._joined(
            lambda slots: [slot_name(names[r], slot_names[n]) for r, n in zip(record[slots].tolist(), name[slots].tolist(), strict=True)]
        )

    def dtypes(self) -> Cells:
        tensors = [*self.dump.dtypes, ""]
        types = [*(f"<class '{name}'>" for name in self.dump.types), MISSING]
        dtype, kind = np.asarray(self.dump.slots.dtype), np.asarray(self.dump.slots.type_name)
        return self._joined(
            lambda slots: [tensors[d] or types[t] for d, t in zip(dtype[slots].tolist(), kind[slots].tolist(), strict=True)]
        )

    def shapes(self) -> Cells:
        texts = [*(str(list(shape)) for shape in self.dump.shapes), MISSING, "[]"]
        null = np.asarray(self.dump.slots.type_name) < 0
        shape = np.where(null & (np.asarray(self.dump.slots.shape) < 0), -2, self.dump.slots.shape)
        return self._joined(lambda slots: [texts[s] for s in shape[slots].tolist()])

    def checksums(self) -> Cells:
        texts = [*self.dump.texts, MISSING]
        checksum = np.asarray(self.dump.slots.checksum)
        return self._joined(lambda slots: [texts[c] for c in checksum[slots].tolist()])

    def values(self) -> NDArray[np.float64]:
        """[rows, 4] in the order of SHOWN; NaN where a statistic is not there."""
        pair = np.where(self.rows.pair >= 0, self.rows.pair, 0)
        combined = self.pairs.array(f"values_{SIDES[self.side]}")
        own = np.asarray(self.dump.slots.statistics)
        found = np.full((len(pair), 4), np.nan)
        paired = self.rows.pair >= 0
        found[paired] = combined[pair[paired]][:, list(SHOWN)] if len(combined) else np.nan
        alone = ~paired & self.there
        found[alone] = own[self.first[alone]][:, list(SHOWN)]
        return found

    def statistics(self) -> list[Cells]:
        """Four columns as they are shown: whole numbers of integer tensors without a point, text as text, None where none was written."""
        values = self.values()
        slots = np.where(self.there, self.first, 0)
        leaf = np.asarray(self.dump.slots.leaf)[slots]
        whole_dtype = np.array([not _floating(name) for name in self.dump.dtypes] + [False])
        whole_type = np.array([name in ("int", "bool") for name in self.dump.types] + [False])
        whole = np.where(
            leaf == Leaf.NUMBER,
            whole_type[np.asarray(self.dump.slots.type_name)[slots]],
            whole_dtype[np.asarray(self.dump.slots.dtype)[slots]],
        )
        present = self._present(slots)
        columns: list[Cells] = []
        for place in range(4):
            column = shown(values[:, place], whole, present[:, place])
            columns.append(column)
        for row in np.flatnonzero((leaf == Leaf.TEXT) & self.there).tolist():
            word = self.dump.texts[int(self.dump.slots.text[int(slots[row])])]
            for column in columns:
                column[row] = word
        truth = np.array([name == "bool" for name in self.dump.types] + [False])[np.asarray(self.dump.slots.type_name)[slots]]
        for row in np.flatnonzero((leaf == Leaf.NUMBER) & truth & self.there).tolist():
            for column in columns:
                column[row] = str(bool(column[row]))
        for row in np.flatnonzero(~self.there).tolist():
            for column in columns:
                column[row] = MISSING
        return columns

    def _present(self, slots: Int64) -> NDArray[np.bool_]:
        pair = np.where(self.rows.pair >= 0, self.rows.pair, 0)
        combined = self.pairs.array(f"present_{SIDES[self.side]}")
        bits = (np.asarray(self.dump.slots.present)[slots][:, None] >> np.array(SHOWN)) & 1 == 1
        paired = (self.rows.pair >= 0)[:, None]
        return np.asarray(np.where(paired, combined[pair][:, list(SHOWN)] if len(combined) else bits, bits))


def _floating(dtype: str) -> bool:
    return dtype.rpartition(".")[2].lower().startswith(("float", "bfloat", "half", "double", "complex"))
