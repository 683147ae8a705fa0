"""The run verdict (``probe-web/run-verdict/1``): several parts, the earliest bad one first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compare.engine.diagnose.verdict import SideFacts, finite
from compare.engine.diagnose.words import Text, both, short
from compare.engine.model import JsonObject
from compare.engine.parts import Part, PartKey

SCHEMA = "probe-web/run-verdict/1"
NAMED_FAILURES = 3  # how many failed parts the headline names; the rows have them all


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part: its verdict document; or neither that nor an error where one side does not hold it.

    ``error`` is ``{code, params, message, where}`` of a part that could not be compared: it is named and hides nothing of the others.
    """

    part: Part
    document: JsonObject | None = None
    error: JsonObject | None = None


def run_verdict(outcomes: Sequence[Outcome], facts: tuple[SideFacts, SideFacts], timing: JsonObject) -> JsonObject:
    rows = [_row(outcome) for outcome in outcomes]
    word = _word([row["verdict"] for row in rows])
    bad = next((row for row in rows if row["verdict"] == "diverged"), None)
    first = None if bad is None else _first(bad)
    judged = [outcome.document for outcome in outcomes if outcome.document is not None]
    sides = {
        name: {**judged[0][name], "step": None, "stage": None} if judged else {"name": facts[index].name, "role": facts[index].role}
        for index, name in enumerate(("left", "right"))
    }
    document = {
        "schema": SCHEMA,
        **sides,
        "verdict": word,
        "headline": _with_failures(_headline(word, rows, first), [row for row in rows if row["state"] == "failed"]),
        "configurations": [],
        "key_data": [],
        "parts": rows,
        "first": first,
        "timing": timing,
    }
    return finite(document)


def _key(key: PartKey | None) -> JsonObject | None:
    return None if key is None else {"stage": key[0], "step": key[1]}


def _row(outcome: Outcome) -> JsonObject:
    part, document = outcome.part, outcome.document
    stage, step = part.left or part.right or (None, None)
    return {
        "n": part.n,
        "left": _key(part.left),
        "right": _key(part.right),
        "stage": stage,
        "step": step,
        "ranks": [] if document is None else document["left"]["ranks"],
        "by_rank": [] if document is None else document.get("by_rank", []),  # documents of older versions have none
        "state": "failed" if outcome.error else "done",
        "error": outcome.error,
        "verdict": _verdict(outcome),
        "first_difference": None if document is None else document["first_difference"],
        "first_divergence": None if document is None else document["first_divergence"],
    }


def _verdict(outcome: Outcome) -> str:
    if outcome.document is not None:
        word: str = outcome.document["verdict"]
        return word
    return "not_comparable" if outcome.part.only is None else f"{outcome.part.only}_only"


def _word(words: Sequence[str]) -> str:
    compared = [word for word in words if not word.endswith("_only")]
    if "diverged" in compared:
        return "diverged"
    if not compared or "not_comparable" in compared:  # what could not be compared must not hide behind what could
        return "not_comparable"
    return "identical" if all(word == "identical" for word in words) else "consistent"


def _first(row: JsonObject) -> JsonObject:
    place = row["first_divergence"] or row["first_difference"] or {}
    return {"key_data": None, "stage": row["stage"], "step": row["step"], "rank": place.get("rank"), "module": place.get("module")}


def _headline(word: str, rows: Sequence[JsonObject], first: JsonObject | None) -> Text:
    compared = [row for row in rows if row["verdict"] in ("identical", "consistent")]
    apart = len(rows) - len(compared)
    if first is not None:
        stage = f"{first['stage']}, " if first["stage"] else ""
        module = short(first["module"] or "(root)")
        return both(
            f"First divergence: {stage}step {first['step']}, {module}",
            f"首个差异：{stage.replace(', ', '，')}第 {first['step']} 步，{module}",
        )
    if word == "not_comparable":
        if not compared:
            return both(
                "Not comparable — no part is on both sides, or none could be compared", "无法比较 — 没有两侧共有的部分，或都无法比较"
            )
        return both(
            f"Not comparable — {apart} of {len(rows)} parts could not be compared; the other {len(compared)} show nothing beyond noise",
            f"无法比较 — {len(rows)} 个部分中有 {apart} 个无法比较；其余 {len(compared)} 个没有超出噪声的差异",
        )
    said = {"identical": both("Identical", "完全一致"), "consistent": both("Consistent", "一致")}[word]
    others = both(f"; {apart} could not be compared", f"；{apart} 个部分无法比较") if apart else both("", "")
    return both(
        f"{said['en']} — {len(compared)} parts compared, nothing beyond noise{others['en']}",
        f"{said['zh']} — 比较了 {len(compared)} 个部分，没有超出噪声的差异{others['zh']}",
    )


def _with_failures(headline: Text, failed: Sequence[JsonObject]) -> Text:
    """The headline with the parts that failed: what is said above them is said without them."""
    if not failed:
        return headline
    more = len(failed) - NAMED_FAILURES
    places = [_place(row) for row in failed[:NAMED_FAILURES]]
    named = both(", ".join(place["en"] for place in places), "、".join(place["zh"] for place in places))
    rest = both(f" and {more} more", f" 等 {len(failed)} 个") if more > 0 else both("", "")
    parts = "1 part" if len(failed) == 1 else f"{len(failed)} parts"
    return both(
        f"{headline['en']}; {parts} failed: {named['en']}{rest['en']}",
        f"{headline['zh']}；{len(failed)} 个部分失败：{named['zh']}{rest['zh']}",
    )


def _place(row: JsonObject) -> Text:
    step = both(f"step {row['step']}", f"第 {row['step']} 步") if row["step"] is not None else both("", "")
    stage = row["stage"] or ""
    return both(f"{stage} {step['en']}".strip() or f"part {row['n']}", f"{stage} {step['zh']}".strip() or f"第 {row['n']} 个部分")
