"""How far apart two tables are, in words: by how much where that is a size, else what sets them apart."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compare.engine.diagnose.words import Text, both, number
from compare.engine.keydata.alignment import Tables
from compare.engine.keydata.numbers import Numbers
from compare.engine.keydata.table_pair import TablePair


def size_words(pair: TablePair, kind: str, sides: tuple[Tables | None, Tables | None]) -> Text | None:
    """``at most 0.5 apart, NaN on one side at 1 place``; None where no numbers of both sides were compared. ``kind``: of the key."""
    found = list(_pieces(pair, kind, sides))
    return both(", ".join(piece["en"] for piece in found), "，".join(piece["zh"] for piece in found)) if found else None


def _pieces(pair: TablePair, kind: str, sides: tuple[Tables | None, Tables | None]) -> Iterator[Text]:
    numbers = pair.masked or pair.numbers
    if numbers is None:
        return
    if kind == "tokens":  # ids are names: how far apart they are says nothing
        yield from _tokens(numbers)
    else:
        yield from _distance(numbers)
    if pair.lines:
        if numbers.same == numbers.compared:
            yield both("sequences of other lengths", "序列长度不同")
    elif pair.masked is None:  # else the shapes differ by padding alone
        left, right = (None if side is None else side.shape(row) for side, row in zip(sides, pair.rows, strict=True))
        if left != right and left is not None and right is not None:
            yield both(f"shapes {list(left)} and {list(right)}", f"形状为 {list(left)} 与 {list(right)}")


def _tokens(numbers: Numbers) -> Iterator[Text]:
    count = numbers.compared - numbers.same
    if count:
        yield both(
            f"{count} of {numbers.compared} tokens {'differs' if count == 1 else 'differ'}", f"{numbers.compared} 个词元中有 {count} 个不同"
        )


def _distance(numbers: Numbers) -> Iterator[Text]:
    if math.isinf(numbers.max_abs):
        yield both("Inf where the other side holds something else", "一侧为 Inf，另一侧对应位置为其他值")
    elif numbers.max_abs > 0:
        yield both(f"at most {number(numbers.max_abs)} apart", f"最大相差 {number(numbers.max_abs)}")
    left, right, shared = numbers.nan
    alone = left + right - 2 * shared
    if alone:
        yield both(f"NaN on one side at {'1 place' if alone == 1 else f'{alone} places'}", f"{alone} 处仅一侧为 NaN")
