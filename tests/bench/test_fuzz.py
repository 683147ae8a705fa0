"""Readers against mutated input, for a bounded time: every input is read or refused with a code, within bounded time and memory.

`FUZZ_SECONDS` is the time for each target (20 by default). An input that breaks a reader is written to `tests/bench/seeds/<target>/` and is
tried first from then on.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from compare.engine.errors import DumpError
from compare.engine.ingest import Source, read_side
from compare.engine.ingest.records import read_dump
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CORPUS, TENSOR, call, dump_json, tar_bytes, zip_bytes
from tests.engine.ingest.test_differential import as_dump

SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))
SLOWEST_S, GROWTH_MB = 5.0, 150
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


SMALL = {"step0/rank0/dump.json": small_dump(), "step0/rank0/stack.json": b'{"a": ["b"]}'}
TARGETS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "dump": (as_json, [small_dump(), b'{"data": {}}']),
    "real_dump": (large_json, [corpus("q2_infer_nan3_stat"), corpus("q2_shim_mix")]),
    "construct": (as_side_file("construct.json"), [corpus("q2_infer_stat", "construct.json")]),
    "stack": (as_side_file("stack.json"), [corpus("q2_infer_stat", "stack.json")]),
    "zip": (as_file("a.zip"), [zip_bytes(SMALL), zip_bytes({"rank0.zip": zip_bytes(SMALL), "b.tar": tar_bytes(SMALL)})]),
    "tar": (as_file("a.tar"), [tar_bytes(SMALL)]),
    "tar_gz": (as_file("a.tgz"), [tar_bytes(SMALL, "w:gz")]),
    "database": (as_file("a.vis.db"), [gzip.decompress((CORPUS.parent / "databases" / "clean_stat.build.vis.db.gz").read_bytes())]),
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
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("target", TARGETS)
def test_mutated_input_is_read_or_refused(target: str) -> None:
    check, seeds = TARGETS[target]
    kept = SEEDS / target
    draw = random.Random(os.environ.get("FUZZ_SEED", f"{target} {time.time_ns()}"))  # noqa: S311  (no secret)
    again = [path.read_bytes() for path in sorted(kept.glob("*"))] if kept.is_dir() else []
    for seed in seeds:
        check_one(check, seed, kept)
    before, end, count = memory(), time.monotonic() + SECONDS, 0
    while again or time.monotonic() < end:
        check_one(check, again.pop() if again else mutated(draw.choice(seeds), draw), kept)
        count += 1
    assert memory() - before < GROWTH_MB
    assert count


def check_one(check: Callable[[bytes], None], content: bytes, kept: Path) -> None:
    begin, sentence = time.process_time(), ""
    try:
        check(content)
    except DumpError as refused:
        sentence = str(refused)
    except Exception:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
        raise
    assert "\n" not in sentence
    assert time.process_time() - begin < SLOWEST_S
