"""The forward passes of an inference dump: prefill and decode told apart by how many tokens each saw.

A generate stage dumps a range of passes into one dump.json: the call number in a record's name counts them. The first fills the caches with
whole prompts; after it every pass sees one token a sequence.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from compare.engine.model import Direction, Dump, Group, JsonObject, Leaf, RecordKind

PREFILL, DECODE = "prefill", "decode"


def passes(dump: Dump) -> list[JsonObject]:
    """``{kind, first, last, tokens}`` of passes in a row that saw equally many tokens, by call number; nothing for a dump without forward
    module calls or whose passes all saw the same.

    Tokens are the elements of the first tensor that the dump's first module takes in: the ids that the embedding looks up.
    """
    tokens = _tokens(dump)
    if len(tokens) < 2 or len(set(tokens.values())) < 2:
        return []
    calls = sorted(tokens)
    least = min(tokens[call] for call in calls[1:])
    kinds = [(call, PREFILL if call == calls[0] or tokens[call] > least else DECODE, tokens[call]) for call in calls]
    found = []
    for (kind, count), group in groupby(kinds, key=lambda entry: entry[1:]):
        members = [call for call, _, _ in group]
        found.append({"kind": kind, "first": members[0], "last": members[-1], "tokens": count})
    return found


def _tokens(dump: Dump) -> dict[int, int]:
    records, slots = dump.records, dump.slots
    rows = np.flatnonzero(records.recorded & (records.kind == RecordKind.MODULE) & (records.direction == Direction.FORWARD))
    rows = rows[records.path[rows] == records.path[rows[:1]]]  # other modules may be called several times a pass
    calls, first = np.unique(records.call[rows], return_index=True)
    found: dict[int, int] = {}
    for call, row in zip(calls.tolist(), rows[first].tolist(), strict=True):
        own = np.arange(records.slot_start[row], records.slot_start[row + 1])
        taken = own[(slots.group[own] == Group.INPUT) & (slots.leaf[own] == Leaf.TENSOR)]
        if len(taken):
            found[call] = int(slots.elements[taken[0]])
    return found
