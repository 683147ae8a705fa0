"""Ranks that hold the same numbers: tensor-parallel copies of one batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from compare.engine.keydata.alignment import Place, Tables
from compare.engine.loop import quantity

Partition = frozenset[frozenset[int]]  # ranks that hold the same, together
LEAST_EVIDENCE = 2  # tables that must agree on who holds copies of whom


@dataclass(frozen=True, slots=True)
class CopyCheck:
    """``tables`` were looked at, in ``failed`` ranks part that are copies of each other everywhere else."""

    key: str
    tables: int
    failed: list[Place]


def copies(side: Tables) -> dict[str, int]:
    """For every key how many ranks hold the same bytes, 1 where they do not, or not all in groups of one size."""
    groups = _usual(side)
    found: dict[str, int] = {}
    for key in side.by_key:
        sizes = {len(group) for ranks, partition in groups.items() if _ranks(side, key) == ranks for group in partition}
        found[key] = sizes.pop() if len(sizes) == 1 else 1
    return found


def check_copies(side: Tables) -> list[CopyCheck]:
    """Per-token and scalar keys: whether ranks that usually hold copies always do."""
    groups = _usual(side)
    found: list[CopyCheck] = []
    for key, tables in _by_rank(side).items():
        looked, failed = 0, list[Place]()
        for (step, micro_step, entry), digests in tables.items():
            for group in groups.get(frozenset(digests), frozenset()):
                if len(group) > 1:
                    looked += 1
                    if len({digests[rank] for rank in group}) > 1:
                        failed.append((step, min(group), micro_step, entry))
        if looked:
            found.append(CopyCheck(key, looked, failed))
    return found


def _usual(side: Tables) -> dict[frozenset[int], Partition]:
    """For every set of ranks that hold a table together: which of them usually hold the same. Only per-token tables count: scalars may be
    equal by chance."""
    seen: defaultdict[frozenset[int], Counter[Partition]] = defaultdict(Counter)
    for key, tables in _by_rank(side).items():
        known = quantity(key)
        if known is None or known.kind != "per_token":
            continue
        for digests in tables.values():
            if len(digests) > 1:
                same: defaultdict[bytes, set[int]] = defaultdict(set)
                for rank, digest in digests.items():
                    same[digest].add(rank)
                seen[frozenset(digests)][frozenset(frozenset(ranks) for ranks in same.values())] += 1
    usual: dict[frozenset[int], Partition] = {}
    for ranks, partitions in seen.items():
        partition, count = partitions.most_common(1)[0]
        if count >= LEAST_EVIDENCE and 2 * count > partitions.total():
            usual[ranks] = partition
    return usual


def _by_rank(side: Tables) -> dict[str, dict[tuple[int, int, str], dict[int, bytes]]]:
    found: dict[str, dict[tuple[int, int, str], dict[int, bytes]]] = {}
    for key, places in side.by_key.items():
        known = quantity(key)
        if known is None or known.kind not in ("per_token", "scalar"):
            continue
        tables = found.setdefault(key, {})
        for (step, rank, micro_step, entry), row in places.items():
            if row in side.digests:
                tables.setdefault((step, micro_step, entry), {})[rank] = side.digests[row]
    return found


def _ranks(side: Tables, key: str) -> frozenset[int]:
    return frozenset(place[1] for place in side.by_key[key])
