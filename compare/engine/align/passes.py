"""Several forward passes in one dump: which passes of an inference side were fed what a pass of the training side was fed.

A trainer's micro-batches and an engine's prefill and decode are both calls in one dump.json, counted from 0. Call k of one side is call k
of the other only while both were fed the same; else passes meet by their tokens, and a prefill that was run in chunks meets as one pass in
several pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compare.engine.align.places import Places, call_around, group_key
from compare.engine.ingest.passes import tokens_of
from compare.engine.model import Bool, Dump, Int64, RecordKind
from compare.engine.parts.same_tokens import Feed, same_tokens
from compare.engine.parts.tokens import Tokens, agreement


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of a training side (``train``: 0 left, 1 right) and of an inference side by their tokens, in order. ``met``: inference
    pass → (training pass, piece)."""

    train: int
    trains: Sequence[Tokens]
    infers: Sequence[Tokens]
    met: Mapping[int, tuple[int, int]]

    @property
    def by_number(self) -> bool:
        """Whether call k of one side is call k of the other."""
        return dict(self.met) == _by_number(self.trains, self.infers)


def passes_of(dumps: tuple[Sequence[Dump], Sequence[Dump]], train: int) -> Passes | None:
    """None where nothing is known of the tokens, or a side is one pass in the dumps of several steps. Ranks run the same passes: the first
    that embeds speaks for all."""
    if any(len({dump.step for dump in side}) > 1 for side in dumps):
        return None
    trains, infers = (
        next((list(found.values()) for dump in side if (found := tokens_of(dump))), []) for side in (dumps[train], dumps[1 - train])
    )
    return Passes(train, trains, infers, _met(trains, infers)) if trains and infers else None


def _by_number(trains: Sequence[Tokens], infers: Sequence[Tokens]) -> dict[int, tuple[int, int]]:
    return {at: (at, 0) for at in range(min(len(trains), len(infers)))}


def _met(trains: Sequence[Tokens], infers: Sequence[Tokens]) -> dict[int, tuple[int, int]]:
    """Call by call while that agrees, or where nothing meets by its tokens; else by the tokens."""
    plain = _by_number(trains, infers)
    if all(agreement(trains[at], infers[at]).same for at in plain):
        return plain
    found = same_tokens([Feed("", [one]) for one in trains], [Feed("", [one]) for one in infers])
    return {place: (at, piece) for at, (run, _) in found.pairs.items() for piece, place in enumerate(run)} or plain


def renumbered(dumps: Sequence[Dump], places: Places, passes: Passes, most: int) -> Places:
    """The places of the inference side in which a pass has the number of the training pass that it meets, and its piece; passes that meet
    none are counted from ``most`` on, which is more than the training side has calls.

    Which pass a record belongs to says its own call number where its module is called once a pass, else the embedding before it.
    """
    number = np.full(len(passes.infers), -1, np.int64)
    piece = np.zeros(len(passes.infers), np.int32)
    for at, (to, part) in passes.met.items():
        number[at], piece[at] = to, part
    call, pieces, begin = places.call.astype(np.int64), places.piece.copy(), 0
    for dump in dumps:
        own = slice(begin, begin + len(dump.records))
        begin = own.stop
        key = group_key(dump, places.path[own], places.recompute[own])
        which = _pass_of(dump, key, call[own], len(number))
        _, group, count = np.unique(key * len(number) + which, return_inverse=True, return_counts=True)
        first = np.full(len(count), np.iinfo(np.int64).max)
        np.minimum.at(first, group, call[own])
        met = number[which]
        call[own] = np.where(met >= 0, met * count[group] + call[own] - first[group], most + call[own])
        pieces[own] = piece[which]
        is_api = dump.records.kind == RecordKind.API
        call[own] = call_around(dump, call[own], is_api)
        pieces[own] = call_around(dump, pieces[own], is_api)
    return replace(places, call=call.astype(np.int32), piece=pieces)


def _pass_of(dump: Dump, key: Int64, call: Int64, count: int) -> Int64:
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    embedded = np.array(sorted(tokens_of(dump)), np.int64)
    if not len(embedded):  # a later pipeline stage
        return np.minimum(call, count - 1)
    regular: Bool = size[group] == count
    after = np.searchsorted(embedded, np.arange(len(key)), "right") - 1
    return np.where(regular, call, np.clip(after, 0, count - 1))
