"""Which call of which module a record is: shared modules, micro-batches, recomputation, layers."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from compare.engine.align.places import Interner, places_of
from compare.engine.ingest import paths_to_sources, read_side
from compare.engine.model import Dump
from tests.engine.build import CORPUS, call, dump, tensor

Place = tuple[str, int, bool]  # canonical path, call, recomputed


def places(found: Dump) -> dict[str, Place]:
    intern = Interner()
    table = places_of([found], intern)
    recorded = [row for row in range(len(found.records)) if found.records.recorded[row]]
    return {found.records.name[row]: (intern.texts[table.path[row]], int(table.call[row]), bool(table.recompute[row])) for row in recorded}


def real(name: str) -> Dump:
    return read_side(paths_to_sources([CORPUS / f"{name}.zip"]), name).dumps[0]


def members(name: str) -> dict[str, Any]:
    """dump.json, construct.json … of the first rank of a corpus archive."""
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
        inside = [entry for entry in archive.namelist() if entry.endswith(".json") and "rank0" in entry]
        return {entry.rsplit("/", 1)[1]: json.loads(archive.read(entry)) for entry in inside}


ROTARY = "Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.{}"


@pytest.mark.parametrize("with_construct", [True, False])
def test_a_shared_rotary_embedding_is_named_by_the_layer_that_called_it(with_construct: bool, tmp_path: Path) -> None:
    files = members("q2_infer_stat")
    found = places(dump(tmp_path, files["dump.json"]["data"], files["construct.json"] if with_construct else None))
    shared = {name: place for name, place in found.items() if "rotary_emb" in name}
    assert shared == {ROTARY.format(n): (f"model.layers.{n}.self_attn.rotary_emb", 0, False) for n in range(4)}


def decoder(micro_batches: int, layers: int = 3) -> tuple[dict[str, Any], dict[str, Any]]:
    """An inference-like model whose layers share the rotary embedding of layer 0."""
    records: dict[str, Any] = {}
    construct: dict[str, Any] = {}
    for batch in range(micro_batches):
        records[f"Module.model.embed_tokens.VocabParallelEmbedding.forward.{batch}"] = call(tensor())
        for layer in range(layers):
            above, inside = (
                f"Module.model.layers.{layer}.Layer.forward.{batch}",
                f"Module.model.layers.{layer}.self_attn.Attention.forward.{batch}",
            )
            rotary = ROTARY.format(batch * layers + layer)
            qkv = f"Module.model.layers.{layer}.self_attn.qkv_proj.QKVParallelLinear.forward.{batch}"
            for name in (qkv, rotary, inside, above):
                records[name] = call(tensor())
            construct |= {above: None, inside: above, qkv: inside, rotary: inside}
    return records, construct


@pytest.mark.parametrize("with_construct", [True, False])
def test_a_shared_module_is_numbered_within_the_micro_batch(with_construct: bool, tmp_path: Path) -> None:
    records, construct = decoder(2)
    found = places(dump(tmp_path, records, construct if with_construct else None))
    expected = {ROTARY.format(n): (f"model.layers.{n % 3}.self_attn.rotary_emb", n // 3, False) for n in range(6)}
    assert {name: found[name] for name in expected} == expected
    assert found["Module.model.layers.2.self_attn.Attention.forward.1"] == ("model.layers.2.self_attn", 1, False)


def test_micro_batches_are_numbered_in_the_order_in_which_they_ran() -> None:
    found = places(real("q2_train_micro2_stat"))
    down = {name: place for name, place in found.items() if "layers.1." in name and "down_proj" in name and ".forward." in name}
    assert sorted(down.values()) == [("model.layers.1.mlp.down_proj", 0, False), ("model.layers.1.mlp.down_proj", 1, False)]
    assert {place[2] for place in found.values()} == {False}


def test_a_forward_that_runs_again_before_its_backward_is_a_recomputation() -> None:
    found = places(real("q2_ckpt_stat"))
    name = "Module._fsdp_wrapped_module.model.layers.2._fsdp_wrapped_module.mlp.down_proj.Linear"
    assert found[f"{name}.forward.0"] == ("model.layers.2.mlp.down_proj", 0, False)
    assert found[f"{name}.forward.1"] == ("model.layers.2.mlp.down_proj", 0, True)
    assert found[f"{name}.backward.0"] == ("model.layers.2.mlp.down_proj", 0, False)
    outside = [place for path, place in found.items() if "layers" not in path]
    assert not any(recomputed for _, _, recomputed in outside)


def test_recomputation_and_micro_batches_are_told_apart(tmp_path: Path) -> None:
    """Two micro-batches, each: embedding, a checkpointed block, its recomputation, its backward."""
    records: dict[str, Any] = {}
    for batch in range(2):
        records[f"Module.embed.Embedding.forward.{batch}"] = call(tensor())
        records[f"Module.block.fc.Linear.forward.{2 * batch}"] = call(tensor())
        records[f"Module.head.Linear.forward.{batch}"] = call(tensor())
        records[f"Module.head.Linear.backward.{batch}"] = {"input": [tensor()], "output": [tensor()]}
        records[f"Module.block.fc.Linear.forward.{2 * batch + 1}"] = call(tensor())
        records[f"Module.block.fc.Linear.backward.{batch}"] = {"input": [tensor()], "output": [tensor()]}
    found = places(dump(tmp_path, records))
    assert [found[f"Module.block.fc.Linear.forward.{k}"][1:] for k in range(4)] == [(0, False), (0, True), (1, False), (1, True)]
    assert [found[f"Module.head.Linear.forward.{k}"][1:] for k in range(2)] == [(0, False), (1, False)]


def test_decode_steps_are_calls_and_no_recomputation(tmp_path: Path) -> None:
    records = {f"Module.{name}.Linear.forward.{step}": call(tensor()) for step in range(3) for name in ("embed", "fc")}
    found = places(dump(tmp_path, records))
    assert [found[f"Module.fc.Linear.forward.{step}"] for step in range(3)] == [("fc", step, False) for step in range(3)]


def test_the_inner_module_of_a_lora_wrapper_does_not_take_its_call_number() -> None:
    """base_layer belongs to its wrapper: both are the projection's only call."""
    found = places(real("q2b_lora_train_stat"))
    name = "Module._fsdp_wrapped_module.base_model.model.model.layers.1._fsdp_wrapped_module.self_attn.q_proj"
    assert found[f"{name}.Linear.forward.0"][0] == "model.layers.1.self_attn.q_proj"
    assert found[f"{name}.base_layer.Linear.forward.0"][0] == "model.layers.1.self_attn.q_proj"


def test_an_api_call_belongs_to_the_layer_of_the_module_around_it() -> None:
    found = real("q2_train_mix")
    intern = Interner()
    table = places_of([found], intern)
    checked = 0
    for row, name in enumerate(found.records.name):
        parent = int(found.records.parent[row])
        if name.startswith("Functional.scaled_dot_product_attention") and name.endswith("forward"):
            assert table.layer[row] == int(found.records.name[parent].split("layers.")[1].split(".")[0])
            checked += 1
    assert checked == 4
    assert table.layers == 4
