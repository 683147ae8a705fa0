"""Readers against mutated input, for a bounded time: every input is read or refused with a code, within bounded time and memory.

`FUZZ_SECONDS` is the time for each target (20 by default). An input that breaks a reader is written to `tests/bench/seeds/<target>/` and is
tried first from then on.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import re
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
import zipfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rest_framework.test import APIClient

from compare.engine.errors import DumpError
from compare.engine.ingest import Source, read_side
from compare.engine.ingest.records import read_dump
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from compare.engine.tensors import open_tensor, statistics
from compare.models import Upload
from compare.services import uploads
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CORPUS, TENSOR, call, dump_json, tar_bytes, zip_bytes
from tests.engine.ingest.test_differential import as_dump
from tests.engine.tensors.writer import contiguous, persistent, program, pt, strided, tensor
from tests.rooms import data_folder

__all__ = ["data_folder"]

SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))
SLOWEST_S, HANGING_S, GROWTH_MB = 5.0, 60.0, 150
SEEDS = Path(__file__).parent / "seeds"
PIECES = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"NaN", b"-Infinity", b"null", b"true", b"1e400", b"\x00", b"\xff", b"\xe5\xb1",
    b"\xef\xbb\xbf", b"\\ud800", b'"type":', b'"Max": NaN', b"9" * 400, b"[" * 500, b"-918273645546372e9", b"PK\x01\x02", b"../",
    b"ustar\x00", b"\xff\xff\xff\xff",
)  # fmt: skip


def corpus(name: str, member: str = "dump.json") -> bytes:
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as files:
        return files.read(next(held for held in files.namelist() if held.endswith("/" + member)))


def small_dump() -> bytes:
    odd = [
        TENSOR | {"Max": float("nan")},
        {"type": "slice", "value": [None, 1, 2]},
        [TENSOR, {"a": [None]}],
        "bare",
        {"type": "int", "value": 3},
    ]
    gradients = {"Module.fc.Linear.parameters_grad.0": {"weight": [TENSOR]}}
    return dump_json({"Module.model.fc.Linear.forward.0": call(*odd), "x.0.debug": [TENSOR]} | gradients)


def as_json(content: bytes) -> None:
    """Both decoders, block by block, hold what ``json.loads`` holds."""
    found = as_dump(content, 257, typed=True)
    if b"\\ud" not in content.lower():  # halves of characters are replaced
        assert naive.slots_of_columns(found) == naive.slots_of_file(content)


def as_file(name: str) -> Callable[[bytes], None]:
    def check(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "input"
            path.write_bytes(content)
            read_side([Source(path, name)], "side")

    return check


def as_side_file(name: str) -> Callable[[bytes], None]:
    def check(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sources = []
            for file, held in (("dump.json", corpus("q2_infer_stat")), (name, content)):
                (Path(folder) / file).write_bytes(held)
                sources.append(Source(Path(folder) / file, file))
            read_side(sources, "side")

    return check


def large_json(content: bytes) -> None:
    read_dump(io.BytesIO(content).read, "dump.json")


def as_tar_gz(content: bytes) -> None:
    """A tar broken before it was packed, which the sum of the gzip does not show."""
    as_file("a.tgz")(gzip.compress(content, 1))


def as_names(content: bytes) -> None:
    """Each line is the path of a member of an archive."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        with zipfile.ZipFile(path, "w") as packed, warnings.catch_warnings(action="ignore"):
            for line in content.split(b"\n")[:50]:
                packed.writestr(line.decode("utf-8", "replace").partition("\0")[0][:5000] or "x", SMALL_DUMP)
        read_side([Source(path, "a.zip")], "side")


def as_database_cell(content: bytes) -> None:
    """A database that is whole, with broken text in its cells."""
    text = content.decode("utf-8", "replace")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.vis.db"
        path.write_bytes(DATABASE)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE tb_nodes SET input_data = ?, up_node = ? WHERE node_order = 3", (text, text[:100]))
            database.execute("UPDATE tb_stack SET stack_info = ?", (text,))
            database.commit()
        read_side([Source(path, "a.vis.db")], "side")


def as_tensor(content: bytes) -> None:
    opened = open_tensor(io.BytesIO(content), "a.pt")
    if opened.description.size < 1 << 20:  # what repeats a small storage may be long to walk
        statistics(opened)


def as_pickle(content: bytes) -> None:
    """A program that is broken before it was packed, which the sums of the zip do not show."""
    as_tensor(pt(content, {"0": bytes(24)}))


def as_comparison(content: bytes) -> None:
    """Whatever opens can be compared, and gives a document that is JSON."""
    with tempfile.TemporaryDirectory() as folder:
        sides = [Path(folder) / name for name in ("left", "right")]
        for side, held in zip(sides, (corpus("q2_infer_stat"), content), strict=True):
            side.mkdir()
            (side / "dump.json").write_bytes(held)
        json.dumps(compare_paths([sides[0]], [sides[1]], Options()).document, allow_nan=False)


def as_request(content: bytes) -> None:
    """A tus request: method and address, headers and body as somebody may send them. Never an error of ours, and nothing stays."""
    head, _, body = content.partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")
    method, _, at = first.partition(" ")
    upload = uploads.create("a", 8)
    headers: dict[str, Any] = {"SERVER_NAME": "127.0.0.1", "wsgi.input": io.BytesIO(body)}  # the client's own refuses to be read too far
    for line in lines:
        name, _, value = line.partition(":")
        name = name.strip().upper().replace("-", "_")
        headers[name if name in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{name}"] = value.strip()
    kind = headers.pop("CONTENT_TYPE", "application/offset+octet-stream")
    address = f"/api/v1/uploads/{upload.pk}/" if at.strip() == "one" else "/api/v1/uploads/"
    answer = APIClient().generic(method.strip()[:20] or "PATCH", address, body, content_type=kind, **headers)
    assert answer.status_code < 500, answer.content
    Upload.objects.all().delete()


SMALL_DUMP = small_dump()
SMALL = {"step0/rank0/dump.json": SMALL_DUMP, "step0/rank0/stack.json": b'{"a": ["b"]}'}
DATABASE = gzip.decompress((CORPUS.parent / "databases" / "clean_stat.build.vis.db.gz").read_bytes())
PATHS = b"run/step0/rank0/dump.json\nrun/step_1/rank/dump.json\nrun/4711/step0/proc12/dump.json\ndata/loss/step0/rank0/a.json"
FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)
PICKLE = program(tensor(persistent("torch FloatStorage", "0", 6), [2, 3], [3, 1]))
REQUESTS = [
    b"PATCH one\nTus-Resumable: 1.0.0\nUpload-Offset: 0\nContent-Length: 4\n\nabcd",
    b"POST all\nTus-Resumable: 1.0.0\nUpload-Length: 12\nUpload-Metadata: filename YS56aXA=,sha256 " + b64encode(b"0" * 64) + b"\n\n",
    b"POST one\nTus-Resumable: 1.0.0\nX-HTTP-Method-Override: PATCH\nUpload-Offset: 0\nUpload-Length: 4\n\nabcd",
    b"HEAD one\nTus-Resumable: 1.0.0\n\n",
    b"DELETE one\nTus-Resumable: 1.0.0\n\n",
]


def npy(array: NDArray[Any]) -> bytes:
    held = io.BytesIO()
    np.save(held, array, allow_pickle=False)
    return held.getvalue()


TARGETS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "dump": (as_json, [SMALL_DUMP, b'{"data": {}}']),
    "real_dump": (large_json, [corpus("q2_infer_nan3_stat"), corpus("q2_shim_mix")]),
    "construct": (as_side_file("construct.json"), [corpus("q2_infer_stat", "construct.json")]),
    "stack": (as_side_file("stack.json"), [corpus("q2_infer_stat", "stack.json")]),
    "zip": (as_file("a.zip"), [zip_bytes(SMALL), zip_bytes({"rank0.zip": zip_bytes(SMALL), "b.tar": tar_bytes(SMALL)})]),
    "tar": (as_file("a.tar"), [tar_bytes(SMALL)]),
    "tar_gz": (as_file("a.tgz"), [tar_bytes(SMALL, "w:gz")]),
    "tar_in_gz": (as_tar_gz, [tar_bytes(SMALL)]),
    "names": (as_names, [PATHS]),
    "database": (as_file("a.vis.db"), [DATABASE]),
    "database_cell": (
        as_database_cell,
        [b'{"Module.a.M.forward.0.input.0": {"type": "torch.Tensor", "shape": "[2, 3]", "Max": "1.5"}}', b"[]"],
    ),
    "tensor": (as_tensor, [contiguous("float32", [1.0, 2.0, 3.0]), strided("float16", bytes(24), (2, 3), (1, 2), 2)]),
    "pickle": (as_pickle, [PICKLE, program(PICKLE[2:-1], 4)]),
    "npy": (as_tensor, [npy(FLOATS), npy(FLOATS.T), npy(np.asfortranarray(FLOATS).astype(">f4"))]),
    "comparison": (as_comparison, [corpus("q2_infer_stat")]),
    "request": (as_request, REQUESTS),
}


def mutated(seed: bytes, draw: random.Random) -> bytes:
    content = bytearray(seed)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 8))):
        at = draw.randrange(len(content) + 1)
        end = min(len(content), at + draw.choice((0, 1, 1, 2, 8, 64, 512)))
        match draw.randrange(6):
            case 0:
                content[at:end] = draw.randbytes(end - at)
            case 1:
                content[at:end] = draw.choice(PIECES)
            case 2:
                content[at:at] = draw.choice(PIECES)
            case 3:
                del content[at:end]
            case 4:
                other = draw.randrange(len(content) + 1)
                content[at:at] = content[other : other + draw.choice((1, 16, 256))]
            case _:
                del content[at:]
    return bytes(content)


def memory() -> int:
    """Largest resident megabytes since ``forget_memory``."""
    with contextlib.suppress(OSError):
        return int(re.search(r"VmHWM:\s*([0-9]+)", Path("/proc/self/status").read_text())[1]) >> 10  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def forget_memory() -> int:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # or one target's peak would hide the next one's growth
    return memory()


def too_long(*_: object) -> None:
    raise TimeoutError(f"no answer within {HANGING_S} s")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of broken programs and headers
@pytest.mark.usefixtures("db", "data_folder")
@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("target", TARGETS)
def test_mutated_input_is_read_or_refused(target: str) -> None:
    check, seeds = TARGETS[target]
    kept = SEEDS / target
    draw = random.Random(os.environ.get("FUZZ_SEED", f"{target} {time.time_ns()}"))  # noqa: S311  (no secret)
    again = [path.read_bytes() for path in sorted(kept.glob("*"))] if kept.is_dir() else []
    for seed in seeds:
        check_one(check, seed, kept, None)
    before, end, count = forget_memory(), time.monotonic() + SECONDS, 0
    while again or time.monotonic() < end:
        check_one(check, again.pop() if again else mutated(draw.choice(seeds), draw), kept, before)
        count += 1
    sys.stdout.write(f"{target}: {count} inputs, {memory() - before} MB more than before\n")
    assert count


def check_one(check: Callable[[bytes], None], content: bytes, kept: Path, memory_before: int | None) -> None:
    begin, sentence = time.process_time(), ""
    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, HANGING_S)
    try:
        try:
            check(content)
        except DumpError as refused:
            sentence = str(refused)
        assert "\n" not in sentence
        assert time.process_time() - begin < SLOWEST_S
        assert memory_before is None or memory() - memory_before < GROWTH_MB
    except BaseException:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
