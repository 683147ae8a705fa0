"""What the reader should know besides the origins, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.align.explain import Explanation
from compare.engine.diagnose.case import Case, module_name
from compare.engine.diagnose.finding import MOST_MODULES, Finding
from compare.engine.diagnose.layers import LayerRow
from compare.engine.diagnose.mapping_findings import mapping_findings
from compare.engine.diagnose.pairing_findings import passes_findings
from compare.engine.diagnose.premises import Premise
from compare.engine.diagnose.rank_findings import rank_findings
from compare.engine.diagnose.tensor_findings import tensor_findings
from compare.engine.diagnose.words import Text, both, counted, number, percent, short
from compare.engine.ingest import notes
from compare.engine.model import JsonObject

__all__ = ["Finding", "findings_of", "parts_not_compared"]


def findings_of(cases: Sequence[Case], layers: Sequence[LayerRow], premises: Sequence[Premise], *, same_input: bool) -> list[Finding]:
    found: list[Finding] = []
    if same_input:
        found.append(
            Finding(
                "same_input",
                "info",
                both(
                    "Both sides are the same dump, byte for byte: this compares it with itself",
                    "两侧是同一份数据（逐字节相同）：这是它与自身的比较",
                ),
            )
        )
    found += passes_findings(cases[0].sides.passes)
    found += mapping_findings(cases)
    found += _residual(layers)
    found += _different_kind(cases)
    found += _arguments(cases)
    found += _positions(premises)
    if all(len(dump.slots) for case in cases for dump in case.dumps):
        found += _weights_unseen(premises)
    found += rank_findings(cases)
    found += _layers_missing(cases, layers)
    found += _nonfinite(cases)
    found += _not_found(cases)
    found += _structure(cases)
    found += _notes(cases)
    found += _kinds_of_data(cases)
    found += tensor_findings(cases)
    return found


def parts_not_compared(left_out: Sequence[Sequence[tuple[str | None, int | None]]]) -> Iterator[Finding]:
    """One step against a run of several: what was not looked at is said, so that nobody takes it for compared."""
    for side, side_zh, keys in zip(("left", "right"), ("左侧", "右侧"), left_out, strict=True):
        if not keys:
            continue
        names = [" ".join([*([stage] if stage else []), *([f"step {step}"] if step is not None else [])]) for stage, step in keys]
        shown = ", ".join(names[:MOST_MODULES]) + (" …" if len(names) > MOST_MODULES else "")
        yield Finding(
            "parts_not_compared",
            "info",
            both(
                f"The {side} side holds more than was compared: {shown}. Another step or stage is chosen with the options of a comparison",
                f"{side_zh}还有未参与比较的内容：{shown.replace(', ', '、')}。可在比较选项中指定其他步或阶段",
            ),
            evidence={"side": side, "parts": [{"stage": stage, "step": step} for stage, step in keys]},
        )


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A dump that was not compared because it cannot be read. ``side`` is 0 (left) or 1; ``error`` as errors are told."""

    side: int
    rank: int | None
    error: JsonObject


def dumps_unreadable(unreadable: Sequence[Unreadable]) -> Iterator[Finding]:
    for dump in unreadable:
        rank = both("a dump", "一份 dump") if dump.rank is None else both(f"rank {dump.rank}", f"rank {dump.rank}")
        yield Finding(
            "dump_unreadable",
            "error",
            both(
                f"Not compared: {rank['en']} of the {('left', 'right')[dump.side]} side cannot be read. {dump.error['message']}",
                f"未比较：{('左侧', '右侧')[dump.side]}的 {rank['zh']} 无法读取（{dump.error['code']}：{dump.error['where']}）",
            ),
            evidence={"side": ("left", "right")[dump.side], "rank": dump.rank, "error": dump.error},
        )


def unreadable_words(unreadable: Sequence[Unreadable]) -> Text:
    """What the headline adds: nothing where all was read."""
    if not unreadable:
        return both("", "")
    count = len(unreadable)
    verb = "was" if count == 1 else "were"
    return both(f"; {counted(count, 'dump')} could not be read and {verb} not compared", f"；{count} 份 dump 无法读取，未参与比较")


def _residual(layers: Sequence[LayerRow]) -> Iterator[Finding]:
    rows = [row for row in layers if row.by_name is not None]
    if not rows:
        return
    off = sorted((row for row in rows if row.by_name and row.by_name[2] > 0.01), key=lambda row: row.index)
    worst = sorted(off, key=lambda row: -(row.by_name[2] if row.by_name else 0))[:2]
    example = "; ".join(
        f"layers.{r.index}: {number(r.left_norm)} / {number(r.by_name[1])} = {percent(r.by_name[2])}" for r in worst if r.by_name
    )
    named = (
        f" By name {len(off)} of {counted(len(rows), 'layer')} would look more than 1 % off ({example}); that is no divergence."
        if off
        else ""
    )
    named_zh = (
        f"若按名字配对，{len(rows)} 层中有 {len(off)} 层会显得相差超过 1 %（{example.replace('; ', '；')}），但那并不是差异。"
        if off
        else ""
    )
    yield Finding(
        "residual_pair_output",
        "info",
        both(
            "One side's layers return a single tensor in which residual and MLP output are already added; the other side's return "
            "two, (MLP output, residual), and add them inside the next norm. Compared was the residual stream: the layer's output "
            "against the sum that the next norm puts out." + named,
            "一侧的层只返回一个张量，其中残差与 MLP 输出已经相加；另一侧返回两个（MLP 输出、残差），到下一个归一化里才相加。"
            "因此比较的是残差流：层的输出与下一个归一化给出的和相比。" + named_zh,
        ),
        [row.left or row.right or f"layers.{row.index}" for row in rows],
        {"layers": [{"index": r.index, "slot": r.by_name[0], "norm": r.by_name[1], "norm_rel": r.by_name[2]} for r in rows if r.by_name]},
    )


def _explained(cases: Sequence[Case], code: Explanation) -> list[str]:
    modules: dict[str, None] = {}
    for case in cases:
        for side in (0, 1):
            for record in np.flatnonzero(case.explanations[side] == code).tolist():
                modules[module_name(case, int(case.nodes.node_of[side][record]))] = None
    return list(modules)


def _different_kind(cases: Sequence[Case]) -> Iterator[Finding]:
    modules = _explained(cases, Explanation.DIFFERENT_KIND)
    if modules:
        several = len(modules) > 1
        first = short(modules[0])
        yield Finding(
            "different_kind",
            "info",
            both(
                f"{counted(len(modules), 'module has', 'modules have')} the same name on both sides but "
                f"{'put' if several else 'puts'} out other tensors ({first}{', …' if several else ''}): not compared by name",
                f"{len(modules)} 个模块两侧同名但输出的不是同一个量（{first}{' 等' if several else ''}）：没有按名字比较",
            ),
            modules[:MOST_MODULES],
            {"count": len(modules)},
        )


def _arguments(cases: Sequence[Case]) -> Iterator[Finding]:
    shown: list[JsonObject] = []
    modules: list[str] = []
    for case in cases:
        unlike = case.grades.argument & ~case.differences.equal & (case.pairs.quantity < 0)
        for pair in np.flatnonzero(unlike).tolist():
            values = [side.text[pair] or number(float(side.values[pair, 0])) for side in case.differences.sides]
            module = module_name(case, int(case.pairs.node[pair]))
            modules.append(module)
            if len(shown) < MOST_MODULES:
                shown.append({"module": module, "slot": case.slot_name(pair, 0), "left": values[0], "right": values[1]})
    if shown:
        first = shown[0]
        yield Finding(
            "argument_differs",
            "warning",
            both(
                f"{counted(len(modules), 'argument differs:', 'arguments differ, first')} {short(first['module'])} {first['slot']}: "
                f"{first['left']} / {first['right']}",
                f"{len(modules)} 个参数取值不同，第一个是 {short(first['module'])} 的 {first['slot']}：{first['left']} / {first['right']}",
            ),
            list(dict.fromkeys(modules))[:MOST_MODULES],
            {"arguments": shown},
        )


def _positions(premises: Sequence[Premise]) -> Iterator[Finding]:
    for premise in premises:
        if premise.code == "positions" and premise.state == "failed":
            yield Finding(
                "positions_differ",
                "warning",
                both(
                    "The positions differ. A constant offset is harmless under rotary embedding; anything else shows in the "
                    "attention results",
                    "位置编号不同。旋转位置编码下整体平移没有影响；其他情况会体现在注意力结果里",
                ),
                (),
                premise.detail,
            )


def _weights_unseen(premises: Sequence[Premise]) -> Iterator[Finding]:
    for premise in premises:
        if premise.code == "weights" and premise.state == "unknown":
            yield Finding(
                "weights_not_dumped",
                "info",
                both(
                    "No weight is in both dumps with the same size (sharded or flattened parameters): equal weights are assumed, not shown",
                    "两侧没有可比的权重（参数被切分或展平）：只能假定权重相同，无法证明",
                ),
            )


def _layers_missing(cases: Sequence[Case], layers: Sequence[LayerRow]) -> Iterator[Finding]:
    count = max((case.sides.layers for case in cases), default=0)
    missing = sorted(set(range(count)) - {row.index for row in layers})
    if layers and missing:
        named = ", ".join(str(layer) for layer in missing[:MOST_MODULES]) + ("…" if len(missing) > MOST_MODULES else "")
        yield Finding(
            "layers_missing",
            "warning",
            both(
                f"{len(missing)} of {counted(count, 'layer')} {'was' if len(missing) == 1 else 'were'} not compared, "
                f"with no output in both dumps: {named}",
                f"{count} 层中有 {len(missing)} 层没有比较，它们的输出没有同时出现在两侧：{named}",
            ),
            (),
            {"layers": missing[:MOST_MODULES], "count": len(missing), "of": count},
        )


def _nonfinite(cases: Sequence[Case]) -> Iterator[Finding]:
    """NaN equals NaN; that both sides have it is worth saying."""
    modules: dict[str, None] = {}
    for case in cases:
        left, right = (~np.isfinite(side.values) & side.present for side in case.differences.sides)
        for pair in np.flatnonzero((left & right).any(axis=1)).tolist():
            modules[module_name(case, int(case.pairs.node[pair]))] = None
    if modules:
        named = list(modules)
        yield Finding(
            "nonfinite_on_both_sides",
            "warning",
            both(
                f"NaN or Inf on both sides in {counted(len(named), 'module')}, first {short(named[0])}: "
                "they count as equal, and say nothing about the rest",
                f"{len(named)} 个模块两侧都有 NaN 或 Inf，第一个是 {short(named[0])}：按相等计，但说明不了其余数值",
            ),
            named[:MOST_MODULES],
            {"count": len(named)},
        )


def _not_found(cases: Sequence[Case]) -> Iterator[Finding]:
    modules = _explained(cases, Explanation.NOT_FOUND)
    if modules:
        yield Finding(
            "not_found",
            "warning",
            both(
                f"{counted(len(modules), 'module has', 'modules have')} no partner and no known reason for it, first {short(modules[0])}",
                f"{len(modules)} 个模块没有找到对应，也没有已知原因，第一个是 {short(modules[0])}",
            ),
            modules[:MOST_MODULES],
            {"count": len(modules)},
        )


def _structure(cases: Sequence[Case]) -> Iterator[Finding]:
    without = [name for index, name in enumerate(("left", "right")) if not all(case.dumps[index].has_construct for case in cases)]
    if without:
        zh = "、".join({"left": "左侧", "right": "右侧"}[name] for name in without)
        yield Finding(
            "structure_from_names",
            "info",
            both(
                f"No construct.json on the {' and '.join(without)} side: the structure was read from names",
                f"{zh}没有 construct.json：结构由名字推出",
            ),
        )


def _notes(cases: Sequence[Case]) -> Iterator[Finding]:
    """What was read otherwise than it stands in the files."""
    for side, (name, name_zh) in enumerate((("Left", "左侧"), ("Right", "右侧"))):
        for note in notes.merged(note for case in cases for note in case.dumps[side].notes):
            told = notes.sentence(note)
            yield Finding(
                note.code,
                "warning",
                both(f"{name} side: {told['en']}", f"{name_zh}：{told['zh']}"),
                (),
                {"side": name.lower(), "count": note.count, "record": note.record, "place": note.place, **note.params},
            )


def _kinds_of_data(cases: Sequence[Case]) -> Iterator[Finding]:
    """What dumps without modules, without values or without statistics can show at all."""
    if any(dump.level == "L1" for case in cases for dump in case.dumps):
        yield Finding(
            "api_sequence_only",
            "info",
            both(
                "A level L1 dump holds API calls alone: they were compared by name in their order, without modules or layers. Where the "
                "two sides run different code, the first divergence may only be where their calls part",
                "L1 级别的 dump 只有 API 调用：按名称与顺序比较，没有模块与层。两侧代码不同时，首个差异可能只是调用开始不同之处",
            ),
        )
    if not all(len(dump.slots) for case in cases for dump in case.dumps):
        alone = _explained(cases, Explanation.NOT_FOUND)
        yield Finding(
            "names_only",
            "info",
            both(
                "One side or both hold names only (task structure): the trees were laid side by side, no number was compared",
                "一侧或两侧只有名称（structure 任务）：只对照了结构，没有比较任何数值",
            ),
            alone[:MOST_MODULES],
            {"without_partner": len(alone)},
        )
    elif any(bool((case.differences.by_checksum & ~case.grades.argument).any()) for case in cases):
        yield Finding(
            "checksums_only",
            "warning",
            both(
                "Some tensors have a checksum and no statistics: any difference counts, and how large it is cannot be known",
                "部分张量只有校验和而没有统计量：任何不同都算差异，差多少无从得知",
            ),
        )
