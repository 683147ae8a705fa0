"""What the configurations of two runs say: what differs, whether a train and an inference dump can be compared, what is not computed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compare.engine.diagnose.finding import Finding
from compare.engine.diagnose.words import both
from compare.engine.keydata.preconditions import holding, preconditions
from compare.engine.keydata.settings import differences
from compare.engine.loop import stage_kind
from compare.engine.model import Configuration, JsonObject
from compare.engine.parts.pairing import StagePair

MOST_PATHS = 8
SIDES = ("left", "right")
WHERE = {"left": both("On the left", "左侧"), "right": both("On the right", "右侧")}
ONLY = {"left": both("Only the left side", "只有左侧"), "right": both("Only the right side", "只有右侧")}
Configurations = tuple[Configuration | None, Configuration | None]
Roles = tuple[str | None, str | None]


def settings_document(configurations: Configurations, roles: Roles) -> JsonObject:
    """``configurations`` and ``preconditions`` of a verdict (``docs/formats.md``)."""
    return {"configurations": differences(*configurations), "preconditions": preconditions(*configurations, roles)}


def what_differs(changed: Sequence[JsonObject]) -> list[Finding]:
    """The settings that decide whether the two can agree, where they differ."""
    paths = [row["path"] for row in changed if row["matters"]]
    if not paths:
        return []
    more = both(f" and {len(paths) - MOST_PATHS} more", f" 等 {len(paths)} 项") if len(paths) > MOST_PATHS else both("", "")
    shown = paths[:MOST_PATHS]
    return [
        Finding(
            "configuration_matters",
            "warning",
            both(
                f"The configurations differ in what decides whether the two can agree: {', '.join(shown)}{more['en']}",
                f"两侧配置在影响一致性的项上不同：{'、'.join(shown)}{more['zh']}",
            ),
            evidence={"paths": paths},
        )
    ]


def on_one_side(configurations: Configurations) -> list[Finding]:
    held = [side for side, one in zip(SIDES, configurations, strict=True) if one is not None]
    if len(held) != 1:
        return []
    where = ONLY[held[0]]
    return [
        Finding(
            "configuration_one_sided",
            "info",
            both(f"{where['en']} has a configuration: settings could not be compared", f"{where['zh']}有配置文件：无法比较配置"),
            evidence={"side": held[0]},
        )
    ]


def what_fails(rows: Sequence[JsonObject]) -> list[Finding]:
    """Of a train side against an inference side: the preconditions that do not hold, with the numbers where there are any."""
    failed = [(row, row[side]) for row in rows for side in SIDES if row[side]["state"] == "failed"]
    if not failed:
        return []
    said = {language: list(dict.fromkeys(_said(side, language) for _, side in failed)) for language in ("en", "zh")}
    more = len(said["en"]) - MOST_PATHS
    rest = both(f"; and {more} more", f" 等 {len(said['en'])} 项") if more > 0 else both("", "")
    return [
        Finding(
            "preconditions_failed",
            "warning",
            both(
                "Train and inference dumps are comparable only where some settings are as they should be; these are not: "
                f"{'; '.join(said['en'][:MOST_PATHS])}{rest['en']}",
                f"训练与推理数据可比的前提是若干配置正确，以下配置不满足：{'；'.join(said['zh'][:MOST_PATHS])}{rest['zh']}",
            ),
            evidence={"codes": list(dict.fromkeys(row["code"] for row, _ in failed))},
        )
    ]


def _said(side: JsonObject, language: str) -> str:
    """The equation, without how what it is computed of comes about; else the setting."""
    if "text" not in side:
        return str(side["path"])
    return str(re.split("[;；]", side["text"][language])[0])


def what_is_not_computed(rows: Sequence[JsonObject]) -> list[Finding]:
    """Of runs whose training input was cut to the prompts: a 0 in what is computed over responses is no result."""
    sides = holding(rows, "prompts_only")
    if not sides:
        return []
    where = WHERE[sides[0]] if len(sides) == 1 else both("On both sides", "两侧")
    return [
        Finding(
            "prompts_only",
            "warning",
            both(
                f"{where['en']} training read the prompts alone (PROMPTS_ONLY=1): what is computed over responses was not computed, and "
                "a 0 there means “not run”, not “equal”",
                f"{where['zh']}训练只输入了提示词（PROMPTS_ONLY=1）：针对回复计算的指标并未计算，其中的 0 表示“未运行”，而不是“相等”",
            ),
            evidence={"sides": sides},
        )
    ]


def crossed(roles: Roles, stages: Sequence[StagePair]) -> bool:
    """Whether training stands against inference: two runs of these roles, or two stages of another kind within a loop."""
    return set(roles) == {"train", "infer"} or any(pair.used and stage_kind(pair.left) != stage_kind(pair.right) for pair in stages)


def with_settings(document: JsonObject, loop: JsonObject | None, roles: Roles, stages: Sequence[StagePair]) -> JsonObject:
    """The verdict of a single part, with what the configurations say (``loop``: ``run_loop.loop_document``) where a side has one."""
    if loop is None or not loop.get("preconditions"):
        return document
    settings = {name: loop[name] for name in ("configurations", "preconditions")}
    failing = what_fails(settings["preconditions"]) if crossed(roles, stages) else []
    findings = [*document["findings"], *loop["findings"], *(finding.document() for finding in failing)]
    return {**document, **settings, "findings": findings}
