"""The mapping that a comparison used: which modules stood beside each other, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from compare.engine.align.pairs import Reason
from compare.engine.align.places import own_paths
from compare.engine.exports.finished import Finished, FinishedCase
from compare.engine.mapping.read import read_mapping
from compare.engine.mapping.rules import MappingRules, slot_name
from compare.engine.mapping.write import UsedMapping, UsedPair
from compare.engine.model import Dump, Group, Int32, Int64, RecordKind

SIDES = ("left", "right")


def used_mapping(finished: Finished) -> UsedMapping:
    """Over all parts and ranks, each pair of modules once."""
    pairs: dict[tuple[tuple[str, ...], tuple[str, ...]], UsedPair] = {}
    layers: dict[str, str] = {}
    cells: dict[str, str] = {}
    data: dict[str, str] = {}
    swapped = False
    for part in finished.judged():
        _, cases = part.open()
        for case in cases:
            swapped = swapped or bool(case.pairs.meta.get("mapping_swapped"))
            found = _Modules(case)
            for pair in found.pairs():
                pairs.setdefault((pair.left, pair.right), pair)
            for raw in found.raw():
                layers.setdefault(raw[0], raw[1])
                cells.setdefault(raw[2], raw[3])
            for left, right in found.slots():
                data.setdefault(left, right)
    sides = [finished.document[side] for side in SIDES]
    roles = (sides[0]["role"], sides[1]["role"])
    given = read_mapping(finished.mapping).facing(roles) if finished.mapping else MappingRules()
    return UsedMapping(
        names=(sides[0]["name"], sides[1]["name"]),
        roles=roles,
        pairs=list(pairs.values()),
        given=given.swapped() if swapped else given,
        layers=layers,
        cells=cells,
        data=data,
    )


class _Modules:
    """The module records of the nodes of one case."""

    def __init__(self, case: FinishedCase) -> None:
        self.case = case
        self.paths = [own_paths(dump) for dump in case.dumps]
        self.records = [_module_records(case, side) for side in (0, 1)]
        self.nodes = np.flatnonzero((self.records[0][0][1:] > self.records[0][0][:-1]) & (self.records[1][0][1:] > self.records[1][0][:-1]))

    def pairs(self) -> Iterator[UsedPair]:
        speaker = _speakers(self.case)
        path_ids = [self.case.dumps[side].records.path for side in (0, 1)]
        first = [path_ids[side][self.records[side][1][self.records[side][0][self.nodes]]] for side in (0, 1)]
        counts = [np.diff(self.records[side][0])[self.nodes] for side in (0, 1)]
        several = (counts[0] > 1) | (counts[1] > 1)
        # Of the calls of a module and its partner the first one speaks; of fused modules every call is looked at, there are few.
        _, once = np.unique(np.stack([first[0], first[1]], axis=1), axis=0, return_index=True)
        chosen = np.unique(np.r_[once, np.flatnonzero(several)])
        for node in self.nodes[chosen].tolist():
            left, right = (
                tuple(dict.fromkeys(self.paths[side][int(path_ids[side][record])] for record in self._of(side, node))) for side in (0, 1)
            )
            pair = int(speaker[node])
            yield UsedPair(left, right, *self._why(pair))

    def _of(self, side: int, node: int) -> Int32:
        start, values = self.records[side]
        return values[start[node] : start[node + 1]]

    def _why(self, pair: int) -> tuple[str, str, str | None]:
        table = self.case.pairs
        if pair < 0:
            return "none", "nothing to compare", None
        elsewhere = int(table.array("elsewhere")[pair])
        reason = table.meta["reasons"][str(int(table.array("reason")[pair]))]
        quantity = int(table.array("quantity")[pair])
        named = table.meta["quantities"][quantity]["en"] if quantity >= 0 else "the same tensor"
        text = reason["text"]["en"].replace("{quantity}", named)
        place = None
        if elsewhere:
            side = 1 if elsewhere & 2 else 0
            start, slots = table.array(f"{SIDES[side]}_start"), table.array(f"{SIDES[side]}_slot")
            dump, slot = self.case.dumps[side], int(slots[start[pair]])
            path = self.paths[side][int(dump.records.path[int(dump.slots.record[slot])])]
            place = f"{SIDES[side]} {path} {dump.slot_names[int(dump.slots.name[slot])]}"
        return table.name("relations", int(table.array("relation")[pair])), text[:1].upper() + text[1:], place

    def raw(self) -> Iterator[tuple[str, str, str, str]]:
        """For msprobe's layer and cell mapping, each left module once: raw path, raw path, path with class, path with class."""
        for node in self.nodes.tolist():
            right = int(self._of(1, node)[0])
            for record in self._of(0, node).tolist():
                ends = ((self.case.dumps[0], record), (self.case.dumps[1], right))
                paths = [dump.paths[int(dump.records.path[row])] for dump, row in ends]
                classes = [
                    dump.classes[int(dump.records.class_name[row])] if dump.records.class_name[row] >= 0 else "" for dump, row in ends
                ]
                if all(paths):
                    yield paths[0], paths[1], f"{paths[0]}.{classes[0]}", f"{paths[1]}.{classes[1]}"

    def slots(self) -> Iterator[tuple[str, str]]:
        """For msprobe's data mapping: every left slot that is in a pair, with the first right slot of that pair."""
        table = self.case.pairs
        starts = [table.array(f"{side}_start").tolist() for side in SIDES]
        values = [table.array(f"{side}_slot").tolist() for side in SIDES]
        names = [_slot_names(dump) for dump in self.case.dumps]
        for pair in range(len(starts[0]) - 1):
            right = names[1](values[1][starts[1][pair]])
            for slot in values[0][starts[0][pair] : starts[0][pair + 1]]:
                yield names[0](slot), right


def _slot_names(dump: Dump) -> Callable[[int], str]:
    record, name = dump.slots.record.tolist(), dump.slots.name.tolist()

    def full(slot: int) -> str:
        return slot_name(dump.records.name[record[slot]], dump.slot_names[name[slot]])

    return full


def _module_records(case: FinishedCase, side: int) -> tuple[Int64, Int32]:
    """The lists of a node's records without API calls and gradients: start, values."""
    start, values = (case.pairs.array(f"{SIDES[side]}_record_start"), case.pairs.array(f"{SIDES[side]}_record"))
    module = case.dumps[side].records.kind[values] == RecordKind.MODULE
    before = np.r_[0, np.cumsum(module)]
    return before[start].astype(np.int64), np.asarray(values)[module]


def _speakers(case: FinishedCase) -> Int32:
    """For each node the pair that says how its modules belong together: of its own, outputs before the rest."""
    table = case.pairs
    start, order, group = table.array("node_start"), table.array("pair_of_node"), table.array("group")
    node = np.repeat(np.arange(len(start) - 1), np.diff(start))
    seen = table.array("reason")[order] == Reason.ELSEWHERE  # where a tensor is only seen again, it says little
    ranked = np.lexsort((order, group[order] != Group.OUTPUT, seen, node))
    first = np.r_[True, node[ranked][1:] != node[ranked][:-1]] if len(node) else np.zeros(0, bool)
    speaker = np.full(len(start) - 1, -1, np.int32)
    speaker[node[ranked][first]] = order[ranked][first]
    return speaker
