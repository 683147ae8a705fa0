"""Parts that stand against none, in words: how many a side has alone, and what to do where no step of the two runs meets."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compare.engine.diagnose.words import Text, both, counted, ranges
from compare.engine.loop import stage_kind
from compare.engine.model import JsonObject

MOST_NAMES = 4
SIDES = (("left", "左侧"), ("right", "右侧"))


def parts_alone_words(rows: Sequence[JsonObject]) -> Text | None:
    """``4 parts only on the left (step 2)``; None where every part is on both sides."""
    found: list[Text] = []
    for side, side_zh in SIDES:
        alone = [row for row in rows if row["verdict"] == f"{side}_only"]
        if alone:
            inside = _inside(alone, [row for row in rows if row["verdict"] != f"{side}_only" and row[side] is not None])
            found.append(
                both(
                    f"{counted(len(alone), 'part')} only on the {side} ({inside['en']})",
                    f"仅{side_zh}有 {len(alone)} 个部分（{inside['zh']}）",
                )
            )
    return both(", ".join(text["en"] for text in found), "，".join(text["zh"] for text in found)) if found else None


def _inside(alone: Sequence[JsonObject], met: Sequence[JsonObject]) -> Text:
    """The steps, where a side has whole steps alone; else the stages, and the steps of those that it has also elsewhere."""
    steps = {row["step"] for row in alone}
    if None not in steps and steps.isdisjoint(row["step"] for row in met):
        return _steps(steps)
    others = {row["stage"] for row in met}
    names: dict[str, Text] = {}
    for row in alone:
        stage, step = row["stage"] or "", row["step"]
        if stage in others and step is not None:
            names[f"{stage} {step}"] = both(f"{stage} step {step}".strip(), f"{stage} 第 {step} 步".strip())
        else:
            names[stage] = both(stage or "–", stage or "–")
    shown, more = list(names.values())[:MOST_NAMES], len(names) - MOST_NAMES
    rest = both(" …", " 等") if more > 0 else both("", "")
    return both(", ".join(name["en"] for name in shown) + rest["en"], "、".join(name["zh"] for name in shown) + rest["zh"])


def steps_apart_words(rows: Sequence[JsonObject]) -> Text | None:
    """Of runs without a part on both sides although they ran the same stages: that their steps do not meet, and how to pair them."""
    if any(not row["verdict"].endswith("_only") for row in rows):
        return None
    steps = [{row[side]["step"] for row in rows if row[side] and row[side]["step"] is not None} for side, _ in SIDES]
    stages = [{stage_kind(row[side]["stage"]) or row[side]["stage"] for row in rows if row[side]} for side, _ in SIDES]
    return None if stages[0].isdisjoint(stages[1]) else steps_apart(*steps)


def steps_apart(left: Collection[int], right: Collection[int]) -> Text | None:
    """None where a step is on both sides, or a side has none. A run that was resumed counts on; another may count from 1."""
    if not left or not right or not set(left).isdisjoint(right):
        return None
    ours, theirs, example = _steps(left), _steps(right), f"{min(left)}:{min(right)}"
    return both(
        f"no step is on both sides (left: {ours['en']}; right: {theirs['en']}); "
        f"choose two to compare with the option step, such as {example}",
        f"两侧没有相同的步（左侧为{ours['zh']}，右侧为{theirs['zh']}）；可用选项 step 指定要对照的两步，例如 {example}",
    )


def _steps(steps: Collection[int]) -> Text:
    shown = ranges(sorted(steps))
    return both(f"{'step' if len(steps) == 1 else 'steps'} {', '.join(shown)}", f"第 {'、'.join(shown)} 步")
