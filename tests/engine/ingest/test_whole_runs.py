"""Whole runs as some trainer may leave them: any layout, packing and structure file, held against what was written."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compare.engine.model import Dump
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CALLS, GRADIENTS, read, tar_bytes, zip_bytes

Key: TypeAlias = tuple[str | None, int | None, int | None]

# Folder of a dump by stage, step and rank, and the key that it must be read as.
LAYOUTS: Mapping[str, tuple[str, list[Key]]] = {
    "ranks": ("step{step}/rank{rank}", [(None, step, rank) for step in (0, 3) for rank in (0, 1)]),
    "underscores": ("step_{step}/rank_{rank}", [(None, 0, 0), (None, 10, 1)]),
    "a rank without number": ("step{step}/rank", [(None, 0, 0), (None, 1, 0)]),
    "a rank alone": ("rank{rank}", [(None, None, 0), (None, None, 7)]),
    "a step alone": ("step{step}", [(None, 0, None), (None, 1, None)]),
    "a process of unknown rank": ("step{step}/proc4711", [(None, 0, None), (None, 1, None)]),
    "a dump alone": (".", [(None, None, None)]),
    "stages": (
        "{stage}/step{step}/rank{rank}",
        [(s, n, 0) for s in ("actor_generate_sequences", "ref_log_prob", "actor_update") for n in (0, 1)],
    ),
    "modes of MindSpore": ("{stage}/step{step}/rank{rank}", [("graph", 0, 0), ("pynative", 0, 0), ("pynative", 1, 0)]),
    "an asynchronous rollout": ("generate/4711/step_{step}/rank_{rank}", [("generate", 0, 0), ("generate", 1, 0)]),
    "a profiler's": ("step_{step}/{stage}/rank_{rank}/step0/rank{rank}", [("actor_update", 5, 0), ("actor_update", 6, 1)]),
}
LEFT_ASIDE = {"dispatch_log.jsonl": "request_log", "step0/proc99/dump.json": "helper_process", "notes.md": "not_part_of_a_dump"}
PATHS = ("model", "model.layers.0", "model.layers.0.mlp", "model.layers.1", "model.norm", "m")


@st.composite
def dumps(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, str | None], bool]:
    """Records, who encloses whom, and whether that is told in Megatron's form."""
    prefix = draw(st.sampled_from(["Module", "Cell"]))
    names = [f"{prefix}.{path}.{{}}.{direction}.{call}" for path in PATHS for direction in ("forward", "backward") for call in (0, 1)]
    modules = [
        name.format(draw(st.sampled_from(["Linear", "RMSNorm"])))
        for name in draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    ]
    apis = draw(
        st.lists(st.sampled_from(["Functional.linear.0.forward", "Torch.add.3.backward", "Distributed.all_reduce.1.forward"]), unique=True)
    )
    gradients = draw(
        st.lists(st.sampled_from([f"{prefix}.m.Linear.parameters_grad", f"{prefix}.model.norm.Linear.parameters_grad.2"]), unique=True)
    )
    calls = draw(st.permutations([*modules, *apis]))
    records: dict[str, Any] = {name: draw(CALLS) for name in calls} | {name: draw(GRADIENTS) for name in gradients}
    # Each under a later one, as completion order has it: never a circle.
    parents = {
        name: draw(st.none() | st.sampled_from(calls[place + 1 :])) if place + 1 < len(calls) else None for place, name in enumerate(calls)
    }
    return records, parents, draw(st.booleans())


def construct_json(parents: Mapping[str, str | None], *, megatron: bool) -> bytes:
    if not megatron:
        return json.dumps(parents).encode()
    told: dict[str, Any] = {child: [parent, 0] for child, parent in parents.items()}
    return json.dumps(told | {"optimizer": [None, 0], "megatron_micro_step_number": 0}).encode()


def packed(draw: st.DrawFn, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files loose, in an archive, or each top folder in an archive of its own inside one."""
    how = draw(st.sampled_from(["loose", "zip", "tar", "tar.gz", "nested"]))
    if how == "loose":
        return files
    if how == "nested":
        inner: dict[str, dict[str, bytes]] = {}
        for name, content in files.items():
            top, slash, rest = name.partition("/")
            inner.setdefault(top if slash else "", {})[rest if slash else name] = content
        whole = inner.pop("", {})
        return {
            "run.zip": zip_bytes(
                whole
                | {
                    f"{top}.{'tgz' if n % 2 else 'zip'}": (tar_bytes(held, "w:gz") if n % 2 else zip_bytes(held))
                    for n, (top, held) in enumerate(inner.items())
                }
            )
        }
    pack = {"zip": zip_bytes, "tar": tar_bytes, "tar.gz": lambda held: tar_bytes(held, "w:gz")}[how]
    return {f"run.{how}": pack(files)}


def parents_of(dump: Dump) -> dict[str, str | None]:
    names = dump.records.name
    return {name: None if above < 0 else names[above] for name, above in zip(names, dump.records.parent.tolist(), strict=True)}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_run_in_any_layout_and_packing_is_read_as_it_was_written(data: st.DataObject) -> None:
    layout, keys = LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))]
    files: dict[str, bytes] = {}
    written: dict[Key, tuple[bytes, dict[str, str | None], bool]] = {}
    for key in data.draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)):
        records, parents, megatron = data.draw(dumps())
        folder = layout.format(stage=key[0], step=key[1], rank=key[2])
        folder = "" if folder == "." else f"{folder}/"
        level = data.draw(st.sampled_from(["L0", "mix"]))
        content = json.dumps({"task": "statistics", "level": level, "data": records, "is_merged": data.draw(st.booleans())}).encode()
        told = data.draw(st.booleans())
        written[key] = content, parents, told
        files[f"{folder}dump.json"] = content
        if told:
            files[f"{folder}construct.json"] = construct_json(parents, megatron=megatron)
    aside = data.draw(st.lists(st.sampled_from(list(LEFT_ASIDE)), unique=True)) if "step0/rank0/dump.json" in files else []
    files |= dict.fromkeys(aside, b"x")
    with tempfile.TemporaryDirectory() as folder:
        side = read(Path(folder), packed(data.draw, files))
    assert {(dump.stage, dump.step, dump.rank) for dump in side.dumps} == set(written)
    assert {left.reason for left in side.left_aside} == {LEFT_ASIDE[name] for name in aside}
    for dump in side.dumps:
        content, parents, told = written[dump.stage, dump.step, dump.rank]
        assert naive.slots_of_columns(dump) == naive.slots_of_file(content)
        found = parents_of(dump)
        for child, parent in parents.items():
            if told and parent is not None:
                assert found[child] == parent
        assert not [note.code for note in dump.notes if note.code != "odd_value"]
