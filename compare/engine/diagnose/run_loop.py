"""What a run verdict says besides its parts: key data, configurations, self-checks, and how the differences move over the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compare.engine.diagnose.findings import Finding
from compare.engine.diagnose.rank_findings import ranks_shifted
from compare.engine.diagnose.run_alone import steps_apart
from compare.engine.diagnose.run_checks import check_document, severity
from compare.engine.diagnose.run_coverage import beside, compared_tables
from compare.engine.diagnose.run_drift import Drift, key_drift, probability_drift
from compare.engine.diagnose.run_reading import meaning, reading, since
from compare.engine.diagnose.run_settings import Configurations, Roles, on_one_side, settings_document, what_differs, what_is_not_computed
from compare.engine.diagnose.words import Text, both, number
from compare.engine.keydata.checks import check, probability_differences
from compare.engine.keydata.documents import key_document, place_document
from compare.engine.keydata.key_comparison import KeyDataComparison
from compare.engine.keydata.table_pair import EQUAL
from compare.engine.loop import quantity, stage_kind
from compare.engine.model import JsonObject
from compare.engine.parts.pairing import Part

SIDES = ("left", "right")


def loop_document(
    comparison: KeyDataComparison,
    configurations: Configurations,
    parts: Sequence[Part],
    roles: Roles = (None, None),
) -> JsonObject:
    """Everything but the parts, as plain JSON: it is made once, by a worker of its own where several share a comparison.

    ``verdict``: identical, consistent (tables on one side only, or not read), diverged; None where no table was compared. ``first``: the
    table that parts first with the kind of stage that makes it and what that means, None where none does. ``tables``: how many were
    compared; ``beside``: what of the others has to be said beside that.
    """
    keys = [key_document(n, key, stage_of(key.name, parts)) for n, key in enumerate(comparison.keys)]
    checks = [
        (check_document(one, SIDES[at]), severity(one))
        for at, side in enumerate(comparison.sides)
        if side is not None
        for one in check(side)
    ]
    settings = settings_document(configurations, roles)
    drifts = [drift for key in comparison.keys if key.first is not None and (drift := key_drift(key)) is not None]
    probabilities = [
        probability_drift(found, SIDES[at])
        for at, side in enumerate(comparison.sides)
        if side is not None and (found := probability_differences(side))
    ]
    findings = [
        *reading(comparison),
        *(() if parts else _steps_apart(comparison)),
        *ranks_shifted(_ranks(comparison)),
        *(_probabilities(drift) for drift in probabilities),
        *(
            Finding(f"check_{row['code']}", level, _sided(row), evidence={"check": row})
            for row, level in checks
            if row["state"] == "failed"
        ),
        *what_differs(settings["configurations"]),
        *on_one_side(configurations),
        *(what_is_not_computed(settings["preconditions"]) if keys else ()),
    ]
    return {
        "verdict": _word(comparison),
        "first": _first(comparison),
        "tables": compared_tables(comparison),
        "beside": beside(comparison),
        "error": None,
        **settings,
        "key_data": keys,
        "checks": [row for row, _ in checks],
        "drift": [drift.document() for drift in (*drifts, *probabilities)],
        "findings": [finding.document() for finding in findings],
    }


def _steps_apart(comparison: KeyDataComparison) -> list[Finding]:
    """Of key data alone; of dumps the headline says it."""
    if None in comparison.sides:
        return []
    steps = [
        {place[0] for side in (one,) if side for tables in side.by_key.values() for place in tables} - {-1} for one in comparison.sides
    ]
    said = steps_apart(*steps)
    if said is None:
        return []
    return [Finding("steps_apart", "warning", both(f"{said['en'][0].upper()}{said['en'][1:]}", said["zh"]))]


def _ranks(comparison: KeyDataComparison) -> list[tuple[int, int]]:
    """The ranks of the left tables, and which of the right they stand against."""
    if comparison.sides[0] is None:
        return []
    return [(rank, rank + comparison.shift) for rank in set(comparison.sides[0].table.rank[comparison.sides[0].rows].tolist())]


def failed_loop(error: JsonObject) -> JsonObject:
    """In place of ``loop_document`` where that could not be made: what was not compared must not pass for equal."""
    said = error.get("message") or error.get("code") or ""
    finding = Finding(
        "key_data_failed",
        "error",
        both(f"Key data and configurations could not be compared: {said}", f"关键数据与配置未能比较：{said}"),
        evidence={"error": error},
    )
    return {
        "verdict": "not_comparable",
        "first": None,
        "tables": 0,
        "beside": None,
        "error": error,
        "measure_s": 0.0,
        "findings": [finding.document()],
    }


def stage_of(key: str, parts: Sequence[Part]) -> str | None:
    """The stage that makes a key, as the left side names it (else the right), where it was dumped."""
    known = quantity(key)
    if known is None or known.stage is None:
        return None
    names = [side[0] for part in parts for side in (part.left, part.right) if side is not None]
    return next((name for name in names if stage_kind(name) == known.stage), None)


def _word(comparison: KeyDataComparison) -> str | None:
    if not compared_tables(comparison):
        return None
    if any(key.first is not None for key in comparison.keys):
        return "diverged"
    return "identical" if all(pair.state == EQUAL for key in comparison.keys for pair in key.pairs) else "consistent"


def _first(comparison: KeyDataComparison) -> JsonObject | None:
    key = comparison.first
    if key is None or key.own is None:
        return None
    known = quantity(key.name)
    return {
        "key": key.name,
        "stage": known.stage if known else None,
        **place_document(key.own.place),
        "since": since(key),
        "meaning": meaning(key)[1],
    }


def _probabilities(drift: Drift) -> Finding:
    """What verl measured between its rollout and its trainer, in one run."""
    left = drift.side == "left"
    finite = [(value, step) for value, step in zip(drift.values, drift.steps, strict=True) if value is not None and math.isfinite(value)]
    worst = max(finite, default=(math.nan, drift.steps[0]))
    return Finding(
        f"probabilities_{drift.kind}",
        "info",
        both(
            f"{'Left' if left else 'Right'} run alone – probabilities of rollout and training are {number(worst[0])} apart on average in "
            f"step {worst[1]}, the worst; {drift.text['en']}",
            f"仅看{'左' if left else '右'}侧 – rollout 与训练的概率在最差的第 {worst[1]} 步平均相差 {number(worst[0])}；{drift.text['zh']}",
        ),
        evidence={"steps": list(drift.steps), "means": list(drift.values)},
    )


def _sided(row: JsonObject) -> Text:
    left = row["side"] == "left"
    return both(f"{'Left' if left else 'Right'} run alone – {row['text']['en']}", f"仅看{'左' if left else '右'}侧 – {row['text']['zh']}")
