"""Which dumps of the left side are compared with which of the right: parts are (stage, step), and the ranks of a part go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.engine.errors import DumpError
from compare.engine.loop import loop, stage_kind, stage_order
from compare.engine.options import Options
from compare.engine.parts.by_tokens import Couple, by_tokens
from compare.engine.parts.pairing import Grouped, Pairing, Part, PartKey, Placed, Ranks, StagePair, ranks_of


def parts_of(
    left: Sequence[Placed],
    right: Sequence[Placed],
    options: Options,
    requests: Sequence[tuple[int, int]] = (),
    roles: tuple[str, str] = ("unknown", "unknown"),
) -> Pairing:
    """The parts, and how their stages were paired. ``requests``: chosen dumps (positions on the left and right) known to hold the same
    request. ``roles``: train, infer or unknown.

    Steps pair by their number. Where a training stage stands against an inference stage and the numbers are refuted by the tokens that the
    dumps hold, parts pair by these tokens, unless both steps were chosen.

    Raises DumpError ``no_such_choice`` where a side does not hold what was asked for.
    """
    sides = (Grouped(left, _grouped(left, chosen(left, options, 0))), Grouped(right, _grouped(right, chosen(right, options, 1))))
    if requests:
        return _by_request(sides, requests)
    stages = _stages(sides, chosen=options.stage is not None)
    couples: Sequence[Couple] = _paired(list(sides[0].groups), list(sides[1].groups), stages, chosen=options.step is not None)
    found = by_tokens(sides, couples, stages, roles) if None in options.each("step") else (couples, ())
    if isinstance(found, Pairing):
        return found
    couples, unpaired = found
    known = {(pair.left, pair.right) for pair in stages if pair.used}
    for pair in dict.fromkeys((a[0], b[0]) for a, b in couples if a is not None and b is not None):
        if pair not in known:
            stages.append(StagePair(*pair, "chosen" if options.stage is not None else "only_one", used=True))
    parts = []
    for n, (a, b) in enumerate(couples):
        if a is None or b is None:
            parts.append(Part(n, a, b, []))
        else:
            ranks = ranks_of(left, right, sides[0].groups[a], sides[1].groups[b])
            other = "nearest" if options.step is None else "chosen"
            parts.append(Part(n, a, b, ranks, "step" if a[1] == b[1] else other))
    return Pairing(parts, stages, unpaired)


def _by_request(sides: tuple[Grouped, Grouped], shared: Sequence[tuple[int, int]]) -> Pairing:
    """A part for every training step with a known request, its dumps with those that served the same, whichever side trains; the rest is
    on one side only. Ranks that no log names go with those of their step that one does, unless these hold several requests.
    """
    train = 1 if infers(sides[0].dumps[shared[0][0]]) else 0
    infer = 1 - train
    partners: dict[int, list[int]] = {}
    for couple in shared:
        partners.setdefault(couple[train], []).append(couple[infer])
    named = {row for rows in partners.values() for row in rows}
    step_of = {row: key for key, rows in sides[infer].groups.items() for row in rows}
    found: list[Part] = []
    taken: set[int] = set()
    for key, rows in sides[train].groups.items():
        bundles: dict[tuple[int, ...], list[int]] = {}
        for row in rows:
            if row in partners:
                bundles.setdefault(tuple(partners[row]), []).append(row)
        ranks: list[Ranks] = []
        for served, members in bundles.items():
            mine = list(rows) if len(bundles) == 1 else members
            theirs = [*served, *(row for row in sides[infer].groups[step_of[served[0]]] if row not in named)]
            taken.update(theirs)
            ends = (mine, theirs) if train == 0 else (theirs, mine)
            ranks += ranks_of(sides[0].dumps, sides[1].dumps, *ends)
        other = step_of[next(iter(bundles))[0]] if bundles else None
        left, right = (key, other) if train == 0 else (other, key)
        found.append(Part(len(found), left, right, ranks, "requests" if ranks else None))
    for key, rows in sides[infer].groups.items():
        if taken.isdisjoint(rows):
            left, right = (None, key) if train == 0 else (key, None)
            found.append(Part(len(found), left, right, []))
    couples = dict.fromkeys((sides[0].dumps[a].stage, sides[1].dumps[b].stage) for a, b in shared)
    return Pairing(found, [StagePair(a, b, "requests", used=True) for a, b in couples])


def left_out(side: Sequence[Placed], options: Options, parts: Sequence[Part], which: int) -> list[PartKey]:
    """What the side (0 left, 1 right) holds besides the parts, where nothing chose among them: one step against a run of several."""
    used = {(part.left, part.right)[which] for part in parts}
    used |= {(side[row].stage, side[row].step) for part in parts for pair in part.ranks for row in pair[which]}
    return [key for key in _grouped(side, chosen(side, options, which)) if key not in used]


def infers(dump: Placed) -> bool:
    """Whether a dump is of the inference side of a loop: of a stage that generates, or in a process folder of a rollout."""
    kind = stage_kind(dump.stage)
    return kind in ("generate", "decode") or (kind is None and dump.process is not None)


def chosen(dumps: Sequence[Placed], options: Options, side: int) -> list[int]:
    """Which dumps of the side (0 left, 1 right) the options ask for. Raises DumpError ``no_such_choice``."""
    rows = list(range(len(dumps)))
    for name in ("stage", "step", "rank"):
        wanted = options.each(name)[side]
        if wanted is None:
            continue
        held = {row: names_of(dumps[row], name) for row in rows}
        every = set().union(*held.values())
        if wanted in every:
            rows = [row for row in rows if wanted in held[row]]
        elif len(every) > 1 or (not every and len(rows) > 1):
            raise DumpError("no_such_choice", ("left", "right")[side], name=name, value=wanted, held=", ".join(sorted(every)) or "none")
    return rows


def names_of(dump: Placed, name: str) -> set[str]:
    """What a dump can be asked for by. A stage without its process folder stands for all its processes."""
    found = {dump.stage, _shared_stage(dump)} if name == "stage" else {getattr(dump, name)}
    return {str(one) for one in found if one is not None}


def _shared_stage(dump: Placed) -> str | None:
    """The stage that the processes of a rollout share: generate of generate/4711, None where the name is nothing but the process."""
    if dump.stage is None or dump.process is None:
        return dump.stage
    return "/".join(part for part in dump.stage.split("/") if part != str(dump.process)) or None


def _grouped(dumps: Sequence[Placed], rows: Sequence[int]) -> dict[PartKey, list[int]]:
    groups: dict[PartKey, list[int]] = {}
    for row in rows:
        groups.setdefault((dumps[row].stage, dumps[row].step), []).append(row)

    def place(key: PartKey) -> tuple[int, int]:
        """What happened first: by step, and within a step along the pipeline."""
        stage, step = key
        return step if step is not None else -1, stage_order(stage)

    return {key: groups[key] for key in sorted(groups, key=place)}


@dataclass(frozen=True, slots=True)
class _Process:
    """What of a stage lies in one process folder, or all of it. ``name``: of the stage with the process, as dumps are called."""

    name: str | None
    process: int | None
    ranks: tuple[int, ...]


def _stages(sides: tuple[Grouped, Grouped], *, chosen: bool) -> list[StagePair]:
    """Stages paired, and the process folders within them. Processes have other numbers in every run: they pair in order."""
    held = [_processes(side.dumps, side.groups) for side in sides]
    found: list[StagePair] = []
    for pair in pair_stages(list(held[0]), list(held[1]), chosen=chosen):
        if not pair.used:
            found.append(pair)
            continue
        for a, b in _in_order(held[0][pair.left], held[1][pair.right]):
            reason = "processes" if pair.reason == "same_name" and a.name != b.name else pair.reason
            found.append(StagePair(a.name, b.name, reason, used=True))
    return found


def _processes(dumps: Sequence[Placed], groups: Mapping[PartKey, Sequence[int]]) -> dict[str | None, list[_Process]]:
    rows: dict[tuple[str | None, str | None], list[int]] = {}
    for (stage, _), held in groups.items():
        rows.setdefault((_shared_stage(dumps[held[0]]), stage), []).extend(held)
    found: dict[str | None, list[_Process]] = {}
    for (shared, name), held in rows.items():
        process = dumps[held[0]].process if name != shared else None
        found.setdefault(shared, []).append(_Process(name, process, tuple(sorted({dumps[row].rank or 0 for row in held}))))
    return found


def _in_order(left: Sequence[_Process], right: Sequence[_Process]) -> list[tuple[_Process, _Process]]:
    """Those of the same ranks in the order of their numbers, then what is left. Where one side holds some of the other's own processes (a
    part of the same run) the numbers say which.
    """
    numbers = [{one.process for one in side} for side in (left, right)]
    if len(left) != len(right) and (numbers[0] < numbers[1] or numbers[1] < numbers[0]):
        return [(a, b) for a in left for b in right if a.process == b.process]
    rest = [sorted(side, key=lambda one: -1 if one.process is None else one.process) for side in (left, right)]
    found: list[tuple[_Process, _Process]] = []
    for alike in (True, False):
        for one in list(rest[0]):
            other = next((other for other in rest[1] if not alike or other.ranks == one.ranks), None)
            if other is not None:
                found.append((one, other))
                rest[0].remove(one)
                rest[1].remove(other)
    return sorted(found, key=lambda pair: left.index(pair[0]))


def _paired(left: Sequence[PartKey], right: Sequence[PartKey], stages: Sequence[StagePair], *, chosen: bool) -> list[Couple]:
    """``chosen``: a person said which steps meet. Then the only step of the one side meets the only step of the other."""
    partner_of = {pair.left: pair.right for pair in stages if pair.used}
    if len(left) == 1 or len(right) == 1:
        swapped = len(left) != 1
        one, many = (right[0], left) if swapped else (left[0], right)
        stage = next((a if swapped else b for a, b in partner_of.items() if one[0] == (b if swapped else a)), one[0])
        likeliest = min(many, key=lambda key: (key != one, key != (stage, one[1]), key[1] != one[1]))
        return [(likeliest, one) if swapped else (one, likeliest)]
    pairs: list[Couple] = []
    steps = [{step for _, step in keys} for keys in (left, right)]
    meets = dict(zip(*steps, strict=True)) if chosen and [len(held) for held in steps] == [1, 1] else {}
    for stage, step in left:
        partner = (partner_of[stage], meets.get(step, step)) if stage in partner_of else None
        pairs.append(((stage, step), partner if partner in right else None))
    taken = {pair[1] for pair in pairs}
    return pairs + [(None, key) for key in right if key not in taken]


def pair_stages(left: Sequence[str | None], right: Sequence[str | None], *, chosen: bool) -> list[StagePair]:
    """Which stage of the left side goes with which of the right.

    The same name first; then what two trainers call differently; then, where no stage has a partner, a train stage with the inference stage
    that does the same forward pass. Where stages do pair by name, train against inference within them is proposed and not used.
    """
    if len(left) == 1 and len(right) == 1:
        reason = "same_name" if left[0] == right[0] else "chosen" if chosen else "only_one"
        return [StagePair(left[0], right[0], reason, used=True)]
    found = [StagePair(stage, stage, "same_name", used=True) for stage in left if stage in right]
    rest = [[stage for stage in side if stage not in other] for side, other in ((left, right), (right, left))]
    for stage in rest[0]:
        kind = stage_kind(stage)
        alike = [[other for other in side if stage_kind(other) == kind] for side in rest]
        if kind is not None and [len(side) for side in alike] == [1, 1]:
            found.append(StagePair(stage, alike[1][0], "same_kind", used=True))
    used = bool(found)
    for a, b in (*loop().train_infer, *((b, a) for a, b in loop().train_infer)):
        couples = [(x, y) for x in left if stage_kind(x) == a for y in right if stage_kind(y) == b]
        if len(couples) == 1:
            x, y = couples[0]
            found.append(StagePair(x, y, "train_infer", used=not used))
            used = True
    return found
