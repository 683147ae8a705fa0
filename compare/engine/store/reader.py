"""Answers for one row of a finished part, from memory-mapped columns: the web process reads a few pages and holds nothing."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

from compare.engine.errors import DumpError
from compare.engine.model import Dump, JsonObject, Leaf, Statistic
from compare.engine.store.columns import Columns
from compare.engine.store.dumps import read_dump
from compare.engine.store.joined import joined
from compare.engine.store.tensor_detail import PRECISION, as_json, tensor_detail

SHOWN = (Statistic.NORM, Statistic.MAX, Statistic.MIN, Statistic.MEAN)
MEASURED_BY = {Statistic.NORM: "norm", Statistic.MAX: "extreme", Statistic.MIN: "extreme", Statistic.MEAN: "rms"}
LEFT, RIGHT = 0, 1
SIDES = ("left", "right")
NONE = 255


@lru_cache(maxsize=16)
def _dump(folders: tuple[Path, ...]) -> Dump:
    return joined([read_dump(folder) for folder in folders])


class PartReader:
    """``folder`` is a part of a finished comparison; the run folders hold the dumps it compared."""

    def __init__(self, folder: Path, left_run: Path, right_run: Path) -> None:
        self._folder = folder / "columns"
        self._runs = (left_run, right_run)
        self._rows = Columns(self._folder / "rows")

    def node(self, n: int) -> JsonObject:
        """Row n in full (``docs/formats.md``). Raises DumpError ``node_unknown``."""
        rows = self._rows
        if not 0 <= n < len(rows.array("node")):
            raise DumpError("node_unknown", self._folder.parent.name, n=n)

        def at(name: str) -> Any:
            return rows.array(name)[n].item()

        case_index, node, part = at("case"), at("node"), at("part")
        module = at("module")
        reason = at("reason")
        document: JsonObject = {
            "n": n,
            "module": rows.strings("strings")[module] if module >= 0 else None,
            "kind": rows.meta["kinds"][str(at("kind"))],
            "direction": ("forward", "backward")[at("direction")],
            "call": at("call"),
            "layer": at("layer"),
            "role": rows.meta["roles"][str(at("role"))],
            "grade": rows.meta["grades"].get(str(at("grade")), "no_pair"),
            "difference": self._optional(at("difference")),
            "floor": self._optional(at("floor")),
            "growth": self._optional(at("growth")),
            "order": at("order"),
            "of": rows.meta["compared"][case_index],
            "explanation": rows.meta["reasons"][reason] if reason != NONE else None,
            "origin": rows.meta["origins"][at("origin")] if at("origin") >= 0 else None,
            "left": [],
            "right": [],
            "relation": "none",
            "confidence": None,
            "slots": [],
            "stacks": {"left": [], "right": []},
        }
        if node >= 0:
            _Case(self._folder / str(case_index), self._runs).fill(document, node, part)
        return document

    @staticmethod
    def _optional(value: float) -> float | str | None:
        return None if math.isnan(value) else as_json(value)


class _Case:
    def __init__(self, folder: Path, runs: tuple[Path, Path]) -> None:
        self.columns = Columns(folder)
        self.dumps = tuple(_dump(tuple(run / name for name in names)) for run, names in zip(runs, self.columns.meta["dumps"], strict=True))

    def fill(self, document: JsonObject, node: int, part: int) -> None:
        records = [self._list(f"{name}_record", node) for name in SIDES]
        own_side = LEFT if part >= 0 else RIGHT
        if part != -1:  # a part row shows its own record alone; right-side parts count from -2 down
            records[own_side] = [part if part >= 0 else -2 - part]
        for side, name in enumerate(SIDES):
            document[name] = [self._record(side, record) for record in records[side]]
            document["stacks"][name] = self._stack(side, records[side])
        start = self.columns.array("node_start")
        pairs = self.columns.array("pair_of_node")[start[node] : start[node + 1]].tolist()
        slots = [self._pair(pair) for pair in pairs if not self.columns.array("nothing")[pair]]
        if part != -1:
            own = self.dumps[own_side].records.name[records[own_side][0]]
            slots = [slot for slot in slots if [end["record"] for end in slot[SIDES[own_side]]] == [own]]
            records[1 - own_side] = []
        slots += self._alone(records, slots)
        groups = list(self.columns.meta["groups"].values())
        slots.sort(key=lambda slot: (groups.index(slot["group"]), slot["elsewhere"]))
        self._mark_first(slots)
        document["slots"] = slots
        related = [slot["relation"] for slot in slots if slot["relation"] != "none" and not slot["elsewhere"]]
        document["relation"] = next((r for r in related if r != "same"), related[0] if related else "none")
        document["confidence"] = self._confidence(slots)

    def _list(self, name: str, row: int) -> list[int]:
        start = self.columns.array(f"{name}_start")
        return self.columns.array(name)[start[row] : start[row + 1]].tolist()  # type: ignore[no-any-return]

    def _record(self, side: int, record: int) -> JsonObject:
        dump = self.dumps[side]
        index = int(dump.records.class_name[record])
        return {
            "name": dump.records.name[record],
            "class": dump.classes[index] if index >= 0 else None,
            "call": int(dump.records.call[record]),
        }

    def _stack(self, side: int, records: list[int]) -> list[str]:
        dump = self.dumps[side]
        known = [int(dump.records.stack[record]) for record in records if dump.records.stack[record] >= 0]
        return dump.stacks[known[0]].split("\x1e") if known else []

    def _end(self, side: int, slot: int) -> JsonObject:
        dump = self.dumps[side]
        dtype, shape = int(dump.slots.dtype[slot]), int(dump.slots.shape[slot])
        return {
            "record": dump.records.name[int(dump.slots.record[slot])],
            "slot": dump.slot_names[int(dump.slots.name[slot])],
            "dtype": dump.dtypes[dtype] if dtype >= 0 else None,
            "shape": list(dump.shapes[shape]) if shape >= 0 else None,
        }

    def _pair(self, pair: int) -> JsonObject:
        columns, meta = self.columns, self.columns.meta
        ends = [[self._end(side, slot) for slot in self._slots(side, pair)] for side in (LEFT, RIGHT)]
        grade = meta["grades"][str(int(columns.array("grade")[pair]))]
        elsewhere = int(columns.array("elsewhere")[pair])
        shown = ends[LEFT] if elsewhere & 1 == 0 else ends[RIGHT]
        reason = meta["reasons"][str(int(columns.array("reason")[pair]))]
        quantity = int(columns.array("quantity")[pair])
        named = meta["quantities"][quantity] if quantity >= 0 else {"en": "the same tensor", "zh": "同一个张量"}
        floor = float(columns.array("floor")[pair])
        return {
            "group": meta["groups"][str(int(columns.array("group")[pair]))],
            "slot": shown[0]["slot"],
            "left": ends[LEFT],
            "right": ends[RIGHT],
            "relation": meta["relations"][str(int(columns.array("relation")[pair]))],
            "reason": {
                "code": reason["code"],
                "text": {language: _sentence(text, named[language]) for language, text in reason["text"].items()},
            },
            "elsewhere": elsewhere != 0,
            "state": self._state(pair, grade),
            "grade": grade,
            "order": int(columns.array("position")[pair]),
            "floor": None if math.isnan(floor) else floor,
            "floor_source": self._floor_source(pair),
            "precision": PRECISION.get(int(columns.array("bits")[pair])),
            "statistics": self._statistics(pair),
            "checksum": self._checksum(pair),
            "tensor": tensor_detail(self.columns, pair),
        }

    def _slots(self, side: int, pair: int) -> list[int]:
        start = self.columns.array(f"{SIDES[side]}_start")
        return self.columns.array(f"{SIDES[side]}_slot")[start[pair] : start[pair + 1]].tolist()  # type: ignore[no-any-return]

    def _floor_source(self, pair: int) -> str | None:
        """What decided the limit; None where none is applied, and of what was stored before it was kept."""
        names = self.columns.meta.get("floor_sources", {})
        return names.get(str(int(self.columns.array("floor_source")[pair]))) if names else None

    def _state(self, pair: int, grade: str) -> str:
        if grade == "incomparable":
            argument = bool(self.columns.array("argument")[pair]) and not bool(self.columns.array("size")[pair])
            return "differs" if argument else "not_comparable"
        return "differs" if grade == "diverged" else "agrees"

    def _statistics(self, pair: int) -> list[JsonObject]:
        columns = self.columns
        slots = [self._slots(side, pair)[0] for side in (LEFT, RIGHT)]
        leaves = [int(self.dumps[side].slots.leaf[slot]) for side, slot in enumerate(slots)]
        if any(leaf in (Leaf.TEXT, Leaf.NUMBER) for leaf in leaves):
            return [self._scalar(slots, leaves, equal=bool(columns.array("equal")[pair]))]
        values = [columns.array(f"values_{name}")[pair] for name in SIDES]
        present = [columns.array(f"present_{name}")[pair] for name in SIDES]
        compared, signed = columns.array("compared")[pair], columns.array("signed")[pair]
        scale, ulps, over = columns.array("scale")[pair], columns.array("ulps")[pair], columns.array("over")[pair]
        found = []
        for statistic in SHOWN:
            if not (present[LEFT][statistic] or present[RIGHT][statistic]):
                continue
            known = bool(compared[statistic])
            finite = known and math.isfinite(signed[statistic])
            relative = (
                float(signed[statistic] / scale[statistic])
                if finite and scale[statistic] > 0
                else 0.0
                if finite and signed[statistic] == 0
                else None
            )
            found.append(
                {
                    "name": statistic.name.lower(),
                    "left": as_json(float(values[LEFT][statistic])) if present[LEFT][statistic] else None,
                    "right": as_json(float(values[RIGHT][statistic])) if present[RIGHT][statistic] else None,
                    "difference": float(signed[statistic]) if finite else None,
                    "relative": relative,
                    "of": MEASURED_BY[statistic],
                    "ulps": float(ulps[statistic]) if known and math.isfinite(ulps[statistic]) else None,
                    "over": bool(over[statistic]),
                }
            )
        return found

    def _checksum(self, pair: int) -> JsonObject | None:
        """Of one slot against one; of several no checksum is that of the whole. Compared where both are of a tensor as it lies in memory,
        of one dtype."""
        slots = [self._slots(side, pair) for side in (LEFT, RIGHT)]
        if any(len(each) != 1 for each in slots):
            return None
        left, right = (self._written(side, each[0]) for side, each in zip((LEFT, RIGHT), slots, strict=True))
        if left is None and right is None:
            return None
        dtypes = [self._end(side, each[0])["dtype"] for side, each in zip((LEFT, RIGHT), slots, strict=True)]
        view = self.columns.meta["relations"][str(int(self.columns.array("relation")[pair]))] == "alias"
        compared = left is not None and right is not None and dtypes[LEFT] == dtypes[RIGHT] and not view
        compared = compared and not bool(self.columns.array("size")[pair])
        state = ("equal" if left == right else "differs") if compared else "not_compared"
        return {"left": left, "right": right, "state": state}

    def _checksum_alone(self, side: int, slot: int) -> JsonObject | None:
        written = self._written(side, slot)
        return None if written is None else {"left": None, "right": None, SIDES[side]: written, "state": "not_compared"}

    def _written(self, side: int, slot: int) -> str | None:
        index = int(self.dumps[side].slots.checksum[slot])
        return self.dumps[side].texts[index] if index >= 0 else None

    def _scalar(self, slots: list[int], leaves: list[int], *, equal: bool) -> JsonObject:
        shown: list[float | str | None] = []
        for side, (slot, leaf) in enumerate(zip(slots, leaves, strict=True)):
            table = self.dumps[side].slots
            if leaf == Leaf.TEXT:
                shown.append(self.dumps[side].texts[int(table.text[slot])])
            elif leaf == Leaf.NUMBER:
                shown.append(as_json(float(table.statistics[slot, Statistic.MAX])))
            else:
                shown.append(None)
        return {
            "name": "value",
            "left": shown[LEFT],
            "right": shown[RIGHT],
            "difference": None,
            "relative": None,
            "of": None,
            "ulps": None,
            "over": not equal,
        }

    def _alone(self, records: list[list[int]], paired: list[JsonObject]) -> list[JsonObject]:
        """Slots of the node's records that are in no pair: the reader sees that they exist."""
        found = []
        for side, name in enumerate(SIDES):
            dump = self.dumps[side]
            known = {(end["record"], end["slot"]) for slot in paired for end in slot[name]}
            for record in records[side]:
                for slot in range(int(dump.records.slot_start[record]), int(dump.records.slot_start[record + 1])):
                    end = self._end(side, slot)
                    if (end["record"], end["slot"]) in known or dump.slots.leaf[slot] in (Leaf.NULL, Leaf.PLACEHOLDER):
                        continue
                    found.append(
                        {
                            "group": self.columns.meta["groups"][str(int(dump.slots.group[slot]))],
                            "slot": end["slot"],
                            "left": [end] if side == LEFT else [],
                            "right": [end] if side == RIGHT else [],
                            "relation": "none",
                            "reason": None,
                            "elsewhere": False,
                            "state": f"{name}_only",
                            "grade": "no_pair",
                            "order": -1,
                            "floor": None,
                            "floor_source": None,
                            "precision": None,
                            "statistics": self._single(side, slot),
                            "checksum": self._checksum_alone(side, slot),
                            "tensor": None,
                        }
                    )
        return found

    def _single(self, side: int, slot: int) -> list[JsonObject]:
        dump = self.dumps[side]
        empty: JsonObject = {"left": None, "right": None, "difference": None, "relative": None, "of": None, "ulps": None, "over": False}
        if dump.slots.leaf[slot] == Leaf.TEXT:
            return [{**empty, "name": "value", SIDES[side]: dump.texts[int(dump.slots.text[slot])]}]
        if dump.slots.leaf[slot] == Leaf.NUMBER:
            return [{**empty, "name": "value", SIDES[side]: as_json(float(dump.slots.statistics[slot, Statistic.MAX]))}]
        return [
            {**empty, "name": s.name.lower(), SIDES[side]: as_json(float(dump.slots.statistics[slot, s]))}
            for s in SHOWN
            if dump.slots.present[slot] >> s & 1
        ]

    @staticmethod
    def _mark_first(slots: list[JsonObject]) -> None:
        """The first slot that differs while everything before it in the module agrees."""
        for slot in slots:
            if slot["state"] == "differs":
                slot["state"] = "first"
                return

    @staticmethod
    def _confidence(slots: list[JsonObject]) -> str | None:
        codes = {slot["reason"]["code"] for slot in slots if slot["reason"] is not None}
        if not codes:
            return None
        return "low" if codes == {"same_name"} else "medium" if codes <= {"same_name", "elsewhere"} else "high"


def _sentence(template: str, quantity: str) -> str:
    filled = template.replace("{quantity}", quantity)
    return filled[:1].upper() + filled[1:]
