"""One pass over two tensors in the same order: how far they are apart, and where.

Blocks come as two-dimensional arrays of the same shape. Everything is float64 and in the memory of a block; results of blocks add up
exactly to those of the whole (but for the rounding of float64 sums). Relative errors of elements are over the right one, as in msprobe's
columns (where it is the reference); the relative L2 error is over the left tensor, whose place is usually that of training.

NaN and Inf. Where both sides hold the same one (NaN and NaN, Inf of one sign), the position counts as equal and both are taken as 0, as
msprobe does. Anywhere else a NaN or Inf on either side makes the position *misplaced*: it is in no metric but counted, and such a pair is
never equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from compare.engine.measure.elements.scratch import Scratch
from compare.engine.model import Bool, Float64, Int64
from compare.engine.tensors.description import ElementType
from compare.engine.tensors.file import Array

BLOCK = 1 << 15
"""Elements of a block: its float64 copies stay in the processor's cache."""

WIDEST = 8192
"""Columns of a block. Longer rows are taken in pieces: the dot product of a longer one would wake threads up for it."""

POINTS = 512
"""Points of a profile along rows or columns at most: each is the mean over as many rows."""

WORST = 8

# The distance in units in the last place: how many elements lie at most this far apart, and further than the edge before.
ULP_EDGES = (0, 1, 2, 4, 8, 16, 64, 256, 1024, 4096, 16384)
ULP_BINS = len(ULP_EDGES) + 1

NARROW = np.dtype(np.uint16)
THOUSANDTH, FIVE_THOUSANDTHS = 1e-3, 5e-3
ZERO_REFERENCE = float(np.finfo(np.float32).eps)
"""What msprobe adds to both sides where the reference is 0, so that a relative error there is large and not infinite."""

# Types whose bits, read as sign and magnitude, are in the order of their values: the signed integer as wide as them.
ORDERED = {
    "float64": np.int64,
    "float32": np.int32,
    "float16": np.int16,
    "bfloat16": np.int16,
    "float8_e4m3fn": np.int8,
    "float8_e5m2": np.int8,
}


LONGEST_WHOLE = 1 << 16
"""Rows or columns whose sums are held one by one until the end; of more, only those of each point."""


@dataclass(slots=True)
class Profile:
    """Σ difference² along one axis of ``length``, in at most POINTS bins of ``width`` each (the last one may be shorter)."""

    length: int
    _sums: Float64 = field(init=False)

    def __post_init__(self) -> None:
        self._sums = np.zeros(self.length if self.length <= LONGEST_WHOLE else self._bins)

    @property
    def width(self) -> int:
        return max(1, -(-self.length // POINTS))

    @property
    def _bins(self) -> int:
        return -(-self.length // self.width)

    def add(self, start: int, squares: Float64) -> None:
        """``squares``: one a row (or column) from ``start`` on."""
        if self.length <= LONGEST_WHOLE:
            self._sums[start : start + len(squares)] += squares
            return
        first = start // self.width
        found = np.bincount(np.arange(start, start + len(squares)) // self.width - first, weights=squares)
        self._sums[first : first + len(found)] += found

    def squares(self) -> Float64:
        """[bins]."""
        if self.length > LONGEST_WHOLE or not self.length:
            return self._sums
        return np.asarray(np.add.reduceat(self._sums, np.arange(0, self.length, self.width)), np.float64)

    def counts(self) -> Int64:
        """Rows (or columns) of each bin."""
        full = np.full(self._bins, self.width, np.int64)
        if len(full):
            full[-1] = self.length - self.width * (len(full) - 1)
        return full


@dataclass(slots=True)
class Metrics:
    """The sums of one pass over [rows, columns] elements.

    ``identical`` counts elements of the same bits (of the same value, where the two sides have other dtypes); ``within`` those whose
    relative error is below 1e-3 and 5e-3. ``nan`` and ``infinite`` count each side. ``ulps`` [ULP_BINS] counts distances in units of the
    coarser of the two types, None where they have none (integers, complex). ``worst`` lists (|difference|, row, column, left, right),
    largest first.
    """

    rows: int
    columns: int
    coarser: ElementType | None
    same_type: bool
    count: int = 0
    identical: int = 0
    same_value: int = 0
    left_squares: float = 0.0
    right_squares: float = 0.0
    products: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    largest_relative: float = 0.0
    within: list[int] = field(default_factory=lambda: [0, 0])
    nan: list[int] = field(default_factory=lambda: [0, 0])
    infinite: list[int] = field(default_factory=lambda: [0, 0])
    misplaced: int = 0
    ulps: Int64 = field(default_factory=lambda: np.zeros(ULP_BINS, np.int64))
    worst: list[tuple[float, int, int, float, float]] = field(default_factory=list)
    along_rows: Profile = field(init=False)
    along_columns: Profile = field(init=False)
    scratch: Scratch = field(default_factory=Scratch)

    def __post_init__(self) -> None:
        self.along_rows, self.along_columns = Profile(self.rows), Profile(self.columns)

    # ---- what the sums say -------------------------------------------------------------------------------------------------------------

    @property
    def cosine(self) -> float:
        """1 where both are 0, NaN where one is or there is no element."""
        if self.count == 0:
            return float("nan")
        if self.left_squares == 0 and self.right_squares == 0:
            return 1.0
        scale = np.sqrt(self.left_squares) * np.sqrt(self.right_squares)
        return float(self.products / scale) if scale > 0 else float("nan")

    @property
    def relative_l2(self) -> float:
        """‖left − right‖ / ‖left‖; 0 where they agree, inf where only the left side is 0."""
        if self.squares == 0:
            return 0.0
        return float(np.sqrt(self.squares) / np.sqrt(self.left_squares)) if self.left_squares > 0 else float("inf")

    @property
    def typical_l2(self) -> float:
        """The relative L2 error of the middle row (or the middle bin of rows), over the RMS of the whole left tensor: what most tokens
        show, whatever few of them do."""
        rows = self.profile(self.along_rows, self.columns)
        return float(np.median(rows)) if len(rows) else 0.0

    @property
    def euclidean(self) -> float:
        return float(np.sqrt(self.squares))

    def share(self, count: int) -> float:
        return count / self.count if self.count else float("nan")

    def profile(self, along: Profile, across: int) -> Float64:
        """RMS of the difference in each bin over the RMS of the whole left tensor: where the difference sits. 0 where that is 0."""
        squares, reference = along.squares(), self.left_squares / max(self.count, 1)
        if reference <= 0:
            return np.zeros(len(squares))
        return np.sqrt(squares / (along.counts() * max(across, 1)) / reference)

    # ---- the pass ----------------------------------------------------------------------------------------------------------------------

    def add(self, left: Array, right: Array, row: int, column: int) -> None:
        """One block: two C-contiguous arrays [r, c] of value dtypes (``ElementType.value``), at (row, column) of the whole."""
        count, shape = left.size, left.shape
        self.count += count
        bits = _bits(left), _bits(right)
        same = -1
        if self.same_type:
            same = int(np.count_nonzero(np.equal(bits[0], bits[1], out=self.scratch.take("same", bits[0].shape, np.bool_))))
        if same == count:
            self._equal_block(left)
            return
        a, b, size = (self.scratch.take(name, shape) for name in ("a", "b", "size"))
        np.copyto(a, left, casting="unsafe")
        np.copyto(b, right, casting="unsafe")
        left_squares, right_squares = _dot(a, a), _dot(b, b)
        usable = None
        if not np.isfinite(left_squares + right_squares):
            usable = self._without_nonfinite(a, b)
            left_squares, right_squares = _dot(a, a), _dot(b, b)
        self.left_squares += left_squares
        self.right_squares += right_squares
        self.products += _dot(a, b)
        np.subtract(a, b, out=size)
        mask = np.equal(size, 0.0, out=self.scratch.take("mask", shape, np.bool_))
        equal = int(np.count_nonzero(mask))
        misplaced = 0 if usable is None else count - int(np.count_nonzero(usable))
        self.same_value += equal - misplaced
        self.identical += same if self.same_type else equal - misplaced
        np.abs(size, out=size)
        self._relative(size, a, b, misplaced)
        self._worst(size, a, b, row, column)
        if self.coarser is not None:
            self._distances(left, right, a, b, usable)
        np.multiply(size, size, out=size)
        by_row = size.sum(axis=1)
        self.squares += float(by_row.sum())
        self.along_rows.add(row, by_row)
        self.along_columns.add(column, size.sum(axis=0))

    def _equal_block(self, left: Array) -> None:
        count = left.size
        wide = self.scratch.take("a", left.shape)
        np.copyto(wide, left, casting="unsafe")
        squares = _dot(wide, wide)
        if not np.isfinite(squares):
            nan, infinite = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
            self.nan = [known + nan for known in self.nan]
            self.infinite = [known + infinite for known in self.infinite]
            wide = np.where(np.isfinite(wide), wide, 0.0)
            squares = _dot(wide, wide)
        self.left_squares += squares
        self.right_squares += squares
        self.products += squares
        self.identical += count
        self.same_value += count
        self.within = [known + count for known in self.within]
        if self.coarser is not None:
            self.ulps[0] += count

    def _without_nonfinite(self, a: Float64, b: Float64) -> Bool | None:
        """Puts 0 where either side holds NaN or Inf, and counts them; which positions remain usable."""
        fine = np.isfinite(a), np.isfinite(b)
        if fine[0].all() and fine[1].all():
            return None  # numbers whose squares leave float64
        for side, values in enumerate((a, b)):
            self.nan[side] += int(np.isnan(values).sum())
            self.infinite[side] += int(np.isinf(values).sum())
        alike = (np.isnan(a) & np.isnan(b)) | (a == b)
        usable: Bool = (fine[0] & fine[1]) | alike
        self.misplaced += int(usable.size - np.count_nonzero(usable))
        either = ~(fine[0] & fine[1])
        a[either] = 0.0
        b[either] = 0.0
        return usable

    def _relative(self, size: Float64, a: Float64, b: Float64, misplaced: int) -> None:
        relative = self.scratch.take("relative", size.shape)
        np.abs(b, out=relative)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            np.divide(size, relative, out=relative)
        largest = float(relative.max())
        if not np.isfinite(largest):
            zero = b == 0
            relative[zero] = np.abs(((a[zero] + ZERO_REFERENCE) - ZERO_REFERENCE) / ZERO_REFERENCE)
            largest = float(relative.max())
        self.largest_relative = max(self.largest_relative, largest)
        mask = self.scratch.take("mask", size.shape, np.bool_)
        for place, limit in enumerate((THOUSANDTH, FIVE_THOUSANDTHS)):
            self.within[place] += int(np.count_nonzero(np.less(relative, limit, out=mask))) - misplaced

    def _worst(self, size: Float64, a: Float64, b: Float64, row: int, column: int) -> None:
        largest = float(size.max())
        self.largest = max(self.largest, largest)
        if largest == 0 or (len(self.worst) == WORST and largest <= self.worst[-1][0]):
            return
        flat = size.reshape(-1)
        places = np.argpartition(flat, -WORST)[-WORST:] if flat.size > WORST else np.arange(flat.size)
        width = size.shape[1]
        left, right = a.reshape(-1), b.reshape(-1)
        for place in places.tolist():
            if flat[place] > 0:
                self.worst.append(
                    (float(flat[place]), row + place // width, column + place % width, float(left[place]), float(right[place]))
                )
        self.worst.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
        del self.worst[WORST:]

    def _distances(self, left: Array, right: Array, a: Float64, b: Float64, usable: Bool | None) -> None:
        coarser = self.coarser
        if coarser is None:
            return
        ends = []
        for name, values, wide in (("left", left, a), ("right", right, b)):
            ordered = values if values.dtype == coarser.value else _rounded(wide, coarser.value)
            ends.append(self._in_order(name, ordered.view(ORDERED[coarser.name])))
        low: Array = np.minimum(ends[0], ends[1], out=self.scratch.take("low", left.shape, ends[0].dtype))
        high: Array = np.maximum(ends[0], ends[1], out=ends[0])
        unsigned = np.dtype(f"u{high.dtype.itemsize}")
        apart = np.subtract(high, low, out=high).view(unsigned).reshape(-1)
        if usable is not None:
            finite = usable.reshape(-1) & np.isfinite(left.astype(np.float64)).reshape(-1)
            self.ulps[0] += int(np.count_nonzero(usable) - np.count_nonzero(finite))  # the same NaN or Inf on both sides
            apart = apart[finite]
        self._count_distances(apart)

    def _in_order(self, name: str, bits: Array) -> Array:
        """Sign and magnitude as a two's complement integer: neighbours in value are neighbours in number, and −0 is 0."""
        sign = np.right_shift(bits, 8 * bits.dtype.itemsize - 1, out=self.scratch.take("sign", bits.shape, bits.dtype))  # 0 or −1
        magnitude = np.bitwise_and(bits, np.iinfo(bits.dtype).max, out=self.scratch.take(name, bits.shape, bits.dtype))
        magnitude ^= sign
        magnitude -= sign
        return magnitude

    def _count_distances(self, apart: Array) -> None:
        if apart.dtype.itemsize > NARROW.itemsize:  # all beyond the last edge are alike, and narrow integers are compared faster
            np.minimum(apart, np.iinfo(NARROW).max, out=apart)
            narrow = self.scratch.take("narrow", apart.shape, NARROW)
            np.copyto(narrow, apart, casting="unsafe")
            apart = narrow
        within, top = 0, np.iinfo(apart.dtype).max
        mask = self.scratch.take("mask", apart.shape, np.bool_)
        for place, edge in enumerate(ULP_EDGES):
            if edge >= top or within == apart.size:
                self.ulps[place] += apart.size - within
                return
            reached = int(np.count_nonzero(np.less_equal(apart, edge, out=mask)))
            self.ulps[place] += reached - within
            within = reached
        self.ulps[-1] += apart.size - within


def _bits(values: Array) -> Array:
    """The bytes of each element as an unsigned integer (of complex numbers, of each half)."""
    width = values.dtype.itemsize if values.dtype.kind != "c" else values.dtype.itemsize // 2
    bits: Array = values.view(f"u{width}") if width in (1, 2, 4, 8) else values
    return bits


def _rounded(values: Float64, dtype: np.dtype[np.generic]) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == np.dtype(ml_dtypes.bfloat16):
            return values.astype(np.float32).astype(dtype)
        return values.astype(dtype)


def _dot(a: Float64, b: Float64) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.vecdot(a, b).sum())
