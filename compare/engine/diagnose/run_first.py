"""Where two runs part first *in time*: by step, then as the loop makes things within a step, tables and stages interleaved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.engine.loop import key_moment, stage_kind, stage_moment
from compare.engine.model import JsonObject

Moment = tuple[int, tuple[int, int]]
BEFORE_ALL_STEPS = -1


@dataclass(frozen=True, slots=True)
class First:
    """Where a run begins to differ.

    ``table``: the first table that differs by itself, where nothing diverged before it. ``row``: the row of the part that diverged first,
    else of the one that makes the table, as far as it differs on the table's rank. ``agrees``: the row of the part that makes the table
    where it does not. ``place``: the origin, or else the first difference, of that part on that rank.
    """

    table: JsonObject | None
    row: JsonObject | None
    agrees: JsonObject | None
    place: JsonObject | None

    def document(self) -> JsonObject:
        """The run verdict's ``first``: table → stage → rank → module, all of one place."""
        maker, place = self.row or self.agrees or {}, self.place or {}
        rank = place.get("rank") if self.table is None or self.table["rank"] is None else self.table["rank"]
        return {
            "key_data": None if self.table is None else self.table["key"],
            "stage": maker.get("stage"),
            "step": maker.get("step") if self.table is None else self.table["step"],
            "rank": rank,
            "module": place.get("module"),
        }


def first_of(table: JsonObject | None, rows: Sequence[JsonObject], documents: Mapping[int, JsonObject]) -> First | None:
    """``table``: the first that differs by itself (``run_loop``); ``documents``: those of the parts, by number.

    A part that diverged leads where its stage was over before the table was made: in an earlier step, or further up in the table's own.
    """
    bad = min((row for row in rows if row["verdict"] == "diverged"), key=_ended, default=None)
    if table is not None and (bad is None or _made(table) < _ended(bad)):
        return _behind(table, rows, documents)
    return None if bad is None else First(None, bad, None, bad["first_divergence"] or bad["first_difference"])


def unknown_before(found: First | None, rows: Sequence[JsonObject]) -> list[JsonObject]:
    """Rows of the parts on both sides that could not be compared and were over before what ``found`` calls the first: it may lie there.

    The stage that makes the first table is none of them: what went wrong in it is where the table leads.
    """
    table, row = (None, None) if found is None else (found.table, found.row)
    unknown = [each for each in rows if each["verdict"] == "not_comparable"]
    if table is not None:
        return [each for each in unknown if _ended(each) < _made(table) and not _makes(each, table)]
    return [] if row is None else [each for each in unknown if _ended(each) < _ended(row)]


def _makes(row: JsonObject, table: JsonObject) -> bool:
    return row["step"] == table["step"] and bool(table["stage"]) and any(stage_kind(stage) == table["stage"] for stage in _stages(row))


def _ended(row: JsonObject) -> Moment:
    """Of two stages that were compared with each other the later one counts, so that swapping the sides changes nothing."""
    return _step(row["step"]), max(stage_moment(stage) for stage in _stages(row))


def _stages(row: JsonObject) -> list[str | None]:
    return [row[side]["stage"] for side in ("left", "right") if row[side] is not None]


def _made(table: JsonObject) -> Moment:
    return _step(table["step"]), key_moment(table["key"])


def _step(step: int | None) -> int:
    return BEFORE_ALL_STEPS if step is None else step


def _behind(table: JsonObject, rows: Sequence[JsonObject], documents: Mapping[int, JsonObject]) -> First:
    """From a table to the stage that makes it, in its step, and inside it to what happened on the table's own rank."""
    makers = [row for row in rows if _makes(row, table)]
    for row in makers:
        origin = next((one for one in documents.get(row["n"], {}).get("origins", []) if _of_rank(one, table["rank"])), None)
        if origin is not None:
            return First(table, row, None, origin)
    for row in makers:
        difference = row["first_difference"]
        if difference is not None and _of_rank(difference, table["rank"]):
            return First(table, row, None, difference)
    compared = next((row for row in makers if row["n"] in documents), None)
    if compared is not None and _agrees(compared, table["rank"]):
        return First(table, None, compared, None)
    return First(table, makers[0] if makers else None, None, None)


def _of_rank(place: JsonObject, rank: int | None) -> bool:
    """Places of ranks that were compared together belong to each of them."""
    return rank is None or place.get("rank") in (None, rank)


def _agrees(row: JsonObject, rank: int | None) -> bool:
    own = next((one["verdict"] for one in row["by_rank"] if one["rank"] == rank), row["verdict"])
    return own in ("identical", "consistent")
