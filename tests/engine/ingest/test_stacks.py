"""Call stacks in both forms, each distinct one kept once."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.ingest.stacks import SEPARATOR
from compare.engine.model import Dump
from tests.engine.ingest.dumps import CALL, CORPUS, dump_json, read_one

A, B = "Tensor.add.0.forward", "Tensor.add.1.forward"
FRAMES = ['File "a.py", line 1, in f, \n x = y["}"]', "File b.py"]


def told(dump: Dump) -> dict[str, list[str] | None]:
    stacks = [stack.split(SEPARATOR) for stack in dump.stacks]
    return {name: None if at < 0 else stacks[at] for name, at in zip(dump.records.name, dump.records.stack, strict=True)}


@pytest.mark.parametrize("stack", [{"0": [[A, "not recorded"], FRAMES], "1": [["also not"], ["x"]]}, {A: FRAMES, "not recorded": ["x"]}])
def test_both_forms_give_the_frames_of_a_record(tmp_path: Path, stack: object) -> None:
    dump = read_one(tmp_path, dump_json({A: CALL, B: CALL}), stack=json.dumps(stack, indent=1).encode())
    assert told(dump) == {A: FRAMES, B: None}
    assert len(dump.stacks) == 1, "stacks of no record are not kept"
    assert dump.has_stack


def test_equal_stacks_are_kept_once(tmp_path: Path) -> None:
    dump = read_one(tmp_path, dump_json({A: CALL, B: CALL}), stack=json.dumps({A: FRAMES, B: FRAMES}).encode())
    assert list(dump.stacks) == [SEPARATOR.join(FRAMES)]
    assert list(dump.records.stack) == [0, 0]


def test_no_stack_and_an_empty_one_are_the_same(tmp_path: Path) -> None:
    for dump in (read_one(tmp_path, dump_json({A: CALL})), read_one(tmp_path, dump_json({A: CALL}), stack=b"{}")):
        assert not dump.has_stack
        assert list(dump.records.stack) == [-1]


@pytest.mark.parametrize("archive", sorted(CORPUS.glob("*.zip")), ids=lambda path: path.stem)
def test_every_real_stack_is_the_stack_of_its_records(archive: Path) -> None:
    side = read_side(paths_to_sources([archive]), "x")
    with zipfile.ZipFile(archive) as files:
        for dump in side.dumps:
            name = dump.place.removeprefix(f"{archive.name}/").replace("dump.json", "stack.json")
            expected: dict[str, list[str] | None] = dict.fromkeys(dump.records.name)
            for key, value in (json.loads(files.read(name)) if name in files.namelist() else {}).items():
                names, frames = value if key.isdigit() else ([key], value)
                expected |= {record: frames for record in names if record in expected}
            assert told(dump) == expected
