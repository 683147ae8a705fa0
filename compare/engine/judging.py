"""One part of a plan compared and judged: its dumps are opened, aligned, measured and diagnosed, rank by rank."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from compare.engine.diagnose.baseline import Baseline
from compare.engine.diagnose.case import Case, build_case, measured_self_noise
from compare.engine.diagnose.findings import Unreadable
from compare.engine.diagnose.pairing_findings import pairing_findings
from compare.engine.diagnose.rank_pairs import pair_ranks
from compare.engine.diagnose.verdict import PartVerdict, judge
from compare.engine.errors import DumpError
from compare.engine.ingest import Progress
from compare.engine.measure.self_noise import SelfNoise
from compare.engine.model import Dump
from compare.engine.parts.by_tokens import training_side
from compare.engine.parts.forming import chosen
from compare.engine.parts.pairing import Part, RankPairs
from compare.engine.plan import Plan
from compare.engine.runs import Entry, Run


@np.errstate(all="ignore")  # NaN, Inf and zero denominators are decided by rule (measure.statistics), not by numpy's warnings
def judge_part(plan: Plan, part: Part, progress: Progress) -> tuple[PartVerdict, RankPairs]:
    """One part that both sides hold: all its ranks, in one document; and which dumps of the two sides each of its cases is about."""
    spent = {"read_s": 0.0, "align_s": 0.0, "measure_s": 0.0, "diagnose_s": 0.0}
    left, right = plan.sides
    numbers = {"part": part.n, "parts": len(plan.parts)}
    tensors = left.tensors(), right.tensors()
    repeated = None if plan.baseline is None else plan.baseline.tensors()
    same_baseline = plan.baseline is not None and plan.baseline.digest == left.digest  # says nothing of how well the side repeats itself
    measured: dict[tuple[int, ...], SelfNoise | None] = {}  # by the left ranks
    train = training_side((plan.facts[0].role, plan.facts[1].role), part)

    def built(a: Sequence[int], b: Sequence[int]) -> Case:
        progress("align", 0.0, numbers)
        dumps = [left.dump(row) for row in a], [right.dump(row) for row in b]
        again: list[Dump] = []
        if plan.baseline is not None and not same_baseline:
            again = _again(plan.baseline, [left.entries[row] for row in a])
        held = None if repeated is None else (tensors[0], repeated)
        measured[*a] = measured_self_noise(dumps[0], again, spent, progress, held) if again else None
        # A floor of statistics says nothing of elements: a baseline without tensors leaves the sides to their statistics.
        held = None if again and not all(len(dump.tensors) for dump in again) else tensors
        asked = partial(build_case, primary=plan.primary, exact=plan.options.exact, mapping=plan.mapping, namer=plan.namer, train=train)
        return asked(*dumps, spent=spent, watch=progress, held=held, self_noise=measured[*a])

    readable, unreadable = _readable(plan, part)
    ranks, cases = pair_ranks(readable, (left.dump, right.dump), built)
    progress("diagnose", 0.0, numbers)
    begin = time.perf_counter()
    same_input = left.digest == right.digest and all(a == b for a, b in ranks)
    baseline = None if plan.baseline is None else Baseline(plan.baseline.name, same_baseline, [measured[*a] for a, _ in ranks])
    paired = pairing_findings(part, plan.pairing if len(plan.parts) == 1 else None)
    alone = _alone(plan, part, ranks, unreadable)
    verdict = judge(cases, plan.facts, same_input=same_input, baseline=baseline, unreadable=unreadable, pairing=paired, alone=alone)
    spent["diagnose_s"] = time.perf_counter() - begin
    verdict.document["timing"] = {name: round(seconds, 4) for name, seconds in spent.items()}
    progress("diagnose", 1.0, numbers)
    return verdict, ranks


def _readable(plan: Plan, part: Part) -> tuple[RankPairs, list[Unreadable]]:
    """The dumps of a part that can be compared, and which of its dumps cannot be read. Raises DumpError where that leaves none."""
    kept: list[tuple[Sequence[int], Sequence[int]]] = []
    lost: dict[tuple[int, int], Unreadable] = {}
    for pair in part.ranks:
        rows: list[list[int]] = [[], []]
        for side, run in enumerate(plan.sides):
            for row in pair[side]:
                entry = run.entries[row]
                if entry.error is None:
                    rows[side].append(row)
                else:
                    lost[side, row] = Unreadable(side, entry.rank, entry.error)
        if all(rows):
            kept.append((rows[0], rows[1]))
    if not kept:
        raise DumpError.of(next(iter(lost.values())).error)
    return kept, list(lost.values())


def _alone(plan: Plan, part: Part, ranks: RankPairs, unreadable: Sequence[Unreadable]) -> tuple[list[int], list[int]]:
    """The ranks of the part that stand against none, by side; but for those whose namesakes cannot be read, which is said."""
    found: tuple[list[int], list[int]] = ([], [])
    for side, (run, key) in enumerate(zip(plan.sides, (part.left, part.right), strict=True)):
        taken = {row for pair in ranks for row in pair[side]}
        taken |= {row for other in plan.parts if other is not part for pair in other.ranks for row in pair[side]}
        lost = {dump.rank for dump in unreadable if dump.side != side}
        for row in chosen(run.entries, plan.options, side):
            entry = run.entries[row]
            if (entry.stage, entry.step) == key and row not in taken and entry.error is None and entry.rank not in lost:
                found[side].append(entry.rank or 0)
    return sorted(found[0]), sorted(found[1])


def _again(baseline: Run, entries: Sequence[Entry]) -> list[Dump]:
    """The baseline's dumps of the same ranks, of the same stage and step where it holds them, else of the first it holds."""
    keys = list(dict.fromkeys((entry.stage, entry.step) for entry in baseline.entries))
    key = next((key for key in keys if key == (entries[0].stage, entries[0].step)), keys[0] if keys else None)
    held = {entry.rank: row for row, entry in enumerate(baseline.entries) if (entry.stage, entry.step) == key}
    if len(entries) == 1 and len(held) == 1:
        return [baseline.dump(row) for row in held.values()]
    return [baseline.dump(held[entry.rank]) for entry in entries] if all(entry.rank in held for entry in entries) else []
