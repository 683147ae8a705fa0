"""What may be behind an origin, as scored rules with the evidence shown. No cause is asserted above its evidence: scores say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from compare.engine.align.canonical import entry_of, layer_of, naming
from compare.engine.align.conventions import conventions, decoder, fill
from compare.engine.diagnose.advice import advice_for
from compare.engine.diagnose.case import Case
from compare.engine.diagnose.origins import Inputs, Kind, Origin
from compare.engine.diagnose.premises import weights_of
from compare.engine.diagnose.words import Text, both, number, percent
from compare.engine.measure.statistics import MAX, MEAN, MIN, NORM
from compare.engine.measure.ulp import EXACT, significand_bits
from compare.engine.model import Direction, JsonObject, Leaf

LEAST_PLAIN_BITS = 8  # fewer significand bits than bf16: a quantised tensor
SEVERAL_STALE, SEVERAL_CHANGED = 0.5, 0.4  # weights of several modules differ, but not most of them: nothing tells the two causes apart
ROTATION_ROUNDING = 3.0  # units of rounding by which a Norm may move through a rotation
FACTORS = {0.5: "1/2", 2.0: "2", 0.7071: "1/√2", 1.4142: "√2", 0.25: "1/4", 4.0: "4", 0.125: "1/8", 8.0: "8"}


@dataclass(frozen=True, slots=True)
class Cause:
    code: str
    score: float
    text: Text
    advice: Text | None = None  # what would tell it from the others

    def document(self) -> JsonObject:
        return {"code": self.code, "score": self.score, "text": self.text, "advice": self.advice}


def causes_of(case: Case, origin: Origin) -> list[Cause]:
    """Most likely first."""
    modules = [name.removeprefix("Module.") for side in (0, 1) for name in case.pair_records(origin.pair, side)]
    found = [replace(cause, advice=advice_for(cause.code, modules)) for rule in RULES for cause in rule(case, origin)]
    return sorted(found, key=lambda cause: -cause.score)


def _noise_role(case: Case, origin: Origin) -> str:
    quantity = case.quantity(origin.pair)
    return "" if quantity is None else decoder().quantity(quantity).noise


def _weights(case: Case, origin: Origin) -> Iterator[Cause]:
    if origin.kind is not Kind.WEIGHTS:
        return
    if case.differences.nonfinite[origin.pair]:
        yield Cause("weight_not_finite", 0.8, both("the weight holds NaN or Inf on one side", "该权重在一侧含有 NaN 或 Inf"))
        return
    weights = weights_of(case)
    share = weights.differing / max(weights.compared, 1)
    if share > 0.5:
        yield Cause(
            "stale_weights",
            0.8,
            both(
                f"{percent(share)} of the weights differ: the two sides do not hold the same checkpoint or training step",
                f"{percent(share)} 的权重不同：两侧不是同一个检查点或训练步",
            ),
        )
        return
    alone, several = weights.differing == 1, len(weights.modules) > 1
    count = both(
        f"{weights.differing} of the {weights.compared} weights compared", f"比较的 {weights.compared} 个权重中有 {weights.differing} 个"
    )
    if several:
        yield Cause(
            "stale_weights",
            SEVERAL_STALE,
            both(
                f"{count['en']} differ, in {len(weights.modules)} modules: another checkpoint or training step, or an update that differed",
                f"{count['zh']}不同，分布在 {len(weights.modules)} 个模块：检查点或训练步不同，或更新时已经不同",
            ),
        )
    agree = both(
        f"the other {weights.compared - weights.differing} compared agree", f"比较过的其余 {weights.compared - weights.differing} 个一致"
    )
    if case.sides.same_code:
        text = both(
            f"this weight was loaded from elsewhere on one side, or something wrote to it; {agree['en']}"
            if alone
            else f"{count['en']} were loaded from elsewhere on one side, or something wrote to them; {agree['en']}",
            f"该权重在一侧来自别处，或被改写过；{agree['zh']}" if alone else f"{count['zh']}在一侧来自别处，或被改写过；{agree['zh']}",
        )
        yield Cause("weight_changed", SEVERAL_CHANGED if several else 0.8, text)
        return
    text = both(
        "this weight was not synchronised to the engine, or was converted wrongly"
        if alone
        else f"{count['en']} were not synchronised to the engine, or were converted wrongly",
        "该权重没有同步到推理引擎，或转换有误" if alone else f"{count['zh']}没有同步到推理引擎，或转换有误",
    )
    yield Cause("weight_not_synchronised", 0.8, text)
    text = both("it was changed after loading", "加载之后被改动") if alone else both("they were changed after loading", "加载之后被改动")
    yield Cause("weight_changed_after_loading", 0.15, text)


def _factor(case: Case, origin: Origin) -> Iterator[Cause]:
    """All statistics times one number: something was scaled, or a part was not added."""
    if origin.kind in (Kind.NONFINITE, Kind.WEIGHTS):
        return
    left, right = (side.values[origin.pair] for side in case.differences.sides)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = right[[MAX, MIN, NORM]] / left[[MAX, MIN, NORM]]
    rounding = 4 * float(case.noise.unit[origin.pair])
    if not np.isfinite(ratio).all() or np.ptp(ratio) > rounding * abs(ratio).max() or abs(ratio[2] - 1) <= rounding:
        return
    named = next((name for value, name in FACTORS.items() if abs(ratio[2] / value - 1) <= rounding), None)
    shown = number(float(ratio[2])) + (f" ≈ {named}" if named else "")
    score = 0.7 if named else 0.5
    yield Cause(
        "constant_factor",
        score,
        both(
            f"the right side is the left times {shown}: a scale is applied on one side only, or a reduction over ranks is missing",
            f"右侧等于左侧乘以 {shown}：只有一侧做了缩放，或缺少跨卡归约",
        ),
    )


def _norm(case: Case, origin: Origin) -> Iterator[Cause]:
    if origin.kind is not Kind.ORIGIN or _noise_role(case, origin) != "norm":
        return
    yield Cause(
        "norm_epsilon",
        0.5,
        both(
            "eps, the order of casting and weighting, or a weight stored as w − 1",
            "eps、先转换精度还是先乘权重，或权重以 w − 1 保存",
        ),
    )


def _attention(case: Case, origin: Origin) -> Iterator[Cause]:
    if _noise_role(case, origin) != "attention" or origin.kind in (Kind.WEIGHTS, Kind.NONFINITE):
        return
    yield Cause(
        "rotary_embedding",
        0.4,
        both(
            "rotary embedding (theta, scaling, order of the halves) or positions",
            "旋转位置编码（theta、缩放、两半的排列）或位置编号",
        ),
    )
    yield Cause(
        "attention_mask",
        0.3,
        both("attention mask, sliding window or the mapping of key-value heads", "注意力掩码、滑动窗口或 KV 头的对应关系"),
    )
    yield Cause("softmax_scale", 0.2, both("softmax scale", "softmax 缩放系数"))


def _activation(case: Case, origin: Origin) -> Iterator[Cause]:
    if _noise_role(case, origin) != "activation" or origin.kind is not Kind.ORIGIN:
        return
    yield Cause(
        "activation_function",
        0.6,
        both("another activation function (silu against gelu), or gate and up swapped", "激活函数不同（silu 与 gelu），或 gate 与 up 互换"),
    )


def _residual(case: Case, origin: Origin) -> Iterator[Cause]:
    if _noise_role(case, origin) != "stream" or origin.inputs is not Inputs.AGREE:
        return
    yield Cause(
        "residual_addition",
        0.5,
        both(
            "a residual multiplier, or the residual kept in another dtype: what is added agrees, the sum does not",
            "残差带有系数，或残差以另一种精度保存：被相加的两项一致，和不一致",
        ),
    )


def _linear(case: Case, origin: Origin) -> Iterator[Cause]:
    if origin.kind is not Kind.ORIGIN or _noise_role(case, origin) not in ("linear", "mlp_output", "attention_output"):
        return
    mean = bool(case.grades.over[origin.pair, MEAN])
    yield Cause(
        "linear_computation",
        0.4,
        both(
            "bias, quantisation or layout of the weight, or a change of the weight "
            "that its rounded statistics hide" + ("; the mean moved, as a missing bias would do" if mean else ""),
            "偏置、量化或权重排布，或权重的改动被统计量的舍入掩盖" + ("；均值发生移动，符合缺少偏置的特征" if mean else ""),
        ),
    )


def _nonfinite(case: Case, origin: Origin) -> Iterator[Cause]:
    if origin.kind is not Kind.NONFINITE:
        return
    side = 0 if not np.isfinite(case.differences.sides[0].values[origin.pair]).all() else 1
    name, zh = (("left", "左侧"), ("right", "右侧"))[side]
    yield Cause(
        "overflow",
        0.5,
        both(f"an overflow, a division by zero or a fully masked row on the {name} side", f"{zh}出现上溢、除零或整行被掩码"),
    )


def _reduction(case: Case, origin: Origin) -> Iterator[Cause]:
    if not case.pairs.disagree[origin.pair]:
        return
    yield Cause(
        "reduction_missing",
        0.85,
        both(
            "ranks that should hold one and the same tensor hold others: the reduction over ranks after it is missing, or was left out of "
            "some ranks",
            "本应逐卡相同的张量各卡不同：缺少其后的跨卡归约，或部分卡没有参与",
        ),
    )


def _routing(case: Case, origin: Origin) -> Iterator[Cause]:
    if origin.kind not in (Kind.ORIGIN, Kind.BETWEEN) or _noise_role(case, origin) not in ("experts", "routing"):
        return
    yield Cause(
        "expert_routing",
        0.5,
        both(
            "other experts chosen, their weights normalised differently, or an expert's weight changed: compare the chosen experts token "
            "by token",
            "选中的专家不同、专家权重的归一化方式不同，或某个专家的权重被改动：请逐词元核对所选专家",
        ),
    )


def _dtype(case: Case, origin: Origin) -> Iterator[Cause]:
    """Another dtype on the two sides, told from the elements' own precision."""
    if origin.kind in (Kind.WEIGHTS, Kind.NONFINITE):
        return
    bits = [int(side.tensor_bits[origin.pair]) for side in case.differences.sides]
    if bits[0] == bits[1] or not all(bits):
        return
    names = [{8: "bf16", 11: "fp16", 24: "fp32", 53: "fp64"}.get(count, "fp8") for count in bits]
    code, score = ("quantised", 0.6) if min(bits) < LEAST_PLAIN_BITS else ("other_dtype", 0.35)
    yield Cause(
        code,
        score,
        both(f"the tensor is {names[0]} on the left and {names[1]} on the right", f"该张量左侧为 {names[0]}，右侧为 {names[1]}"),
    )


def _adapter(case: Case, origin: Origin) -> Iterator[Cause]:
    """One side has an adapter beside the module at fault."""
    if origin.kind is not Kind.ORIGIN:
        return
    names = case.nodes.names
    there = []
    for side in (0, 1):
        held = np.unique(case.nodes.path[case.nodes.records[side].counts() > 0]).tolist()
        there.append(any(_is_adapter(names[path], origin.module) for path in held))
    if there[0] == there[1]:
        return
    name, zh = (("left", "左侧"), ("right", "右侧"))[0 if there[0] else 1]
    yield Cause(
        "adapter_not_merged",
        0.6,
        both(
            f"only the {name} side runs an adapter here: it was not merged into the other side's weight, or with another scale",
            f"此处只有{zh}运行适配器：另一侧没有把它合并进权重，或缩放系数不同",
        ),
    )


def _is_adapter(path: str, module: str) -> bool:
    """Whether a path names an adapter of the module, or of one that the module does the work of."""
    parts = path.split(".")
    at = next((place for place, part in enumerate(parts) if part in naming().adapters), None)
    if at is None:
        return False
    whole = ".".join(parts[:at])
    fused = {fill(part, layer_of(module), 0) for one in conventions() for part in one.fused.get(entry_of(module), ())}
    return whole == module or whole in fused


def _rotation(case: Case, origin: Origin) -> Iterator[Cause]:
    """A rotation keeps the Norm: a side whose rotated query has another Norm than what went in has a faulty kernel, whatever the other
    side does. Only where the whole head is rotated, in one and the same module."""
    quantity = case.quantity(origin.pair) or ""
    if origin.kind in (Kind.WEIGHTS, Kind.NONFINITE) or not quantity.startswith(("rotated_query.", "rotated_key.", "context.")):
        return
    call, layer = case.call(origin.pair), int(case.layer[origin.pair])
    for part in ("query", "key"):
        before = next((pair for name in ("normed_", "") if (pair := case.representative(call, f"{name}{part}.{layer}")) is not None), None)
        after = case.representative(call, f"rotated_{part}.{layer}")
        if before is None or after is None:
            continue
        for side, (name, zh) in enumerate((("left", "左侧"), ("right", "右侧"))):
            values = case.differences.sides[side]
            norms = float(values.values[before, NORM]), float(values.values[after, NORM])
            same_size = values.elements[before] == values.elements[after]
            if same_size and abs(norms[1] / norms[0] - 1) > ROTATION_ROUNDING * float(case.noise.unit[after]):
                yield Cause(
                    "rotation_breaks_norms",
                    0.8,
                    both(
                        f"on the {name} side the rotated {part} has Norm {number(norms[1])} where {number(norms[0])} went in: a rotation "
                        "keeps it",
                        f"{zh}旋转后的 {part} 的 Norm 为 {number(norms[1])}，旋转前为 {number(norms[0])}：旋转不应改变它",
                    ),
                )
                return


def _positions(case: Case, origin: Origin) -> Iterator[Cause]:
    """Positions in a floating dtype stop being integers beyond its precision."""
    if _noise_role(case, origin) not in ("attention", "linear") or origin.kind in (Kind.WEIGHTS, Kind.NONFINITE):
        return
    for side, dump in enumerate(case.dumps):
        named = np.array([name.rpartition(".")[2] in ("positions", "position_ids") for name in dump.slot_names] or [False])
        rows = np.flatnonzero(named[dump.slots.name] & (dump.slots.leaf == Leaf.TENSOR))
        if len(rows) and significand_bits(dump.dtypes[int(dump.slots.dtype[rows[0]])]) != EXACT:
            name, zh = (("left", "左侧"), ("right", "右侧"))[side]
            dtype = dump.dtypes[int(dump.slots.dtype[rows[0]])].removeprefix("torch.")
            yield Cause(
                "positions_rounded",
                0.7,
                both(
                    f"positions are {dtype} on the {name} side: large ones are no longer whole numbers",
                    f"{zh}的位置编号是 {dtype}：较大的编号已不是整数",
                ),
            )
            return


def _gradient(case: Case, origin: Origin) -> Iterator[Cause]:
    if case.pairs.direction[origin.pair] != Direction.BACKWARD:
        return
    yield Cause(
        "gradient_only",
        0.6,
        both("the forward pass agrees, only gradients differ from here on", "前向一致，从此处起只有梯度不同"),
    )


RULES: tuple[Callable[[Case, Origin], Iterator[Cause]], ...] = (
    _weights,
    _factor,
    _norm,
    _attention,
    _activation,
    _residual,
    _reduction,
    _routing,
    _dtype,
    _adapter,
    _rotation,
    _positions,
    _gradient,
    _linear,
    _nonfinite,
)
