"""How a difference moves over the steps: there from the start, growing, or setting in late. Each has other causes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compare.engine.diagnose.trend import GROWTH, LEAST_FOR_A_TEST, grows, growth, level_change, rising_order, standing_out
from compare.engine.diagnose.words import Text, both, number, percent
from compare.engine.keydata.key_comparison import KeyComparison
from compare.engine.keydata.table_pair import DIFFERS, TablePair
from compare.engine.model import JsonObject

LEAST_STEPS = 3  # fewer say nothing of how a difference moves
MOST_NAMES = 6
HARDLY = 0.1  # a rise of less is not worth a word

WITHOUT_SIZE: Mapping[str, Text] = {  # why a step differs without a number that says how much
    "nonfinite": both("NaN or Inf on one side", "一侧为 NaN 或 Inf"),
    "shapes": both("other shapes", "形状不同"),
    "statistics": both("compared by statistics alone", "只比较了统计量"),
    "unmeasured": both("parted where no norm tells", "差异不体现在范数上"),
}


@dataclass(frozen=True, slots=True)
class Drift:
    """``values``: the size of the difference in each of ``steps``, None where none is known. ``without_size``: of steps that differ, also
    or only, in what has no size, the reason (``WITHOUT_SIZE``).
    """

    key: str | None
    stage: str | None
    measure: str
    steps: Sequence[int]
    values: Sequence[float | None]
    side: str | None = None  # of a difference that one run holds by itself
    without_size: Mapping[int, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """none; from_start (in every step, and not growing as far as so many steps can say); growing; late (from a later step on, or on a
        higher level from there on); at_times (in some steps and not, or far less, after them).
        """
        return self._read()[0]

    @property
    def text(self) -> Text:
        name, (_, said) = self.key or self.stage or "", self._read()
        odd, counted = self._odd(), self.measure == "differing_tokens" and any(self.values)
        unit = both(" (tokens that differ)", "（不同的词元数）") if counted else both("", "")
        return both(f"{name}{unit['en']}: {said['en']}{odd['en']}", f"{name}{unit['zh']}：{said['zh']}{odd['zh']}")

    def document(self) -> JsonObject:
        kind, _ = self._read()
        return {
            "key": self.key,
            "stage": self.stage,
            "side": self.side,
            "steps": list(self.steps),
            "values": list(self.values),
            "measure": self.measure,
            "kind": kind,
            "without_size": [{"step": step, "reason": reason} for step, reason in sorted(self._reasons().items())],
            "text": self.text,
        }

    def _size(self, value: float) -> str:
        """In the unit in which page and report show the series: a relative difference in percent."""
        return percent(value) if self.measure == "norm_rel" else number(value)

    def _reasons(self) -> dict[int, str]:
        odd = {
            step: "nonfinite" for step, value in zip(self.steps, self.values, strict=True) if value is not None and not math.isfinite(value)
        }
        return {**odd, **self.without_size}

    def _read(self) -> tuple[str, Text]:
        reasons = self._reasons()
        differs = [step in reasons or (value or 0) > 0 for step, value in zip(self.steps, self.values, strict=True)]
        if not any(differs):
            return "none", both("no difference in any step", "各步均无差异")
        begin = differs.index(True)
        if not all(differs[begin:]):
            return "at_times", self._at_times(differs)
        known = [
            (step, value)
            for step, value in zip(self.steps[begin:], self.values[begin:], strict=True)
            if value is not None and math.isfinite(value) and value > 0
        ]
        return self._since(begin, [step for step, _ in known], [value for _, value in known])

    def _at_times(self, differs: Sequence[bool]) -> Text:
        there = [step for step, one in zip(self.steps, differs, strict=True) if one]
        after = sum(step > there[-1] for step in self.steps)
        sizes = [value for value, one in zip(self.values, differs, strict=True) if one and value is not None and math.isfinite(value)]
        size = self._size(max(sizes)) if sizes and max(sizes) > 0 else ""
        named = _steps(there)
        up_to = both(f", up to {size}" if size else "", f"，最大 {size}" if size else "")
        if after:
            later = "step" if after == 1 else f"{after} steps"
            return both(
                f"only in {named['en']}{up_to['en']}, and not in the {later} after: something that happened then",
                f"仅在{named['zh']}{up_to['zh']}，其后 {after} 步没有：是当时发生的问题",
            )
        return both(
            f"in {len(there)} of {len(self.steps)} steps ({_listed(there)['en']}){up_to['en']}, and not in between: it comes and goes",
            f"{len(self.steps)} 步中有 {len(there)} 步（{_listed(there)['zh']}）{up_to['zh']}，其间没有：时有时无",
        )

    def _since(self, begin: int, steps: Sequence[int], sizes: Sequence[float]) -> tuple[str, Text]:
        """Of a difference in every step from position ``begin`` on, with the sizes that are known."""
        start = self.steps[begin]
        none_before = both(f"nothing before step {start}, ", f"第 {start} 步之前没有，") if begin else both("", "")
        if not sizes:
            if begin:
                return "late", both(
                    f"nothing before step {start}: something that happened in that step", f"第 {start} 步之前没有：是该步发生的问题"
                )
            return "from_start", both(f"in every step from step {start} on", f"从第 {start} 步起每一步都有")
        span = f"{self._size(sizes[0])} → {self._size(sizes[-1])}" if len(sizes) > 1 else self._size(sizes[0])
        higher = level_change(sizes) if len(sizes) >= LEAST_STEPS else None
        if higher is not None:
            low, high = self._size(max(sizes[:higher])), self._size(min(sizes[higher:]))
            return "late", both(
                f"{none_before['en']}at most {low} before step {steps[higher]}, at least {high} from there on: "
                "something that happened in that step",
                f"{none_before['zh']}第 {steps[higher]} 步之前最大 {low}，从该步起最小 {high}：是该步发生的问题",
            )
        if grows(steps, sizes):
            few = both("", "") if len(sizes) >= LEAST_FOR_A_TEST else both(f", {len(sizes)} steps only", f"，仅 {len(sizes)} 步")
            return "growing", both(
                f"{none_before['en']}grows from step {steps[0]} on ({span}{few['en']}): weight sync or accumulating numerics",
                f"{none_before['zh']}从第 {steps[0]} 步起不断增长（{span}{few['zh']}）：权重同步问题或数值误差累积",
            )
        out = standing_out(sizes)
        if out:
            named, rest = _steps([steps[at] for at in out]), max(size for at, size in enumerate(sizes) if at not in out)
            top = self._size(max(sizes))
            return "at_times", both(
                f"{none_before['en']}{top} in {named['en']}, at most {self._size(rest)} in the others: something that happened then",
                f"{none_before['zh']}{named['zh']}为 {top}，其余各步最大 {self._size(rest)}：是当时发生的问题",
            )
        if begin:
            return "late", both(
                f"nothing before step {start}, then {self._size(max(sizes))}: something that happened in that step",
                f"第 {start} 步之前没有，之后为 {self._size(max(sizes))}：是该步发生的问题",
            )
        return "from_start", self._from_start(steps, sizes, span)

    def _from_start(self, steps: Sequence[int], sizes: Sequence[float], span: str) -> Text:
        start = self.steps[0]
        if len(sizes) < LEAST_STEPS:
            if len(self.steps) == 1:
                return both(f"{span} in step {start}, the only one compared", f"第 {start} 步为 {span}，只比较了这一步")
            return both(
                f"there from step {start} on ({span}); so few steps do not say how it moves",
                f"从第 {start} 步就有（{span}）；步数太少，无法判断走势",
            )
        rise = growth(steps, sizes)
        if HARDLY <= rise < GROWTH and rising_order(sizes) > 0:
            return both(
                f"there from step {start} on and growing by less than half ({span}): configuration rather than drift",
                f"从第 {start} 步就有，增长不到一半（{span}）：更像配置问题而不是漂移",
            )
        return both(
            f"there from step {start} on and not growing ({span}): configuration, not drift",
            f"从第 {start} 步就有且没有增长（{span}）：是配置问题而不是漂移",
        )

    def _odd(self) -> Text:
        """Of steps that differ without a size, why."""
        by_reason: dict[str, list[int]] = {}
        for step, reason in sorted(self._reasons().items()):
            by_reason.setdefault(reason, []).append(step)
        en = [f"{_steps(steps)['en']}: {WITHOUT_SIZE[reason]['en']}" for reason, steps in by_reason.items()]
        zh = [f"{_steps(steps)['zh']}：{WITHOUT_SIZE[reason]['zh']}" for reason, steps in by_reason.items()]
        return both("".join(f"; {one}" for one in en), "".join(f"；{one}" for one in zh))


def _steps(steps: Sequence[int]) -> Text:
    listed = _listed(steps)
    return both(f"{'step' if len(steps) == 1 else 'steps'} {listed['en']}", f"第 {listed['zh']} 步")


def _listed(steps: Sequence[int]) -> Text:
    shown = [str(step) for step in steps[:MOST_NAMES]]
    more = both(" …", " 等") if len(steps) > MOST_NAMES else both("", "")
    return both(", ".join(shown) + more["en"], "、".join(shown) + more["zh"])


def key_drift(key: KeyComparison) -> Drift | None:
    """The largest |left − right| of each step that was compared, of tokens how many differ; None where no step is on both sides."""
    sizes: dict[int, float | None] = {}
    odd: dict[int, str] = {}
    for pair in key.pairs:
        step = pair.place[0]
        reason = _without_size(pair)
        if pair.evidence == "none" and reason is None:
            continue
        sizes.setdefault(step, None)
        if reason is not None:
            odd.setdefault(step, reason)
        numbers = None if reason == "shapes" else pair.masked or pair.numbers
        if numbers is not None and key.kind == "tokens":
            sizes[step] = (sizes[step] or 0.0) + numbers.compared - numbers.same
        elif numbers is not None and math.isfinite(numbers.max_abs):
            sizes[step] = max(sizes[step] or 0.0, numbers.max_abs)
        elif reason is None:
            sizes[step] = sizes[step] or 0.0
    if not sizes:
        return None
    steps = sorted(sizes)
    values = [None if step in odd and not sizes[step] else sizes[step] for step in steps]
    return Drift(key.name, None, "differing_tokens" if key.kind == "tokens" else "max_abs", steps, values, None, odd)


def _without_size(pair: TablePair) -> str | None:
    """Why a table that counts as differing has no number that says by how much."""
    if pair.state != DIFFERS:
        return None
    numbers = pair.masked or pair.numbers
    if numbers is None:
        return "statistics"
    left, right, same = numbers.nan
    if left != same or right != same or math.isinf(numbers.max_abs):
        return "nonfinite"
    return "shapes" if numbers.same == numbers.compared else None


def probability_drift(means: Mapping[int, float], side: str) -> Drift:
    """``means`` by step, NaN where a step's mean is."""
    steps = sorted(means)
    return Drift("prob_diff", None, "mean_abs", steps, [means[step] for step in steps], side)


def stage_drifts(rows: Sequence[JsonObject], documents: Mapping[int, JsonObject]) -> list[Drift]:
    """A series a stage: the largest relative difference of a layer's norm, of the parts that were compared in more than one step."""
    stages: dict[str, dict[int, float | None]] = {}
    odd: dict[str, dict[int, str]] = {}
    for row in rows:
        document = documents.get(row["n"])
        if document is None or row["step"] is None or row["stage"] is None:
            continue
        own = ((document.get("first_divergence") or {}).get("evidence") or {}).get("norm_rel")
        norms = [norm for norm in (own, *(layer["norm_rel"] for layer in document.get("layers", []))) if norm is not None]
        known = [norm for norm in norms if isinstance(norm, float)]
        series = stages.setdefault(row["stage"], {})
        largest = max(known, default=None)
        if len(known) < len(norms):  # NaN and infinities are words in a document
            odd.setdefault(row["stage"], {})[row["step"]] = "nonfinite"
        elif row["verdict"] == "diverged" and not largest:
            odd.setdefault(row["stage"], {})[row["step"]] = "unmeasured"
            largest = None
        elif largest is None:
            continue
        series[row["step"]] = max(series.get(row["step"]) or 0.0, largest) if largest is not None else series.get(row["step"])
    return [
        Drift(None, stage, "norm_rel", sorted(series), [series[step] for step in sorted(series)], None, odd.get(stage, {}))
        for stage, series in stages.items()
        if len(series) > 1
    ]
