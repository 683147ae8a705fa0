"""What a comparison of key data rests on: tables that were not compared, or not where they stand, are counted and said."""

from __future__ import annotations

from collections.abc import Iterator

from compare.engine.diagnose.findings import Finding
from compare.engine.diagnose.words import Text, both, counted, ranges
from compare.engine.keydata.key_comparison import KeyDataComparison
from compare.engine.keydata.table_pair import LEFT_ONLY, NOT_COMPARABLE, NOT_READ, PADDING, RIGHT_ONLY

MOST_NAMES = 8
NO_FOLDER = -1  # the number of a place without a folder for it
SIDES = ((LEFT_ONLY, "left", "左侧"), (RIGHT_ONLY, "right", "右侧"))


def coverage(comparison: KeyDataComparison) -> list[Finding]:
    return [
        *_shifted(comparison),
        *_reordered(comparison),
        *_one_sided(comparison),
        *_shapes(comparison),
        *_not_read(comparison),
        *_not_comparable(comparison),
        *_padding(comparison),
    ]


def compared_tables(comparison: KeyDataComparison) -> int:
    return sum(pair.compared for key in comparison.keys for pair in key.pairs)


def beside(comparison: KeyDataComparison) -> Text | None:
    """What a headline must not leave out: ``32 tables only on the left (kl_loss), 1 not compared``; None where there is nothing of it."""
    pairs = [pair for key in comparison.keys for pair in key.pairs]
    found: list[Text] = []
    for side, (state, name, name_zh) in enumerate(SIDES):
        count = sum(pair.state == state for pair in pairs)
        if count:
            inside = _named(comparison, side, keys=True)
            found.append(both(f"{counted(count, 'table')} only on the {name}{inside['en']}", f"仅{name_zh}有 {count} 个表{inside['zh']}"))
    missed = sum(pair.state in (NOT_READ, NOT_COMPARABLE) for pair in pairs)
    if missed:
        found.append(both(f"{counted(missed, 'table')} not compared", f"{missed} 个表未比较"))
    padded = sum(pair.state == PADDING for pair in pairs)
    if padded:
        found.append(both(f"only padding differs in {counted(padded, 'table')}", f"{padded} 个表仅填充不同"))
    return both(", ".join(text["en"] for text in found), "，".join(text["zh"] for text in found)) if found else None


def _named(comparison: KeyDataComparison, side: int, *, keys: bool = False) -> Text:
    """Which steps and ranks, and ``keys`` besides, a side has alone; in brackets."""
    alone: list[tuple[str, int, int]] = []
    met: list[set[str | int]] = [set(), set(), set()]
    for key in comparison.keys:
        for pair in key.pairs:
            place = (pair.place, pair.right_place)[side]
            if place is None or pair.rows[side] < 0:
                continue
            where: tuple[str, int, int] = (key.name, place[0], place[1])
            if pair.state == SIDES[side][0]:
                alone.append(where)
            else:
                for at in range(3):
                    met[at].add(where[at])
    found: list[Text] = []
    for at, word, word_zh in ((1, "step", "第 {} 步"), (2, "rank", "rank {}")):
        whole = sorted({where[at] for where in alone if isinstance(where[at], int) and where[at] not in met[at]} - {NO_FOLDER})
        if whole:
            alone = [where for where in alone if where[at] not in whole]
            shown = ranges([int(number) for number in whole])
            found.append(both(f"{word if len(whole) == 1 else word + 's'} {', '.join(shown)}", word_zh.format("、".join(shown))))
    names = list(dict.fromkeys(where[0] for where in alone)) if keys else []
    found += [both(name, name) for name in names[:MOST_NAMES]]
    if not found:
        return both("", "")
    more = both(" …", " 等") if len(names) > MOST_NAMES else both("", "")
    return both(f" ({', '.join(text['en'] for text in found)}{more['en']})", f"（{'、'.join(text['zh'] for text in found)}{more['zh']}）")


def _shifted(comparison: KeyDataComparison) -> Iterator[Finding]:
    shift = comparison.shift
    by = f"{'+' if shift > 0 else '−'} {abs(shift)}"
    if shift:
        yield Finding(
            "key_data_ranks_shifted",
            "info",
            both(
                f"Ranks are counted from elsewhere on the right: rank r of the left stands against rank r {by}",
                f"右侧 rank 的起点不同：左侧 rank r 对应右侧 rank r {by}",
            ),
            evidence={"shift": shift},
        )


def _reordered(comparison: KeyDataComparison) -> Iterator[Finding]:
    steps = sorted(comparison.alignment.reordered)
    if not steps:
        return
    shown = ", ".join(map(str, steps[:MOST_NAMES])) + (" …" if len(steps) > MOST_NAMES else "")
    moved = len(comparison.alignment.right_of)
    by_sequence = any(pair.note == "by_sequence" for key in comparison.keys for pair in key.pairs)
    rest = (
        both("; tables per token were compared line by line in that order", "；逐词元的表也按此逐行比较") if by_sequence else both("", "")
    )
    yield Finding(
        "prompts_reordered",
        "warning",
        both(
            f"The sequences come in another order on the right (step {shown}): {moved} were paired by their content{rest['en']}",
            f"右侧序列的顺序不同（第 {shown.replace(', ', '、')} 步）：{moved} 条按内容配对{rest['zh']}",
        ),
        evidence={"steps": steps, "sequences": moved},
    )


def _one_sided(comparison: KeyDataComparison) -> Iterator[Finding]:
    for at, (state, side, side_zh) in enumerate(SIDES):
        counts = _counts(comparison, state)
        if counts:
            inside = _named(comparison, at)
            yield Finding(
                "key_data_one_sided",
                "warning",
                both(
                    f"Tables on the {side} side only{inside['en']}: {_listed(counts)}",
                    f"仅{side_zh}有的表{inside['zh']}：{_listed(counts, '、')}",
                ),
                evidence={"side": side, "tables": counts},
            )


def _shapes(comparison: KeyDataComparison) -> Iterator[Finding]:
    left, right = comparison.sides
    if left is None or right is None:
        return
    counts: dict[str, int] = {}
    for key in comparison.keys:
        count = sum(not pair.lines and left.shape(pair.rows[0]) != right.shape(pair.rows[1]) for pair in key.differing)
        if count:
            counts[key.name] = count
    if counts:
        yield Finding(
            "key_data_shapes",
            "warning",
            both(
                f"Tables of different shapes: {_listed(counts)}. Their numbers are of the part both have; they count as differing",
                f"形状不同的表：{_listed(counts, '、')}。其数值只针对共有部分，这些表一律视为不同",
            ),
            evidence={"tables": counts},
        )


def _not_read(comparison: KeyDataComparison) -> Iterator[Finding]:
    counts = _counts(comparison, NOT_READ)
    if counts:
        yield Finding(
            "key_data_not_read",
            "error",
            both(f"Tables that could not be read on a side: {_listed(counts)}", f"有一侧无法读取的表：{_listed(counts, '、')}"),
            evidence={"tables": counts},
        )


def _not_comparable(comparison: KeyDataComparison) -> Iterator[Finding]:
    counts = _counts(comparison, NOT_COMPARABLE)
    if counts:
        yield Finding(
            "key_data_other_batches",
            "info",
            both(
                f"Numbers of micro-batches that are made up of other sequences on the other side are not comparable: {_listed(counts)}",
                f"两侧 micro batch 由不同序列组成，其数值不可比：{_listed(counts, '、')}",
            ),
            evidence={"tables": counts},
        )


def _padding(comparison: KeyDataComparison) -> Iterator[Finding]:
    counts = _counts(comparison, PADDING)
    if counts:
        yield Finding(
            "key_data_padding",
            "info",
            both(
                f"Tables that differ only beyond the end of the responses, in padding: {_listed(counts)}",
                f"仅在回复结束之后的填充位置不同的表：{_listed(counts, '、')}",
            ),
            evidence={"tables": counts},
        )


def _counts(comparison: KeyDataComparison, state: str) -> dict[str, int]:
    return {key.name: count for key in comparison.keys if (count := key.counts.get(state, 0))}


def _listed(counts: dict[str, int], between: str = ", ") -> str:
    return between.join(f"{name} ({count})" for name, count in counts.items())
