"""The stored statistics of each side of a pair, combined where a side is several slots, and how far they are apart.

Combining parts p with n_p elements that lie side by side: Max = max, Min = min, Mean = Σ n·mean / Σ n, Norm = √Σ norm².
Policy: a statistic that is null on one side is left out of the comparison; null on both says nothing. NaN equals NaN and Inf equals the
same Inf; NaN or Inf on one side only is *nonfinite*. Text compares as text. A scalar is an exact number when it is an integer, else a
float64. Checksums of a single tensor of one dtype on both sides say whether it is equal also where statistics do not reach; how far apart
it is they cannot say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from compare.engine.align.lists import Lists
from compare.engine.align.pairs import ALL_BUT_MEAN, MAX_AND_MIN, Pairs, Relation
from compare.engine.measure.elements.table import Elements
from compare.engine.measure.elements.unpadded import Unpadded
from compare.engine.measure.ulp import EXACT, representable, significand_bits, ulp
from compare.engine.model import Bool, Dump, Float64, Int32, Int64, Leaf, Statistic, UInt8

MAX, MIN, MEAN, NORM = Statistic.MAX, Statistic.MIN, Statistic.MEAN, Statistic.NORM


@dataclass(frozen=True, slots=True)
class SideStatistics:
    """One row a pair. ``values`` [pairs, 4] float64, NaN where not ``present``. ``tensor_bits`` is the precision of the tensor's elements,
    ``stored_bits`` that of the statistics (coarsest part); both EXACT for integers. ``text`` is an index, -1 where the slot holds no
    text.
    """

    values: Float64
    present: Bool
    elements: Int64
    tensor_bits: UInt8
    stored_bits: UInt8
    null: Bool
    text: list[str | None]


@dataclass(frozen=True, slots=True)
class Differences:
    """One row a pair.

    ``compared`` [pairs, 4]: the statistics that both sides have. ``signed`` = right − left. ``slack`` is how far apart two statistics of
    the *same* tensor may lie because each was rounded when it was stored (and, where parts were combined, summed in another order);
    ``excess`` = max(|signed| − slack, 0). ``scale`` is what each statistic is measured against: Norm against Norm, Mean against RMS =
    Norm/√n, Max and Min against the largest extreme. ``relative`` = |signed| / scale, NaN where not compared. ``ulps`` are signed, in
    units of the coarser side. ``nonfinite``: NaN or Inf on one side only. ``size``: element counts differ, nothing to compare.
    ``unlike``: texts, or text against number. ``checked``: their checksums were compared; ``by_checksum``: nothing else
    could be. ``tensors``: what the elements themselves say, where there are tensor files; ``equal`` and ``nonfinite`` are then theirs.
    """

    sides: tuple[SideStatistics, SideStatistics]
    compared: Bool
    signed: Float64
    slack: Float64
    excess: Float64
    scale: Float64
    relative: Float64
    ulps: Float64
    equal: Bool
    exact: Bool
    nonfinite: Bool
    size: Bool
    unlike: Bool
    checked: Bool
    by_checksum: Bool
    elements: Int64
    tensor_bits: UInt8
    stored_bits: UInt8
    tensors: Elements | None = None


def with_tensors(differences: Differences, tensors: Elements) -> Differences:
    """What the elements say stands in place of what the statistics could only suggest: equal is equal bit by bit."""
    pairs = np.flatnonzero(tensors.measured)
    rows = tensors.row[pairs]
    equal, nonfinite, size, by_checksum = (
        column.copy() for column in (differences.equal, differences.nonfinite, differences.size, differences.by_checksum)
    )
    equal[pairs] = tensors.equal[rows]
    nonfinite[pairs] = tensors.misplaced[rows] > 0
    size[pairs] = by_checksum[pairs] = False
    return replace(differences, equal=equal, nonfinite=nonfinite, size=size, by_checksum=by_checksum, tensors=tensors)


def stored_bits(dump: Dump) -> UInt8:
    """Precision of each slot's statistics: that of its dtype where all of them fit it (a bf16 tensor reduced in bf16), else float32, else
    float64.
    """
    slots = dump.slots
    by_dtype = np.array([significand_bits(dtype) for dtype in dump.dtypes] + [EXACT], np.uint8)
    bits = np.where(slots.leaf == Leaf.NUMBER, 53, by_dtype[slots.dtype]).astype(np.uint8)
    bits[slots.leaf == Leaf.NUMBER] = np.where(_whole_number(dump), EXACT, 53)[slots.leaf == Leaf.NUMBER]
    bits[_lossy(dump, bits, np.flatnonzero((bits != EXACT) & (bits < 24)))] = 24
    bits[_lossy(dump, bits, np.flatnonzero(bits == 24))] = 53
    return bits


def _lossy(dump: Dump, bits: UInt8, rows: Int64) -> Int64:
    """Those of these slots whose statistics do not fit so many significand bits."""
    return rows[~representable(dump.slots.statistics[rows], bits[rows, None]).all(axis=1)]


def _whole_number(dump: Dump) -> Bool:
    whole = np.array(
        [name in ("int", "bool") or name.startswith(("int", "uint", "bool", "numpy.int", "numpy.bool")) for name in dump.types] + [False]
    )
    return whole[dump.slots.type_name]


def _combine(dump: Dump, bits: UInt8, lists: Lists) -> SideStatistics:
    slots = dump.slots
    at, start = lists.values, lists.start[:-1]
    count = len(start)
    if not count:
        return SideStatistics(
            np.zeros((0, 4)),
            np.zeros((0, 4), bool),
            np.zeros(0, np.int64),
            np.zeros(0, np.uint8),
            np.zeros(0, np.uint8),
            np.zeros(0, bool),
            [],
        )
    statistics = slots.statistics[at]
    elements = slots.elements[at]
    values = np.empty((count, 4))
    values[:, MAX] = np.maximum.reduceat(statistics[:, MAX], start)
    values[:, MIN] = np.minimum.reduceat(statistics[:, MIN], start)
    total = np.add.reduceat(elements, start)
    several = lists.counts() > 1
    with np.errstate(invalid="ignore", over="ignore"):
        values[:, MEAN] = np.where(
            several, np.add.reduceat(statistics[:, MEAN] * elements, start) / np.maximum(total, 1), statistics[start, MEAN]
        )
        values[:, NORM] = np.where(several, np.sqrt(np.add.reduceat(statistics[:, NORM] ** 2, start)), statistics[start, NORM])
    bitmask = np.bitwise_and.reduceat(slots.present[at], start)
    present = (bitmask[:, None] >> np.arange(4)) & 1 == 1
    by_dtype = np.array([significand_bits(dtype) for dtype in dump.dtypes] + [EXACT], np.uint8)
    tensor = np.where(slots.leaf[at] == Leaf.TENSOR, by_dtype[slots.dtype[at]], bits[at]).astype(np.uint8)
    first = at[start]
    is_text = slots.leaf[first] == Leaf.TEXT
    text: list[str | None] = [None] * count
    for row in np.flatnonzero(is_text).tolist():
        text[row] = dump.texts[int(slots.text[first[row]])]
    null = slots.leaf[first] == Leaf.NULL
    return SideStatistics(
        np.where(present, values, np.nan),
        present,
        total,
        np.minimum.reduceat(tensor, start),
        np.minimum.reduceat(bits[at], start),
        null,
        text,
    )


def _slack(side: SideStatistics, lists: Lists, dump: Dump) -> Float64:
    """Half a unit for each stored number; for combined ones what their parts' halves come to, and in float32 a few units of summation
    error.
    """
    bits = np.where(side.stored_bits == EXACT, 53, side.stored_bits).astype(np.int32)
    half = ulp(side.values, bits[:, None]) / 2
    several = np.flatnonzero(lists.counts() > 1)
    if len(several):
        part_bits = np.repeat(bits, lists.counts())
        part = ulp(dump.slots.statistics[lists.values], part_bits[:, None]) / 2
        elements = dump.slots.elements[lists.values]
        start = lists.start[:-1]
        norm = dump.slots.statistics[lists.values, NORM]
        with np.errstate(invalid="ignore", divide="ignore"):
            norm_slack = np.add.reduceat(norm * part[:, NORM], start) / side.values[:, NORM]
            mean_slack = np.add.reduceat(elements * part[:, MEAN], start) / np.maximum(side.elements, 1)
        half[several, NORM] = np.nan_to_num(norm_slack[several])
        half[several, MEAN] = mean_slack[several]
    return half


SUMMATION_ULPS = 4.0  # a float32 reduction over the fused tensor against one over its parts, or over a view: up to 3.3 units seen


def differences_of(pairs: Pairs, dumps: tuple[Dump, Dump], unpadded: Sequence[Unpadded] = ()) -> Differences:
    """``unpadded`` replaces the statistics of an end that holds padding by those of its tokens."""
    bits = [stored_bits(dump) for dump in dumps]
    sides = tuple(_combine(dump, b, lists) for dump, b, lists in zip(dumps, bits, pairs.slots, strict=True))
    for end in unpadded:
        sides[end.side].values[end.pair] = np.where(sides[end.side].present[end.pair], end.values, np.nan)
        sides[end.side].elements[end.pair] = end.elements
    left, right = sides
    compared = left.present & right.present & ((pairs.usable[:, None] >> np.arange(4)) & 1 == 1)
    kinds = _kind(left.values), _kind(right.values)
    signed = np.where(compared, _finite_difference(left.values, right.values, *kinds), np.nan)
    coarser = _coarser(left.stored_bits, right.stored_bits)
    tensor_bits = _coarser(left.tensor_bits, right.tensor_bits)
    size = (left.elements != right.elements) & (left.elements > 0) & (right.elements > 0)
    largest = np.fmax(np.abs(left.values), np.abs(right.values))
    slack = _slack(left, pairs.slots[0], dumps[0]) + _slack(right, pairs.slots[1], dumps[1])
    several = (pairs.slots[0].counts() > 1) | (pairs.slots[1].counts() > 1)
    fine = (several | (pairs.relation == Relation.ALIAS)) & (coarser >= 24)
    with np.errstate(invalid="ignore", divide="ignore"):
        extreme = np.fmax(largest[:, MAX], largest[:, MIN])
        elements = np.maximum(np.minimum(left.elements, right.elements), 1)
        rms = largest[:, NORM] / np.sqrt(elements)
        scale = np.stack([extreme, extreme, np.where(compared[:, NORM], rms, largest[:, MEAN]), largest[:, NORM]], axis=1)
        unit = ulp(largest, np.where(coarser == EXACT, 53, coarser).astype(np.int32)[:, None])
        slack[fine, NORM] += SUMMATION_ULPS * unit[fine, NORM]
        spread = np.fmax(rms, extreme / np.sqrt(elements))  # a Norm is never below the largest element, but its squares may underflow
        slack[fine, MEAN] += SUMMATION_ULPS * np.ldexp(1.0, -coarser[fine].astype(np.int32)) * spread[fine]
        excess = np.maximum(np.abs(signed) - slack, 0.0)
        relative = np.where(signed == 0, 0.0, np.abs(signed) / np.where(scale > 0, scale, np.nan))
        relative = np.where(compared & (signed != 0) & ~(scale > 0), np.inf, relative)
        ulps = np.where(signed == 0, 0.0, signed / np.where(unit > 0, unit, np.nan))
    agree = (~compared | (excess == 0)).all(axis=1) & compared.any(axis=1)
    # What can only prove equality proves nothing else; of shards that overlap the sizes say nothing.
    size = np.where(pairs.usable == ALL_BUT_MEAN, ~agree, size & (pairs.usable != MAX_AND_MIN))
    exact = (tensor_bits == EXACT) | (coarser == EXACT)
    nonfinite = (compared & (kinds[0] != kinds[1])).any(axis=1)
    same = ~compared | (left.values == right.values) | (np.isnan(left.values) & np.isnan(right.values))
    within = several[:, None] & (excess == 0) & np.isin(np.arange(4), (MEAN, NORM))[None, :]
    unlike = np.array([a != b for a, b in zip(left.text, right.text, strict=True)], bool) if len(pairs) else np.zeros(0, bool)
    checked, matching = _checksums(pairs, dumps)
    equal = (same | within).all(axis=1) & ~nonfinite & ~unlike & ~size & ~(checked & ~matching)
    return Differences(
        (left, right),
        compared,
        signed,
        slack,
        np.where(exact[:, None], np.abs(signed), excess),
        scale,
        relative,
        ulps,
        equal,
        exact,
        nonfinite,
        size,
        unlike,
        checked & ~size,
        checked & ~compared.any(axis=1) & ~size,
        elements,
        tensor_bits,
        coarser,
    )


def _checksums(pairs: Pairs, dumps: tuple[Dump, Dump]) -> tuple[Bool, Bool]:
    """Pairs of one slot each, of one dtype, that both have a checksum (of a tensor as it lies in memory: not of a view); and whether it
    is the same one.
    """
    first = [lists.values[lists.start[:-1]] for lists in pairs.slots]
    sums = [dump.slots.checksum[at] for dump, at in zip(dumps, first, strict=True)]
    dtypes = [dump.slots.dtype[at] for dump, at in zip(dumps, first, strict=True)]
    single = (pairs.slots[0].counts() == 1) & (pairs.slots[1].counts() == 1) & (pairs.relation != Relation.ALIAS)
    checked: Bool = single & (sums[0] >= 0) & (sums[1] >= 0) & _same_text(dumps[0].dtypes, dumps[1].dtypes, dtypes[0], dtypes[1])
    return checked, _same_text(dumps[0].texts, dumps[1].texts, sums[0], sums[1])


def _same_text(left: Sequence[str], right: Sequence[str], at_left: Int32, at_right: Int32) -> Bool:
    index = {text: number for number, text in enumerate(left)}
    translated = np.array([index.get(text, -2) for text in right] + [-1], np.int64)  # -1 = none on both sides
    same: Bool = translated[at_right] == at_left
    return same


def _kind(values: Float64) -> UInt8:
    """0 finite, 1 NaN, 2 Inf, 3 −Inf."""
    kind = np.zeros(values.shape, np.uint8)
    if not np.isfinite(values).all():
        kind[np.isnan(values)], kind[values == np.inf], kind[values == -np.inf] = 1, 2, 3
    return kind


def _finite_difference(left: Float64, right: Float64, left_kind: UInt8, right_kind: UInt8) -> Float64:
    """right − left; 0 where both are the same NaN or Inf, NaN where only one is."""
    with np.errstate(invalid="ignore"):
        difference = right - left
    unusual = (left_kind != 0) | (right_kind != 0)
    difference[unusual] = np.where(left_kind == right_kind, 0.0, np.nan)[unusual]
    return difference


def _coarser(left: UInt8, right: UInt8) -> UInt8:
    """The smaller number of bits; EXACT only where both sides are exact."""
    a, b = np.where(left == EXACT, 255, left), np.where(right == EXACT, 255, right)
    least = np.minimum(a, b)
    return np.where(least == 255, EXACT, least).astype(np.uint8)
