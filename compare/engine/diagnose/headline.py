"""The verdict in one sentence, with the number that proves it and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compare.engine.align.canonical import layer_of
from compare.engine.align.explain import Explanation
from compare.engine.diagnose.case import Case, module_name
from compare.engine.diagnose.layers import LayerRow
from compare.engine.diagnose.origins import Inputs, Kind, Origin
from compare.engine.diagnose.premises import Premise
from compare.engine.diagnose.words import Text, both, counted, number, percent, short
from compare.engine.measure.elements.table import Elements
from compare.engine.measure.statistics import MAX, NORM
from compare.engine.model import Bool, Leaf

NAMES = ("Max", "Min", "Mean", "Norm")  # in the order of Statistic


def diverged(case: Case, origin: Origin, premises: Sequence[Premise]) -> Text:
    # A step between two layers has no module to its name but the model: where it ends says more.
    where = short(origin.before if origin.before is not None and layer_of(origin.module) < 0 else origin.module)
    values = _values(case, origin.pair)
    slot = case.slot_name(origin.pair, case.primary)
    said = {
        Kind.WEIGHTS: both(f"weights differ ({values['en']})", f"权重不同（{values['zh']}）"),
        Kind.NONFINITE: both(f"NaN or Inf in {slot} on one side only ({values['en']})", f"{slot} 仅一侧出现 NaN 或 Inf（{values['zh']}）"),
        Kind.ORIGIN: _of_inputs(slot, values, origin.inputs),
        Kind.BETWEEN: _between(case, origin, values),
    }[origin.kind]
    tail = _failed_positions(premises)
    return both(f"First divergence: {where} — {said['en']}{tail['en']}", f"首个差异：{where} — {said['zh']}{tail['zh']}")


def _between(case: Case, origin: Origin, values: Text) -> Text:
    """What lies between was not compared: not dumped, on one side only, or set apart by a rule, which is said."""
    after, before = origin.after, short(origin.before or "?")
    named = {origin.before, origin.module}
    apart = any(
        module_name(case, int(case.nodes.node_of[side][record])) in named
        for side in (0, 1)
        for record in np.flatnonzero(case.explanations[side] == Explanation.SET_APART).tolist()
    )
    why = (
        both("which a rule of the mapping file sets apart", "映射文件中的规则取消了它的配对")
        if apart
        else both("where nothing was compared", "其间没有可比较的数据")
    )
    return both(
        f"between {short(after or '(start)')} and {before}, {why['en']} ({values['en']})",
        f"位于 {short(after or '（开头）')} 与 {before} 之间，{why['zh']}（{values['zh']}）",
    )


def _of_inputs(slot: str, values: Text, inputs: Inputs | None) -> Text:
    """Only inputs that were compared can agree."""
    en, zh = values["en"], values["zh"]
    if inputs is Inputs.NOT_COMPARED:
        return both(f"{slot} differs; its inputs were not compared ({en})", f"{slot} 不同，输入没有比较（{zh}）")
    if inputs is Inputs.SOME_NOT_COMPARED:
        return both(f"{slot} differs while those of its inputs that were compared agree ({en})", f"{slot} 不同而比较过的输入一致（{zh}）")
    return both(f"{slot} differs while its inputs agree ({en})", f"{slot} 不同而输入一致（{zh}）")


def _values(case: Case, pair: int) -> Text:
    """The statistics that leave their limit, both sides; the largest first, at most two. Of tensors, how far their elements are apart."""
    tensors = case.differences.tensors
    if tensors is not None and tensors.row[pair] >= 0:
        return _of_elements(tensors, int(tensors.row[pair]))
    left, right = case.differences.sides
    over = np.flatnonzero(case.grades.over[pair])
    sums = case.checksums(pair)
    if not len(over) and sums is not None:
        return both(f"checksum {sums[0]} / {sums[1]}", f"校验和 {sums[0]} / {sums[1]}")
    ranked = sorted(over.tolist(), key=lambda s: (s != NORM, -np.nan_to_num(case.differences.relative[pair, s], nan=np.inf)))
    chosen = ranked[:2] or [int(NORM) if case.differences.compared[pair, NORM] else int(MAX)]
    shown = [f"{NAMES[s]} {number(float(left.values[pair, s]))} / {number(float(right.values[pair, s]))}" for s in chosen]
    return both(", ".join(shown), "，".join(shown))


def _of_elements(tensors: Elements, row: int) -> Text:
    if tensors.misplaced[row]:
        there, count = int(tensors.misplaced[row]), int(tensors.count[row])
        return both(f"{there} of {count} elements", f"{count} 个元素中的 {there} 个")
    error, cosine = number(float(tensors.relative_l2[row])), f"{tensors.cosine[row]:.6f}"
    return both(f"tensors: relative L2 {error}, cosine {cosine}", f"张量：相对 L2 {error}，余弦相似度 {cosine}")


def _failed_positions(premises: Sequence[Premise]) -> Text:
    if any(p.code == "positions" and p.state == "failed" for p in premises):
        return both("; the positions differ", "；位置编号也不同")
    return both("", "")


def consistent(cases: Sequence[Case], layers: Sequence[LayerRow], premises: Sequence[Premise], data: Text) -> Text:
    tail = _failed_positions(premises)
    if layers:
        worst = max((row.norm_rel or 0.0 for row in layers), default=0.0)
        steps = [abs(row.ulps) for row in layers if row.ulps is not None]
        most = f"{math.ceil(max(steps))} ulp" if steps and max(steps) <= 99 else ""  # a bound: 0.4 ulp is not within 0
        errors = [row.relative_l2 for row in layers if row.relative_l2 is not None]
        name = both("Norm", "Norm 相差")
        proof = both(f"{most} ({percent(worst)})", f"{most}（{percent(worst)}）") if most else both(percent(worst), percent(worst))
        if len(errors) == len(layers):
            name, proof = both("relative L2 error", "相对 L2 误差"), both(percent(max(errors)), percent(max(errors)))
        count = max(case.sides.layers for case in cases)
        of = both(f" of {count}", f"（共 {count} 层）") if count > len(layers) else both("", "")
        noun = "layer" if count == 1 else "layers"
        en = f"the outputs of {len(layers)}{of['en']} {noun} agree, {name['en']} within {proof['en']}; nothing beyond noise{tail['en']}"
        zh = f"{len(layers)} 层{of['zh']}的输出一致，{name['zh']}不超过 {proof['zh']}，没有超出噪声的差异{tail['zh']}"
        return both(f"Consistent — {en}. Rests on {data['en']}", f"两侧一致 — {zh}。依据是 {data['zh']}")
    count = sum(int(case.grades.comparable.sum()) for case in cases)
    return both(
        f"Consistent — {counted(count, 'pair')} compared, nothing beyond noise{tail['en']}. Rests on {data['en']}",
        f"一致 — 比较了 {count} 对，没有超出噪声的差异{tail['zh']}。依据是 {data['zh']}",
    )


def identical(cases: Sequence[Case], data: Text) -> Text:
    count = sum(int(case.grades.comparable.sum()) for case in cases)
    all_of_them = "the one compared pair is" if count == 1 else f"all {count} compared pairs are"
    nan = any(bool((~np.isfinite(side.values) & side.present).any()) for case in cases for side in case.differences.sides)
    tail = both("; NaN or Inf on both sides", "；两侧都有 NaN 或 Inf") if nan else both("", "")
    return both(
        f"Identical — {all_of_them} equal{tail['en']}. Rests on {data['en']}",
        f"完全一致 — 比较的 {count} 对全部相等{tail['zh']}。依据是 {data['zh']}",
    )


def not_comparable(premises: Sequence[Premise]) -> Text:
    premise = premises[0]
    detail = premise.detail
    if premise.code == "length":
        left, right = detail.get("left"), detail.get("right")
        if left is not None and detail.get("of") is None:
            return both(f"Not comparable — {left} against {right} tokens", f"无法比较 — 两侧词元数不同：{left} 与 {right}")
        return both("Not comparable — the tensors of the two sides have other sizes", "无法比较 — 两侧张量的大小不同")
    if premise.code == "tokens":
        return both("Not comparable — the two sides were given different tokens", "无法比较 — 两侧输入的词元不同")
    nodes = detail.get("names_only")
    if nodes is not None:
        both_sides, each = nodes["both"], (nodes["left"], nodes["right"])
        return both(
            f"Not comparable — names only, no values: {both_sides} modules and calls are on both sides, {each[0]} on the left alone, "
            f"{each[1]} on the right alone",
            f"无法比较 — 只有名称没有数值：两侧共有 {both_sides} 个模块与调用，仅左侧有 {each[0]} 个，仅右侧有 {each[1]} 个",
        )
    matched, records = detail.get("matched", [0, 0]), detail.get("records", [0, 0])
    least, of = min(zip(matched, records, strict=True), key=lambda count: count[1])
    if of and 2 * least >= of and detail.get("layers") == 0:
        return both("Not comparable — no layer's output is in both dumps", "无法比较 — 没有任何一层的输出两侧都有")
    left, right = (f"{m} of {r}" for m, r in zip(matched, records, strict=True))
    return both(
        f"Not comparable — too little in common: {left} forward records on the left and {right} on the right are matched",
        f"无法比较 — 共同部分太少：左侧 {records[0]} 条前向记录匹配 {matched[0]} 条，右侧 {records[1]} 条匹配 {matched[1]} 条",
    )


def rests_on(cases: Sequence[Case]) -> Text:
    """What kind of data stands behind the numbers, in the reader's words."""
    if all(bool(case.differences.by_checksum[case.grades.comparable & ~case.grades.argument].all()) for case in cases):
        return both("checksums: equal or not is all they can tell", "校验和：只能判断是否相等")
    bits = np.concatenate(
        [case.differences.tensor_bits[case.grades.comparable & ~case.differences.exact] for case in cases] or [np.zeros(0, np.uint8)]
    )
    name = {8: "bf16", 11: "fp16", 24: "fp32", 53: "fp64"}.get(int(np.bincount(bits).argmax()) if len(bits) else 0, "")
    measured, of = _measured(cases)
    if measured and measured == of:
        return both(f"{name} tensors, element by element".strip(), f"{name} 张量，逐元素比较".strip())
    if measured:
        return both(
            f"{name} tensors for {measured} of {of} pairs, statistics for the others".strip(),
            f"{of} 对中 {measured} 对是 {name} 张量（逐元素），其余是统计量",
        )
    checked = sum(int((case.differences.checked & _tensors(case)).sum()) for case in cases)
    if checked and checked == of:
        return both(
            f"checksums and {name} statistics: equal checksums are equal tensors, but for chance",
            f"校验和与 {name} 统计量：校验和相等即张量相等（巧合除外）",
        )
    if checked:
        return both(
            f"checksums for {checked} of {of} pairs, {name} statistics for the others: equal statistics are not equal tensors",
            f"{of} 对中 {checked} 对有校验和，其余是 {name} 统计量：统计量相等不等于逐元素相等",
        )
    return both(
        f"{name} statistics, not tensors: equal statistics are not equal tensors".strip(),
        f"{name} 统计量而不是张量：统计量相等不等于逐元素相等".strip(),
    )


def _measured(cases: Sequence[Case]) -> tuple[int, int]:
    """How many of the compared pairs of tensors were compared element by element."""
    measured = of = 0
    for case in cases:
        tensors = _tensors(case)
        of += int(tensors.sum())
        if case.differences.tensors is not None:
            measured += int((tensors & case.differences.tensors.measured).sum())
    return measured, of


def _tensors(case: Case) -> Bool:
    """Pairs of tensors that were compared."""
    compared: Bool = case.grades.comparable & (case.differences.elements > 0) & ~_scalars(case)
    return compared


def _scalars(case: Case) -> Bool:
    """Pairs of numbers and texts, which have no tensor."""
    scalar = np.zeros(len(case.pairs), bool)
    for dump, lists in zip(case.dumps, case.pairs.slots, strict=True):
        scalar |= dump.slots.leaf[lists.values[lists.start[:-1]]] != Leaf.TENSOR
    return scalar
