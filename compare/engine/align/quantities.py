"""Which named tensor of the model (quantity) each slot of a dump holds, by the vocabulary of the dump's convention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compare.engine.align.canonical import entry_of, layer_of
from compare.engine.align.conventions import Convention, Variant, fill
from compare.engine.align.places import Interner, Places
from compare.engine.model import Direction, Dump, Group, Int32, Int64, Leaf, RecordKind

FLOATING = ("float", "bfloat", "half", "double")
MOST_RANKS = 4  # a slot rule may name the first four tensors of a kind


def is_floating(dtype: str) -> bool:
    return dtype.rpartition(".")[2].lower().startswith(FLOATING)


@dataclass(frozen=True, slots=True)
class SlotIndex:
    """Lookups from (record, rule) to slot: tensors by kind and rank, and any slot by its name."""

    ranked: Int32  # [records, group INPUT|OUTPUT, floating|integer, rank] → slot or -1
    floats: Int32  # [records, 2] floating-point tensors in and out, of two dimensions or more: positions stay positions in any dtype
    by_name: Int64  # sorted record * names + name
    slot_by_name: Int64
    names: dict[str, int]

    def find(self, records: Int64, rule: str) -> Int32:
        """The slot that ``rule`` names in each record, -1 where there is none."""
        group, _, rest = rule.partition(".")
        kind, _, rank = rest.partition(".")
        if kind in ("float", "int") and rank.isdigit():
            ranked: Int32 = self.ranked[records, 0 if group == "input" else 1, 0 if kind == "float" else 1, int(rank)]
            return ranked
        name = self.names.get(rule)
        if name is None or not len(self.by_name):
            return np.full(len(records), -1, np.int32)
        key = records * len(self.names) + name
        place = np.minimum(np.searchsorted(self.by_name, key), len(self.by_name) - 1)
        return np.where(self.by_name[place] == key, self.slot_by_name[place], -1).astype(np.int32)


def index_slots(dump: Dump) -> SlotIndex:
    slots = dump.slots
    floating = np.array([is_floating(dtype) for dtype in dump.dtypes] or [False])
    tensor = slots.leaf == Leaf.TENSOR
    wide = np.array([len(shape) > 1 for shape in dump.shapes] or [False])
    is_float = tensor & floating[slots.dtype] & wide[slots.shape]
    ranked = np.full((len(dump.records), 2, 2, MOST_RANKS), -1, np.int32)
    counts = np.zeros((len(dump.records), 2), np.int32)
    for side, group in enumerate((Group.INPUT, Group.OUTPUT)):
        for kind, chosen in enumerate((is_float, tensor & ~is_float)):
            rows = np.flatnonzero(chosen & (slots.group == group))
            record = slots.record[rows]
            first = np.r_[True, record[1:] != record[:-1]] if len(rows) else np.zeros(0, bool)
            starts = np.flatnonzero(first)
            rank = np.arange(len(rows)) - np.repeat(starts, np.diff(np.r_[starts, len(rows)]))
            low = rank < MOST_RANKS
            ranked[record[low], side, kind, rank[low]] = rows[low]
            if kind == 0:
                counts[:, side] = np.bincount(record, minlength=len(dump.records))
    key = slots.record.astype(np.int64) * max(len(dump.slot_names), 1) + slots.name
    order = np.argsort(key, kind="stable")
    names = {name: i for i, name in enumerate(dump.slot_names)}
    return SlotIndex(ranked, counts, key[order], order, names)


def quantities_of(dump: Dump, places: Places, layers: int, texts: Interner, names: Interner) -> Int32:
    """One quantity (index into ``names``) a slot, -1 where the vocabulary knows none. ``texts`` holds the canonical paths of ``places``.

    Only forward records carry quantities: a gradient is not the tensor itself.
    """
    found = np.full(len(dump.slots), -1, np.int32)
    convention = places.convention
    if convention is None:
        return found
    index = index_slots(dump)
    own = {texts.texts[i] for i in np.unique(places.path)}
    records = dump.records
    forward = np.flatnonzero(records.recorded & (records.direction == Direction.FORWARD) & (records.kind <= RecordKind.API))
    api = records.kind[forward] == RecordKind.API
    above = np.where(records.parent[forward] >= 0, places.path[records.parent[forward]], -1)
    module = np.where(api, above, places.path[forward])
    call_name = np.where(api, places.path[forward], -1)
    keys = np.column_stack([module, call_name, index.floats[forward]])
    distinct, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    bounds = np.searchsorted(group.reshape(-1)[order], np.arange(len(distinct) + 1))
    for row, (path, api_name, *floats) in enumerate(distinct.tolist()):
        if path < 0:
            continue
        text = texts.texts[path]
        entry = entry_of(text) + (f"/{texts.texts[api_name]}" if api_name >= 0 else "")
        variant = convention.variant(entry, (floats[0], floats[1]), layer_of(text), own)
        if variant is not None:
            members = forward[order[bounds[row] : bounds[row + 1]]]
            _assign(found, variant, index, members, layer_of(text), layers, convention, names, own)
    return found


def _assign(
    found: Int32,
    variant: Variant,
    index: SlotIndex,
    records: Int64,
    layer: int,
    layers: int,
    convention: Convention,
    names: Interner,
    own: set[str],
) -> None:
    for rules, quantities in variant.slots:
        slot = np.full(len(records), -1, np.int32)
        for rule in rules:
            slot = np.where(slot >= 0, slot, index.find(records, rule))
        quantity = _choose(quantities, convention, layer, layers, own)
        quantity = fill(quantity, layer, layers)
        if not quantity.endswith(".-1"):  # the first layer has none before it
            found[slot[slot >= 0]] = names(quantity)


def _choose(quantities: tuple[str, ...], convention: Convention, layer: int, layers: int, own: set[str]) -> str:
    """Of alternative quantities the first that some module of this dump (``own`` paths) puts out."""
    for quantity in quantities[:-1]:
        for module, variants in convention.tensors.items():
            puts_out = any(quantity in q for v in variants for rules, q in v.slots if rules[0].startswith("output."))
            if puts_out and fill(module, layer, layers) in own:
                return quantity
    return quantities[-1]
