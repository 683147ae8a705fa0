"""The reading of compared key data in words: which table parts first, and what that says about the loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compare.engine.diagnose.findings import Finding
from compare.engine.diagnose.words import Text, both, number
from compare.engine.keydata.comparison import CONSEQUENCE, DIFFERS, EQUAL, LEFT_ONLY, NOT_READ, RIGHT_ONLY, KeyComparison, KeyDataComparison
from compare.engine.loop import quantity

MOST_NAMES = 8

# What it means that a key is the first to differ: code, and where to look.
MEANINGS: Mapping[str, tuple[str, str, str]] = {
    "prompts": ("key_data_prompts", "the runs were given other data, or in another order", "两次运行的数据或其顺序不同"),
    "responses": (
        "key_data_responses",
        "rollout: sampling seed, weights or a non-deterministic engine",
        "rollout 阶段：采样种子、权重，或推理引擎不确定",
    ),
    "rollout_log_probs": ("key_data_rollout", "forward pass of the rollout engine", "rollout 引擎的前向计算"),
    "rewards": ("key_data_rewards", "reward model or rule", "奖励模型或奖励规则"),
    "values": ("key_data_values", "forward pass of the critic", "critic 的前向计算"),
    "ref_log_prob": ("key_data_reference", "reference model", "参考模型"),
    "old_log_prob": ("key_data_actor_forward", "forward pass of the actor", "actor 的前向计算"),
    "returns": ("key_data_returns", "computation of the returns", "回报的计算"),
    "advantages": ("key_data_advantages", "reward or normalisation", "奖励或归一化"),
    "log_prob": ("key_data_training_forward", "forward pass in training", "训练中的前向计算"),
    "kl_loss": ("key_data_kl_loss", "computation of the KL loss", "KL 损失的计算"),
    "loss": ("key_data_loss", "computation of the loss", "损失的计算"),
    "prob_diff": ("key_data_probabilities", "probabilities of rollout and training", "rollout 与训练的概率"),
}
UPDATE_ORDER = ("key_data_update_order", "optimiser, or order of the updates within the step", "优化器，或步内各次更新的顺序")
OTHER = ("key_data_other", "whatever makes it", "产生它的代码")


def meaning(key: KeyComparison) -> tuple[str, Text]:
    """Code and the place to look at, for a key that differs and not as a consequence."""
    known = quantity(key.name)
    code, en, zh = MEANINGS.get(known.key if known else "", OTHER)
    if known is not None and known.key == "log_prob" and _only_later(key):
        code, en, zh = UPDATE_ORDER
    return code, both(en, zh)


def _only_later(key: KeyComparison) -> bool:
    """Whether the step in which the key first differs began with a micro-step in which no rank differs: the weights were equal then."""
    if key.first is None:
        return False
    step = key.first.place[0]
    differing = {pair.place[2] for pair in key.differing if pair.place[0] == step}
    equal = {pair.place[2] for pair in key.pairs if pair.place[0] == step and pair.state == EQUAL}
    return bool(equal) and min(equal) < min(differing)


def reading(comparison: KeyDataComparison) -> list[Finding]:
    """The first table that parts and what it means; then what follows from it; then what could not be read off."""
    found: list[Finding] = []
    own = sorted((key for key in comparison.keys if key.state == DIFFERS), key=lambda key: key.first.place[0] if key.first else 0)
    for at, key in enumerate(own):
        found.append(_parting(key, comparison.keys, "error" if at == 0 else "warning"))
    found += _consequences(comparison)
    found += _reordered(comparison)
    found += _one_sided(comparison)
    found += _shapes(comparison)
    found += _not_read(comparison)
    found += _padding(comparison)
    return found


def _parting(key: KeyComparison, keys: Sequence[KeyComparison], severity: str) -> Finding:
    code, place = meaning(key)
    when = since(key)
    before = _agreeing(key, keys)
    agree = both(f"{before} equal, ", f"{before.replace(', ', '、')} 一致，") if before else both("", "")
    first = key.first
    numbers = first.numbers if first else None
    size = both("", "")
    if numbers is not None:
        size = both(
            f" (at most {number(numbers.max_abs)} apart in the first table that differs)",
            f"（首个不同的表中最大相差 {number(numbers.max_abs)}）",
        )
    text = both(
        f"{agree['en']}{key.name} differs {when['en']}: {place['en']}{size['en']}",
        f"{agree['zh']}{key.name} {when['zh']}不同：{place['zh']}{size['zh']}",
    )
    steps = _steps(key)
    return Finding(code, severity, text, evidence={"key": key.name, "steps": steps, "tables": len(key.differing), "of": len(key.pairs)})


def since(key: KeyComparison) -> Text:
    """from step 2 on; or the steps themselves where later ones agree again."""
    steps = _steps(key)
    if not steps:
        return both("", "")
    later = [step for step in sorted(key.steps) if step >= steps[0]]
    if later == steps and len(key.steps) > 1:
        return both(f"from step {steps[0]} on", f"从第 {steps[0]} 步起")
    shown = [str(step) for step in steps[:MOST_NAMES]]
    more = both(" …", " 等") if len(steps) > MOST_NAMES else both("", "")
    word = "step" if len(steps) == 1 else "steps"
    return both(f"at {word} {', '.join(shown)}{more['en']}", f"在第 {'、'.join(shown)} 步{more['zh']}")


def _steps(key: KeyComparison) -> list[int]:
    return sorted({pair.place[0] for pair in key.differing})


def _agreeing(key: KeyComparison, keys: Sequence[KeyComparison]) -> str:
    """The keys that it is directly made of and that do not differ in its first step."""
    known = quantity(key.name)
    if known is None or key.first is None:
        return ""
    step = key.first.place[0]
    found = [
        other.name
        for other in keys
        if (its := quantity(other.name)) is not None and its.key in known.of and step in other.steps and step not in _steps(other)
    ]
    return ", ".join(found)


def _consequences(comparison: KeyDataComparison) -> Iterator[Finding]:
    follow = [key for key in comparison.keys if key.state == CONSEQUENCE]
    if not follow:
        return
    names = ", ".join(key.name for key in follow)
    causes = list(
        dict.fromkeys(key.name for key in comparison.keys for other in follow if key.name in other.caused_by and key.state == DIFFERS)
    )
    source = ", ".join(causes) or "an earlier table"
    source_zh = "、".join(causes) or "更早的表"
    yield Finding(
        "key_data_consequences",
        "info",
        both(
            f"{names} {'differ' if len(follow) > 1 else 'differs'} as a consequence: made of {source}, or of weights trained with it",
            f"{names.replace(', ', '、')} 随之不同：由 {source_zh} 得到，或由受其影响的权重得到",
        ),
        evidence={"keys": {key.name: sorted(key.caused_by) for key in follow}},
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
    for state, side, side_zh in ((LEFT_ONLY, "left", "左侧"), (RIGHT_ONLY, "right", "右侧")):
        counts = {key.name: count for key in comparison.keys if (count := key.counts[state])}
        if counts:
            shown = ", ".join(f"{name} ({count})" for name, count in counts.items())
            yield Finding(
                "key_data_one_sided",
                "warning",
                both(f"Tables on the {side} side only: {shown}", f"仅{side_zh}有的表：{shown.replace(', ', '、')}"),
                evidence={"side": side, "tables": counts},
            )


def _shapes(comparison: KeyDataComparison) -> Iterator[Finding]:
    sides = comparison.sides
    if sides[0] is None or sides[1] is None:
        return
    counts: dict[str, int] = {}
    for key in comparison.keys:
        for pair in key.pairs:
            if min(pair.rows) >= 0 and pair.note != "by_sequence" and sides[0].shape(pair.rows[0]) != sides[1].shape(pair.rows[1]):
                counts[key.name] = counts.get(key.name, 0) + 1
    if counts:
        shown = ", ".join(f"{name} ({count})" for name, count in counts.items())
        yield Finding(
            "key_data_shapes",
            "warning",
            both(
                f"Tables of different shapes: {shown}. Their numbers are of the part both have; they count as differing",
                f"形状不同的表：{shown.replace(', ', '、')}。其数值只针对共有部分，这些表一律视为不同",
            ),
            evidence={"tables": counts},
        )


def _not_read(comparison: KeyDataComparison) -> Iterator[Finding]:
    counts = {key.name: count for key in comparison.keys if (count := key.counts[NOT_READ])}
    if counts:
        shown = ", ".join(f"{name} ({count})" for name, count in counts.items())
        yield Finding(
            "key_data_not_read",
            "error",
            both(f"Tables that could not be read on a side: {shown}", f"有一侧无法读取的表：{shown.replace(', ', '、')}"),
            evidence={"tables": counts},
        )


def _padding(comparison: KeyDataComparison) -> Iterator[Finding]:
    counts: dict[str, int] = {}
    for key in comparison.keys:
        count = sum(pair.note == "padding_only" for pair in key.pairs)
        if count:
            counts[key.name] = count
    if counts:
        shown = ", ".join(f"{name} ({count})" for name, count in counts.items())
        yield Finding(
            "key_data_padding",
            "info",
            both(
                f"Tables that differ only beyond the end of the responses, in padding: {shown}",
                f"仅在回复结束之后的填充位置不同的表：{shown.replace(', ', '、')}",
            ),
            evidence={"tables": counts},
        )
