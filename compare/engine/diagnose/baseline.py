"""What is said of a baseline, the second dump of the left side that the noise floor was measured on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.diagnose.case import Case
from compare.engine.diagnose.finding import Finding
from compare.engine.diagnose.words import Text, both, percent
from compare.engine.measure.self_noise import SelfNoise


@dataclass(frozen=True, slots=True)
class Baseline:
    """``measured``: one entry a case, None where the baseline does not align with that rank. ``same``: it is the left dump itself, byte for
    byte, and so measures nothing."""

    name: str
    same: bool
    measured: Sequence[SelfNoise | None]

    @property
    def counts(self) -> bool:
        return not self.same and any(one is not None for one in self.measured)


def floor_words(baseline: Baseline | None) -> Text:
    """What the headline adds about the noise floor: nothing where it is the profile's."""
    if baseline is None or not baseline.counts:
        return both("", "")
    return both("; noise floor measured on a second dump of the left side", "；噪声基线由左侧的第二份数据实测得出")


def baseline_findings(baseline: Baseline | None, cases: Sequence[Case]) -> Iterator[Finding]:
    if baseline is None:
        return
    if baseline.same:
        yield Finding(
            "baseline_same_input",
            "warning",
            both(
                "The baseline is the left dump, byte for byte: it was given twice, or this side repeats itself to the last "
                "bit. The default noise floor stands",
                "基线与左侧数据逐字节相同：要么重复给了同一份，要么左侧可以逐位复现；仍使用默认噪声基线",
            ),
        )
        return
    if any(one is None for one in baseline.measured):
        yield Finding(
            "baseline_not_aligned",
            "warning",
            both(
                f"The baseline ({baseline.name}) is no second dump of the left side: its modules, ranks, tokens or weights are others. "
                "Where it does not fit the default noise floor stands",
                f"基线（{baseline.name}）并非左侧的第二次采集：模块、卡、词元或权重不同；对不上的部分仍使用默认噪声基线",
            ),
        )
    if not baseline.counts:
        return
    known = [case.floor for case in cases if case.floor is not None]
    pairs = sum(int(floor.known.sum()) for floor in known)
    total = sum(len(floor.measured) for floor in known)
    most = max((float(np.nanmax(one.relative[:, 2])) for one in baseline.measured if one is not None and one.compared), default=0.0)
    replaces = all(floor.replaces for floor in known)
    how = (
        both("instead of the default floor", "取代默认噪声基线")
        if replaces
        else both(
            "where it is above the default floor: the two sides run different code, and round differently even where each repeats itself",
            "仅在高于默认噪声基线处生效：两侧代码不同，即使各自可复现，舍入也不同",
        )
    )
    yield Finding(
        "baseline_measured",
        "info",
        both(
            f"The noise floor of {pairs} of {total} pairs was measured on a second dump of the left side ({baseline.name}; Norm repeats "
            f"itself within {percent(most)}), {how['en']}",
            f"{total} 对中有 {pairs} 对的噪声基线由左侧的第二份数据（{baseline.name}）实测得出"
            f"（Norm 的自身波动不超过 {percent(most)}），{how['zh']}",
        ),
        (),
        {"pairs": pairs, "of": total, "norm_rel": most, "replaces": replaces},
    )
