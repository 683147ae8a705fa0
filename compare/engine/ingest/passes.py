"""The forward passes of a dump: which tokens each saw, and in an inference dump which of them are prefill and which decode.

A generate stage dumps a range of passes into one dump.json: the call number in a record's name counts them. The first fills the caches with
whole prompts; after it every pass sees one token a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np

from compare.engine.model import Bool, Direction, Dump, Group, Int64, JsonObject, Leaf, RecordKind, Statistic
from compare.engine.parts.tokens import Tokens

PREFILL, DECODE = "prefill", "decode"
EMBEDDINGS = ("embed_tokens", "word_embeddings")
POSITIONS = ("positions", "position_ids")
ROTARY = "rotary_emb"  # takes positions in whatever argument
MOST_LISTED = 16  # passes of a dump whose tokens an inventory names


def passes(dump: Dump) -> list[JsonObject]:
    """``{kind, first, last, tokens}`` of passes in a row that saw equally many tokens, by call number; nothing for a dump without forward
    module calls or whose passes all saw the same.

    Tokens are the elements of the first tensor that the dump's first module takes in: the ids that the embedding looks up.
    """
    tokens = _counts(dump)
    if len(tokens) < 2 or len(set(tokens.values())) < 2:
        return []
    found = []
    kinds = [(call, kind, tokens[call]) for call, kind in kinds_of(tokens).items()]
    for (kind, count), group in groupby(kinds, key=lambda entry: entry[1:]):
        members = [call for call, _, _ in group]
        found.append({"kind": kind, "first": members[0], "last": members[-1], "tokens": count})
    return found


def kinds_of(counts: Mapping[int, int]) -> dict[int, str]:
    """Which passes are prefill and which decode, by how many tokens each saw, in order: of several, those after the first that saw the
    fewest decode.
    """
    calls = sorted(counts)
    least = min((counts[call] for call in calls[1:]), default=0)
    decodes = len(set(counts.values())) > 1
    return {call: DECODE if decodes and call != calls[0] and counts[call] == least else PREFILL for call in calls}


def tokens_of(dump: Dump) -> dict[int, Tokens]:
    """The record of the embedding of each pass, in order → the tokens that the pass saw. Empty where no embedding of integers was dumped.

    Positions are those of the first module of the pass that takes them. A statistic that is not finite counts as not known.
    """
    records, slots = dump.records, dump.slots
    named = np.array([path.rpartition(".")[2] in EMBEDDINGS for path in dump.paths] or [False])
    modules = _forward_modules(dump)
    rows = modules[named[records.path[modules]]]
    rows = rows[records.path[rows] == records.path[rows[:1]]]
    whole = np.array(["int" in dtype.lower() for dtype in dump.dtypes] + [False])
    found: dict[int, Tokens] = {}
    positions = _positions(dump, rows, whole)
    for row in rows.tolist():
        own = np.arange(records.slot_start[row], records.slot_start[row + 1])
        own = own[slots.leaf[own] == Leaf.TENSOR]
        integer = whole[slots.dtype[own]]
        ids = own[(slots.group[own] == Group.INPUT) & integer]
        if not len(ids):
            continue
        slot, count = int(ids[0]), int(slots.elements[ids[0]])
        made = own[(slots.group[own] == Group.OUTPUT) & ~integer]
        embedding = slots.statistics[made[0], [Statistic.MAX, Statistic.MIN, Statistic.NORM]].tolist() if len(made) else [np.nan]
        least, most = float(slots.statistics[slot, Statistic.MIN]), float(slots.statistics[slot, Statistic.MAX])
        known = bool(np.isfinite([least, most]).all())
        place = positions.get(row)
        found[row] = Tokens(
            count=count,
            least=int(least) if known else None,
            most=int(most) if known else None,
            checksum=dump.texts[int(slots.checksum[slot])] if slots.checksum[slot] >= 0 else None,
            dtype=dump.dtypes[int(slots.dtype[slot])],
            first=None if place is None else place[0],
            last=None if place is None else place[1],
            embedding=tuple(embedding) if np.isfinite(embedding).all() else None,
            elements=int(slots.elements[made[0]]) if len(made) else 0,
        )
    return found


def listed(dump: Dump) -> list[JsonObject]:
    """The tokens of the first passes, for an inventory."""
    return [tokens.document() for tokens in list(tokens_of(dump).values())[:MOST_LISTED]]


def _positions(dump: Dump, passes: Int64, whole: Bool) -> dict[int, tuple[int, int]]:
    """Row of the embedding → smallest and largest position of its pass. A pass lasts until the embedding is called again. ``whole`` marks
    the dtypes that are integers."""
    records, slots = dump.records, dump.slots
    if not len(passes):
        return {}
    named = np.array([name.rpartition(".")[2] in POSITIONS for name in dump.slot_names] or [False])
    rotary = np.array([path.rpartition(".")[2] == ROTARY for path in dump.paths] or [False])
    takes = rotary[records.path] & (records.direction == Direction.FORWARD)
    rows = np.flatnonzero(named[slots.name] | takes[slots.record])
    rows = rows[(slots.leaf[rows] == Leaf.TENSOR) & whole[slots.dtype[rows]] & (slots.group[rows] == Group.INPUT)]
    rows = rows[np.isfinite(slots.statistics[rows, :2]).all(axis=1) & (records.direction[slots.record[rows]] == Direction.FORWARD)]
    at = np.searchsorted(passes, slots.record[rows], "right") - 1
    held, first = np.unique(at, return_index=True)
    found = {}
    for place, row in zip(held.tolist(), rows[first].tolist(), strict=True):
        if place >= 0:
            found[int(passes[place])] = int(slots.statistics[row, Statistic.MIN]), int(slots.statistics[row, Statistic.MAX])
    return found


def _forward_modules(dump: Dump) -> Int64:
    records = dump.records
    return np.flatnonzero(records.recorded & (records.kind == RecordKind.MODULE) & (records.direction == Direction.FORWARD))


def _counts(dump: Dump) -> dict[int, int]:
    records, slots = dump.records, dump.slots
    rows = _forward_modules(dump)
    rows = rows[records.path[rows] == records.path[rows[:1]]]  # other modules may be called several times a pass
    calls, first = np.unique(records.call[rows], return_index=True)
    found: dict[int, int] = {}
    for call, row in zip(calls.tolist(), rows[first].tolist(), strict=True):
        own = np.arange(records.slot_start[row], records.slot_start[row + 1])
        taken = own[(slots.group[own] == Group.INPUT) & (slots.leaf[own] == Leaf.TENSOR)]
        if len(taken):
            found[call] = int(slots.elements[taken[0]])
    return found
