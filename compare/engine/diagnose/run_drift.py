"""How a difference moves over the steps: there from the start, growing, or setting in late. Each has other causes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.diagnose.words import Text, both, number
from compare.engine.model import JsonObject

GROWS = 3.0  # last third of the steps over the first third (medians): more than steps of one run differ among themselves
LEAST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Drift:
    key: str | None
    stage: str | None
    measure: str
    steps: Sequence[int]
    values: Sequence[float]
    side: str | None = None  # of a difference that one run holds by itself

    @property
    def kind(self) -> str:
        """none, from_start, growing or late; for fewer steps than can say so: none or late."""
        there = [at for at, value in enumerate(self.values) if value > 0 or math.isnan(value)]
        if not there:
            return "none"
        rest = np.asarray(self.values[there[0] :], np.float64)
        third = max(1, len(rest) // 3)
        if len(rest) >= LEAST_STEPS and np.isfinite(rest).all():
            first, last = float(np.median(rest[:third])), float(np.median(rest[-third:]))
            if last > GROWS * first:
                return "growing"
        return "late" if there[0] > 0 else "from_start"

    def document(self) -> JsonObject:
        return {
            "key": self.key,
            "stage": self.stage,
            "side": self.side,
            "steps": list(self.steps),
            "values": list(self.values),
            "measure": self.measure,
            "kind": self.kind,
            "text": self.text,
        }

    @property
    def text(self) -> Text:
        name = self.key or self.stage or ""
        kind = self.kind
        if kind == "none":
            return both(f"{name}: no difference in any step", f"{name}：各步均无差异")
        begin = next(step for step, value in zip(self.steps, self.values, strict=True) if value > 0 or math.isnan(value))
        first, last = number(self.values[0]), number(self.values[-1])
        if kind == "from_start":
            return both(
                f"{name}: there from step {begin} on and not growing ({first} → {last}): configuration, not drift",
                f"{name}：从第 {begin} 步就有且没有增长（{first} → {last}）：是配置问题而不是漂移",
            )
        if kind == "growing":
            return both(
                f"{name}: grows from step {begin} on ({first} → {last}): weight sync or accumulating numerics",
                f"{name}：从第 {begin} 步起不断增长（{first} → {last}）：权重同步问题或数值误差累积",
            )
        return both(
            f"{name}: nothing before step {begin}, then {number(max(self.values))}: something that happened in that step",
            f"{name}：第 {begin} 步之前没有，之后为 {number(max(self.values))}：是该步发生的问题",
        )


def stage_drifts(rows: Sequence[JsonObject], documents: Mapping[int, JsonObject]) -> list[Drift]:
    """A series a stage: the largest relative difference of a layer's norm, of the parts that were compared in more than one step."""
    stages: dict[str, dict[int, float]] = {}
    for row in rows:
        document = documents.get(row["n"])
        if document is None or row["step"] is None or row["stage"] is None:
            continue
        norms = [layer["norm_rel"] for layer in document.get("layers", []) if isinstance(layer.get("norm_rel"), float)]
        own = ((document.get("first_divergence") or {}).get("evidence") or {}).get("norm_rel")
        known = [*norms, own] if isinstance(own, float) else norms
        if known:
            stages.setdefault(row["stage"], {})[row["step"]] = max(known)
    return [
        Drift(None, stage, "norm_rel", sorted(series), [series[step] for step in sorted(series)])
        for stage, series in stages.items()
        if len(series) > 1
    ]
