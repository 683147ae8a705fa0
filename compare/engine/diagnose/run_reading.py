"""The reading of compared key data in words: which table parts first, and what that says about the loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compare.engine.diagnose.findings import Finding
from compare.engine.diagnose.run_coverage import coverage
from compare.engine.diagnose.run_sizes import size_words
from compare.engine.diagnose.words import Text, both
from compare.engine.keydata.key_comparison import CONSEQUENCE, KeyComparison, KeyDataComparison
from compare.engine.keydata.table_pair import DIFFERS, EQUAL
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
    if key.own is None:
        return False
    step = key.own.place[0]
    differing = {pair.place[2] for pair in key.differing if pair.place[0] == step}
    equal = {pair.place[2] for pair in key.pairs if pair.place[0] == step and pair.state == EQUAL}
    return bool(equal) and min(equal) < min(differing)


def reading(comparison: KeyDataComparison) -> list[Finding]:
    """The first table that parts and what it means; then what follows from it; then what it rests on."""
    found: list[Finding] = []
    for at, key in enumerate(comparison.own):
        found.append(_parting(key, comparison, "error" if at == 0 else "warning"))
    return [*found, *_consequences(comparison), *coverage(comparison)]


def _parting(key: KeyComparison, comparison: KeyDataComparison, severity: str) -> Finding:
    code, place = meaning(key)
    when = since(key)
    before = _agreeing(key, comparison.keys)
    agree = both(f"{before} equal, ", f"{before.replace(', ', '、')} 一致，") if before else both("", "")
    first = key.own or key.first
    apart = None if first is None else size_words(first, key.kind, comparison.sides)
    size = both("", "")
    if apart is not None:
        size = both(f" ({apart['en']} in the first table that differs)", f"（首个不同的表中{_spaced(apart['zh'])}）")
    text = both(
        f"{agree['en']}{key.name} differs {when['en']}: {place['en']}{size['en']}",
        f"{agree['zh']}{key.name} {when['zh']}不同：{place['zh']}{size['zh']}",
    )
    steps = _steps(key)
    return Finding(code, severity, text, evidence={"key": key.name, "steps": steps, "tables": len(key.differing), "of": len(key.pairs)})


def _spaced(text: str) -> str:
    """As it stands behind a Chinese word: figures and Latin letters keep their distance."""
    return f" {text}" if text[:1].isascii() else text


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
    """From the first on in which it differs by itself."""
    begin = key.own.place[0] if key.own else 0
    return sorted({pair.place[0] for pair in key.differing if pair.place[0] >= begin})


def _agreeing(key: KeyComparison, keys: Sequence[KeyComparison]) -> str:
    """The keys that it is directly made of and that do not differ in its first step."""
    known = quantity(key.name)
    if known is None or key.own is None:
        return ""
    step = key.own.place[0]
    found = [
        other.name
        for other in keys
        if (its := quantity(other.name)) is not None
        and its.key in known.of
        and any(pair.settled for pair in other.pairs if pair.place[0] == step)
        and not any(pair.place[0] == step for pair in other.differing)
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
