"""Everything that dumpers write opens: every kind of leaf, record, task and level, held against the naive reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.ingest.names import parse
from compare.engine.model import Direction, Dump, Leaf, RecordKind
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import TENSOR, call, dump_json, read, read_one, write
from tests.engine.ingest.test_differential import as_dump, exact_columns

NAN, INFINITE = float("nan"), float("inf")
MODULE = "Module.model.fc.Linear.forward.0"
SHARDED = TENSOR | {
    "type": "torch.distributed.tensor.DTensor",
    "device_mesh": [[0, 1], [2, 3]],
    "placements": [{"Shard": {"dim": 0}}, {"Replicate": {}}, {"Partial": {"reduce_op": "sum"}}],
}
MINDSPORE = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2, 3], "Max": 1.0, "Min": -1.0, "Mean": 0.25, "Norm": 2.0}
PEER = {"class_type": "torch.distributed.P2POp", "tensor": TENSOR, "op": "isend", "peer": 1, "tag": 0, "group_id": "1f2e3d4c"}

LEAVES: dict[str, tuple[Any, Leaf, str | None]] = {
    # name: leaf, kind, text
    "a tensor": (TENSOR, Leaf.TENSOR, None),
    "a tensor of precision high": (TENSOR | {"Mean": None, "Norm": None}, Leaf.TENSOR, None),
    "a tensor of NaN": (TENSOR | {"Max": NAN, "Min": NAN, "Mean": NAN, "Norm": NAN}, Leaf.TENSOR, None),
    "a tensor of infinities": (TENSOR | {"Max": INFINITE, "Min": -INFINITE, "Mean": NAN, "Norm": INFINITE}, Leaf.TENSOR, None),
    "a tensor of NaN in quotes": (TENSOR | {"Max": "nan", "Min": "-inf", "Mean": "NaN", "Norm": "Inf"}, Leaf.TENSOR, None),
    "a boolean tensor": (TENSOR | {"dtype": "torch.bool", "Max": True, "Min": False, "Mean": None, "Norm": None}, Leaf.TENSOR, None),
    "a tensor beside its CRC": (TENSOR | {"md5": "0a1b2c3d"}, Leaf.TENSOR, None),
    "a checksum alone": ({"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4], "md5": "0x00ff00ff00ff00ff"}, Leaf.TENSOR, None),
    "a sharded tensor": (SHARDED, Leaf.TENSOR, json.dumps(SHARDED["placements"])),
    "a fake tensor": (TENSOR | {"type": "torch._subclasses.fake_tensor.FakeTensor", "Max": None, "Min": None}, Leaf.TENSOR, None),
    "a tensor of MindSpore": (MINDSPORE, Leaf.TENSOR, None),
    "a layout of MindSpore": (MINDSPORE | {"dtype": "Int64", "layout": {"Device Matrix": [2], "Partial": []}}, Leaf.TENSOR, None),
    "an array": ({"type": "numpy.ndarray", "dtype": "float32", "shape": [3], "Max": 1, "Min": 0}, Leaf.TENSOR, None),
    "a whole number": ({"type": "int", "value": -3}, Leaf.NUMBER, None),
    "a fraction": ({"type": "float", "value": 1e-5}, Leaf.NUMBER, None),
    "a NaN": ({"type": "float", "value": NAN}, Leaf.NUMBER, None),
    "a truth": ({"type": "bool", "value": True}, Leaf.NUMBER, None),
    "a number of numpy": ({"type": "numpy.int64", "value": 7}, Leaf.NUMBER, None),
    "a text": ({"type": "str", "value": "gelu"}, Leaf.TEXT, "gelu"),
    "a complex number": ({"type": "complex", "value": "(1+2j)"}, Leaf.TEXT, "(1+2j)"),
    "a slice": ({"type": "slice", "value": [None, 5, 1]}, Leaf.TEXT, "[null, 5, 1]"),
    "an ellipsis": ({"type": "ellipsis", "value": "..."}, Leaf.TEXT, "..."),
    "a size": ({"type": "torch.Size", "value": [2, 3]}, Leaf.TEXT, "[2, 3]"),
    "a device": ({"type": "torch.device", "value": "npu:0"}, Leaf.TEXT, "npu:0"),
    "a dtype": ({"type": "torch.dtype", "value": "torch.bfloat16"}, Leaf.TEXT, "torch.bfloat16"),
    "a dtype of MindSpore": ({"type": "mindspore.dtype", "value": "Float16"}, Leaf.TEXT, "Float16"),
    "a memory format": ({"type": "torch.memory_format", "format": "torch.channels_last"}, Leaf.TEXT, "torch.channels_last"),
    "a process group": ({"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "1f2e3d4c"}, Leaf.TEXT, "[0, 1]"),
    "a group of MindSpore": ({"type": "mindspore.ProcessGroup", "group_ranks": [3], "group_id": "0"}, Leaf.TEXT, "[3]"),
    "a reduction": ({"type": "torch.distributed.ReduceOp", "value": "RedOpType.SUM"}, Leaf.TEXT, "RedOpType.SUM"),
    "nothing": (None, Leaf.NULL, None),
    "an unsupported value": ({"type": "Foo", "value": None}, Leaf.NULL, None),
    "a statistic not yet there": (
        {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "tensor_stat_index": 5},
        Leaf.PLACEHOLDER,
        None,
    ),
    "a checksum not yet there": ({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5_index": 5}, Leaf.PLACEHOLDER, None),
    "a bare placeholder": ({"type": "torch.Tensor", "dtype": None, "md5_index": 3, "tensor_stat_index": 2}, Leaf.PLACEHOLDER, None),
}


def agree(content: bytes) -> Dump:
    """The columns, after both decoders and every block size gave what the naive reader finds."""
    dump = as_dump(content, 1 << 18, typed=True)
    assert naive.slots_of_columns(dump) == naive.slots_of_file(content)
    for block_size, typed in ((1 << 18, False), (97, True), (13, False)):
        assert exact_columns(as_dump(content, block_size, typed=typed)) == exact_columns(dump)
    return dump


@pytest.mark.parametrize(("leaf", "kind", "text"), LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("where", ["argument", "keyword", "output", "list", "object", "parameter", "gradient", "old gradient", "debug"])
def test_every_kind_of_leaf_is_a_slot_wherever_it_stands(leaf: Any, kind: Leaf, text: str | None, where: str) -> None:
    records = {
        "argument": {MODULE: call(leaf)},
        "keyword": {MODULE: call(input_kwargs={"mask": leaf})},
        "output": {MODULE: {"input": [], "output": [leaf, TENSOR]}},
        "list": {MODULE: call([leaf, [leaf]])},
        "object": {MODULE: call(output=[{"logits": leaf, "past": {"key": [leaf]}}])},
        "parameter": {MODULE: call(parameters={"weight": leaf, "bias": None})},
        "gradient": {"Module.fc.Linear.parameters_grad.0": {"weight": [leaf], "_flat_param": [None]}},
        "old gradient": {"Module.fc.Linear.parameters_grad": {"weight": [leaf]}},
        "debug": {"loss.0.debug": {"a": leaf, "b": [leaf]}, "loss_grad.1.debug": leaf},
    }[where]
    dump = agree(dump_json(records))
    shown = [Leaf(found) for found in dump.slots.leaf]
    assert kind in shown
    if text is not None:
        assert text in dump.texts


def test_a_member_called_class_type_of_a_plain_dictionary_was_dropped() -> None:
    plain = {"class_type": {"type": "torch.memory_format", "format": "torch.contiguous_format"}, "a": {"type": "int", "value": 1}}
    named = {"class_type": "Config", "a": {"type": "int", "value": 1}}
    dump = agree(dump_json({MODULE: call(plain, named)}))
    names = [dump.slot_names[name] for name in dump.slots.name]
    assert names[:4] == ["input.0.class_type", "input.0.a", "input.1.class_type", "input.1.a"]


def test_peers_dictionaries_and_deep_lists_are_slots_by_their_path() -> None:
    dump = agree(dump_json({"Distributed.batch_isend_irecv.0.forward": call([PEER, PEER]), MODULE: call([[[[{"a": [TENSOR]}]]]])}))
    names = [dump.slot_names[name] for name in dump.slots.name]
    assert names[:6] == [f"input.0.0{rest}" for rest in ("", ".op", ".peer", ".tag", ".group_id")] + ["input.0.1"]
    assert "input.0.0.0.0.0.a.0" in names


def test_odd_members_of_records_are_passed_over() -> None:
    odd = {"is_nan": 1, "is_recompute": True, "parallel_merge_info": ["a = b + c"], "is_nan_index": 3, "unknown": {"x": [1]}}
    dump = agree(dump_json({MODULE: call(TENSOR) | odd, "Torch.add.0_rank1.forward": call(TENSOR), "is_recompute": True}, is_merged=True))
    assert len(dump.records) == 2
    assert len(dump.slots) == 4


@pytest.mark.parametrize("task", ["nan_check", "acc_check", "diff_check", "exception_dump", "overflow_check", "tensor"])
def test_every_task_whose_records_have_the_usual_form_is_read(tmp_path: Path, task: str) -> None:
    assert read_one(tmp_path, dump_json(task=task)).task == task


def test_dumps_without_framework_or_level_are_read(tmp_path: Path) -> None:
    dump = read_one(tmp_path, b'{"data": {"%b": {}}}' % MODULE.encode())
    assert (dump.task, dump.level, dump.framework) == ("statistics", "L0", "pytorch")


def test_a_level_l1_dump_is_its_calls_alone(tmp_path: Path) -> None:
    records = {"Functional.linear.0.forward": call(TENSOR), "Tensor.add.0.forward": call(TENSOR)}
    dump = read_one(tmp_path, dump_json(records, level="L1"), construct=b"{}")
    assert (dump.level, dump.has_construct) == ("L1", False)
    assert list(dump.records.parent) == [-1, -1]


def test_a_structure_dump_has_the_records_of_its_construct(tmp_path: Path) -> None:
    construct = {
        "Module.model.Net.forward.0": None,
        "Module.model.fc.Linear.forward.0": "Module.model.Net.forward.0",
        "Functional.linear.0.forward": "Module.model.fc.Linear.forward.0",
        "Torch.add.0.forward": "optimizer",
    }
    stack = {"0": [["Functional.linear.0.forward"], ["File a.py, line 1"]]}
    for written in (construct, {child: [parent, 0] for child, parent in construct.items()} | {"megatron_micro_step_number": 0}):
        dump = read_one(tmp_path, dump_json({}, task="structure"), construct=json.dumps(written).encode(), stack=json.dumps(stack).encode())
        assert list(dump.records.name) == [*construct, "optimizer"]
        assert list(dump.records.recorded) == [True, True, True, True, False]
        assert list(dump.records.parent) == [-1, 0, 1, 4, -1]
        assert list(dump.records.stack) == [-1, -1, 0, -1, -1]
        assert len(dump.slots) == 0


def test_saved_values_are_records_with_their_count_and_direction(tmp_path: Path) -> None:
    content = dump_json({"loss.0.debug": TENSOR, "loss.1.debug": 3, "loss_grad.1.debug": [TENSOR]}, level="debug")
    write(tmp_path / "run/step2/rank1", {"debug.json": content})
    for given in ("run", "run/step2/rank1/debug.json"):
        (dump,) = read_side(paths_to_sources([tmp_path / given]), "left").dumps
        assert (dump.level, dump.step, dump.rank) == ("debug", 2, 1)
        assert naive.slots_of_columns(dump) == naive.slots_of_file(content)
        assert list(dump.records.call) == [0, 1, 1]
        assert [Direction(direction) for direction in dump.records.direction] == [Direction.FORWARD, Direction.FORWARD, Direction.BACKWARD]
    assert parse("a.b_grad.12.debug") == (RecordKind.OTHER, Direction.BACKWARD, 12, "a.b_grad", None)


def test_a_debug_json_beside_a_dump_is_left_aside(tmp_path: Path) -> None:
    side = read(tmp_path, {"rank0/dump.json": dump_json(), "rank0/debug.json": b"not even read"})
    assert [(left.path, left.reason) for left in side.left_aside] == [("rank0/debug.json", "debug_beside_dump")]


def test_mindspore_cells_are_modules(tmp_path: Path) -> None:
    dump = read_one(tmp_path, dump_json({"Cell.model.fc.Dense.forward.3": call(MINDSPORE)}, framework="mindspore"))
    assert (dump.framework, list(dump.paths), list(dump.classes), list(dump.records.call)) == ("mindspore", ["model.fc"], ["Dense"], [3])
    assert dump.records.kind[0] == RecordKind.MODULE


def test_numbers_that_stand_for_nan_while_reading_are_numbers_where_a_dump_holds_them() -> None:
    mark = -918273645546372e9
    dump = agree(dump_json({MODULE: call(TENSOR | {"Max": mark, "Min": NAN}, {"type": "float", "value": mark})}))
    assert dump.slots.statistics[0, 0] == mark


def test_nan_inside_a_value_that_is_compared_as_text_stays_as_written() -> None:
    dump = agree(dump_json({MODULE: call({"type": "dict", "value": {"Max": NAN, "x": [NAN]}}, TENSOR | {"Max": NAN})}))
    assert '{"Max": NaN, "x": [NaN]}' in dump.texts
