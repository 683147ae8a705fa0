"""Parents: from construct.json in both forms, from the names where it is silent, never in a circle."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.ingest.construct import Construct, parents
from compare.engine.ingest.records import RecordColumns
from compare.engine.model import Dump
from tests.engine.ingest.dumps import CALL, CORPUS, dump_json, read_one

WITH_CONSTRUCT = sorted(CORPUS.glob("*.zip"))


def module(path: str, direction: str = "forward", call: int = 0, class_name: str = "M") -> str:
    return f"Module.{path}.{class_name}.{direction}.{call}" if path else f"Module.{class_name}.{direction}.{call}"


def parent_names(dump: Dump) -> dict[str, str | None]:
    names = dump.records.name
    return {name: None if parent < 0 else names[parent] for name, parent in zip(names, dump.records.parent, strict=True)}


def from_construct(tmp_path: Path, records: list[str], construct: object) -> Dump:
    return read_one(tmp_path, dump_json(dict.fromkeys(records, CALL), level="mix"), construct=json.dumps(construct).encode())


def from_names(tmp_path: Path, records: list[str]) -> dict[str, str | None]:
    return parent_names(read_one(tmp_path, dump_json(dict.fromkeys(records, CALL), level="mix")))


@pytest.mark.parametrize("archive", WITH_CONSTRUCT, ids=lambda path: path.stem)
def test_every_parent_in_a_real_construct_json_is_the_parent(archive: Path) -> None:
    side = read_side(paths_to_sources([archive]), "x")
    with zipfile.ZipFile(archive) as files:
        for dump in side.dumps:
            name = dump.place.removeprefix(f"{archive.name}/").replace("dump.json", "construct.json")
            said = json.loads(files.read(name)) if name in files.namelist() else {}
            assert dump.has_construct == bool(said)
            found = parent_names(dump)
            for child, parent in said.items():
                if child in found and parent is not None:
                    assert found[child] == parent
            assert all(dump.records.recorded)
            for child, parent in found.items():
                if ".parameters_grad" in child and parent is not None:
                    assert parent.startswith(child.rsplit(".parameters_grad", 1)[0] + ".")
                if ".parameters_grad" in child:
                    assert parent is not None


def test_structure_from_names_is_the_structure_of_construct_wherever_names_tell_it() -> None:
    told = read_side(paths_to_sources([CORPUS / "seed24_train.zip"]), "a").dumps[0]
    bare = read_side(paths_to_sources([CORPUS / "seed24_train_bare.zip"]), "b").dumps[0]
    assert not bare.has_construct
    assert parent_names(bare) == parent_names(told)


def test_a_module_belongs_to_the_longest_recorded_prefix_of_its_path(tmp_path: Path) -> None:
    records = [
        module("model.layers.0.mlp.up"),
        module("model.layers.0"),
        module("model.layers.1.mlp"),
        module("model"),
        module("", class_name="Root"),
    ]
    assert from_names(tmp_path, records) == {
        module("model.layers.0.mlp.up"): module("model.layers.0"),
        module("model.layers.0"): module("model"),
        module("model.layers.1.mlp"): module("model"),
        module("model"): module("", class_name="Root"),
        module("", class_name="Root"): None,
    }


def test_a_prefix_is_of_whole_components(tmp_path: Path) -> None:
    assert from_names(tmp_path, [module("model.layers.10"), module("model.layers.1")])[module("model.layers.10")] is None


def test_by_name_a_call_belongs_to_the_same_or_else_the_nearest_call_of_its_own_direction(tmp_path: Path) -> None:
    records = [module("m", call=0), module("m", call=2), module("m", "backward", 0), *(module("m.x", call=n) for n in (0, 1, 2, 9))]
    found = from_names(tmp_path, [*records, module("m.x", "backward", 1)])
    assert [found[module("m.x", call=n)] for n in (0, 1, 2, 9)] == [module("m", call=n) for n in (0, 0, 2, 2)]
    assert found[module("m.x", "backward", 1)] == module("m", "backward", 0)


def test_api_calls_without_construct_have_no_parent(tmp_path: Path) -> None:
    assert from_names(tmp_path, [module("m"), "Torch.add.0.forward"])["Torch.add.0.forward"] is None


def test_gradients_of_parameters_belong_to_the_backward_or_else_the_forward_of_their_module(tmp_path: Path) -> None:
    grad, old = "Module.m.x.M.parameters_grad.0", "Module.m.y.M.parameters_grad"
    records = [
        module("m.x"),
        module("m.x", "backward"),
        grad,
        module("m.y"),
        old,
        "Module.m.z.M.parameters_grad.0",
        module("m", "backward"),
    ]
    for found in (
        from_names(tmp_path, records),
        parent_names(from_construct(tmp_path, records, {module("m.x"): None})),
    ):
        assert found[grad] == module("m.x", "backward")
        assert found[old] == module("m.y")
        assert found["Module.m.z.M.parameters_grad.0"] == module("m", "backward")


def test_the_megatron_form_is_read_with_its_micro_steps(tmp_path: Path) -> None:
    root, inner = module("0.module", class_name="GPTModel"), "Torch.add.7.forward"
    dump = from_construct(
        tmp_path, [root, inner], {root: [None, 0], "optimizer": [None, 3], inner: ["optimizer", 3], "megatron_micro_step_number": 3}
    )
    assert parent_names(dump) == {root: None, inner: "optimizer", "optimizer": None}
    assert list(dump.records.recorded) == [True, True, False]


def test_parents_without_a_record_get_rows_of_their_own_up_to_the_root(tmp_path: Path) -> None:
    leaf, middle, top = module("m.a.b"), module("m.a"), module("m")
    unused = module("m.unused")
    dump = from_construct(tmp_path, [leaf], {top: None, middle: top, leaf: middle, unused: top})
    assert parent_names(dump) == {leaf: middle, middle: top, top: None}
    assert list(dump.records.recorded) == [True, False, False]
    assert list(np.diff(dump.records.slot_start)) == [2, 0, 0]


def test_a_parent_that_construct_does_not_explain_is_placed_by_its_name(tmp_path: Path) -> None:
    dump = from_construct(tmp_path, [module("m.a.b"), module("m")], {module("m.a.b"): module("m.a"), module("m"): None})
    assert parent_names(dump)[module("m.a")] == module("m")


def test_a_backward_without_parent_takes_the_backward_of_its_forwards_parent(tmp_path: Path) -> None:
    forward = {
        module("m"): None,
        module("m.list"): module("m"),
        module("m.list.a"): module("m.list"),
        "Torch.add.0.forward": module("m.list.a"),
    }
    records = [*forward, module("m", "backward"), module("m.list.a", "backward"), "Torch.add.0.backward"]
    backward = {module("m", "backward"): None, module("m.list.a", "backward"): None, "Torch.add.0.backward": None}
    found = parent_names(from_construct(tmp_path, records, forward | backward))
    assert found[module("m.list.a", "backward")] == module("m", "backward"), "the list has no backward: the next above it counts"
    assert found["Torch.add.0.backward"] == module("m.list.a", "backward")
    assert found[module("m", "backward")] is None


def test_an_absent_and_an_empty_construct_are_the_same(tmp_path: Path) -> None:
    records = [module("m"), module("m.a")]
    dump = from_construct(tmp_path, records, {})
    assert not dump.has_construct
    assert parent_names(dump) == from_names(tmp_path, records)


def test_a_forward_call_under_its_own_backward_lost_the_parent_that_was_told(tmp_path: Path) -> None:
    """The backward's parent is guessed from its forward: the guess gives way, not what construct.json says."""
    forward, backward = module("model", call=1), module("model", "backward", 1)
    found = parent_names(from_construct(tmp_path, [forward, backward], {forward: backward, backward: None}))
    assert found == {forward: backward, backward: None}


def test_circles_are_cut(tmp_path: Path) -> None:
    a, b, c, d = module("a"), module("b"), module("c"), module("d")
    found = parent_names(from_construct(tmp_path, [a, b, c, d], {a: b, b: c, c: a, d: d}))
    assert found == {a: None, b: c, c: a, d: None}


def test_a_backward_call_that_encloses_itself_gets_no_other_parent(tmp_path: Path) -> None:
    above, forward, backward = module("m", "backward"), module("m.a"), module("m.a", "backward")
    found = parent_names(from_construct(tmp_path, [module("m"), above, forward, backward], {module("m"): None, backward: backward}))
    assert found[backward] is None


def depth(parent: list[int], row: int) -> int:
    steps = 0
    while row >= 0:
        row, steps = parent[row], steps + 1
        assert steps <= len(parent), "a circle"
    return steps


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_construct_whatsoever_makes_a_circle_or_another_parent_than_it_says(data: st.DataObject) -> None:
    pool = [
        module(path, direction, call) for path in ("m", "m.a", "m.a.b", "n") for direction in ("forward", "backward") for call in (0, 1)
    ]
    pool += ["Torch.add.0.forward", "Torch.add.0.backward", "optimizer", "Module.m.M.parameters_grad"]
    recorded = data.draw(st.lists(st.sampled_from(pool), unique=True, min_size=1))
    said = data.draw(st.dictionaries(st.sampled_from(pool), st.none() | st.sampled_from(pool)))
    records = RecordColumns()
    for name in recorded:
        records.add(name)
        records.slot_start.append(0)
    construct = Construct(records)
    construct.read(io.BytesIO(json.dumps(said).encode()).read, "construct.json")
    parent = parents(records, construct).tolist()
    assert len(parent) == len(records) == len(records.slot_start) - 1
    names = list(records.rows)
    for row in range(len(parent)):
        depth(parent, row)
        above = said.get(names[row])
        if above is not None and parent[row] >= 0:
            assert names[parent[row]] == above


def test_a_long_chain_without_backwards_costs_no_square(tmp_path: Path) -> None:
    count = 20_000
    chain = [f"Functional.f.{n}.forward" for n in range(count)]
    backward = [name.replace("forward", "backward") for name in chain[1::2]]
    construct = dict(zip(chain, [None, *chain], strict=False)) | dict.fromkeys(backward)
    dump = read_one(tmp_path, dump_json({name: {} for name in [*chain, *backward]}, level="mix"), construct=json.dumps(construct).encode())
    assert parent_names(dump)[backward[-1]] == backward[-2]
