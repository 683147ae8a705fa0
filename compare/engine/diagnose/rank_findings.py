"""What the reader should know of tensors that are spread over ranks: copies that differ, parts of a sum, heads that ranks share; and of
ranks that stand against none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from compare.engine.align.pairs import MAX_AND_MIN, Relation
from compare.engine.diagnose.case import Case, module_name
from compare.engine.diagnose.finding import MOST_MODULES, Finding
from compare.engine.diagnose.words import Text, both, counted, short
from compare.engine.model import Bool

MOST_RANKS = 8


def rank_findings(cases: Sequence[Case]) -> Iterator[Finding]:
    alone = [case.ranks for case in cases if all(len(ranks) == 1 for ranks in case.ranks)]
    yield from ranks_shifted([(left[0], right[0]) for left, right in alone])
    yield from _copied(cases)
    yield from _copies_disagree(cases)
    yield from _partial_sums(cases)
    yield from _heads_shared(cases)


def _copied(cases: Sequence[Case]) -> Iterator[Finding]:
    """One rank against several that are no shards of it: that they count as copies of one another is said, not left to be guessed."""
    for side, (other, name, name_zh, other_zh) in enumerate((("right", "left", "左侧", "右侧"), ("left", "right", "右侧", "左侧"))):
        found = [case.ranks for case in cases if len(case.ranks[side]) > 1 and len(case.ranks[1 - side]) == 1 and not _sharded(case)]
        if found:
            ranks = found[0]
            several, one = _ranks(ranks[side]), _ranks(ranks[1 - side])
            yield Finding(
                "ranks_copied",
                "info",
                both(
                    f"{several['en'].capitalize()} of the {name} were taken for copies of one another: {one['en']} of the {other} was "
                    "compared with the first of them",
                    f"{name_zh} {several['zh']} 视为互为副本：{other_zh} {one['zh']} 与其中第一个比较",
                ),
                evidence={"side": name, "ranks": list(ranks[side]), "against": list(ranks[1 - side])},
            )


def _sharded(case: Case) -> bool:
    return bool(np.isin(case.pairs.relation, (Relation.SHARD_CONCAT, Relation.SUM)).any())


def _modules(cases: Sequence[Case], chosen: Callable[[Case], Bool]) -> list[str]:
    """The modules of the chosen pairs, each once, in the order of the pairs."""
    found: dict[str, None] = {}
    for case in cases:
        for pair in np.flatnonzero(chosen(case)).tolist():
            found[module_name(case, int(case.pairs.node[pair]))] = None
    return list(found)


def _copies_disagree(cases: Sequence[Case]) -> Iterator[Finding]:
    named = _modules(cases, lambda case: case.pairs.disagree)
    if named:
        yield Finding(
            "ranks_disagree",
            "warning",
            both(
                f"Ranks that should hold copies of one tensor hold others in {counted(len(named), 'module')}, first {short(named[0])}: "
                "a reduction is missing or went wrong",
                f"{len(named)} 个模块里本应相同的各卡数据并不相同，第一个是 {short(named[0])}：缺少归约或归约有误",
            ),
            named[:MOST_MODULES],
            {"count": len(named)},
        )


def _added(case: Case) -> Bool:
    """Sums whose parts were added up and compared, element by element."""
    tensors = case.differences.tensors
    return np.zeros(len(case.pairs), bool) if tensors is None else tensors.measured & (case.pairs.relation == Relation.SUM)


def _partial_sums(cases: Sequence[Case]) -> Iterator[Finding]:
    """Parts of a sum that is added up over ranks further on, each rank its own: no rank holds what the other side does."""
    added = _modules(cases, _added)
    left_out = _modules(cases, lambda case: (case.pairs.relation == Relation.SUM) & ~_added(case))
    named = list(dict.fromkeys([*added, *left_out]))
    if not named:
        return
    told = [
        f"In {counted(len(named), 'module')} each rank puts out its part of a sum, which is added up further on, first {short(named[0])}"
    ]
    told_zh = [f"{len(named)} 个模块中各卡输出的只是部分和，之后才相加，第一个是 {short(named[0])}"]
    if added:
        told.append(f"the tensors of the ranks were added up and compared in {len(added)}")
        told_zh.append(f"其中 {len(added)} 个已把各卡张量相加后再比较")
    if left_out:
        told.append(f"not compared in {len(left_out)}: statistics cannot be added up, the tensor files of all ranks can")
        told_zh.append(f"其中 {len(left_out)} 个没有比较：统计量不能相加，需要全部卡的张量文件")
    evidence = {"count": len(named), "added": len(added), "not_compared": len(left_out)}
    yield Finding("partial_sums", "info", both("; ".join(told), "；".join(told_zh)), named[:MOST_MODULES], evidence)


def ranks_alone(alone: Sequence[Sequence[int]], parts: int = 0) -> Iterator[Finding]:
    """Ranks of the left and of the right side that stood against none, in one part or in several."""
    for side, side_zh, ranks in zip(("left", "right"), ("左侧", "右侧"), alone, strict=True):
        if ranks:
            where = both(f", in {counted(parts, 'part')}" if parts else "", f"（{parts} 个部分）" if parts else "")
            named = _ranks(ranks)
            yield Finding(
                "ranks_one_sided",
                "warning",
                both(
                    f"On the {side} side only, not compared: {named['en']}{where['en']}",
                    f"仅{side_zh}有、未参与比较：{named['zh']}{where['zh']}",
                ),
                evidence={"side": side, "ranks": list(ranks)},
            )


def ranks_shifted(pairs: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """``pairs``: a left rank and the right one that it stands against; nothing where all have the same number."""
    moved = sorted({(left, right) for left, right in pairs if left != right})
    if moved:
        left, right = (_ranks([pair[side] for pair in moved]) for side in (0, 1))
        yield Finding(
            "ranks_shifted",
            "info",
            both(
                f"Ranks have other numbers on the two sides: {left['en']} of the left against {right['en']} of the right, in this order. "
                "Another pair is chosen with the option rank",
                f"两侧 rank 编号不同：左侧 {left['zh']} 依次对应右侧 {right['zh']}。可用选项 rank 另选",
            ),
            evidence={"left": [pair[0] for pair in moved], "right": [pair[1] for pair in moved]},
        )


def ranks_alone_words(alone: Sequence[Sequence[int]]) -> Text:
    """The end of a headline: what it says does not hold of them."""
    found = both("", "")
    for side, side_zh, ranks in zip(("left", "right"), ("左侧", "右侧"), alone, strict=True):
        if ranks:
            named = _ranks(ranks)
            found = both(f"{found['en']}; {named['en']} on the {side} only", f"{found['zh']}；{named['zh']} 仅{side_zh}有")
    return found


def _ranks(ranks: Sequence[int]) -> Text:
    shown = [str(rank) for rank in ranks[:MOST_RANKS]]
    more = len(ranks) - len(shown)
    rest = both(f" and {more} more" if more else "", f" 等 {len(ranks)} 个" if more else "")
    return both(f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(shown)}{rest['en']}", f"rank {'、'.join(shown)}{rest['zh']}")


def _heads_shared(cases: Sequence[Case]) -> Iterator[Finding]:
    named = _modules(cases, lambda case: case.pairs.usable == MAX_AND_MIN)
    if named:
        yield Finding(
            "measured_less",
            "info",
            both(
                f"There are fewer key and value heads than ranks, so that several ranks hold the same head: "
                f"{counted(len(named), 'module was', 'modules were')} "
                f"compared by Max and Min alone, first {short(named[0])}. A difference that moves neither stays unseen there",
                f"key/value 头数少于卡数，多张卡持有相同的头：{len(named)} 个模块只比较了 Max 与 Min，第一个是 {short(named[0])}。"
                "不影响这两项的差异在这些位置看不出来",
            ),
            named[:MOST_MODULES],
            {"count": len(named), "statistics": ["max", "min"]},
        )
