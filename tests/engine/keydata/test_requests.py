from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from compare.engine.keydata.requests import Served, bare, joined, read_requests
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.ingest.dumps import dump_json


def dispatch(*requests: str, step: int, pid: int = 4711, phase: str = "prefill") -> dict[str, Any]:
    rows = [{"request_id": request, "type": "new", "tokens": 12} for request in requests]
    return {"source": "dispatch_logger", "timestamp": 1.5, "pid": pid, "rank": 0, "step": step, "phase": phase, "requests": rows}


def update(*requests: str, step: int, rank: int = 0) -> dict[str, Any]:
    return {"source": "update_actor", "pid": 99, "rank": rank, "step": step, "request_ids": list(requests), "num_requests": len(requests)}


def lines(*rows: Any) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


@pytest.mark.parametrize("written", ["abc", "chatcmpl-abc", "cmpl-abc", "abc-0123abcd", "chatcmpl-abc-0123abcd"])
def test_an_id_is_the_same_with_what_servers_add(written: str) -> None:
    assert bare(written) == "abc"


def test_an_id_keeps_what_only_looks_like_an_addition() -> None:
    assert bare("abc-0123abc") == "abc-0123abc"
    assert bare("abc-0123ABCD") == "abc-0123ABCD"


def test_passes_over_one_request_join_and_others_are_skipped() -> None:
    infer = read_requests(
        io.BytesIO(
            lines(
                dispatch("a-00000001", "b-00000002", step=0),  # two requests in one prefill
                dispatch("a-00000001", step=1, phase="decode"),
                dispatch("chatcmpl-b-00000002", step=2),
                dispatch("c-00000003", step=3, pid=4712),
                dispatch("b", step=9),  # served again
            )
        )
    )
    train = read_requests(
        io.BytesIO(lines(update("c", step=0, rank=1), update("a", "b", step=0), update("b", step=1), update("x", step=2)))
    )
    assert joined(train, infer) == [
        (Served(99, 0, 1), Served(4712, 3, 0)),
        (Served(99, 1, 0), Served(4711, 2, 0)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"null",
        b'{"source": "dispatch_logger", "step": true}',
        b"x" * 3_000_000,
        b'{"source": "update_actor", "step": 1, "request_ids": [7]}',
    ],
)
def test_lines_that_say_nothing_are_passed_over(text: bytes) -> None:
    assert read_requests(io.BytesIO(text)) == []


def test_an_asynchronous_loop_is_compared_request_by_request(tmp_path: Path) -> None:
    """verl ≥ 0.7: process folders on the inference side, one log a process."""
    for place in ("train/step0/rank0", "train/step1/rank0", "infer/4711/step3/rank0", "infer/4712/step8/rank0"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "dump.json").write_bytes(dump_json())
    (tmp_path / "train" / "99").mkdir()
    (tmp_path / "train" / "99" / "update_actor_log.jsonl").write_bytes(lines(update("a", step=0), update("b", step=1)))
    (tmp_path / "infer" / "4711" / "dispatch_log.jsonl").write_bytes(lines(dispatch("b-01234567", step=3)))
    (tmp_path / "infer" / "4712" / "dispatch_log.jsonl").write_bytes(lines(dispatch("a-01234567", step=8, pid=4712)))
    document = compare_paths([tmp_path / "train"], [tmp_path / "infer"], Options()).document
    assert [(part["left"]["step"], part["right"]["step"]) for part in document["parts"]] == [(0, 8), (1, 3)]
    assert {pair["reason"] for pair in document["stage_pairs"]} == {"requests"}
