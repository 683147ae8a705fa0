"""Data parallelism: which ranks of a side worked on the same tokens, and which ranks of the other side did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compare.engine.model import Direction, Dump, Leaf, RecordKind

Fingerprint = tuple[object, ...]
EMBEDDINGS = ("embed_tokens", "word_embeddings")


def replicas(left: Sequence[Dump], right: Sequence[Dump]) -> list[tuple[list[int], list[int]]]:
    """Groups of ranks (positions) that belong together: those of each side that were given the same tokens. Ranks of one side that no rank
    of the other shares its tokens with are left out, unless that leaves nothing."""
    groups = (_groups(left), _groups(right))
    found = []
    free = dict(groups[1])
    for tokens, ranks in groups[0].items():
        partner = free.pop(tokens, None)
        if partner is not None:
            found.append((ranks, partner))
    if found:
        return found
    return [(list(range(len(left))), list(range(len(right))))]


def _groups(dumps: Sequence[Dump]) -> dict[Fingerprint | None, list[int]]:
    """Fingerprint → ranks. A rank that embeds nothing (a later pipeline stage) goes with the rank at its place in the first stage."""
    own = [_tokens(dump) for dump in dumps]
    embedding = [rank for rank, tokens in enumerate(own) if tokens is not None]
    found: dict[Fingerprint | None, list[int]] = {}
    for rank, tokens in enumerate(own):
        if tokens is None and embedding:
            tokens = own[embedding[rank % len(embedding)]]
        found.setdefault(tokens, []).append(rank)
    return found


def _tokens(dump: Dump) -> Fingerprint | None:
    """What is known of the token ids: how many, the largest, the smallest, and their checksum."""
    records, slots = dump.records, dump.slots
    embeds = np.array([path.rpartition(".")[2] in EMBEDDINGS for path in dump.paths] or [False])
    rows = np.flatnonzero(embeds[records.path] & (records.kind == RecordKind.MODULE) & (records.direction == Direction.FORWARD))
    for row in rows[:1].tolist():
        for slot in range(int(records.slot_start[row]), int(records.slot_start[row + 1])):
            if slots.leaf[slot] == Leaf.TENSOR and "int" in dump.dtypes[int(slots.dtype[slot])].lower():
                checksum = int(slots.checksum[slot])
                known = (int(slots.elements[slot]), float(slots.statistics[slot, 0]), float(slots.statistics[slot, 1]))
                return (*known, dump.texts[checksum] if checksum >= 0 else "")
    return None
