"""Numbers → grades: is a difference rounding, honest noise, or more than that?

The pairs are judged in execution order. The *level* before a pair is the largest estimate (``noise``) that any pair before it has shown;
a pair diverges when it leaves that level by more than the profile's jump, or any plausible accumulation by more than the profile's
ceiling. From the first divergence on the level is frozen (it may only grow with depth, √(1 + 2·layer)), so that a fault does not raise
the bar for its own consequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from compare.engine.align.pairs import Pairs
from compare.engine.measure.noise import EXTREMES_LEVEL, MEAN_LEVEL, NORM_LEVEL, Noise, behind_router, judged_l2, profile, role_names
from compare.engine.measure.self_noise import Floor
from compare.engine.measure.statistics import MAX, MEAN, MIN, NORM, Differences
from compare.engine.model import Bool, Direction, Dump, Float64, Group, Int32, Int64, Leaf, UInt8


class Grade(IntEnum):
    EQUAL = 0
    ROUNDING = 1
    NOISE = 2
    DIVERGED = 3
    INCOMPARABLE = 4


NO_PAIR = 255


class FloorSource(IntEnum):
    """What decided the limit that a pair was held against."""

    PROFILE = 0  # the noise profile: what its role, dtype and depth may show
    MEASURED = 1  # the level that the pairs before it have shown
    FROZEN = 2  # that level as it was at the first divergence
    BASELINE = 3  # the left side's own noise, measured on a second dump of it


NO_FLOOR = 255


@dataclass(frozen=True, slots=True)
class Grades:
    """One row a pair.

    ``ratio`` is the largest estimate over its limit (> 1: diverged; inf: NaN on one side, or an integer that differs); ``level`` [pairs,
    3] the level before the pair, ``limit`` [pairs, 3] what it may reach, both in units of the pair's rounding. ``over`` [pairs, 4] marks
    the statistics that leave their limit. ``difference`` and ``floor`` are the relative difference of the statistic that stands out most
    and its own limit on the same scale (NaN: nothing compared), ``floor_source`` what decided that limit (FloorSource; NO_FLOOR where none
    is applied: weights, integers, arguments, a determinism check). ``weight`` marks differing parameters, ``argument`` pairs of scalars and
    texts, and of what the premises judge (token ids, positions), ``nothing`` pairs of two nulls
    or of tensors that were written without statistics and checksum.
    """

    grade: UInt8
    ratio: Float64
    level: Float64
    limit: Float64
    over: Bool
    difference: Float64
    floor: Float64
    floor_source: UInt8
    weight: Bool
    argument: Bool
    nothing: Bool

    @property
    def comparable(self) -> Bool:
        """Pairs that were compared: they have a place in the order of execution."""
        compared: Bool = (self.grade != Grade.INCOMPARABLE) & ~self.nothing
        return compared


def grades_of(
    pairs: Pairs,
    dumps: tuple[Dump, Dump],
    layer: Int32,
    differences: Differences,
    noise: Noise,
    *,
    exact: bool,
    floor: Floor | None = None,
    begins: int | None = None,
    stands_out: int | None = None,
    chance: Bool | None = None,
) -> Grades:
    """``layer``: the layer of each pair's node (-1 outside). ``exact``: any pair that is not equal counts as diverged. ``floor``: what a
    baseline measured, if there is one.

    Once the diagnosis knows where the sides part, it asks again: ``begins`` is the pair at which the level is frozen, and ``stands_out``
    the pair that the search was led back to, which diverges although by less than its limit. ``chance`` marks pairs that left their limit
    by chance: they count as noise.
    """
    leaf = [dump.slots.leaf[lists.values[lists.start[:-1]]] for dump, lists in zip(dumps, pairs.slots, strict=True)]
    nothing = (leaf[0] == Leaf.NULL) & (leaf[1] == Leaf.NULL)
    silent = [(leaf[i] == Leaf.TENSOR) & ~side.present.any(axis=1) for i, side in enumerate(differences.sides)]
    tensors = differences.tensors
    measured = np.zeros(len(pairs), bool) if tensors is None else tensors.measured
    nothing |= silent[0] & silent[1] & ~differences.size & ~differences.by_checksum & ~measured
    argument = np.isin(leaf[0], (Leaf.NUMBER, Leaf.TEXT)) | np.isin(leaf[1], (Leaf.NUMBER, Leaf.TEXT)) | _premise(pairs)
    texts = (leaf[0] == Leaf.TEXT) & (leaf[1] == Leaf.TEXT)
    comparable = (differences.compared.any(axis=1) | texts | differences.by_checksum | measured) & ~differences.size
    parameter = pairs.group == Group.PARAMETERS
    judged = comparable & ~argument & ~parameter
    depth = np.sqrt(1.0 + 2.0 * np.maximum(_filled(layer), 0))
    integer = differences.exact & ~argument
    apart = pairs.disagree & (pairs.direction == Direction.FORWARD)  # ranks that hold other copies: no rounding explains that
    sudden = judged & (apart | differences.nonfinite | ((integer | differences.by_checksum) & ~differences.equal))
    estimate = np.where((judged & ~integer)[:, None], noise.estimate, 0.0)
    backward = pairs.direction == Direction.BACKWARD
    same_forward = bool(differences.equal[judged & ~backward].all())
    chance = np.zeros(len(pairs), bool) if chance is None else chance
    own_unit = _profile_units(pairs, noise)
    unit = own_unit if floor is None else _with_baseline(own_unit, floor)
    jumps = _jumps(measured)
    level, limit, frozen = _limits(estimate, sudden, depth, backward, begins, chance, unit, jumps)
    sources = _sources(level, limit, unit, jumps, frozen, floor, own_unit)
    limit[backward] *= 1.0 if same_forward else profile().gradient_caution
    if stands_out is not None and (estimate[stands_out] <= limit[stands_out]).all():
        limit[stands_out] = np.minimum(limit[stands_out], estimate[stands_out] / LED_BACK)
        limit[stands_out] = np.maximum(limit[stands_out], np.finfo(np.float64).tiny)
    with np.errstate(invalid="ignore"):
        ratio = np.where(judged, (estimate / limit).max(axis=1, initial=0.0), 0.0)
    weight = comparable & parameter
    weight[weight] = _parameters_differ(differences, np.flatnonzero(weight))
    ratio = np.where(sudden | weight, np.inf, ratio)
    beyond = (ratio > 1) | (exact & comparable & ~differences.equal)
    beyond &= ~chance
    if begins is not None:
        beyond &= np.arange(len(pairs)) >= begins
    rounding: Bool = np.asarray(((differences.excess <= 0) | ~differences.compared).all(axis=1))
    if tensors is not None:
        rounding[measured] = tensors.relative_l2[tensors.row[measured]] <= noise.unit[measured]
    grade = np.where(beyond, Grade.DIVERGED, np.where(rounding, Grade.ROUNDING, Grade.NOISE))
    grade = np.where(differences.equal, Grade.EQUAL, grade)
    unlike_arguments = argument & ~differences.equal & (not exact)
    grade = np.where(~comparable | unlike_arguments, Grade.INCOMPARABLE, grade)
    grade = np.where(nothing, Grade.EQUAL, grade).astype(np.uint8)
    over, difference, shown, by_level = _shown(pairs, differences, noise, limit, weight)
    over &= (grade == Grade.DIVERGED)[:, None]
    source = sources[np.arange(len(pairs)), by_level]
    source[~judged | integer | exact | np.isnan(shown)] = NO_FLOOR
    return Grades(grade, ratio, level, limit, over, difference, shown, source, weight, argument, nothing)


def _filled(layer: Int32) -> Int32:
    """A place outside the layers counts as deep as the layers before it."""
    return np.maximum.accumulate(layer) if len(layer) else layer


def _before(estimate: Float64, start: Float64) -> Float64:
    """The running maximum over all rows before each row."""
    if not len(estimate):
        return estimate
    shifted = np.concatenate([start[None, :], estimate[:-1]])
    return np.asarray(np.maximum.accumulate(shifted, axis=0))


def _premise(pairs: Pairs) -> Bool:
    """Token ids and positions: what they mean for the numbers is said by the premises, not by a grade."""
    exact = np.array([role == "exact" for role in role_names(pairs)] + [False])
    return exact[pairs.quantity]


BFLOAT16, FINE = 2.0**-8, 2.0**-16  # the rounding of bf16; what is finer than this is float32
LED_BACK = 1.01  # how far over its limit a pair is shown that only its consequences gave away


def _profile_units(pairs: Pairs, noise: Noise) -> Float64:
    """[pairs, 3] the level that counts as none: one unit of the profile, more of them behind a router. A token sent to another expert makes
    the same difference in any dtype; in float32 that hardly happens."""
    coarse = np.where(noise.unit > FINE, np.maximum(BFLOAT16 / noise.unit, 1.0), 1.0)
    rules = profile()
    raised = coarse[:, None] * np.array([rules.routed, rules.routed_extremes, rules.routed])
    units: Float64 = np.where(behind_router(pairs)[:, None], raised, 1.0)
    return units


def _with_baseline(unit: Float64, floor: Floor) -> Float64:
    """The same with what the baseline has shown up to each pair."""
    measured = np.maximum.accumulate(np.nan_to_num(floor.measured, posinf=np.finfo(np.float64).max))
    return np.maximum(measured, profile().measured_least) if floor.replaces else np.maximum(measured, unit)


def _sources(level: Float64, limit: Float64, unit: Float64, jumps: Float64, frozen: Bool, floor: Floor | None, own_unit: Float64) -> UInt8:
    """[pairs, 3] FloorSource of each limit: the larger of what goes into it (see ``_bound``). Where the ceiling cuts it, the profile."""
    rules = profile()
    lent = level[:, :2].max(axis=1, initial=0.0)[:, None] * np.array([rules.lend, rules.lend, rules.lend_norm])
    shown = np.maximum(level, lent)
    by_level = shown > unit
    cut = limit < np.maximum(shown, unit) * jumps * (1 - 1e-9)
    source = np.where(by_level, np.where(frozen, FloorSource.FROZEN, FloorSource.MEASURED)[:, None], FloorSource.PROFILE)
    if floor is not None:
        source = np.where(~by_level & (floor.replaces | (unit > own_unit)), FloorSource.BASELINE, source)
    return np.where(cut, FloorSource.PROFILE, source).astype(np.uint8)


def _jumps(measured: Bool) -> Float64:
    """How far each pair's three estimates may rise above the level before them."""
    rules = profile()
    return np.where(measured[:, None], (rules.elements_jump, rules.jump, rules.norm_jump), (rules.jump, rules.jump, rules.norm_jump))


def _limits(
    estimate: Float64, sudden: Bool, depth: Float64, backward: Bool, begins: int | None, chance: Bool, unit: Float64, jumps: Float64
) -> tuple[Float64, Float64, Bool]:
    """Level and limit of each pair, and whether the level is frozen there. ``unit``: see ``_profile_units``; ``jumps``: see ``_jumps``."""
    level, limit = np.zeros_like(estimate), np.ones_like(estimate)
    is_frozen = np.zeros(len(estimate), bool)
    start = np.zeros(3)
    for phase, last in ((~backward, False), (backward, True)):
        rows = np.flatnonzero(phase)
        if not len(rows):
            continue
        before = _before(estimate[rows], start)
        bound = _bound(before, depth[rows], unit[rows], jumps[rows], ceiling=not last)
        beyond = ((estimate[rows] > bound).any(axis=1) & ~chance[rows]) | sudden[rows] if begins is None else rows >= begins
        if beyond.any():
            first = int(np.argmax(beyond))
            frozen = before[first]
            is_frozen[rows[first:]] = True
            grown = np.maximum(depth[rows] / depth[rows[first]], 1.0)
            before[first:] = frozen[None, :] * grown[first:, None]
            bound = _bound(before, depth[rows], unit[rows], jumps[rows], ceiling=not last)
            start = frozen
        else:
            start = np.maximum(before[-1], estimate[rows[-1]])
        level[rows], limit[rows] = before, bound
    return level, limit, is_frozen


def _bound(before: Float64, depth: Float64, unit: Float64, jumps: Float64, *, ceiling: bool) -> Float64:
    rules = profile()
    either = before[:, :2].max(axis=1)
    lent = np.stack([rules.lend * either, rules.lend * either, unit[:, 2] + rules.lend_norm * either], axis=1)
    bound = np.maximum(np.maximum(before, lent), unit) * jumps
    if ceiling:
        bound[:, :2] = np.minimum(bound[:, :2], rules.ceiling * depth[:, None] * np.maximum(unit[:, :2], 1.0))
    limits: Float64 = bound
    return limits


LEVEL_OF = np.empty(4, np.int64)  # by statistic
LEVEL_OF[[MAX, MIN, MEAN, NORM]] = EXTREMES_LEVEL, EXTREMES_LEVEL, MEAN_LEVEL, NORM_LEVEL

PARAMETER_ROUNDING = 4.0  # a parameter stored once in a coarser dtype: units of that dtype by which Norm and Mean·√n/RMS may move


def _parameters_differ(differences: Differences, rows: Int64) -> Bool:
    """Of these pairs: exactly, where both sides store a parameter in the same dtype; else after rounding to the coarser one."""
    bits = [side.tensor_bits[rows] for side in differences.sides]
    unit = np.ldexp(1.0, -np.minimum(*bits).astype(np.int32))
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = differences.excess[rows] / differences.scale[rows]
        moved[:, MEAN] *= np.sqrt(differences.elements[rows]) / PARAMETER_ROUNDING
        moved[:, NORM] /= PARAMETER_ROUNDING
        rounded_apart: Bool = np.asarray((np.nan_to_num(moved, posinf=np.inf) > unit[:, None]).any(axis=1))
    if differences.tensors is not None:
        measured = differences.tensors.measured[rows]
        rounded_apart[measured] = ~differences.tensors.same_rounded[differences.tensors.row[rows[measured]]]
    return np.where(bits[0] != bits[1], rounded_apart | differences.nonfinite[rows], ~differences.equal[rows])


def _shown(pairs: Pairs, differences: Differences, noise: Noise, limit: Float64, weight: Bool) -> tuple[Bool, Float64, Float64, Int64]:
    """Which statistics leave their limit, and the one to show: it stands out most against its own limit. Last, which of the three levels
    that limit comes from."""
    compared = differences.compared
    allowed = limit * noise.reach * noise.unit[:, None]
    floors = np.empty_like(differences.relative)
    floors[:, MAX] = floors[:, MIN] = allowed[:, 1]
    floors[:, MEAN] = allowed[:, 0] / np.sqrt(np.maximum(differences.elements, 1))
    floors[:, NORM] = allowed[:, 2]
    floors += np.divide(differences.slack, differences.scale, out=np.zeros_like(floors), where=differences.scale > 0)
    against = np.full_like(floors, -1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.divide(differences.relative, floors, out=against, where=compared)
    against[np.isnan(against)] = -1.0
    over = against > 1
    over |= compared & (differences.signed != 0) & (weight | differences.exact | differences.nonfinite)[:, None]
    rows: Int64 = np.arange(len(floors))
    most = np.where(against.max(axis=1, initial=-1.0) > 0, against.argmax(axis=1) if len(against) else 0, NORM)
    difference = differences.relative[rows, most]
    any_compared = compared.any(axis=1)
    shown_floor = floors[rows, most]
    by_level = LEVEL_OF[most]
    if differences.tensors is not None:
        measured = differences.tensors.measured
        difference[measured] = judged_l2(pairs, differences.tensors)[measured]
        shown_floor[measured] = allowed[measured, MEAN_LEVEL]
        by_level[measured] = MEAN_LEVEL
        any_compared |= measured
    difference[any_compared & np.isnan(difference)] = 0.0
    difference[differences.nonfinite] = np.inf
    difference[differences.size] = np.nan
    return over, difference, np.where(any_compared, shown_floor, np.nan), by_level
