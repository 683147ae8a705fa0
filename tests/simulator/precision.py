"""Rounding of float32 arrays to the dtypes a model runs in, by bit arithmetic alone.

Every array of the simulator is float32 and holds values that its dtype can represent; `Precision.round` is applied after each
operation, as a kernel stores its result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def round_bfloat16(values: Array) -> Array:
    """Nearest bfloat16, ties to even; NaN stays NaN, ±Inf stays; float32 in, float32 out."""
    single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(single), rounded.view(np.float32), single)


def round_float16(values: Array) -> Array:
    """Nearest float16, ties to even; beyond 65504 it is ±Inf, as on a device."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32).astype(np.float16).astype(np.float32)


def round_float8(values: Array) -> Array:
    """Nearest value with three explicit mantissa bits (float8 e4m3 without its exponent limits)."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float32))
    return np.ldexp(np.round(mantissa * 16.0) / 16.0, exponent).astype(np.float32)


@dataclass(frozen=True)
class Precision:
    """A dtype: its torch name and how float32 values become it."""

    name: str

    @property
    def torch_name(self) -> str:
        return f"torch.{self.name}"

    def round(self, values: Array) -> Array:
        if self.name == "bfloat16":
            return round_bfloat16(values)
        if self.name == "float16":
            return round_float16(values)
        return np.asarray(values, dtype=np.float32)
