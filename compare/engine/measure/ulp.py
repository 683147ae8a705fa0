"""How finely a number was stored: significand bits of dtypes, units in the last place."""

from __future__ import annotations

import numpy as np

from compare.engine.model import Bool, Float64, Int32, UInt8

# Significand bits, the hidden one included. A unit in the last place of x is 2 ** (exponent of x - bits + 1).
SIGNIFICAND = {
    "float64": 53,
    "double": 53,
    "float32": 24,
    "float": 24,
    "float16": 11,
    "half": 11,
    "bfloat16": 8,
    "float8_e4m3fn": 4,
    "float8_e5m2": 3,
}
EXACT = 0  # integers and booleans: any difference is a difference
SMALLEST_STEP = {11: -24}  # exponent of float16's subnormal step, which a mean of small weights reaches; other dtypes never get there


def significand_bits(dtype: str) -> int:
    """8 for ``torch.bfloat16``, 24 for ``Float32``, EXACT for an integer, a boolean or no dtype."""
    name = dtype.rpartition(".")[2].lower()
    if name in SIGNIFICAND:
        return SIGNIFICAND[name]
    return 4 if name.startswith("float8") else 24 if name.startswith("complex") else EXACT


def ulp(value: Float64, bits: UInt8 | Int32) -> Float64:
    """The distance from |value| to the next number with that many significand bits. 0, NaN and Inf give 0."""
    usable = np.isfinite(value) & (value != 0)
    return np.where(usable, np.ldexp(1.0, _step(np.where(usable, value, 1.0), bits)), 0.0)


def representable(value: Float64, bits: UInt8 | Int32) -> Bool:
    """Whether a number has no more significand bits than that. NaN, Inf and 0 are representable."""
    usable = np.isfinite(value) & (value != 0)
    plain = np.where(usable, value, 1.0)
    steps = np.ldexp(plain, -_step(plain, bits))
    whole: Bool = ~usable | (steps == np.rint(steps))
    return whole


def _step(value: Float64, bits: UInt8 | Int32) -> Int32:
    """The exponent of the step between neighbouring numbers around a finite value other than 0."""
    _, exponent = np.frexp(value)
    step = exponent - bits.astype(np.int32)
    for significand, smallest in SMALLEST_STEP.items():
        coarse = bits == significand
        if coarse.any():
            step = np.where(coarse & (step < smallest), smallest, step)
    return step.astype(np.int32)
