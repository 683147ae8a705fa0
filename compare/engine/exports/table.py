"""The pair table: one row a pair and one a slot without partner, in order of execution. msprobe's columns first, then ours.

Rows come in chunks of columns, so that a table of a million rows costs a chunk of memory. msprobe's formulas are kept (difference = left −
right; relative = |difference / right| in percent; text that is equal is 0), its mistakes are not: a row without partner, and one with NaN,
never passes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.align.explain import CODES, Explanation
from compare.engine.diagnose.reasons import UNPAIRED
from compare.engine.exports.cells import MISSING, Cells, at, numbers
from compare.engine.exports.differences import differences
from compare.engine.exports.end import SIDES, End, Rows
from compare.engine.exports.finished import Finished, FinishedCase, FinishedPart, Table
from compare.engine.exports.header import Layout
from compare.engine.exports.tensor_columns import data_names, has_tensors, tensor_columns
from compare.engine.measure.grades import NO_FLOOR
from compare.engine.model import Dump, Group, Int32, Int64, Leaf

CHUNK = 20_000  # rows at once
GROUPS = {Group.INPUT: "input", Group.PARAMETERS: "parameters", Group.OUTPUT: "output", Group.PARAMETERS_GRAD: "parameters_grad"}

UNMATCHED, NOTHING = "unmatched", "nothing"  # beside the grades: a slot without partner; a pair of nulls, or of tensors without numbers
RESULTS = {
    "equal": "pass",
    "rounding": "pass",
    "noise": "pass",
    "diverged": "error",
    "incomparable": "warning",
    UNMATCHED: "warning",
    NOTHING: "warning",
}
CONFIDENCE = {"same_name": "low", "elsewhere": "medium"}


class PairTable:
    """``header`` names the columns; ``chunks`` yields the rows as lists of columns."""

    def __init__(self, finished: Finished) -> None:
        self._parts = [(part, *part.open()) for part in finished.judged()]
        dumps = [case.dumps for _, _, cases in self._parts for case in cases]
        checksums = bool(dumps) and all(any(_has_checksums(pair[side]) for pair in dumps) for side in (0, 1))
        statistics = not checksums or any(bool(np.asarray(dump.slots.present).any()) for pair in dumps for dump in pair)
        tensors = any(has_tensors(case.pairs) for _, _, cases in self._parts for case in cases)
        self._layout = Layout(checksums, statistics or tensors, tensors)
        self.header = self._layout.header

    def chunks(self) -> Iterator[list[Cells]]:
        for part, rows, cases in self._parts:
            for index, case in enumerate(cases):
                yield from _CaseTable(part, rows, case, index, self._layout).chunks()


def _has_checksums(dump: Dump) -> bool:
    return bool((np.asarray(dump.slots.checksum) >= 0).any())


class _CaseTable:
    def __init__(self, part: FinishedPart, rows: Table, case: FinishedCase, index: int, layout: Layout) -> None:
        self.part = part
        self.case = case
        self.layout = layout
        self.pairs = case.pairs
        self.names = [list(dump.records.name) for dump in case.dumps]
        self.of_node = _node_columns(rows, index, len(self.pairs.array("node_start")) - 1)
        self.node_of_pair = _node_of_pair(self.pairs)
        self.node_of_record = [_node_of_record(self.pairs, name, len(dump.records)) for name, dump in zip(SIDES, case.dumps, strict=True)]
        self.order = self._order()

    def chunks(self) -> Iterator[list[Cells]]:
        for begin in range(0, len(self.order), CHUNK):
            cut = slice(begin, begin + CHUNK)
            yield self._columns(Rows(self.order.pair[cut], (self.order.alone[0][cut], self.order.alone[1][cut])))

    def _order(self) -> Rows:
        """Pairs in order of execution; a slot without partner after what was paired before it in its own dump."""
        primary = int(self.pairs.meta["primary"])
        shown = np.arange(len(self.pairs.array("group")))
        record = self._records(shown, primary)
        keys, kinds = [record * 2], [np.zeros(len(shown), np.int64)]
        rows = [shown]
        alone = [np.full(len(shown), -1, np.int64), np.full(len(shown), -1, np.int64)]
        for side in (primary, 1 - primary):
            slots = self._alone(side)
            own = np.asarray(self.case.dumps[side].slots.record)[slots].astype(np.int64)
            if side == primary:
                key = own * 2
            else:
                theirs = self._records(shown, side)
                latest = np.full(len(self.case.dumps[side].records) + 1, -1, np.int64)
                np.maximum.at(latest, theirs, record)
                key = np.maximum.accumulate(latest)[own] * 2 + 1
            keys.append(key)
            kinds.append(np.full(len(slots), 1 + side, np.int64))
            rows.append(np.full(len(slots), -1, np.int64))
            for end in (0, 1):
                alone[end] = np.r_[alone[end], slots if end == side else np.full(len(slots), -1, np.int64)]
        order = np.argsort(np.concatenate(keys), kind="stable")
        return Rows(np.concatenate(rows)[order], (alone[0][order], alone[1][order]))

    def _records(self, pairs: Int64, side: int) -> Int64:
        """The record of each pair on a side: that of its last slot."""
        start, slots = self.pairs.array(f"{SIDES[side]}_start"), self.pairs.array(f"{SIDES[side]}_slot")
        record: Int64 = (
            np.asarray(self.case.dumps[side].slots.record)[slots[start[pairs + 1] - 1]].astype(np.int64) if len(pairs) else pairs
        )
        return record

    def _alone(self, side: int) -> Int64:
        """Slots that hold something and are in no pair."""
        slots = self.case.dumps[side].slots
        free = ~np.isin(slots.leaf, (Leaf.NULL, Leaf.PLACEHOLDER))
        free[self.pairs.array(f"{SIDES[side]}_slot")] = False
        return np.flatnonzero(free)

    # --- one chunk ----------------------------------------------------------------------------------------------------------------------

    def _columns(self, rows: Rows) -> list[Cells]:
        ends = [End(self.pairs, self.case.dumps[side], self.names[side], side, rows) for side in (0, 1)]
        grades = self._grades(rows)
        grad: Cells = [MISSING] * len(rows)  # a dump's requires_grad is not kept
        columns: list[Cells] = (
            [end.names() for end in ends] + [end.dtypes() for end in ends] + [end.shapes() for end in ends] + [grad, grad]
        )
        odd = np.zeros(len(rows), bool)
        if self.layout.checksums:
            columns += [end.checksums() for end in ends]
        if self.layout.statistics:
            values = [end.values() for end in ends]
            text = [end.statistics() for end in ends]
            columns += tensor_columns(self.pairs, rows.pair) if self.layout.tensors else differences(values, text)
            columns += [*text[0], *text[1]]
            odd = self._odd(rows)
        explanations = self._explanations(rows)
        messages = self._messages(rows, grades, explanations, odd)
        results = [
            "warning" if word == "pass" and nan else word for word, nan in zip(map(RESULTS.__getitem__, grades), odd.tolist(), strict=True)
        ]
        names = [data_names(self.case.dumps, [end.first for end in ends])] if self.layout.tensors else []
        return [*columns, grad, results, messages, *names, *self._ours(rows, grades, explanations)]

    def _odd(self, rows: Rows) -> NDArray[np.bool_]:
        """Pairs with a NaN or Inf that was written, and is not the lack of a statistic."""
        pair = np.where(rows.pair >= 0, rows.pair, 0)
        written = np.zeros(len(pair), bool)
        for side in SIDES if len(self.pairs.array("grade")) else ():
            present, values = (self.pairs.array(f"{kind}_{side}")[pair] for kind in ("present", "values"))
            written |= (present & ~np.isfinite(values)).any(axis=1)
        return written & (rows.pair >= 0)

    def _grades(self, rows: Rows) -> list[str]:
        words = _words(self.pairs.meta["grades"])
        grade = at(self.pairs.array("grade"), rows.pair)
        nothing = at(self.pairs.array("nothing"), rows.pair)
        return [
            UNMATCHED if pair < 0 else NOTHING if empty else words[value]
            for value, pair, empty in zip(grade.tolist(), rows.pair.tolist(), nothing.tolist(), strict=True)
        ]

    def _node(self, rows: Rows) -> Int32:
        node = at(self.node_of_pair, rows.pair).astype(np.int32)
        for side in (0, 1):
            slot = rows.alone[side]
            mine = slot >= 0
            node[mine] = self.node_of_record[side][np.asarray(self.case.dumps[side].slots.record)[slot[mine]]]
        return node

    def _explanations(self, rows: Rows) -> list[str]:
        """Why a row has no partner, in a word; '' for a pair."""
        codes = {int(code) - 1: CODES[code] for code in Explanation if code is not Explanation.MATCHED}
        reason = at(self.of_node["reason"], self._node(rows)).tolist()
        return [codes.get(value, "no_partner") if pair < 0 else "" for value, pair in zip(reason, rows.pair.tolist(), strict=True)]

    def _messages(self, rows: Rows, grades: Sequence[str], explanations: Sequence[str], odd: NDArray[np.bool_]) -> Cells:
        """msprobe's JSON list of sentences."""
        unpaired = {CODES[code]: text["en"] for code, text in UNPAIRED.items()}
        size = at(self.pairs.array("size"), rows.pair).tolist()
        said = {
            "diverged": "Differs by more than rounding and noise explain.",
            "incomparable": "Cannot be compared: nothing is there on both sides.",
            "size": "Cannot be compared: another number of elements.",
            "nothing": "Nothing was written on either side: no agreement, and no difference.",
            "nan": "NaN or Inf is no agreement.",
        }
        found: Cells = []
        for grade, code, other_size, nan in zip(grades, explanations, size, odd.tolist(), strict=True):
            if grade == UNMATCHED:
                found.append(json.dumps([f"No partner: {unpaired.get(code, 'the module has one, this slot has none')}."]))
            elif grade == NOTHING:
                found.append(json.dumps([said["nothing"]]))
            elif grade == "incomparable":
                found.append(json.dumps([said["size"] if other_size else said["incomparable"]]))
            else:
                found.append(json.dumps([*([said["diverged"]] if grade == "diverged" else []), *([said["nan"]] if nan else [])]))
        return found

    def _ours(self, rows: Rows, grades: list[str], explanations: list[str]) -> list[Cells]:
        meta = self.pairs.meta
        node = self._node(rows)
        paired = rows.pair >= 0
        relations, reasons = _words(meta["relations"]), {int(key): value["code"] for key, value in meta["reasons"].items()}
        reason, relation = (at(self.pairs.array(name), rows.pair).tolist() for name in ("reason", "relation"))
        codes = [reasons[value] if there else "" for value, there in zip(reason, paired.tolist(), strict=True)]
        slot = np.where(paired, 0, np.maximum(rows.alone[0], rows.alone[1]))
        side_groups = [np.asarray(dump.slots.group) for dump in self.case.dumps]
        group = np.where(paired, at(self.pairs.array("group"), rows.pair), 0)
        for side in (0, 1):
            mine = rows.alone[side] >= 0
            group[mine] = side_groups[side][slot[mine]]
        rank = meta.get("rank")
        step, stage = self.part.row.get("step"), self.part.row.get("stage")
        count = len(rows)
        return [
            _taken(self.of_node["module"], node),
            _taken(self.of_node["direction"], node),
            [GROUPS[Group(value)] for value in group.tolist()],
            _taken(self.of_node["layer"], node),
            [relations[value] if there else "none" for value, there in zip(relation, paired.tolist(), strict=True)],
            codes,
            [CONFIDENCE.get(code, "high") if code else "" for code in codes],
            grades,
            _taken(self.of_node["role"], node),
            numbers(at(self.pairs.array("difference"), rows.pair), paired),
            numbers(at(self.pairs.array("floor"), rows.pair), paired & (at(self.pairs.array("floor_source"), rows.pair) != NO_FLOOR)),
            [value if value >= 0 else "" for value in np.where(paired, at(self.pairs.array("position"), rows.pair), -1).tolist()],
            explanations,
            [self.part.n] * count,
            ["" if stage is None else stage] * count,
            ["" if step is None else step] * count,
            ["" if rank is None else rank] * count,
        ]


def _taken(words: NDArray[Any], node: Int32) -> Cells:
    found: Cells = at(words, node).tolist()
    return found


def _words(table: dict[str, str]) -> dict[int, str]:
    return {int(key): word for key, word in table.items()}


def _node_columns(rows: Table, case: int, count: int) -> dict[str, NDArray[Any]]:
    """What the tree says of each node of a case: canonical name, direction, layer, role, reason."""
    mine = np.flatnonzero((rows.array("case") == case) & (rows.array("node") >= 0) & (rows.array("part") == -1))
    node = rows.array("node")[mine]
    strings, roles = [*rows.strings, ""], _words(rows.meta["roles"])
    module = np.full(count, "", object)
    module[node] = [strings[index] for index in rows.array("module")[mine].tolist()]
    direction = np.full(count, "forward", object)
    direction[node] = np.array(["forward", "backward"], object)[rows.array("direction")[mine]]
    layer = np.full(count, "", object)
    layer[node] = [value if value >= 0 else "" for value in rows.array("layer")[mine].tolist()]
    role = np.full(count, "none", object)
    role[node] = [roles[value] for value in rows.array("role")[mine].tolist()]
    reason = np.full(count, 255, np.int64)
    reason[node] = rows.array("reason")[mine]
    return {"module": module, "direction": direction, "layer": layer, "role": role, "reason": reason}


def _node_of_pair(pairs: Table) -> Int32:
    start, order = pairs.array("node_start"), pairs.array("pair_of_node")
    node = np.empty(len(order), np.int32)
    node[order] = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    return node


def _node_of_record(pairs: Table, side: str, count: int) -> Int32:
    start, records = pairs.array(f"{side}_record_start"), pairs.array(f"{side}_record")
    node = np.full(count, -1, np.int32)
    node[records] = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    return node
