"""Many short lists of row numbers as two columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.engine.model import Int32, Int64


@dataclass(frozen=True, slots=True)
class Lists:
    """One list of row numbers a row: row i holds ``values[start[i]:start[i + 1]]``."""

    start: Int64
    values: Int32

    def __getitem__(self, row: int) -> Int32:
        return self.values[self.start[row] : self.start[row + 1]]

    def counts(self) -> Int64:
        return np.diff(self.start)
