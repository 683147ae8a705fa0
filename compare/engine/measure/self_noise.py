"""How far the left side is from a second dump of itself: a noise floor that was measured, where the profile's is a rule of thumb."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.engine.align.pairs import Pairs
from compare.engine.measure.noise import Noise
from compare.engine.model import Bool, Dump, Float64, Int64


@dataclass(frozen=True, slots=True)
class SelfNoise:
    """One row a slot of the left dump: ``relative`` [slots, 3] is |ΔMean|·√n / RMS, the larger of |ΔMax| and |ΔMin| over the largest
    extreme, and |ΔNorm| / Norm between the left dump and its second dump, storage rounding taken off; NaN where the baseline does not hold
    the slot. ``compared`` counts the pairs it rests on.
    """

    relative: Float64
    compared: int


@dataclass(frozen=True, slots=True)
class Floor:
    """``measured`` [pairs, 3]: the left side's own noise in units of each pair's rounding (as ``Noise.estimate``), NaN where it is not
    known. ``replaces``: it stands instead of the profile's floor. Between two code bases it can only raise that floor: each of them may
    repeat itself to the last bit, and still they round differently.
    """

    measured: Float64
    replaces: bool

    @property
    def known(self) -> Bool:
        return np.isfinite(self.measured).all(axis=1).astype(bool)


def self_noise_of(pairs: Pairs, noise: Noise, comparable: Bool, left: Dump) -> SelfNoise:
    """From the pairs of the left dump with its second dump, of which those ``comparable`` count."""
    relative = np.full((len(left.slots), 3), np.nan)
    rows: Int64 = np.flatnonzero(comparable)
    lists = pairs.slots[0]
    counts = lists.counts()
    values = noise.estimate * noise.unit[:, None] * noise.reach
    chosen = np.repeat(comparable, counts)
    relative[lists.values[chosen]] = np.repeat(values, counts, axis=0)[chosen]
    return SelfNoise(relative, len(rows))


def floor_of(found: SelfNoise, pairs: Pairs, noise: Noise, *, replaces: bool) -> Floor:
    """The self-noise of the left slots of each pair, the largest of them, on the scale of that pair."""
    lists = pairs.slots[0]
    if not len(pairs):
        return Floor(np.zeros((0, 3)), replaces)
    largest = np.maximum.reduceat(found.relative[lists.values], lists.start[:-1], axis=0)
    return Floor(largest / (noise.unit[:, None] * noise.reach), replaces)
