"""Where each record of one dump belongs: canonical path, layer, which call, recompute. Columns over records; Python only over distinct
paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from compare.engine.align.canonical import (
    MOST_LAYERS,
    canonical_path,
    entry_of,
    inner_of,
    is_list_of_models,
    layer_of,
    plain_class,
    with_layer,
)
from compare.engine.align.conventions import Convention, fill, tell
from compare.engine.align.rules import Remap, SidePaths
from compare.engine.align.stages import chunk_of, starts_of
from compare.engine.model import Bool, Direction, Dump, Int32, Int64, RecordKind

LAYERS = "model.layers."
Column = TypeVar("Column", Int32, Int64)


class Interner:
    """Text ↔ index, shared by both sides so that equal indices mean equal names."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._index: dict[str, int] = {}
        self._private: dict[tuple[str, int], int] = {}

    def __call__(self, text: str) -> int:
        index = self._index.get(text)
        if index is None:
            index = self._index[text] = len(self.texts)
            self.texts.append(text)
        return index

    def private(self, text: str, side: int) -> int:
        """An index for a name that one side has for itself: the other's of the same text is another."""
        index = self._private.get((text, side))
        if index is None:
            index = self._private[text, side] = len(self.texts)
            self.texts.append(text)
        return index


@dataclass(frozen=True, slots=True)
class Places:
    """One row a record of one dump.

    ``path`` is the canonical path (module records), or the API name (API records), in the shared interner. ``call`` counts the calls of the
    same canonical path and direction, recomputed ones apart; an API call has that of the module around it. ``layer`` is -1 outside the
    layers.
    """

    convention: Convention | None
    path: Int32
    layer: Int32
    call: Int32
    recompute: Bool
    apart: Bool  # a rule of the mapping says that the record has no partner
    rank: Int32  # which of the side's dumps of one step the record came from
    piece: Int32  # which piece of a pass that was run in several (a prefill in chunks): the rows of its tensors follow on each other
    order: Int32  # the record's place in that dump
    layers: int  # number of layers: the highest layer number + 1
    listed: bool  # the model was given in a list: paths begin with a position in it

    @property
    def spread(self) -> bool:
        """Whether a tensor may lie in several records: on several ranks, or in several pieces."""
        return bool(self.rank.any() or self.piece.any())


def places_of(dumps: Sequence[Dump], intern: Interner, remap: Remap | None = None, side: int = 0) -> Places:
    """The places of all records of a side's dumps (ranks, and the steps of a pass in pieces), one dump after the other. ``remap``: what
    rules of a mapping make of names."""
    starts = starts_of(dumps)
    steps = list(dict.fromkeys(dump.step for dump in dumps))
    seen: Counter[int] = Counter()
    each = []
    for dump, start in zip(dumps, starts, strict=True):
        piece = steps.index(dump.step)
        each.append(_places(dump, (seen[piece], piece), intern, remap or Remap(), side, start))
        seen[piece] += 1
    if len(each) == 1:
        return each[0]
    columns = {
        name: np.concatenate([getattr(places, name) for places in each])
        for name in ("path", "layer", "call", "recompute", "apart", "rank", "piece", "order")
    }
    columns["order"] = columns["order"] + _stage_begins(each)
    known = next((places.convention for places in each if places.convention is not None), None)
    return Places(convention=known, layers=max(places.layers for places in each), listed=each[0].listed, **columns)


def _stage_begins(each: Sequence[Places]) -> Int32:
    """What is added to a record's place in its dump, so that later pipeline stages come after earlier ones."""
    first = [int(places.layer[places.layer >= 0].min(initial=MOST_LAYERS)) for places in each]
    stage = {layer: number for number, layer in enumerate(sorted(set(first)))}
    longest = max(len(places.order) for places in each)
    return np.concatenate([np.full(len(places.order), stage[layer] * longest, np.int32) for places, layer in zip(each, first, strict=True)])


def paths_of(dumps: Sequence[Dump]) -> SidePaths:
    """The module paths of a side's dumps, for rules to find."""
    names: dict[str, str] = {}
    classes: dict[str, set[str]] = {}
    listed, convention = False, None
    for dump in dumps:
        records = dump.records
        modules = records.kind != RecordKind.API
        own, canonical, listed, told = _named(dump)
        convention = convention or told
        for path, kind in np.unique(np.stack([records.path[modules], records.class_name[modules]], axis=1), axis=0).tolist():
            names[own[path]] = canonical[path]
            if kind >= 0:
                classes.setdefault(own[path], set()).add(plain_class(dump.classes[kind]))
    return SidePaths(names, {path: frozenset(found) for path, found in classes.items()}, listed, convention)


def own_paths(dump: Dump) -> list[str]:
    """For each path of the dump its name without wrappers: what a mapping file calls it."""
    return _named(dump)[0]


def _named(dump: Dump) -> tuple[list[str], list[str], bool, Convention | None]:
    """For each path of the dump its own name without wrappers and its canonical one; whether the model came in a list; the convention."""
    records = dump.records
    used = np.unique(records.path[records.kind != RecordKind.API]) if len(records) else np.zeros(0, np.int32)
    listed = is_list_of_models(dump.paths[int(i)] for i in used)
    own = [canonical_path(path, listed=listed) for path in dump.paths]
    convention = tell([own[i] for i in used], [plain_class(name) for name in dump.classes])
    return own, own if convention is None else [_renamed(path, convention) for path in own], listed, convention


def _places(dump: Dump, at: tuple[int, int], intern: Interner, remap: Remap, side: int, start: Mapping[int, int]) -> Places:
    """``at``: rank and piece. ``start``: chunk → number of its first layer, for code bases that number the layers of a pipeline stage from
    0."""
    records = dump.records
    is_api = records.kind == RecordKind.API
    _, canonical, listed, convention = _named(dump)
    if any(start.values()):
        canonical = [
            with_layer(path, layer_of(path) + start.get(chunk_of(raw, listed), 0)) if path.startswith(LAYERS) else path
            for path, raw in zip(canonical, dump.paths, strict=True)
        ]
    api_paths = {int(i) for i in np.unique(records.path[is_api])}

    def shared_index(index: int, name: str) -> int:
        if index in api_paths:
            return intern(dump.paths[index])
        return intern.private(name, side) if name in remap.apart else intern(remap.rename.get(name, name))

    shared = np.array([shared_index(i, name) for i, name in enumerate(canonical)], np.int32)
    apart_by_path = np.array([i not in api_paths and name in remap.apart for i, name in enumerate(canonical)] or [False])
    apart = apart_by_path[records.path] if len(records) else np.zeros(0, bool)
    path = shared[records.path] if len(records) else np.zeros(0, np.int32)
    layer_by_path = np.array([layer_of(text) if _of_decoder(text, convention) else -1 for text in intern.texts], np.int32)
    layer = np.where(is_api, -1, layer_by_path[path]).astype(np.int32) if len(records) else np.zeros(0, np.int32)
    told = np.array([name in remap.rename for name in canonical] or [False])  # a rule says where these belong
    path, layer = _shared_modules(dump, path, layer, ~apart & ~told[records.path] if len(records) else ~apart, intern)
    layer = _layer_of_calls(dump, layer, is_api)
    recompute = _recomputed(dump, path)
    call = call_around(dump, _rank_in_group(group_key(dump, path, recompute)), is_api)
    count = len(records)
    rank, piece = (np.full(count, number, np.int32) for number in at)
    own_call = is_api & (records.parent >= 0)
    apart[own_call] = apart[records.parent[own_call]]
    order = np.arange(count, dtype=np.int32)
    return Places(convention, path, layer, call, recompute, apart, rank, piece, order, int(layer.max(initial=-1)) + 1, listed)


def _of_decoder(path: str, convention: Convention | None) -> bool:
    """The blocks of a visual tower are numbered too, but are no layers of the decoder. An unknown family numbers its layers as it likes."""
    return convention is None or path.startswith(LAYERS)


def _renamed(path: str, convention: Convention) -> str:
    target = convention.rename.get(entry_of(path))
    if target is None:
        first, dot, rest = path.partition(".")
        path = convention.prefixes.get(first, first) + dot + rest
        target = convention.rename.get(entry_of(path))
    return path if target is None else fill(target, layer_of(path), 0, inner_of(path))


def _shared_modules(dump: Dump, path: Int32, layer: Int32, usual: Bool, intern: Interner) -> tuple[Int32, Int32]:
    """A module that several layers call (one rotary_emb) is named after the layer that owns it; give each call the layer that called it
    (``usual``: but for those whose name a rule of a mapping gave).

    construct.json says who called. Without it the caller is the layer at work, known from the record before.
    """
    records = dump.records
    modules = (records.kind != RecordKind.API) & records.recorded & (layer >= 0) & usual
    caller = np.full(len(layer), -1, np.int32)
    if dump.has_construct:
        known = modules & (records.parent >= 0)
        caller[known] = layer[records.parent[known]]
    else:
        repeated = _called_more_often_than_parent(dump, path, modules)
        own = np.where(modules & ~repeated, np.arange(len(layer)), -1)
        before = np.maximum.accumulate(own) if len(own) else own
        known = modules & repeated & (before >= 0)
        caller[known] = layer[before[known]]
    moved = np.flatnonzero((caller >= 0) & (caller != layer))
    if not len(moved):
        return path, layer
    path, layer = path.copy(), layer.copy()
    pairs, where = np.unique(np.stack([path[moved], caller[moved]], axis=1), axis=0, return_inverse=True)
    renamed = np.array([intern(with_layer(intern.texts[p], int(n))) for p, n in pairs], np.int32)
    path[moved] = renamed[where.reshape(-1)]
    layer[moved] = caller[moved]
    return path, layer


def _called_more_often_than_parent(dump: Dump, path: Int32, modules: Bool) -> Bool:
    records = dump.records
    forward = modules & (records.direction == Direction.FORWARD)
    counts = np.bincount(path[forward], minlength=int(path.max(initial=-1)) + 1)
    more = np.zeros(len(path), bool)
    known = modules & (records.parent >= 0)
    more[known] = counts[path[known]] > np.maximum(counts[path[records.parent[known]]], 1)
    return more


def _layer_of_calls(dump: Dump, layer: Int32, is_api: Bool) -> Int32:
    """An API call belongs to the layer of the module around it."""
    called = is_api & (dump.records.parent >= 0)
    layer = layer.copy()
    layer[called] = layer[dump.records.parent[called]]
    return layer


def call_around(dump: Dump, call: Column, is_api: Bool) -> Column:
    """An API call belongs to the call of the module around it: the second micro-batch's matmul is no second matmul of the first."""
    called = is_api & (dump.records.parent >= 0)
    return np.where(called, call[np.where(called, dump.records.parent, 0)], call).astype(call.dtype)


def group_key(dump: Dump, path: Int32, recompute: Bool) -> Int64:
    """A number a record: the calls of one path in one direction, recomputed ones apart."""
    kind = np.where(dump.records.kind == RecordKind.PARAMETERS_GRAD, 2, dump.records.direction).astype(np.int64)
    return np.asarray(((path.astype(np.int64) * 3 + kind) * 2 + recompute) * 2 + dump.records.recorded)


def _rank_in_group(key: Int64) -> Int32:
    """0, 1, 2 … within each run of equal keys, in order of appearance."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(key) else np.zeros(0, np.int64)
    rank = np.empty(len(key), np.int32)
    rank[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.r_[starts, len(key)]))
    return rank


def _recomputed(dump: Dump, path: Int32) -> Bool:
    """Forward calls that activation checkpointing runs again during the backward pass.

    Between two calls of the module that runs first (the embedding) lies one micro-batch. A second forward of the same path inside it,
    with a backward record between the two, is a recomputation.
    """
    records = dump.records
    result = np.zeros(len(path), bool)
    forward = np.flatnonzero((records.kind == RecordKind.MODULE) & (records.direction == Direction.FORWARD) & records.recorded)
    backward = (records.direction == Direction.BACKWARD) & records.recorded
    if not len(forward) or not backward.any():
        return result
    micro_batch = np.cumsum((path == path[forward[0]]) & (records.direction == Direction.FORWARD) & (records.kind == RecordKind.MODULE))
    backwards_before = np.cumsum(backward)
    key = path[forward].astype(np.int64) * (int(micro_batch.max()) + 1) + micro_batch[forward]
    _, first_of, group = np.unique(key, return_index=True, return_inverse=True)
    result[forward] = backwards_before[forward] > backwards_before[forward[first_of]][group.reshape(-1)]
    return result
