"""Self-checks of a run in words."""

from __future__ import annotations

from compare.engine.diagnose.words import Text, both, number
from compare.engine.keydata.checks import Check
from compare.engine.keydata.documents import place_document
from compare.engine.model import JsonObject

# code → severity where it fails, what holds, what does not (with {worst}), in both languages
WORDS: dict[str, tuple[str, Text, Text]] = {
    "log_prob_positive": (
        "error",
        both("no log-probability is positive", "没有大于 0 的对数概率"),
        both("log-probabilities above 0, up to {worst}: the normaliser is wrong", "存在大于 0 的对数概率，最大 {worst}：归一化有误"),
    ),
    "on_policy": (
        "warning",
        both("before the first update it equals old_log_prob", "首次更新之前与 old_log_prob 相同"),
        both(
            "differs from old_log_prob before any update, by up to {worst}: the two forward passes of the actor do not agree",
            "在任何更新之前就与 old_log_prob 不同，最大相差 {worst}：actor 的两次前向计算不一致",
        ),
    ),
    "kl_negative": (
        "warning",
        both("no KL loss is negative", "没有为负的 KL 损失"),
        both("a KL loss below 0, down to {worst}", "KL 损失小于 0，最小 {worst}"),
    ),
    "advantages_off_centre": (
        "warning",
        both("centred around 0 in every step", "每一步都以 0 为中心"),
        both("not centred around 0: the mean of a step is {worst}", "不以 0 为中心：某一步的均值为 {worst}"),
    ),
    "tokens_not_integral": (
        "error",
        both("every token is a whole number", "词元都是非负整数"),
        both("tokens that are no whole numbers, or negative: {worst} in one table", "单个表中有 {worst} 个词元不是非负整数"),
    ),
    "nonfinite": (
        "error",
        both("no NaN and no Inf", "没有 NaN 和 Inf"),
        both("NaN or Inf, {worst} in one table", "出现 NaN 或 Inf，单个表中有 {worst} 个"),
    ),
    "copies_differ": (
        "warning",
        both("ranks that hold copies hold the same", "互为副本的 rank 数据相同"),
        both("ranks that hold copies of each other elsewhere differ here", "在别处互为副本的 rank 在此处不同"),
    ),
}


COUNTS = frozenset({"nonfinite", "tokens_not_integral"})  # checks whose worst is a number of places in a table, and no size


def severity(check: Check) -> str:
    return WORDS[check.code][0] if check.failed else "info"


def check_document(check: Check, side: str) -> JsonObject:
    """One entry of the run verdict's ``checks``."""
    _, holds, fails = WORDS[check.code]
    counts = check.code in COUNTS and check.worst is not None
    worst = f"{check.worst:.0f}" if counts else number(check.worst)
    said = {language: text.replace("{worst}", worst) for language, text in (fails if check.failed else holds).items()}
    count = both(f" ({check.failed} of {check.tables})", f"（{check.tables} 个中有 {check.failed} 个）") if check.failed else both("", "")
    return {
        "code": check.code,
        "side": side,
        "key": check.key,
        "state": "failed" if check.failed else "ok",
        "severity": severity(check),
        "tables": check.tables,
        "failed": check.failed,
        "worst": None if counts else check.worst,
        "first": None if check.first is None else place_document(check.first),
        "text": {"en": f"{check.key}: {said['en']}{count['en']}", "zh": f"{check.key}：{said['zh']}{count['zh']}"},
    }
