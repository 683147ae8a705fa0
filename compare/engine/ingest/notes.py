"""What a reader took otherwise than it stands in the file. A dump with one odd value opens all the same, and says which it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from compare.engine.errors import printable
from compare.engine.model import JsonObject, Note

LONGEST_SHOWN = 80  # letters of a value in a sentence

ODD_VALUE, CIRCLE, UNKNOWN_PARENT, DISAGREES = "odd_value", "construct_circle", "construct_parent_unknown", "side_file_disagrees"


class Notes:
    """Counts what is alike (code and field) and keeps the first of it: a file of a million odd values makes one note."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.found: dict[tuple[str, str], list[Any]] = {}  # code, field → count, record, what else the sentence needs

    def odd_value(self, record: str, slot: str, field: str, value: object, count: int = 1) -> None:
        """A field of a leaf (``slot``), or of the file itself (no record), that holds something else than it should."""
        self._add(ODD_VALUE, field, record, count, lambda: {"slot": printable(slot), "field": field, "value": shown(value)})

    def circle(self, record: str) -> None:
        """construct.json lets this record enclose itself, over others or at once; its parent was taken away."""
        self._add(CIRCLE, "", record, 1, dict)

    def unknown_parent(self, record: str, parent: str) -> None:
        """construct.json names a call as parent that is neither recorded nor explained there."""
        self._add(UNKNOWN_PARENT, "", record, 1, lambda: {"parent": printable(parent)})

    def not_in_construct(self, record: str) -> None:
        """A call that construct.json does not know: a dumper names every one there."""
        self._add(DISAGREES, "construct.json", record, 1, lambda: {"file": "construct.json"})

    def not_in_dump(self, record: str) -> None:
        """A call that stack.json names and the dump does not hold."""
        self._add(DISAGREES, "stack.json", record, 1, lambda: {"file": "stack.json"})

    def _add(self, code: str, field: str, record: str, count: int, params: Any) -> None:
        kept = self.found.get((code, field))
        if kept is None:
            self.found[code, field] = [count, printable(record), params()]
        else:
            kept[0] += count

    def notes(self) -> list[Note]:
        return [Note(code, self.place, count, record, params) for (code, _), (count, record, params) in self.found.items()]


def shown(value: object) -> str:
    """A value as JSON, on one line and short."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def merged(notes: Iterable[Note]) -> list[Note]:
    """The notes of several dumps, those that are alike as one."""
    found: dict[tuple[str, str], Note] = {}
    for note in notes:
        key = (note.code, str(note.params.get("field") or note.params.get("file")))
        first = found.get(key)
        found[key] = note if first is None else Note(first.code, first.place, first.count + note.count, first.record, first.params)
    return list(found.values())


def sentence(note: Note) -> dict[str, str]:
    """The note in English and Chinese."""
    count, record, place = note.count, note.record, note.place
    if note.code == CIRCLE:
        return {
            "en": f"{_counted(count, 'call encloses itself', 'calls enclose themselves')}, first {record}: at the top instead ({place})",
            "zh": f"有 {count} 条记录的上级最终又是它自己，第一条是 {record}：已改放到顶层（{place}）",
        }
    if note.code == UNKNOWN_PARENT:
        parent = note.params["parent"]
        return {
            "en": f"{_counted(count, 'parent is', 'parents are')} recorded nowhere, first {parent}, of {record}: shown as rows without "
            f"values ({place})",
            "zh": f"有 {count} 个上级没有任何记录，第一个是 {record} 的上级 {parent}：显示为没有数值的行（{place}）",
        }
    if note.code == DISAGREES and note.params["file"] == "stack.json":
        return {
            "en": f"stack.json names {_counted(count, 'call', 'calls')} that the dump does not hold, first {record}: it may be that of "
            f"another dump ({place})",
            "zh": f"stack.json 中有 {count} 个调用不在 dump 里，第一个是 {record}：它可能属于另一份 dump（{place}）",
        }
    if note.code == DISAGREES:
        return {
            "en": f"construct.json does not know {_counted(count, 'call', 'calls')}, first {record}: it may be that of another dump, or "
            f"was cut short; placed by name ({place})",
            "zh": f"有 {count} 个调用不在 construct.json 中，第一个是 {record}：它可能属于另一份 dump，或没有写完；已按名字归位（{place}）",
        }
    field, value, slot = note.params["field"], note.params["value"], note.params["slot"]
    if not slot:
        return {
            "en": f"The {field} is {value}: it counts as not written ({place})",
            "zh": f"{field} 的内容是 {value}：按未写处理（{place}）",
        }
    return {
        "en": f"{_counted(count, 'value has', 'values have')} a {field} that cannot be one, first {slot} of {record}: {value}; it counts "
        f"as unknown ({place})",
        "zh": f"有 {count} 个值的 {field} 不合格式，第一个是 {record} 的 {slot}：{value}。按未知处理（{place}）",
    }


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def document(note: Note) -> JsonObject:
    """The note in an inventory."""
    return {
        "code": note.code, "place": note.place, "count": note.count, "record": note.record, "params": note.params, "text": sentence(note),
    }  # fmt: skip
