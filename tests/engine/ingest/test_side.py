"""A whole side: slots as the words of the product say them, progress, cancelling, digest, inventory, memory."""

from __future__ import annotations

import hashlib
import json
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.errors import Cancelled, DumpError
from compare.engine.ingest import inventory, paths_to_sources, read_side, source
from compare.engine.model import FILE_MISSING, NO_FILE, Dump, Group, Leaf
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CALL, CORPUS, TENSOR, call, dump_json, read, read_one, tar_bytes


def slots(dump: Dump, record: int = 0) -> dict[str, dict[str, Any]]:
    return {slot["name"]: slot for slot in naive.slots_of_columns(dump)[dump.records.name[record]]}


def test_slots_are_named_as_the_contract_says(tmp_path: Path) -> None:
    record = {
        "input_args": [TENSOR, [TENSOR, None]],
        "input_kwargs": {"hidden_states": TENSOR, "position_embeddings": [TENSOR, TENSOR], "cache": {"key": TENSOR}},
        "output": [{"last_hidden_state": TENSOR, "cache": None}],
        "parameters": {"weight": TENSOR},
    }
    found = slots(read_one(tmp_path, dump_json({"Module.m.M.forward.0": record})))
    assert list(found) == [
        "input.0", "input.1.0", "input.1.1", "input.hidden_states", "input.position_embeddings.0", "input.position_embeddings.1",
        "input.cache.key", "parameters.weight", "output.0.last_hidden_state", "output.0.cache",
    ]  # fmt: skip
    assert [slot["group"] for slot in found.values()] == [Group.INPUT] * 7 + [Group.PARAMETERS] + [Group.OUTPUT] * 2


def test_backward_and_gradient_records_have_slots_of_their_own(tmp_path: Path) -> None:
    records = {
        "Module.m.M.backward.0": {"input": [TENSOR], "output": [None, TENSOR], "is_recompute": True},
        "Module.m.M.parameters_grad.0": {"weight": [TENSOR], "bias": [None], "is_recompute": False},
    }
    dump = read_one(tmp_path, dump_json(records))
    assert [(slot["name"], slot["leaf"]) for slot in slots(dump, 0).values()] == [
        ("input.0", Leaf.TENSOR),
        ("output.0", Leaf.NULL),
        ("output.1", Leaf.TENSOR),
    ]
    assert [(slot["name"], slot["leaf"]) for slot in slots(dump, 1).values()] == [
        ("parameters_grad.weight", Leaf.TENSOR),
        ("parameters_grad.bias", Leaf.NULL),
    ]


def test_numbers_are_read_from_every_way_they_are_written(tmp_path: Path) -> None:
    tensor = {"type": "torch.Tensor", "dtype": "torch.bool", "shape": [2, 3], "Max": True, "Min": False, "Mean": None, "Norm": "NaN"}
    content = dump_json({"Module.m.M.forward.0": call(tensor, {"type": "bool", "value": True}, {"type": "float", "value": "-inf"})})
    dump = read_one(tmp_path, content.replace(b'"NaN"', b"NaN"))
    assert np.array_equal(dump.slots.statistics[0], [1.0, 0.0, np.nan, np.nan], equal_nan=True)
    assert dump.slots.present[0] == 0b1011
    assert dump.slots.elements.tolist() == [6, 1, 1, 768]
    assert dump.slots.statistics[1].tolist() == [1.0] * 4
    assert dump.slots.statistics[2].tolist() == [-np.inf] * 4
    assert dump.slots.present.tolist()[1:3] == [0b1111, 0b1111]


def test_values_that_were_never_resolved_are_placeholders(tmp_path: Path) -> None:
    shaped = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2]}
    waiting = [shaped | {"tensor_stat_index": 4}, shaped | {"md5_index": 1}, TENSOR | {"md5_index": 1}, TENSOR | {"md5": "0a1b2c3d"}]
    dump = read_one(tmp_path, dump_json({"Module.m.M.forward.0": call(*waiting)}))
    assert dump.slots.leaf.tolist()[:4] == [Leaf.PLACEHOLDER, Leaf.PLACEHOLDER, Leaf.TENSOR, Leaf.TENSOR]
    assert [naive.text(dump.texts, at) for at in dump.slots.checksum.tolist()[:4]] == [None, None, None, "0a1b2c3d"]


def test_the_order_of_members_does_not_matter(tmp_path: Path) -> None:
    members = json.loads(dump_json())
    turned = dict(reversed(list(members.items())))
    first, second = read_one(tmp_path, json.dumps(members).encode()), read_one(tmp_path, json.dumps(turned).encode())
    assert (first.task, first.level, first.framework) == (second.task, second.level, second.framework) == ("statistics", "L0", "pytorch")
    assert naive.slots_of_columns(first) == naive.slots_of_columns(second)


def test_an_old_dump_without_framework_is_of_pytorch(tmp_path: Path) -> None:
    assert read_one(tmp_path, b'{"data": {"Torch.add.0.forward": {}}}').framework == "pytorch"


def test_a_tensor_dump_has_the_statistics_of_the_other_and_a_file_for_every_name_in_it() -> None:
    tensors = read_side(paths_to_sources([CORPUS / "q2_infer_tensor.zip"]), "t")
    plain = read_side(paths_to_sources([CORPUS / "q2_infer_stat.zip"]), "s")
    assert tensors.dumps[0].task == "tensor"
    assert naive.slots_of_columns(tensors.dumps[0]) == naive.slots_of_columns(plain.dumps[0])
    assert tensors.left_aside == []
    slots = tensors.dumps[0].slots
    assert (len(tensors.dumps[0].tensors), int((slots.file >= 0).sum()), int((slots.file == FILE_MISSING).sum())) == (186, 186, 0)
    assert (plain.dumps[0].slots.file == NO_FILE).all()


def test_the_digest_is_over_the_json_files_in_reading_order(tmp_path: Path) -> None:
    files = {"step0/rank0/stack.json": b"{}", "step0/rank0/dump.json": dump_json(), "step0/rank0/construct.json": b"{ }", "x.npy": b"1"}
    expected = hashlib.sha256(files["step0/rank0/dump.json"] + b"{ }" + b"{}").hexdigest()
    assert read(tmp_path, files).digest == expected
    assert read(tmp_path, dict(reversed(files.items()))).digest == expected
    assert read(tmp_path, files | {"step0/rank0/dump.json": dump_json(other=1)}).digest != expected


@pytest.mark.parametrize("archive", ["left.tar.gz", None])
def test_progress_is_told_in_bytes_and_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: str | None) -> None:
    monkeypatch.setattr(source.Meter, "INTERVAL", 0.0)
    files = {f"step{step}/rank0/{name}": content for step in range(3) for name, content in (
        ("dump.json", dump_json({f"Tensor.add.{n}.forward": CALL for n in range(400)})), ("construct.json", b"{}"))}  # fmt: skip
    told: list[tuple[str, float, dict[str, int]]] = []
    paths = []
    for number, (name, content) in enumerate({archive: tar_bytes(files, "w:gz")}.items() if archive else files.items()):
        path = tmp_path / str(number)
        path.write_bytes(content)
        paths.append(source.Source(path, str(name)))
    read_side(paths, "left", lambda *said: told.append(said))
    fractions = [fraction for _, fraction, _ in told]
    assert {stage for stage, _, _ in told} == {"read"}
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert told[-1][2] == {"bytes": sum(map(len, files.values())), "of": sum(map(len, files.values()))}
    assert all(0 <= fraction <= 1 and numbers["bytes"] <= numbers["of"] for _, fraction, numbers in told)


def test_progress_is_told_at_least_twice_a_second(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(dump_json({f"Tensor.add.{n}.forward": CALL for n in range(6000)}))
    times = [time.monotonic()]
    read_side([source.Source(path, "dump.json")], "left", lambda *_: times.append(time.monotonic()))
    assert max(np.diff(times)) < 0.5


def test_cancelling_ends_the_reading_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source.Meter, "INTERVAL", 0.0)
    calls = 0

    def stop(*_: object) -> None:
        nonlocal calls
        calls += 1
        raise Cancelled

    for name, content in (("dump.json", dump_json()), ("x.tgz", tar_bytes({"dump.json": dump_json()}, "w:gz"))):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(Cancelled):
            read_side([source.Source(path, name)], "left", stop)
    assert calls == 2


def test_memory_stays_flat_while_a_file_grows(tmp_path: Path) -> None:
    def peak_over_result(records: int) -> float:
        path = tmp_path / "dump.json"
        path.write_bytes(dump_json({f"Tensor.add.{n}.forward": CALL for n in range(records)}))
        sources = [source.Source(path, "dump.json")]
        read_side(sources, "warm up")
        tracemalloc.start()
        side = read_side(sources, "left")
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(side.dumps[0].records) == records
        return (peak - kept) / 2**20

    small, large = peak_over_result(1_000), peak_over_result(8_000)
    assert large < small + 3, "MiB beyond the result; the larger file has 5 MiB more"


INVENTORIES = {
    "q2_train_stat": ("train", "fsdp_wrappers", "FSDP", "bfloat16"),
    "q2_fsdp2_stat": ("train", "gradients", "FSDP2", "bfloat16"),
    "q2_plain_stat": ("train", "gradients", None, "bfloat16"),
    "q2_infer_stat": ("infer", "engine_modules", "vLLM", "bfloat16"),
    "moe_infer_clean_stat": ("infer", "engine_modules", "vLLM", "bfloat16"),
    "q2f32_infer_stat": ("infer", "engine_modules", "vLLM", "float32"),
    "q2b_mcore_tp2_stat": ("unknown", "none", "DDP", "bfloat16"),
}


@pytest.mark.parametrize(("archive", "expected"), INVENTORIES.items())
def test_the_inventory_says_which_side_a_run_is_and_how_it_was_wrapped(archive: str, expected: tuple[object, ...]) -> None:
    found = inventory(read_side(paths_to_sources([CORPUS / f"{archive}.zip"]), archive), 1)
    assert (found["role"], found["role_evidence"], found["wrapping"], found["dtype"]) == expected


def test_the_inventory_counts_what_there_is_and_names_what_is_missing() -> None:
    path = CORPUS / "q2_infer_tp2_stat.zip"
    found = inventory(read_side(paths_to_sources([path]), "tp"), path.stat().st_size)
    assert json.loads(json.dumps(found)) == found
    assert found["counts"] == {"dumps": 2, "records": 104, "slots": 412, "bytes": path.stat().st_size, "tensors": 0, "tensors_missing": 0}
    assert (found["steps"], found["ranks"], found["stages"], found["missing"]) == ([0], [0, 1], [], [])
    assert [dump["folder"] for dump in found["dumps"]] == ["dumps/0", "dumps/1"]
    bare = inventory(read_side(paths_to_sources([CORPUS / "seed24_infer_bare.zip"]), "bare"), 1)
    assert bare["missing"] == ["construct.json", "stack.json"]


def test_every_archive_of_the_corpus_is_read_twice_alike() -> None:
    for path in sorted(CORPUS.glob("*.zip")):
        first, second = (read_side(paths_to_sources([path]), "x") for _ in range(2))
        assert first.digest == second.digest
        with zipfile.ZipFile(path) as files:
            assert len(first.dumps) == sum(name.endswith("/dump.json") for name in files.namelist())


def test_a_side_without_any_record_is_empty(tmp_path: Path) -> None:
    with pytest.raises(DumpError) as refused:
        read(tmp_path, {"step0/rank0/dump.json": dump_json({}), "step0/rank1/dump.json": dump_json({})})
    assert refused.value.code == "empty_side"
    assert len(read(tmp_path, {"step0/rank0/dump.json": dump_json({}), "step0/rank1/dump.json": dump_json()}).dumps) == 2
