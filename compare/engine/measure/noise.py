"""The noise profile, and each pair's distance from what honest rounding explains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import yaml

from compare.engine.align.conventions import decoder, pattern_of
from compare.engine.align.pairs import Pairs
from compare.engine.measure.elements.table import Elements
from compare.engine.measure.statistics import MAX, MEAN, MIN, NORM, Differences
from compare.engine.model import Bool, Direction, Float64, Int32

MEAN_LEVEL, EXTREMES_LEVEL, NORM_LEVEL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Profile:
    """``noise.yaml``; the file explains its numbers."""

    roles: dict[str, tuple[float, float, float]]  # mean, extremes, norm
    norm: float
    float32_factor: float
    jump: float
    norm_jump: float
    lend: float
    lend_norm: float
    ceiling: float
    exact_level: float
    exact_jump: float
    gradient_caution: float
    measured_least: float
    elements_jump: float
    elements: dict[str, float]
    routed: float
    routed_extremes: float


@lru_cache(maxsize=1)
def profile() -> Profile:
    document: dict[str, Any] = yaml.decode(Path(__file__).with_name("noise.yaml").read_bytes())
    norm = document["norm"]
    roles = {
        name: (float(row["mean"]), float(row["extremes"]), float(row.get("norm", norm))) for name, row in document.pop("roles").items()
    }
    elements = {name: float(value) for name, value in document.pop("elements").items()}
    return Profile(roles=roles, elements=elements, **{name: float(value) for name, value in document.items()})


@dataclass(frozen=True, slots=True)
class Noise:
    """One row a pair. ``estimate`` [pairs, 3] (mean, extremes, norm) is the level that each statistic shows, in units of ``unit`` = the
    rounding of the pair's coarser dtype; NaN-free, inf where a statistic left zero. ``reach`` [pairs, 3] is what one unit of level means
    for |ΔMean|·√n/RMS, |ΔMax|/scale and |ΔNorm|/Norm."""

    estimate: Float64
    unit: Float64
    reach: Float64


def role_names(pairs: Pairs) -> list[str]:
    """The row of the noise profile that each quantity is judged by."""
    return [decoder().quantity(name).noise for name in pairs.quantity_names]


def noise_of(pairs: Pairs, differences: Differences) -> Noise:
    rows = profile().roles
    by_quantity = np.array([rows.get(role, rows["other"]) for role in role_names(pairs)] + [rows["other"]])
    role = by_quantity[np.where(pairs.quantity >= 0, pairs.quantity, len(by_quantity) - 1)]
    role = np.where((pairs.direction == Direction.BACKWARD)[:, None], rows["gradient"], role)
    bits: Int32 = np.where(differences.exact, 53, differences.tensor_bits).astype(np.int32)
    unit = np.ldexp(np.where(bits >= 24, profile().float32_factor, 1.0), -bits)
    excess, scale = differences.excess, differences.scale
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(differences.elements)
        mean = np.nan_to_num(excess[:, MEAN] / scale[:, MEAN] * root, nan=0.0, posinf=np.inf)
        largest = np.fmax(np.nan_to_num(excess[:, MAX]), np.nan_to_num(excess[:, MIN]))
        extremes = np.nan_to_num(largest / scale[:, MAX], nan=0.0, posinf=np.inf)
        norm = np.nan_to_num(excess[:, NORM] / scale[:, NORM], nan=0.0, posinf=np.inf)
    reach = role.copy()
    estimate = np.stack([mean, extremes, norm], axis=1) / (unit[:, None] * reach)
    if differences.tensors is not None:
        _from_elements(estimate, reach, unit, pairs, differences.tensors)
    return Noise(estimate, unit, reach)


def _from_elements(estimate: Float64, reach: Float64, unit: Float64, pairs: Pairs, tensors: Elements) -> None:
    """Where the elements were compared, their relative L2 error is the level itself, and no statistic has to suggest it. The exact Norms
    tell besides it a scale, which is the same share of every element and small beside their noise.
    """
    rules = profile().elements
    by_quantity = np.array([rules.get(role, rules["other"]) for role in role_names(pairs)] + [rules["other"]])
    measured = np.flatnonzero(tensors.measured)
    role = by_quantity[np.where(pairs.quantity >= 0, pairs.quantity, len(by_quantity) - 1)][measured]
    role = np.where(pairs.direction[measured] == Direction.BACKWARD, rules["gradient"], role)
    estimate[measured] = 0.0
    estimate[measured, MEAN_LEVEL] = judged_l2(pairs, tensors)[measured] / (unit[measured] * role)
    reach[measured, MEAN_LEVEL] = role
    left, right = tensors.norms[tensors.row[measured]].T
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(left == right, 0.0, np.abs(left - right) / left)
    apart[behind_router(pairs)[measured]] = 0.0  # one token at another expert moves the Norm
    estimate[measured, NORM_LEVEL] = np.nan_to_num(apart, nan=0.0, posinf=np.inf) / (unit[measured] * reach[measured, NORM_LEVEL])


def behind_router(pairs: Pairs) -> Bool:
    """Pairs from the first router of a mixture of experts on: from there a token may honestly differ altogether."""
    routes = np.array([pattern_of(name)[0] == decoder().router for name in pairs.quantity_names] + [False])[pairs.quantity]
    behind: Bool = np.cumsum(routes) > 0
    return behind


def judged_l2(pairs: Pairs, tensors: Elements) -> Float64:
    """[pairs] the relative L2 error that a pair is judged by, 0 where its elements were not compared: of the whole tensor, behind a router
    that of the middle row."""
    found = np.zeros(len(pairs))
    measured = np.flatnonzero(tensors.measured)
    rows = tensors.row[measured]
    found[measured] = np.where(behind_router(pairs)[measured], tensors.typical_l2[rows], tensors.relative_l2[rows])
    return found
