"""The pair table: one row a pair and one a slot without partner, in order of execution. msprobe's columns first, then ours.

Rows come in chunks of columns, so that a table of a million rows costs a chunk of memory. msprobe's formulas are kept (difference = left −
right; relative = |difference / right| in percent; text that is equal is 0), its mistakes are not: a row without partner, and one with NaN,
never passes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.align.explain import CODES, Explanation
from compare.engine.diagnose.reasons import UNPAIRED
from compare.engine.exports.finished import Finished, FinishedCase, FinishedPart, Table
from compare.engine.exports.tensor_columns import DATA_NAME, TENSORS, data_names, has_tensors, tensor_columns
from compare.engine.mapping.rules import slot_name
from compare.engine.model import Dump, Group, Int32, Int64, Leaf, Statistic

CHUNK = 20_000  # rows at once
SIDES = ("left", "right")
SHOWN = (Statistic.MAX, Statistic.MIN, Statistic.MEAN, Statistic.NORM)
GROUPS = {Group.INPUT: "input", Group.PARAMETERS: "parameters", Group.OUTPUT: "output", Group.PARAMETERS_GRAD: "parameters_grad"}

BASIC = (
    "NPU Name",
    "Bench Name",
    "NPU Dtype",
    "Bench Dtype",
    "NPU Tensor Shape",
    "Bench Tensor Shape",
    "NPU Requires_grad",
    "Bench Requires_grad",
)
DIFFERENCES = (
    "Max diff",
    "Min diff",
    "Mean diff",
    "L2norm diff",
    "MaxRelativeErr",
    "MinRelativeErr",
    "MeanRelativeErr",
    "NormRelativeErr",
)
STATISTICS = ("NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm")
CHECKSUMS = ("NPU MD5", "BENCH MD5")
TAIL = ("Requires_grad Consistent", "Result", "Err_message")
OURS = (
    "Module",
    "Direction",
    "Group",
    "Layer",
    "Relation",
    "Reason",
    "Confidence",
    "Grade",
    "Role",
    "Difference",
    "Floor",
    "Order",
    "Explanation",
    "Part",
    "Stage",
    "Step",
    "Rank",
)
MISSING = "N/A"
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

Cells = list[Any]  # one column of a chunk: text, int, float


@dataclass(frozen=True, slots=True)
class Layout:
    """Which of msprobe's columns there are: checksums where both sides wrote them, statistics where any were written; where tensors were
    compared, the figures of their elements stand in place of the differences of statistics.
    """

    checksums: bool
    statistics: bool
    tensors: bool

    @property
    def header(self) -> tuple[str, ...]:
        apart = TENSORS if self.tensors else DIFFERENCES
        measured = (*(CHECKSUMS if self.checksums else ()), *((*apart, *STATISTICS) if self.statistics else ()))
        return (*BASIC, *measured, *TAIL, *((DATA_NAME,) if self.tensors else ()), *OURS)


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


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a chunk: a pair, or (pair -1) the slot of one side that has none."""

    pair: Int64
    alone: tuple[Int64, Int64]  # a slot without partner, -1

    def __len__(self) -> int:
        return len(self.pair)


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
            yield self._columns(_Rows(self.order.pair[cut], (self.order.alone[0][cut], self.order.alone[1][cut])))

    def _order(self) -> _Rows:
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
            for at in (0, 1):
                alone[at] = np.r_[alone[at], slots if at == side else np.full(len(slots), -1, np.int64)]
        order = np.argsort(np.concatenate(keys), kind="stable")
        return _Rows(np.concatenate(rows)[order], (alone[0][order], alone[1][order]))

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

    def _columns(self, rows: _Rows) -> list[Cells]:
        ends = [_End(self, side, rows) for side in (0, 1)]
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
            columns += tensor_columns(self.pairs, rows.pair) if self.layout.tensors else _differences(values, text)
            columns += [*text[0], *text[1]]
            odd = self._odd(rows)
        explanations = self._explanations(rows)
        messages = self._messages(rows, grades, explanations, odd)
        results = [
            "warning" if word == "pass" and nan else word for word, nan in zip(map(RESULTS.__getitem__, grades), odd.tolist(), strict=True)
        ]
        names = [data_names(self.case.dumps, [end.first for end in ends])] if self.layout.tensors else []
        return [*columns, grad, results, messages, *names, *self._ours(rows, grades, explanations)]

    def _odd(self, rows: _Rows) -> NDArray[np.bool_]:
        """Pairs with a NaN or Inf that was written, and is not the lack of a statistic."""
        pair = np.where(rows.pair >= 0, rows.pair, 0)
        written = np.zeros(len(pair), bool)
        for side in SIDES if len(self.pairs.array("grade")) else ():
            present, values = (self.pairs.array(f"{kind}_{side}")[pair] for kind in ("present", "values"))
            written |= (present & ~np.isfinite(values)).any(axis=1)
        return written & (rows.pair >= 0)

    def _grades(self, rows: _Rows) -> list[str]:
        words = _words(self.pairs.meta["grades"])
        grade = _at(self.pairs.array("grade"), rows.pair)
        nothing = _at(self.pairs.array("nothing"), rows.pair)
        return [
            UNMATCHED if pair < 0 else NOTHING if empty else words[value]
            for value, pair, empty in zip(grade.tolist(), rows.pair.tolist(), nothing.tolist(), strict=True)
        ]

    def _node(self, rows: _Rows) -> Int32:
        node = _at(self.node_of_pair, rows.pair).astype(np.int32)
        for side in (0, 1):
            slot = rows.alone[side]
            mine = slot >= 0
            node[mine] = self.node_of_record[side][np.asarray(self.case.dumps[side].slots.record)[slot[mine]]]
        return node

    def _explanations(self, rows: _Rows) -> list[str]:
        """Why a row has no partner, in a word; '' for a pair."""
        codes = {int(code) - 1: CODES[code] for code in Explanation if code is not Explanation.MATCHED}
        reason = _at(self.of_node["reason"], self._node(rows)).tolist()
        return [codes.get(value, "no_partner") if pair < 0 else "" for value, pair in zip(reason, rows.pair.tolist(), strict=True)]

    def _messages(self, rows: _Rows, grades: Sequence[str], explanations: Sequence[str], odd: NDArray[np.bool_]) -> Cells:
        """msprobe's JSON list of sentences."""
        unpaired = {CODES[code]: text["en"] for code, text in UNPAIRED.items()}
        size = _at(self.pairs.array("size"), rows.pair).tolist()
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

    def _ours(self, rows: _Rows, grades: list[str], explanations: list[str]) -> list[Cells]:
        meta = self.pairs.meta
        node = self._node(rows)
        paired = rows.pair >= 0
        relations, reasons = _words(meta["relations"]), {int(key): value["code"] for key, value in meta["reasons"].items()}
        reason, relation = (_at(self.pairs.array(name), rows.pair).tolist() for name in ("reason", "relation"))
        codes = [reasons[value] if there else "" for value, there in zip(reason, paired.tolist(), strict=True)]
        slot = np.where(paired, 0, np.maximum(rows.alone[0], rows.alone[1]))
        side_groups = [np.asarray(dump.slots.group) for dump in self.case.dumps]
        group = np.where(paired, _at(self.pairs.array("group"), rows.pair), 0)
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
            _numbers(_at(self.pairs.array("difference"), rows.pair), paired),
            _numbers(_at(self.pairs.array("floor"), rows.pair), paired),
            [value if value >= 0 else "" for value in np.where(paired, _at(self.pairs.array("position"), rows.pair), -1).tolist()],
            explanations,
            [self.part.n] * count,
            ["" if stage is None else stage] * count,
            ["" if step is None else step] * count,
            ["" if rank is None else rank] * count,
        ]


class _End:
    """One side of the rows of a chunk."""

    def __init__(self, table: _CaseTable, side: int, rows: _Rows) -> None:
        self.table, self.side, self.rows = table, side, rows
        self.dump: Dump = table.case.dumps[side]
        start, slots = table.pairs.array(f"{SIDES[side]}_start"), table.pairs.array(f"{SIDES[side]}_slot")
        paired = rows.pair >= 0
        pair = np.where(paired, rows.pair, 0)
        self.first = np.where(paired, slots[start[pair]] if len(slots) else -1, rows.alone[side]).astype(np.int64)
        self.count = np.where(paired, start[pair + 1] - start[pair] if len(slots) else 0, rows.alone[side] >= 0)
        self.begin, self.slots = np.where(paired, start[pair], 0), slots
        self.there = self.first >= 0

    def _joined(self, one: Callable[[Int64], list[str]]) -> Cells:
        """The word of the first slot; where the end is several slots, all of theirs with ``;`` between them; N/A where there is none."""
        found: Cells = one(np.where(self.there, self.first, 0))
        for row in np.flatnonzero(self.count > 1).tolist():
            begin = int(self.begin[row])
            found[row] = ";".join(one(np.asarray(self.slots[begin : begin + int(self.count[row])]).astype(np.int64)))
        for row in np.flatnonzero(~self.there).tolist():
            found[row] = MISSING
        return found

    def names(self) -> Cells:
        names, slot_names = self.table.names[self.side], self.dump.slot_names
        record, name = np.asarray(self.dump.slots.record), np.asarray(self.dump.slots.name)
        return self._joined(
            lambda slots: [slot_name(names[r], slot_names[n]) for r, n in zip(record[slots].tolist(), name[slots].tolist(), strict=True)]
        )

    def dtypes(self) -> Cells:
        tensors = [*self.dump.dtypes, ""]
        types = [*(f"<class '{name}'>" for name in self.dump.types), MISSING]
        dtype, kind = np.asarray(self.dump.slots.dtype), np.asarray(self.dump.slots.type_name)
        return self._joined(
            lambda slots: [tensors[d] or types[t] for d, t in zip(dtype[slots].tolist(), kind[slots].tolist(), strict=True)]
        )

    def shapes(self) -> Cells:
        texts = [*(str(list(shape)) for shape in self.dump.shapes), MISSING, "[]"]
        null = np.asarray(self.dump.slots.type_name) < 0
        shape = np.where(null & (np.asarray(self.dump.slots.shape) < 0), -2, self.dump.slots.shape)
        return self._joined(lambda slots: [texts[s] for s in shape[slots].tolist()])

    def checksums(self) -> Cells:
        texts = [*self.dump.texts, MISSING]
        checksum = np.asarray(self.dump.slots.checksum)
        return self._joined(lambda slots: [texts[c] for c in checksum[slots].tolist()])

    def values(self) -> NDArray[np.float64]:
        """[rows, 4] in the order of SHOWN; NaN where a statistic is not there."""
        pair = np.where(self.rows.pair >= 0, self.rows.pair, 0)
        combined = self.table.pairs.array(f"values_{SIDES[self.side]}")
        own = np.asarray(self.dump.slots.statistics)
        found = np.full((len(pair), 4), np.nan)
        paired = self.rows.pair >= 0
        found[paired] = combined[pair[paired]][:, list(SHOWN)] if len(combined) else np.nan
        alone = ~paired & self.there
        found[alone] = own[self.first[alone]][:, list(SHOWN)]
        return found

    def statistics(self) -> list[Cells]:
        """Four columns as they are shown: whole numbers of integer tensors without a point, text as text, None where none was written."""
        values = self.values()
        slots = np.where(self.there, self.first, 0)
        leaf = np.asarray(self.dump.slots.leaf)[slots]
        whole_dtype = np.array([not _floating(name) for name in self.dump.dtypes] + [False])
        whole_type = np.array([name in ("int", "bool") for name in self.dump.types] + [False])
        whole = np.where(
            leaf == Leaf.NUMBER,
            whole_type[np.asarray(self.dump.slots.type_name)[slots]],
            whole_dtype[np.asarray(self.dump.slots.dtype)[slots]],
        )
        present = self._present(slots)
        columns: list[Cells] = []
        for place in range(4):
            column = _shown(values[:, place], whole, present[:, place])
            columns.append(column)
        for row in np.flatnonzero((leaf == Leaf.TEXT) & self.there).tolist():
            word = self.dump.texts[int(self.dump.slots.text[int(slots[row])])]
            for column in columns:
                column[row] = word
        truth = np.array([name == "bool" for name in self.dump.types] + [False])[np.asarray(self.dump.slots.type_name)[slots]]
        for row in np.flatnonzero((leaf == Leaf.NUMBER) & truth & self.there).tolist():
            for column in columns:
                column[row] = str(bool(column[row]))
        for row in np.flatnonzero(~self.there).tolist():
            for column in columns:
                column[row] = MISSING
        return columns

    def _present(self, slots: Int64) -> NDArray[np.bool_]:
        pair = np.where(self.rows.pair >= 0, self.rows.pair, 0)
        combined = self.table.pairs.array(f"present_{SIDES[self.side]}")
        bits = (np.asarray(self.dump.slots.present)[slots][:, None] >> np.array(SHOWN)) & 1 == 1
        paired = (self.rows.pair >= 0)[:, None]
        return np.asarray(np.where(paired, combined[pair][:, list(SHOWN)] if len(combined) else bits, bits))


def _floating(dtype: str) -> bool:
    return dtype.rpartition(".")[2].lower().startswith(("float", "bfloat", "half", "double", "complex"))


def _shown(values: NDArray[np.float64], whole: NDArray[np.bool_], present: NDArray[np.bool_]) -> Cells:
    cells: Cells = values.tolist()
    finite = np.isfinite(values)
    for row in np.flatnonzero(finite & whole & present & (values == np.floor(values))).tolist():
        cells[row] = int(cells[row])
    for row in np.flatnonzero(~finite & present).tolist():
        cells[row] = _odd(cells[row])
    for row in np.flatnonzero(~present).tolist():
        cells[row] = "None"
    return cells


def _odd(value: float) -> str:
    """How msprobe writes what is no number; the space keeps a spreadsheet from reading −inf as a formula."""
    return "nan" if math.isnan(value) else " inf" if value > 0 else " -inf"


def _differences(values: Sequence[NDArray[np.float64]], text: Sequence[Sequence[Cells]]) -> list[Cells]:
    """Eight columns: left − right, and |left − right| / |right| in percent, for Max, Min, Mean, Norm."""
    left, right = values
    with np.errstate(all="ignore"):
        difference = left - right
        relative = np.abs(difference / right) * 100
    first: list[Cells] = []
    second: list[Cells] = []
    for place in range(4):
        signed: Cells = difference[:, place].tolist()
        percent: Cells = [f"{value!r}%" for value in relative[:, place].tolist()]
        equal = left[:, place] == right[:, place]
        for row in np.flatnonzero(equal).tolist():
            signed[row] = percent[row] = 0
        # Whatever is no plain number on both sides is decided one by one; there is little of it.
        plain = np.isfinite(left[:, place]) & np.isfinite(right[:, place]) & (right[:, place] != 0)
        for row in np.flatnonzero(~plain & ~equal).tolist():
            signed[row], percent[row] = _unusual(
                text[0][place][row], text[1][place][row], float(left[row, place]), float(right[row, place])
            )
        whole = (
            plain
            & ~equal
            & np.array([isinstance(a, int) and isinstance(b, int) for a, b in zip(text[0][place], text[1][place], strict=True)])
        )
        for row in np.flatnonzero(whole).tolist():
            signed[row] = int(signed[row])
        first.append(signed)
        second.append(percent)
    return [*first, *second]


def _unusual(left: Any, right: Any, a: float, b: float) -> tuple[Any, Any]:
    if MISSING in (left, right) or "None" in (left, right):
        return (0, 0) if left == right == "None" else (MISSING, MISSING)
    if not isinstance(left, str) and not isinstance(right, str):  # the right one is zero
        return a - b, " inf"
    if "nan" in (left, right):
        return "Nan", "Nan"
    if math.isnan(a) or math.isnan(b) or not (math.isinf(a) or math.isinf(b)):  # words
        return (0, 0) if left == right else ("Diff", "Diff")
    word = " inf" if a - b > 0 else " -inf"
    return word, word


def _numbers(values: NDArray[Any], there: NDArray[np.bool_]) -> Cells:
    """'' where there is none."""
    cells: Cells = values.astype(np.float64).tolist()
    for row in np.flatnonzero(~there | ~np.isfinite(values)).tolist():
        cells[row] = "" if not there[row] or math.isnan(cells[row]) else _odd(cells[row])
    return cells


def _at(column: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """The column at each index; whatever where the index is -1."""
    if not len(column):
        return np.zeros(len(index), column.dtype)
    return np.asarray(column[np.where(index >= 0, index, 0)])


def _taken(words: NDArray[Any], node: Int32) -> Cells:
    found: Cells = _at(words, node).tolist()
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
