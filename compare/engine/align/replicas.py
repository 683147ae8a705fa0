"""Data parallelism: which ranks of a side worked on the same tokens, and which ranks of the other side did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compare.engine.model import Direction, Dump, Leaf, RecordKind
from compare.engine.parts.pairing import rank_shift

Fingerprint = tuple[int, float, float, str]
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


def rank_by_rank(left: Sequence[Dump], right: Sequence[Dump]) -> list[tuple[int, int]]:
    """Pairs of single ranks (positions) of two sides that cut the model alike but hold other ranks, at least one pair.

    Ranks of the same number meet, or of the same distance from the first where the numbers do not overlap at all. A rank that worked on
    other tokens than its namesake meets the one that worked on the same, if there is one; without any such, namesakes meet whatever they
    worked on, for that is then what the runs differ in.
    """
    tokens = [_tokens(dump) for dump in left], [_tokens(dump) for dump in right]
    shift = rank_shift([dump.rank or 0 for dump in left], [dump.rank or 0 for dump in right])
    at = {dump.rank or 0: position for position, dump in enumerate(right)}
    namesakes = {i: at[(dump.rank or 0) + shift] for i, dump in enumerate(left) if (dump.rank or 0) + shift in at}
    found = {i: j for i, j in namesakes.items() if None in (tokens[0][i], tokens[1][j]) or tokens[0][i] == tokens[1][j]}
    known = {tokens[0][i] for i in found} | {None}
    moved: dict[int, int] = {}
    for i, own in enumerate(tokens[0]):
        free = [j for j, other in enumerate(tokens[1]) if other == own and j not in (*found.values(), *moved.values())]
        if i not in found and own not in known and free:
            moved[i] = free[0]
    if not moved:
        found = namesakes or {0: 0}
    return sorted((found | moved).items())


def token_count(dump: Dump) -> int:
    """How many token ids a rank was given, 0 where that is not known."""
    tokens = _tokens(dump)
    return 0 if tokens is None else tokens[0]


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
