"""Which tokens a forward pass saw, as far as a dump tells, and whether two passes saw the same.

A dump of statistics holds no token ids, but their fingerprint: how many, the largest, the smallest, sometimes a checksum; and what the
embedding made of them. Equal ids through equal embedding weights give an equal embedding, up to the rounding in which it was stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from compare.engine.model import JsonObject

BFLOAT16_BITS = 8
CHUNKS_ULPS = 2.0  # Norms that were rounded one by one and then put together, against one that was rounded once: up to 1.5


class Agreement(StrEnum):
    """What comparing two fingerprints came to. The first two mean the same tokens; the others say what speaks against it."""

    EXACT = "exact"  # the checksums of the ids agree
    LIKELY = "likely"  # as many, between the same ids, with the same embedding: whatever of it both sides know
    COUNT = "count"
    IDS = "ids"
    CHECKSUM = "checksum"
    EMBEDDING = "embedding"
    POSITIONS = "positions"
    UNKNOWN = "unknown"  # nothing but their number is known

    @property
    def same(self) -> bool:
        return self in (Agreement.EXACT, Agreement.LIKELY)


@dataclass(frozen=True, slots=True)
class Tokens:
    """One forward pass. ``count`` ids between ``least`` and ``most`` (None: not written), of ``dtype``; ``first`` and ``last``: the
    smallest and the largest position. ``embedding`` is Max, Min and Norm of what the embedding put out, in ``elements`` numbers. Of
    passes put together there is no checksum, and ``pieces`` says how many they were.
    """

    count: int
    least: int | None = None
    most: int | None = None
    checksum: str | None = None
    dtype: str = ""
    first: int | None = None
    last: int | None = None
    embedding: tuple[float, float, float] | None = None
    elements: int = 0
    pieces: int = 1

    def document(self) -> JsonObject:
        """As it stands in an inventory, without what is not known."""
        known = {
            "count": self.count,
            "ids": None if self.least is None or self.most is None else [self.least, self.most],
            "checksum": self.checksum,
            "dtype": self.dtype or None,
            "positions": None if self.first is None else [self.first, self.last],
            "embedding": None if self.embedding is None else list(self.embedding),
            "elements": self.elements or None,
        }
        return {name: value for name, value in known.items() if value is not None}

    @classmethod
    def from_document(cls, document: JsonObject) -> Tokens:
        least, most = document.get("ids") or (None, None)
        first, last = document.get("positions") or (None, None)
        return cls(
            count=document["count"],
            least=least,
            most=most,
            checksum=document.get("checksum"),
            dtype=document.get("dtype", ""),
            first=first,
            last=last,
            embedding=tuple(document["embedding"]) if "embedding" in document else None,
            elements=document.get("elements", 0),
        )


def together(passes: Sequence[Tokens]) -> Tokens | None:
    """The tokens of passes that follow on each other, as one; None where their positions say that they do not."""
    if len(passes) == 1:
        return passes[0]
    known = all(one.first is not None for one in passes)
    if known and any(b.first != (a.last or 0) + 1 for a, b in pairwise(passes)):
        return None
    least = [one.least for one in passes if one.least is not None]
    most = [one.most for one in passes if one.most is not None]
    embeddings = [one.embedding for one in passes if one.embedding is not None]
    return Tokens(
        count=sum(one.count for one in passes),
        least=min(least) if len(least) == len(passes) else None,
        most=max(most) if len(most) == len(passes) else None,
        dtype=passes[0].dtype,
        first=passes[0].first if known else None,
        last=passes[-1].last if known else None,
        embedding=_side_by_side(embeddings) if len(embeddings) == len(passes) else None,
        elements=sum(one.elements for one in passes),
        pieces=len(passes),
    )


def agreement(left: Tokens, right: Tokens) -> Agreement:
    """Whether two passes saw the same tokens. What one side does not know speaks neither for it nor against it."""
    if left.count != right.count:
        return Agreement.COUNT
    if left.checksum is not None and right.checksum is not None and left.dtype == right.dtype and len(left.checksum) == len(right.checksum):
        return Agreement.EXACT if left.checksum == right.checksum else Agreement.CHECKSUM
    ids = left.least is not None and right.least is not None
    if ids and (left.least, left.most) != (right.least, right.most):
        return Agreement.IDS
    placed = left.first is None or right.first is None or (left.first, left.last) == (right.first, right.last)
    if not placed and (left.count == 1 or max(left.pieces, right.pieces) > 1):  # of whole sequences that is for the comparison to tell
        return Agreement.POSITIONS
    if left.embedding is None or right.embedding is None or left.elements != right.elements:
        return Agreement.LIKELY if ids else Agreement.UNKNOWN
    ulps = CHUNKS_ULPS if max(left.pieces, right.pieces) > 1 else 1.0
    near = all(_near(a, b, ulps) for a, b in zip(left.embedding, right.embedding, strict=True))
    return Agreement.LIKELY if near else Agreement.EMBEDDING


def _side_by_side(embeddings: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    highs, lows, norms = zip(*embeddings, strict=True)
    return max(highs), min(lows), math.hypot(*norms)


def _near(left: float, right: float, ulps: float) -> bool:
    """Within so many units in the last place of bfloat16, the coarsest type in which embeddings are stored."""
    largest = max(abs(left), abs(right))
    return largest == 0 or abs(left - right) <= ulps * math.ldexp(1.0, math.frexp(largest)[1] - BFLOAT16_BITS)
