"""Brings the two ends of a pair into one order of elements, by their shapes alone.

One small rule for all of ``[1, T, H]``, ``[T, H]``, ``[S, B, H]``, ``[B, heads, T, D]``: dimensions of length 1 are dropped; where the
shapes then differ, the dimensions of the longer one are permuted such that neighbours multiply to those of the other. Several tensors are
laid side by side along the last dimension or one below the other along the first, whichever gives the size of the other end; a fused
tensor that is spread over ranks is cut into its parts first (rank 0 holds q₀k₀v₀). Rows that only one end has are left out (``padding``).
Where shapes allow more than one order, the numbers of the first rows decide between those, and no others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from compare.engine.measure.elements.ends import End, How, Piece
from compare.engine.measure.elements.padding import UNPADDED, Rows
from compare.engine.tensors.description import ElementType
from compare.engine.tensors.file import TensorFile

Shape = tuple[int, ...]
MOST_PERMUTED = 5  # dimensions that are permuted: 120 ways
CLEARLY = 0.5  # another order than the plain one must halve the error to be taken
WIDEST_QUERY = 32  # heads of a query for one of key and value that are tried where a fused tensor is cut
Order = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Fit:
    """How the dimensions of both ends become rows and columns: see ``Piece``."""

    left: Order
    left_inner: int
    right: Order
    right_inner: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Two ends of one size. ``name`` says what was done: same, reshaped, permuted, unpadded, first_rows."""

    left: End
    right: End
    name: str


@dataclass(frozen=True, slots=True)
class Side:
    """The tensors of one end: a group for each part of a fused tensor, in it one tensor a rank. ``rows`` are those that the other
    end has too, of a tensor whose leading dimensions have more; None: all. ``summed``: the tensors are added up, and
    ``rounded`` is the type that their sum had where it was made (None: that of the files)."""

    groups: Sequence[Sequence[TensorFile]]
    rows: Rows | None = None
    summed: bool = False
    rounded: ElementType | None = None

    @property
    def tensors(self) -> list[TensorFile]:
        return [tensor for group in self.groups for tensor in group]


def squeezed(shape: Sequence[int]) -> Shape:
    return tuple(length for length in shape if length != 1)


def fits(left: Shape, right: Shape) -> Iterator[Fit]:
    """The ways to see two shapes without 1s as one matrix, the plain one first. None where they hold other numbers of elements."""
    if math.prod(left) != math.prod(right):
        return
    if left == right:
        inner = min(1, len(left))
        yield Fit(None, inner, None, inner)
        return
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    found = False
    for order in permutations(range(len(longer))) if len(longer) <= MOST_PERMUTED else [tuple(range(len(longer)))]:
        merged = _merged(tuple(longer[place] for place in order), shorter)
        if merged is None:
            continue
        found = True
        plain = None if order == tuple(range(len(longer))) else order
        last = min(1, len(shorter))
        yield Fit(plain, merged, None, last) if longer is left else Fit(None, last, plain, merged)
    if not found:  # [T·heads, D] against [T, heads·D]
        yield Fit(None, len(left), None, len(right))


def _merged(longer: Shape, shorter: Shape) -> int | None:
    """How many trailing dimensions of ``longer`` make up the last one of ``shorter``, where neighbours multiply to its dimensions."""
    at = len(longer)
    inner: int | None = None
    for length in reversed(shorter):
        begin, product = at, 1
        while at and product < length:
            at -= 1
            product *= longer[at]
        if product != length:
            return None
        inner = begin - at if inner is None else inner
    return inner if at == 0 else None


def layouts(left: Side, right: Side) -> Iterator[Layout]:
    """All that the shapes allow, the plain one first."""
    sides = (left, right)
    if left.summed or right.summed:
        yield from _summed(*sides)
        return
    sizes = [sum(tensor.description.size for tensor in side.tensors) for side in sides]
    if sizes[0] != sizes[1]:
        yield from _unpadded(*sides)
        return
    if all(len(side.tensors) == 1 for side in sides):
        yield from _single(*sides)
        return
    for axis in (-1, 0):
        wholes = [_wholes(side, sides[1 - place], axis) for place, side in enumerate(sides)]
        for a in wholes[0]:
            for b in wholes[1]:
                for fit in fits(a.shape, b.shape):
                    ends = a.make(fit.left, fit.left_inner), b.make(fit.right, fit.right_inner)
                    if ends[0] is not None and ends[1] is not None and ends[0].shape == ends[1].shape:
                        yield Layout(ends[0], ends[1], _name(fit, a.shape, b.shape))


def best(found: Iterator[Layout]) -> Layout | None:
    """The plain layout, or the one whose first rows are clearly closer. None where there is none."""
    candidates = list(found)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    errors = [_error(layout) for layout in candidates]
    least = int(np.argmin(errors))
    return candidates[least] if errors[least] < CLEARLY * errors[0] else candidates[0]


def _error(layout: Layout) -> float:
    a, b = layout.left.sample(), layout.right.sample()
    with np.errstate(all="ignore"):
        difference = np.nan_to_num(a - b, nan=0.0, posinf=0.0, neginf=0.0)
        return float(np.sqrt((difference**2).sum()))


def _name(fit: Fit, left: Shape, right: Shape) -> str:
    if fit.left is not None or fit.right is not None:
        return "permuted"
    return "same" if left == right else "reshaped"


def _summed(left: Side, right: Side) -> Iterator[Layout]:
    """The addends of an end have one shape; the other end is a sum too, or one tensor."""
    ends = (left, right)
    shapes = [{squeezed(tensor.description.shape) for tensor in side.tensors} for side in ends]
    if any(len(found) != 1 for found in shapes) or any(len(side.tensors) > 1 and not side.summed for side in ends):
        return
    a, b = shapes[0].pop(), shapes[1].pop()
    for fit in fits(a, b):
        made = [
            End([Piece(tensor, order, inner) for tensor in side.tensors], How.SUM, side.rounded)
            for side, order, inner in ((left, fit.left, fit.left_inner), (right, fit.right, fit.right_inner))
        ]
        yield Layout(made[0], made[1], _name(fit, a, b))


def _single(left: Side, right: Side) -> Iterator[Layout]:
    a, b = left.tensors[0], right.tensors[0]
    shapes = squeezed(a.description.shape), squeezed(b.description.shape)
    for fit in fits(*shapes):
        yield Layout(End([Piece(a, fit.left, fit.left_inner)]), End([Piece(b, fit.right, fit.right_inner)]), _name(fit, *shapes))


def _unpadded(left: Side, right: Side) -> Iterator[Layout]:
    """Where one end holds padding: its rows that hold tokens against the rows of the other."""
    for place, (padded, other) in enumerate(((left, right), (right, left))):
        end = unpadded_end(padded)
        plain = None if end is None else _with_columns(other.tensors, end.columns)
        if end is not None and plain is not None and plain.shape == end.shape:
            yield Layout(*((end, plain) if place == 0 else (plain, end)), padded.rows.layout if padded.rows else UNPADDED)


def unpadded_end(side: Side) -> End | None:
    """The rows of a padded tensor that hold tokens; of several, side by side."""
    pieces = [_unpadded_piece(side, tensor) for tensor in side.tensors]
    found = [piece for piece in pieces if piece is not None]
    return End(found) if found and len(found) == len(pieces) else None


def _unpadded_piece(side: Side, tensor: TensorFile) -> Piece | None:
    if side.rows is None:
        return None
    shape, rows = squeezed(tensor.description.shape), 1
    for place, length in enumerate(shape):
        rows *= length
        if rows == side.rows.of:
            return Piece(tensor, None, len(shape) - place - 1, rows=side.rows.chosen)
    return None


def _with_columns(tensors: Sequence[TensorFile], columns: int) -> End | None:
    """A tensor as a matrix of so many columns; several as they lie side by side."""
    if len(tensors) > 1:
        shapes = [squeezed(tensor.description.shape) for tensor in tensors]
        fitting = all(len(shape) == 2 for shape in shapes) and len({shape[0] for shape in shapes}) == 1
        return End([Piece(tensor, None, 1) for tensor in tensors]) if fitting else None
    tensor = tensors[0]
    shape = squeezed(tensor.description.shape)
    product, inner = 1, 0
    while product < columns and inner < len(shape):
        inner += 1
        product *= shape[-inner]
    return End([Piece(tensor, None, inner)]) if product == columns else None


@dataclass(frozen=True, slots=True)
class _Whole:
    """Several tensors as one: its shape, and how to make an end of it (None where an order does not allow it)."""

    shape: Shape
    make: Callable[[Order, int], End | None]


def _wholes(side: Side, other: Side, axis: int) -> list[_Whole]:
    """A side's tensors joined along an axis (−1 or 0): as they come, and with fused tensors cut into their parts."""
    tensors = side.tensors
    shapes = [squeezed(tensor.description.shape) for tensor in tensors]
    if len(tensors) == 1:
        return [_Whole(shapes[0], lambda order, inner: End([Piece(tensors[0], order, inner)]))]
    rank = len(shapes[0])
    if not rank or any(len(shape) != rank for shape in shapes):
        return []
    axis %= rank
    if any(shape[:axis] + shape[axis + 1 :] != shapes[0][:axis] + shapes[0][axis + 1 :] for shape in shapes):
        return []
    whole = (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])
    found = [_Whole(whole, lambda order, inner: _joined([Piece(t, None, 1) for t in tensors], axis, rank, order, inner))]
    if len(side.groups) == 1:
        for widths in _cuts(other, axis, shapes[0][axis], len(tensors)):
            pieces = _cut(tensors, shapes, axis, widths)
            found.append(_Whole(whole, lambda order, inner, pieces=pieces: _joined(pieces, axis, rank, order, inner)))  # type: ignore[misc]
    return found


def _joined(pieces: Sequence[Piece], axis: int, rank: int, order: Order, inner: int) -> End | None:
    if axis == rank - 1:
        if inner != 1 or (order is not None and order[-1] != rank - 1):
            return None
        return End([replace(piece, order=order, inner=1) for piece in pieces], How.BESIDE)
    if order is not None or inner >= rank:
        return None
    return End([replace(piece, inner=inner) for piece in pieces], How.BELOW)


def _cuts(other: Side, axis: int, own: int, ranks: int) -> list[list[int]]:
    """Into how wide parts each rank's share of a fused tensor may be cut: as the other side's parts are, else as decoders have them."""
    if len(other.groups) > 1:
        widths = [sum(squeezed(tensor.description.shape)[axis] for tensor in group) for group in other.groups]
        shares = [width // ranks for width in widths]
        return [shares] if sum(shares) == own else []
    if len(other.tensors) == ranks:
        return []  # spread alike on both sides
    ratios = [(1, 1), *((queries, 1, 1) for queries in range(1, WIDEST_QUERY + 1))]
    return [[own // sum(ratio) * part for part in ratio] for ratio in ratios if own % sum(ratio) == 0]


def _cut(tensors: Sequence[TensorFile], shapes: Sequence[Shape], axis: int, widths: Sequence[int]) -> list[Piece]:
    pieces, begin = [], 0
    for width in widths:
        for tensor, shape in zip(tensors, shapes, strict=True):
            if axis == len(shape) - 1:
                pieces.append(Piece(tensor, None, 1, columns=(begin, begin + width)))
            else:
                scale = math.prod(shape[1:-1])
                pieces.append(Piece(tensor, None, 1, row_range=(begin * scale, (begin + width) * scale)))
        begin += width
    return pieces
