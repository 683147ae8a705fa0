"""A dump with one odd value opens, and says which value it is; so does one whose structure is impossible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare.engine.ingest import inventory, paths_to_sources, read_side
from compare.engine.ingest.notes import sentence
from compare.engine.model import Dump, Leaf
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from compare.engine.store.dumps import read_dump, write_dump
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CORPUS, TENSOR, call, dump_json, read, read_one, write

ONE, TWO = "Module.model.a.Linear.forward.0", "Module.model.b.Linear.forward.0"


def told(dump: Dump) -> list[tuple[str, int, str, dict[str, Any]]]:
    return [(note.code, note.count, note.record, note.params) for note in dump.notes]


ODD_FIELDS: dict[str, tuple[dict[str, Any], str, str]] = {
    # what is odd: the leaf, the field that is named, its value as shown
    "a size that is a word": (TENSOR | {"shape": ["s0", 4]}, "shape", '["s0", 4]'),
    "a negative size": (TENSOR | {"shape": [-1, 4]}, "shape", "[-1, 4]"),
    "a nested shape": (TENSOR | {"shape": [[2, 3]]}, "shape", "[[2, 3]]"),
    "a fraction of a size": (TENSOR | {"shape": [2.5]}, "shape", "[2.5]"),
    "a shape beyond counting": (TENSOR | {"shape": [2**40, 2**40]}, "shape", "[1099511627776, 1099511627776]"),
    "a huge size": (TENSOR | {"shape": [10**90]}, "shape", "[1" + "0" * 78 + "…"),
    "a shape that is text": (TENSOR | {"shape": "[2, 3]"}, "shape", '"[2, 3]"'),
    "a shape that is a number": (TENSOR | {"shape": 6}, "shape", "6"),
    "a shape that is an object": (TENSOR | {"shape": {"0": 2}}, "shape", '{"0": 2}'),
    "a dtype that is a number": (TENSOR | {"dtype": 16}, "dtype", "16"),
    "a checksum that is a number": (TENSOR | {"md5": 305419896}, "md5", "305419896"),
    "a placeholder without number": (TENSOR | {"tensor_stat_index": "5"}, "tensor_stat_index", '"5"'),
    "a checksum's placeholder without number": (TENSOR | {"md5_index": [5]}, "md5_index", "[5]"),
    "a memory format that is a list": ({"type": "torch.memory_format", "format": ["channels_last"]}, "format", '["channels_last"]'),
    "a tensor without type": ({key: value for key, value in TENSOR.items() if key != "type"}, "type", "null"),
    "a type that is a number": (TENSOR | {"type": 3}, "type", "3"),
}


@pytest.mark.parametrize(("leaf", "field", "value"), ODD_FIELDS.values(), ids=ODD_FIELDS)
@pytest.mark.parametrize("where", ["argument", "list", "parameter", "gradient", "debug"])
def test_an_odd_field_of_a_value_is_named_and_the_dump_opens(tmp_path: Path, leaf: Any, field: str, value: str, where: str) -> None:
    record, found, slot = {
        "argument": (ONE, call(TENSOR, leaf), "input.1"),
        "list": (ONE, call([TENSOR, leaf]), "input.0.1"),
        "parameter": (ONE, call(parameters={"weight": leaf}), "parameters.weight"),
        "gradient": ("Module.model.a.Linear.parameters_grad.0", {"weight": [leaf]}, "parameters_grad.weight"),
        "debug": ("x.0.debug", leaf, "output"),
    }[where]
    content = dump_json({TWO: call(TENSOR), record: found})
    dump = read_one(tmp_path, content)
    assert told(dump) == [("odd_value", 1, record, {"slot": slot, "field": field, "value": value})]
    assert naive.slots_of_columns(dump) == naive.slots_of_file(content)


def test_a_tensor_without_type_is_one_tensor_and_not_a_slot_for_each_of_its_fields(tmp_path: Path) -> None:
    dump = read_one(tmp_path, dump_json({ONE: {"input_args": [{"dtype": "torch.bfloat16", "shape": [2, 3], "Max": 1.5}]}}))
    assert [dump.slot_names[name] for name in dump.slots.name] == ["input.0"]
    assert (Leaf(dump.slots.leaf[0]), dump.slots.elements[0], dump.slots.statistics[0, 0]) == (Leaf.TENSOR, 6, 1.5)


def test_objects_that_hold_values_called_shape_or_dtype_are_still_objects(tmp_path: Path) -> None:
    held = {
        "shape": [{"type": "int", "value": 2}],
        "dtype": {"type": "torch.dtype", "value": "torch.float16"},
        "type": {"type": "int", "value": 1},
    }
    dump = read_one(tmp_path, dump_json({ONE: call(input_kwargs={"config": held}, output=[])}))
    assert [dump.slot_names[name] for name in dump.slots.name] == ["input.config.shape.0", "input.config.dtype", "input.config.type"]
    assert not dump.notes


def test_many_odd_values_are_counted_by_field_and_the_first_is_named(tmp_path: Path) -> None:
    odd = TENSOR | {"shape": ["s0"], "dtype": 1}
    dump = read_one(tmp_path, dump_json({ONE: call(odd), TWO: call(odd, TENSOR | {"shape": [-2]})}))
    assert [(note.params["field"], note.count, note.record) for note in dump.notes] == [("dtype", 2, ONE), ("shape", 3, ONE)]


@pytest.mark.parametrize(("name", "usual"), [("task", "statistics"), ("level", "L0"), ("framework", "pytorch")])
@pytest.mark.parametrize("odd", [5, ["L0"], {}, True])
def test_a_word_of_the_file_that_is_none_is_named_and_taken_for_the_usual(tmp_path: Path, name: str, usual: str, odd: Any) -> None:
    dump = read_one(tmp_path, dump_json(**{name: odd}))
    assert getattr(dump, name) == usual
    assert told(dump) == [("odd_value", 1, "", {"slot": "", "field": name, "value": json.dumps(odd)})]


def test_honest_dumps_have_no_notes() -> None:
    for archive in sorted(CORPUS.glob("*.zip")):
        assert not [note for dump in read_side(paths_to_sources([archive]), "x").dumps for note in dump.notes], archive.name


def test_records_that_enclose_themselves_are_named(tmp_path: Path) -> None:
    construct = {ONE: TWO, TWO: ONE, "Torch.add.0.forward": "Torch.add.0.forward"}
    dump = read_one(tmp_path, dump_json({name: call(TENSOR) for name in construct}), construct=json.dumps(construct).encode())
    assert told(dump) == [("construct_circle", 2, ONE, {})]
    assert dump.notes[0].place == "construct.json"
    assert list(dump.records.parent) == [-1, 0, -1]


def test_a_circle_of_records_that_only_construct_names_is_named(tmp_path: Path) -> None:
    construct = {
        ONE: "Module.x.X.forward.0",
        "Module.x.X.forward.0": "Module.y.Y.forward.0",
        "Module.y.Y.forward.0": "Module.x.X.forward.0",
    }
    dump = read_one(tmp_path, dump_json({ONE: call(TENSOR)}), construct=json.dumps(construct).encode())
    assert told(dump) == [("construct_circle", 1, "Module.x.X.forward.0", {})]


def test_a_parent_that_is_nowhere_is_named_but_no_structural_name(tmp_path: Path) -> None:
    construct = {ONE: "Module.gone.Gone.forward.0", TWO: "Module.gone.Gone.forward.0", "Torch.add.0.forward": "optimizer"}
    dump = read_one(tmp_path, dump_json({name: call(TENSOR) for name in construct}), construct=json.dumps(construct).encode())
    assert told(dump) == [("construct_parent_unknown", 1, ONE, {"parent": "Module.gone.Gone.forward.0"})]


def test_a_construct_of_another_dump_is_named_and_structure_comes_from_names(tmp_path: Path) -> None:
    top = "Module.model.Net.forward.0"
    dump = read_one(tmp_path, dump_json({ONE: call(TENSOR), top: call(TENSOR)}), construct=json.dumps({TWO: None, "x": TWO}).encode())
    assert told(dump) == [("side_file_disagrees", 2, ONE, {"file": "construct.json"})]
    assert list(dump.records.parent) == [1, -1]


def test_a_construct_that_was_cut_short_is_named_but_gradients_and_saved_values_are_never_in_it(tmp_path: Path) -> None:
    records = {ONE: call(TENSOR), TWO: call(TENSOR), "Module.model.a.Linear.parameters_grad.0": {"weight": [TENSOR]}, "x.0.debug": TENSOR}
    assert not read_one(tmp_path, dump_json(records), construct=json.dumps({ONE: None, TWO: None}).encode()).notes
    dump = read_one(tmp_path, dump_json(records), construct=json.dumps({ONE: None}).encode())
    assert told(dump) == [("side_file_disagrees", 1, TWO, {"file": "construct.json"})]


@pytest.mark.parametrize("stack", [{ONE: ["File a"], TWO: ["File b"]}, {"0": [[ONE, TWO], ["File a"]]}])
def test_a_stack_of_another_dump_is_named(tmp_path: Path, stack: Any) -> None:
    dump = read_one(tmp_path, dump_json({ONE: call(TENSOR)}), stack=json.dumps(stack).encode())
    assert told(dump) == [("side_file_disagrees", 1, TWO, {"file": "stack.json"})]
    assert dump.notes[0].place == "stack.json"
    assert list(dump.records.stack) == [0]


def test_notes_are_in_the_inventory_as_sentences_merged_over_ranks_and_survive_storing(tmp_path: Path) -> None:
    odd = dump_json({ONE: call(TENSOR | {"shape": ["s0", 4]})})
    side = read(tmp_path, {f"step0/rank{rank}/dump.json": odd for rank in (0, 1)})
    (note,) = inventory(side, 0)["notes"]
    assert (note["code"], note["count"], note["place"], note["record"]) == ("odd_value", 2, "step0/rank0/dump.json", ONE)
    assert set(note["text"]) == {"en", "zh"}
    for text in note["text"].values():
        assert all(part in text for part in ("shape", '["s0", 4]', ONE, "step0/rank0/dump.json"))
    write_dump(side.dumps[0], tmp_path / "stored")
    assert list(read_dump(tmp_path / "stored").notes) == list(side.dumps[0].notes)


def test_a_comparison_says_what_was_read_otherwise_than_it_stands(tmp_path: Path) -> None:
    for side, leaf in (("a", TENSOR), ("b", TENSOR | {"dtype": 7})):
        write(tmp_path / side, {"dump.json": dump_json({ONE: call(TENSOR), TWO: call(leaf)})})
    findings = compare_paths([tmp_path / "a"], [tmp_path / "b"], Options()).document["findings"]
    (found,) = [finding for finding in findings if finding["code"] == "odd_value"]
    assert found["severity"] == "warning"
    assert found["text"]["en"].startswith("Right side: ")
    assert found["evidence"]["field"] == "dtype"


def test_names_in_notes_are_on_one_line_and_short(tmp_path: Path) -> None:
    name = "Module.a\n\x1b[31m" + "x" * 10_000 + ".Linear.forward.0"
    dump = read_one(tmp_path, dump_json({name: call(input_kwargs={"k\n" * 5000: TENSOR | {"shape": "\n\u202e" * 5000}})}))
    for text in inventory_texts(dump):
        assert text.isprintable()
        assert len(text) < 1500


def inventory_texts(dump: Dump) -> list[str]:
    return [text for note in dump.notes for text in sentence(note).values()]
