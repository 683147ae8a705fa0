"""Where each record of one dump belongs: canonical path, layer, which call, recompute. Columns over records; Python only over distinct
paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.engine.align.canonical import canonical_path, entry_of, inner_of, is_list_of_models, layer_of, plain_class, with_layer
from compare.engine.align.conventions import Convention, fill, tell
from compare.engine.model import Bool, Direction, Dump, Int32, RecordKind

LAYERS = "model.layers."


class Interner:
    """Text ↔ index, shared by both sides so that equal indices mean equal names."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._index: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        index = self._index.get(text)
        if index is None:
            index = self._index[text] = len(self.texts)
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
    rank: Int32  # which of the side's dumps the record came from
    order: Int32  # the record's place in that dump
    layers: int  # number of layers: the highest layer number + 1
    listed: bool  # the model was given in a list: paths begin with a position in it


def places_of(dumps: Sequence[Dump], intern: Interner) -> Places:
    """The places of all records of a side's dumps (ranks), one dump after the other."""
    each = [_places(dump, rank, intern) for rank, dump in enumerate(dumps)]
    if len(each) == 1:
        return each[0]
    columns = {
        name: np.concatenate([getattr(places, name) for places in each]) for name in ("path", "layer", "call", "recompute", "rank", "order")
    }
    known = next((places.convention for places in each if places.convention is not None), None)
    return Places(convention=known, layers=max(places.layers for places in each), listed=each[0].listed, **columns)


def _places(dump: Dump, rank: int, intern: Interner) -> Places:
    records = dump.records
    is_api = records.kind == RecordKind.API
    used = np.unique(records.path[~is_api]) if len(records) else np.zeros(0, np.int32)
    listed = is_list_of_models(dump.paths[int(i)] for i in used)
    canonical = [canonical_path(path, listed=listed) for path in dump.paths]
    convention = tell([canonical[i] for i in used], [plain_class(name) for name in dump.classes])
    if convention is not None:
        canonical = [_renamed(path, convention) for path in canonical]
    api_paths = {int(i) for i in np.unique(records.path[is_api])}
    shared = np.array([intern(dump.paths[i] if i in api_paths else path) for i, path in enumerate(canonical)], np.int32)
    path = shared[records.path] if len(records) else np.zeros(0, np.int32)
    layer_by_path = np.array([layer_of(text) if _of_decoder(text, convention) else -1 for text in intern.texts], np.int32)
    layer = np.where(is_api, -1, layer_by_path[path]).astype(np.int32) if len(records) else np.zeros(0, np.int32)
    path, layer = _shared_modules(dump, path, layer, intern)
    layer = _layer_of_calls(dump, layer, is_api)
    recompute = _recomputed(dump, path)
    call = _call_around(dump, _rank_in_group(_group_key(dump, path, recompute)), is_api)
    count = len(records)
    ranks = np.full(count, rank, np.int32)
    return Places(convention, path, layer, call, recompute, ranks, np.arange(count, dtype=np.int32), int(layer.max(initial=-1)) + 1, listed)


def _of_decoder(path: str, convention: Convention | None) -> bool:
    """The blocks of a visual tower are numbered too, but are no layers of the decoder. An unknown family numbers its layers as it likes."""
    return convention is None or path.startswith(LAYERS)


def _renamed(path: str, convention: Convention) -> str:
    first, dot, rest = path.partition(".")
    path = convention.prefixes.get(first, first) + dot + rest
    target = convention.rename.get(entry_of(path))
    return path if target is None else fill(target, layer_of(path), 0, inner_of(path))


def _shared_modules(dump: Dump, path: Int32, layer: Int32, intern: Interner) -> tuple[Int32, Int32]:
    """A module that several layers call (one rotary_emb) is named after the layer that owns it; give each call the layer that called it.

    construct.json says who called. Without it the caller is the layer at work, known from the record before.
    """
    records = dump.records
    modules = (records.kind != RecordKind.API) & records.recorded & (layer >= 0)
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


def _call_around(dump: Dump, call: Int32, is_api: Bool) -> Int32:
    """An API call belongs to the call of the module around it: the second micro-batch's matmul is no second matmul of the first."""
    called = is_api & (dump.records.parent >= 0)
    return np.where(called, call[np.where(called, dump.records.parent, 0)], call).astype(np.int32)


def _group_key(dump: Dump, path: Int32, recompute: Bool) -> Int32:
    kind = np.where(dump.records.kind == RecordKind.PARAMETERS_GRAD, 2, dump.records.direction).astype(np.int64)
    return np.asarray(((path.astype(np.int64) * 3 + kind) * 2 + recompute) * 2 + dump.records.recorded)


def _rank_in_group(key: Int32) -> Int32:
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
