"""The tensors of all pairs of a case, measured: columns with a row for each pair whose both ends have their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from compare.engine.align.nodes import Nodes, Sides
from compare.engine.align.pairs import Pairs, Relation
from compare.engine.errors import DumpError
from compare.engine.measure.elements.compare import SIGNIFICAND, compared
from compare.engine.measure.elements.layout import Layout, Side, best, layouts
from compare.engine.measure.elements.metrics import ORDERED, ULP_BINS, ULP_EDGES, WORST, Metrics
from compare.engine.measure.elements.padding import Padding
from compare.engine.model import NO_FILE, Bool, Dump, Float32, Float64, Int32, Int64, JsonObject, Leaf, UInt8
from compare.engine.tensors import HeldTensors, TensorFile
from compare.engine.tensors.description import ELEMENT_TYPES

Watch = Callable[[str, float, dict[str, int]], None]
LAYOUTS = ("same", "reshaped", "permuted", "unpadded", "first_rows")


class State(IntEnum):
    """What became of a pair's tensors."""

    NONE = 0  # no tensors, or neither side names a file
    COMPARED = 1
    MISSING = 2  # a file that is named, or needed beside the other side's, is not there
    BROKEN = 3  # a file cannot be read
    UNLIKE = 4  # the shapes have no order of elements in common
    EMPTY = 5  # no elements


@dataclass(frozen=True, slots=True)
class Fault:
    """A tensor file that could not be used: its name (hostile text), and why."""

    pair: int
    side: int
    file: str
    code: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Elements:
    """``row`` [pairs] says which of the m rows below is a pair's, -1 = none; ``state`` [pairs] is a State.

    ``norms`` [m, 2] are ‖left‖ and ‖right‖. Shares are of ``count``. ``bits`` are the significand bits of the type that ``ulps`` are steps
    of (0: none). ``shape`` [m, 2] is rows and columns. ``worst`` [m, WORST, 5] holds |difference|, row, column, left, right, NaN where
    there are fewer. Profiles are ragged: ``profile[profile_start[2·i]:profile_start[2·i + 1]]`` is that of the rows of row i, the next one
    that of its columns.
    """

    row: Int32
    state: UInt8
    faults: Sequence[Fault]
    count: Int64
    identical: Int64
    same_rounded: Bool
    norms: Float64
    cosine: Float64
    relative_l2: Float64
    typical_l2: Float64
    euclidean: Float64
    largest: Float64
    largest_relative: Float64
    within: Float64
    nan: Int64
    infinite: Int64
    misplaced: Int64
    ulps: Int64
    bits: UInt8
    layout: UInt8
    shape: Int64
    worst: Float64
    profile: Float32
    profile_start: Int64

    def __len__(self) -> int:
        return len(self.count)

    @property
    def measured(self) -> Bool:
        return self.row >= 0

    @property
    def equal(self) -> Bool:
        """[m]: the same bits in every position."""
        same: Bool = (self.identical == self.count) & (self.misplaced == 0)
        return same

    def median_ulps(self, row: int) -> float | None:
        """The distance within which half of the elements lie: the upper edge of its bin; inf beyond the last edge, None without steps."""
        counts = self.ulps[row]
        if not self.bits[row] or not counts.sum():
            return None
        place = int(np.argmax(2 * np.cumsum(counts) >= counts.sum()))
        return float(ULP_EDGES[place]) if place < len(ULP_EDGES) else float("inf")


@dataclass(slots=True)
class _Builder:
    metrics: list[Metrics] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def has_tensors(dumps: Sequence[Dump]) -> bool:
    """Whether both sides came with tensor files."""
    return all(len(dump.tensors) for dump in dumps)


def elements_of(
    pairs: Pairs, sides: Sides, nodes: Nodes, held: tuple[HeldTensors, HeldTensors], padding: Padding, watch: Watch
) -> Elements:
    """One pass over the tensors of every pair, in the order of the pairs. The same tensors in several pairs are read once.

    Never raises for what a file holds: such a pair has no row, and a fault says why. Lets through what ``watch`` raises.
    """
    row = np.full(len(pairs), -1, np.int32)
    state = np.full(len(pairs), State.NONE, np.uint8)
    builder = _Builder()
    known: dict[tuple[tuple[int, ...], ...], tuple[State, int]] = {}
    wanted = _candidates(pairs, sides.dumps)
    sizes = _sizes(pairs, sides.dumps)
    done, total = 0, max(int(sizes[wanted].sum()), 1)
    for pair in wanted.tolist():
        files = tuple(
            tuple(int(dump.slots.file[slot]) for slot in lists[pair]) for dump, lists in zip(sides.dumps, pairs.slots, strict=True)
        )
        call = int(nodes.call[pairs.node[pair]])
        key = (*files, (call,)) if padding.known else files
        if key not in known:
            begin = done

            def tell(elements: int, begin: int = begin, pair: int = pair) -> None:
                nonlocal done
                done = min(done + elements, begin + int(sizes[pair]))
                watch("measure", 0.1 + 0.7 * done / total, {"elements": done, "of": total})

            known[key] = _measure(builder, pair, files, pairs, sides, held, padding, call, tell)
            done = begin + int(sizes[pair])
        state[pair], row[pair] = known[key]
    return _table(builder, row, state)


def _candidates(pairs: Pairs, dumps: tuple[Dump, Dump]) -> Int64:
    """Pairs of tensors of which a side names a file. A part of a sum is compared only together with the others."""
    wanted = np.zeros(len(pairs), bool)
    tensors = np.ones(len(pairs), bool)
    for dump, lists in zip(dumps, pairs.slots, strict=True):
        first = lists.values[lists.start[:-1]]
        tensors &= dump.slots.leaf[first] == Leaf.TENSOR
        wanted |= dump.slots.file[first] != NO_FILE
    alone = (pairs.relation == Relation.SUM) & (pairs.slots[0].counts() == 1) & (pairs.slots[1].counts() == 1)
    return np.flatnonzero(wanted & tensors & ~alone)


def _sizes(pairs: Pairs, dumps: tuple[Dump, Dump]) -> Int64:
    lists = pairs.slots[0]
    return np.add.reduceat(dumps[0].slots.elements[lists.values], lists.start[:-1]) if len(pairs) else np.zeros(0, np.int64)


def _measure(
    builder: _Builder,
    pair: int,
    files: tuple[tuple[int, ...], ...],
    pairs: Pairs,
    sides: Sides,
    held: tuple[HeldTensors, HeldTensors],
    padding: Padding,
    call: int,
    tell: Callable[[int], None],
) -> tuple[State, int]:
    if any(file < 0 for side in files for file in side):
        return State.MISSING, -1
    ends: list[Side] = []
    types: list[str] = []
    for side, dump in enumerate(sides.dumps):
        groups: list[list[TensorFile]] = []
        last = (-1, -1)
        for slot, file in zip(pairs.slots[side][pair].tolist(), files[side], strict=True):
            name = dump.data_name(slot) or ""
            try:
                tensor = held[side].open(dump.tensors, file, name)
                _check_size(dump, slot, tensor, name)
            except DumpError as error:
                builder.faults.append(Fault(pair, side, name, error.code, error.params))
                return State.BROKEN, -1
            record = int(dump.slots.record[slot])
            at = int(sides.places[side].piece[record]), int(sides.places[side].rank[record])
            if at > last and groups:
                groups[-1].append(tensor)
            else:
                groups.append([tensor])
            last = at
        types.append(_type(dump, int(pairs.slots[side][pair][0])))
        rows = padding.rows(side, call)
        summed = pairs.relation[pair] == Relation.SUM and len(files[side]) > 1
        ends.append(Side(groups, rows, summed, ELEMENT_TYPES.get(types[-1]) if summed and types[-1] in ORDERED else None))
    if not all(tensor.description.size for end in ends for tensor in end.tensors):
        return State.EMPTY, -1
    layout = _layout(*ends)
    if layout is None:
        return State.UNLIKE, -1
    builder.metrics.append(compared(layout, (types[0], types[1]), tell))
    builder.names.append(layout.name)
    return State.COMPARED, len(builder.metrics) - 1


def _layout(left: Side, right: Side) -> Layout | None:
    if any(tensor.description.element.value.kind == "c" for end in (left, right) for tensor in end.tensors):
        return None
    return best(layouts(left, right))


def _check_size(dump: Dump, slot: int, tensor: TensorFile, name: str) -> None:
    """A file of another size than the dump says was written by another call."""
    expected = int(dump.slots.elements[slot])
    if expected and tensor.description.size != expected:
        raise DumpError("tensor_other_size", name, elements=tensor.description.size, expected=expected)


def _type(dump: Dump, slot: int) -> str:
    """The name of the type that the tensor had: where a dumper writes bfloat16 as float32, the dump still says bfloat16."""
    index = int(dump.slots.dtype[slot])
    return dump.dtypes[index].rpartition(".")[2].lower() if index >= 0 else ""


def _table(builder: _Builder, row: Int32, state: UInt8) -> Elements:
    metrics = builder.metrics
    count = len(metrics)

    def floats(value: Callable[[Metrics], float]) -> Float64:
        return np.array([value(m) for m in metrics], np.float64)

    def whole(value: Callable[[Metrics], int]) -> Int64:
        return np.array([value(m) for m in metrics], np.int64)

    worst = np.full((count, WORST, 5), np.nan)
    profiles: list[Float64] = []
    for place, one in enumerate(metrics):
        if one.worst:
            worst[place, : len(one.worst)] = one.worst
        profiles += [one.profile(one.along_rows, one.columns), one.profile(one.along_columns, one.rows)]
    return Elements(
        row=row,
        state=state,
        faults=builder.faults,
        count=whole(lambda m: m.count),
        identical=whole(lambda m: m.identical),
        same_rounded=np.array(
            [m.misplaced == 0 and (m.ulps[0] == m.count if m.coarser is not None else m.same_value == m.count) for m in metrics], np.bool_
        ),
        norms=np.sqrt(np.array([(m.left_squares, m.right_squares) for m in metrics], np.float64).reshape(count, 2)),
        cosine=floats(lambda m: m.cosine),
        relative_l2=floats(lambda m: m.relative_l2),
        typical_l2=floats(lambda m: m.typical_l2),
        euclidean=floats(lambda m: m.euclidean),
        largest=floats(lambda m: m.largest),
        largest_relative=floats(lambda m: m.largest_relative),
        within=np.array([[m.share(within) for within in m.within] for m in metrics], np.float64).reshape(count, 2),
        nan=np.array([m.nan for m in metrics], np.int64).reshape(count, 2),
        infinite=np.array([m.infinite for m in metrics], np.int64).reshape(count, 2),
        misplaced=whole(lambda m: m.misplaced),
        ulps=np.array([m.ulps for m in metrics], np.int64).reshape(count, ULP_BINS),
        bits=np.array([SIGNIFICAND[m.coarser.name] if m.coarser is not None else 0 for m in metrics], np.uint8),
        layout=np.array([LAYOUTS.index(name) for name in builder.names], np.uint8),
        shape=np.array([(m.rows, m.columns) for m in metrics], np.int64).reshape(count, 2),
        worst=worst,
        profile=np.concatenate(profiles).astype(np.float32) if profiles else np.zeros(0, np.float32),
        profile_start=np.cumsum([0, *map(len, profiles)], dtype=np.int64),
    )
