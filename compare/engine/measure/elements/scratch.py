"""Arrays that one block's arithmetic goes through: made once, so that no block waits for the system to hand out fresh memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Scratch:
    """Named arrays, as large as the largest block that asked for them."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Array] = {}

    def take(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike = np.float64) -> Array:
        """An array of that shape whose content is left from before."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64))
        key = (name, kind.str)
        known = self._held.get(key)
        if known is None or known.size < size:
            known = self._held[key] = np.empty(size, kind)
        return known[:size].reshape(shape)
