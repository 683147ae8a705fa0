from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compare.engine.keydata.requests import Served, bare, joined, read_requests
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import call, tensor, write
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
        (Served(99, 0, 1), [Served(4712, 3, 0)]),
        (Served(99, 1, 0), [Served(4711, 2, 0)]),
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


Steps = Mapping[tuple[int, int], str]  # (process, step) → the request that was prefilled alone


def asynchronous_loop(root: Path, trained: Sequence[str], served: Steps, fault: str | None = None) -> Path:
    """A whole loop of verl ≥ 0.7: one update a step over one request, and the passes that served them; ``fault``: a dump that differs."""
    for place in (*(f"dump_actor/step{n}" for n in range(len(trained))), *(f"dump_generate/{pid}/step{n}" for pid, n in served)):
        output = tensor(9.0 if place == fault else 8.0)
        write(root / place / "rank0", {"Module.model.fc.Linear.forward.0": call(tensor(), output=[output])})
    (root / "dump_actor/99").mkdir()
    updates = [update(request, step=step) for step, request in enumerate(trained)]
    (root / "dump_actor/99/update_actor_log.jsonl").write_bytes(lines(*updates))
    for pid in {pid for pid, _ in served}:
        passes = [dispatch(f"chatcmpl-{request}-01234567", step=step, pid=own) for (own, step), request in served.items() if own == pid]
        (root / f"dump_generate/{pid}/dispatch_log.jsonl").write_bytes(lines(*passes))
    return root


def places(document: dict[str, Any]) -> list[tuple[str | None, int | None, str | None, int | None, str]]:
    return [
        (*((part[side] or {}).get(name) for side in ("left", "right") for name in ("stage", "step")), part["verdict"])
        for part in document["parts"]
    ]


def test_ranks_of_one_engine_serve_a_request_together() -> None:
    infer = read_requests(io.BytesIO(lines(*(dispatch("a", step=2, pid=pid) | {"rank": rank} for pid, rank in ((1, 0), (2, 1))))))
    later = read_requests(io.BytesIO(lines(dispatch("a", step=9, pid=1) | {"rank": 2})))
    train = read_requests(io.BytesIO(lines(update("a", step=0))))
    assert joined(train, [*infer, *later]) == [(Served(99, 0, 0), [Served(1, 2, 0), Served(2, 2, 1)])]


def test_two_loops_with_request_logs_are_compared_stage_with_stage_and_not_train_with_inference(tmp_path: Path) -> None:
    left = asynchronous_loop(tmp_path / "a", ["x", "y"], {(4711, 0): "x", (4711, 1): "y"})
    right = asynchronous_loop(tmp_path / "b", ["u", "v"], {(8800, 0): "u", (8800, 1): "v"}, fault="dump_actor/step1")
    for a, b in ((left, right), (right, left)):
        document = compare_paths([a], [b], Options()).document
        assert document["verdict"] == "diverged"
        assert places(document) == [
            ("dump_generate", 0, "dump_generate", 0, "identical"),
            ("dump_actor", 0, "dump_actor", 0, "identical"),
            ("dump_generate", 1, "dump_generate", 1, "identical"),
            ("dump_actor", 1, "dump_actor", 1, "diverged"),
        ]
        assert document["first"]["stage"] == "dump_actor"


def test_a_fault_in_a_rollout_process_is_found_although_processes_have_other_numbers(tmp_path: Path) -> None:
    left = asynchronous_loop(tmp_path / "a", ["x"], {(4711, 0): "x", (4712, 0): "y"})
    right = asynchronous_loop(tmp_path / "b", ["u"], {(8800, 0): "u", (8801, 0): "v"}, fault="dump_generate/8801/step0")
    for a, b in ((left, right), (right, left)):
        document = compare_paths([a], [b], Options()).document
        assert [part["verdict"] for part in document["parts"]] == ["identical", "diverged", "identical"]
        assert {part["left"]["stage"] for part in document["parts"] if part["verdict"] == "diverged"} <= {
            "dump_generate/4712",
            "dump_generate/8801",
        }
        proposed = [pair["option"] for pair in document["stage_pairs"] if not pair["used"]]
        assert proposed == ["dump_actor:dump_generate", "dump_generate:dump_actor"]


def test_a_loop_against_itself_pairs_chosen_train_and_inference_dumps_by_the_request_they_hold(tmp_path: Path) -> None:
    run = asynchronous_loop(tmp_path / "run", ["x", "y"], {(4711, 0): "none", (4711, 3): "y", (4712, 5): "x"})
    for stage, reverse in (("dump_actor:dump_generate", False), ("dump_generate:dump_actor", True)):
        document = compare_paths([run], [run], Options(stage=stage)).document
        found = [(part["right"], part["left"]) if reverse else (part["left"], part["right"]) for part in document["parts"]]
        assert [((a or {}).get("step"), (b or {}).get("step")) for a, b in found] == [(0, 5), (1, 3), (None, 0)]
        assert {pair["reason"] for pair in document["stage_pairs"]} == {"requests"}


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
