"""Why two slots are a pair and why a record has none, in words. ``{quantity}`` is the tensor's name in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence

from compare.engine.align.conventions import decoder, fill, pattern_of
from compare.engine.align.explain import Explanation
from compare.engine.align.pairs import Reason
from compare.engine.diagnose.words import Text, both

PAIRED: dict[Reason, Text] = {
    Reason.SAME_SLOT: both("The same slot of the same module", "同一模块的同一位置"),
    Reason.SAME_QUANTITY: both("Both hold {quantity}", "两侧都是{quantity}"),
    Reason.FUSED_PARTS: both(
        "The parts of one side, laid side by side, are the fused tensor of the other", "一侧的各部分并排起来就是另一侧的融合张量"
    ),
    Reason.RESIDUAL_STREAM: both(
        "{quantity}: one side puts out the sum, the other adds MLP output and residual only inside the next norm",
        "{quantity}：一侧直接输出相加后的和，另一侧到下一个归一化里才把 MLP 输出与残差相加",
    ),
    Reason.ELSEWHERE: both("Both hold {quantity}, which the other side shows in another module", "两侧都是{quantity}，另一侧在别的模块里"),
    Reason.SAME_NAME: both(
        "Same module path and slot name; nothing more is known of this module", "模块路径与位置同名；对该模块没有更多了解"
    ),
    Reason.MAPPING: both("A rule of the mapping file puts them together", "映射文件中的规则指定二者对应"),
}

UNPAIRED: dict[Explanation, Text] = {
    Explanation.NO_BACKWARD_ON_OTHER_SIDE: both("the other side has no backward pass", "另一侧没有反向"),
    Explanation.FUSED_AWAY: both("done inside another module on the other side", "另一侧在别的模块内部完成"),
    Explanation.WRAPPER: both("a wrapper around the model", "模型外层的包装"),
    Explanation.NOT_CALLED: both("not called on the other side, or only for some rows", "另一侧没有调用，或只对部分行调用"),
    Explanation.RECOMPUTE: both("computed again for the backward pass", "为反向传播重新计算"),
    Explanation.IDENTITY: both("passes its input on unchanged", "原样传递输入"),
    Explanation.PLACEHOLDER: both("holds no values", "没有数值"),
    Explanation.DIFFERENT_KIND: both("same name, another tensor", "同名，但不是同一个量"),
    Explanation.OTHER_CALLS: both("the other implementation makes other calls", "另一种实现的调用不同"),
    Explanation.SET_APART: both("a rule of the mapping file sets it apart", "映射文件中的规则取消了它的配对"),
    Explanation.NOT_FOUND: both("no partner found", "没有找到对应"),
}


OTHER_SIZE_TEXT = both("another number of rows on the other side", "另一侧的行数不同")


def quantity_texts(names: Sequence[str], layers: int) -> list[Text]:
    """How each quantity is called in a sentence."""
    found = []
    for name in names:
        quantity, layer = decoder().quantity(name), pattern_of(name)[1]
        found.append(both(fill(quantity.en, layer, layers), fill(quantity.zh, layer, layers)))
    return found
