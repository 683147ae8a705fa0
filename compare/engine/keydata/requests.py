"""Request logs of an asynchronous loop: which inference step served the request that a training step trained on.

The inference engine writes ``dispatch_log.jsonl``, one line a forward pass; the trainer ``update_actor_log.jsonl``, one line an update.
Only passes with a single request say whose tokens a dump holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compare.engine.keydata.tables import Stream
from compare.engine.model import JsonObject
from compare.engine.parts.forming import infers
from compare.engine.parts.pairing import Placed

LONGEST_LINE = 1 << 20
LONGEST_ID = 200
MOST_LINES = 1_000_000
TRAIN, INFER = "train", "infer"
# vLLM from 0.14 on appends eight hex digits; its server puts the kind of call in front.
SUFFIX = re.compile(r"-[0-9a-f]{8}$")
PREFIX = re.compile(r"^(?:chatcmpl|cmpl)-")


@dataclass(frozen=True, slots=True)
class Served:
    """One pass over one request."""

    process: int | None
    step: int
    rank: int


def bare(request: str) -> str:
    """The id that both logs share: without ``chatcmpl-`` in front and eight hex digits behind."""
    return SUFFIX.sub("", PREFIX.sub("", request))


def read_requests(stream: Stream) -> list[JsonObject]:
    """``{side, request, process, step, rank}`` of every line about one request: a prefill, or an update. Other lines say nothing."""
    return [row for line in _lines(stream) if (row := _row(line)) is not None]


def joined(train: Iterable[JsonObject], infer: Iterable[JsonObject]) -> list[tuple[Served, list[Served]]]:
    """(train pass, inference passes) over the same request, in the order of training. Several inference passes are the ranks of one engine
    in one step; a request served in several steps counts the first time.
    """
    served: dict[str, dict[int, Served]] = {}
    for row in infer:
        if row["side"] == INFER:
            ranks = served.setdefault(row["request"], {})
            place = Served(row["process"], row["step"], row["rank"])
            if all(known.step == place.step for known in ranks.values()):
                ranks.setdefault(place.rank, place)
    rows = [row for row in train if row["side"] == TRAIN and row["request"] in served]
    return [(Served(row["process"], row["step"], row["rank"]), list(served[row["request"]].values())) for row in rows]


def same_requests(
    sides: tuple[Sequence[Placed], Sequence[Placed]],
    chosen: tuple[Sequence[int], Sequence[int]],
    logs: tuple[Sequence[JsonObject], Sequence[JsonObject]],
) -> list[tuple[int, int]]:
    """Positions of the two sides' dumps that hold the same request, among those ``chosen``: where one side has train dumps alone and the
    other inference dumps alone; several of the inference side are ranks of one engine. Loops that hold both are compared stage with
    stage. A side without a log of its kind may have sent it with the other.
    """
    kinds = [{infers(side[row]) for row in rows} for side, rows in zip(sides, chosen, strict=True)]
    if kinds not in ([{False}, {True}], [{True}, {False}]):
        return []
    train, infer = (0, 1) if kinds == [{False}, {True}] else (1, 0)
    found: dict[int, list[int]] = {}
    for trained, served in joined(_of_kind(TRAIN, logs[train], logs[infer]), _of_kind(INFER, logs[infer], logs[train])):
        a = [row for row in chosen[train] if _trained(sides[train][row], trained)]
        b = [row for row in chosen[infer] if any(_serving(sides[infer][row], place) for place in served)]
        if len(a) == 1 and b:
            found.setdefault(a[0], b)  # of several requests the first counts
    return [(a, b) if train == 0 else (b, a) for a, rows in found.items() for b in rows]


def _of_kind(kind: str, own: Sequence[JsonObject], other: Sequence[JsonObject]) -> list[JsonObject]:
    return [row for row in own if row["side"] == kind] or [row for row in other if row["side"] == kind]


def _trained(dump: Placed, place: Served) -> bool:
    return dump.process in (None, place.process) and (dump.step, dump.rank or 0) == (place.step, place.rank)


def _serving(dump: Placed, place: Served) -> bool:
    return dump.process is not None and (dump.process, dump.step, dump.rank or 0) == (place.process, place.step, place.rank)


def _row(line: bytes) -> JsonObject | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or _number(row.get("step")) is None:
        return None
    if row.get("source") == "dispatch_logger":
        side, requests = INFER, row.get("requests")
        if row.get("phase") != "prefill" or not isinstance(requests, list) or len(requests) != 1 or not isinstance(requests[0], dict):
            return None
        request = requests[0].get("request_id")
    elif row.get("source") == "update_actor":
        side, requests = TRAIN, row.get("request_ids")
        if not isinstance(requests, list) or len(requests) != 1:
            return None
        request = requests[0]
    else:
        return None
    if not isinstance(request, str) or not 0 < len(request) <= LONGEST_ID:
        return None
    numbers = {"process": _number(row.get("pid")), "step": _number(row["step"]), "rank": _number(row.get("rank")) or 0}
    return {"side": side, "request": bare(request), **numbers}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _lines(stream: Stream) -> Iterator[bytes]:
    rest, count = b"", 0
    while block := stream.read(1 << 18):
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > LONGEST_LINE:
            rest = b""
        count += len(lines)
        if count <= MOST_LINES:
            yield from lines
    yield rest
