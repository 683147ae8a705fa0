"""What the rules of a mapping do to the pairs of two dumps."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compare.engine.align.pairs import Reason, Relation
from compare.engine.diagnose.case import Case
from compare.engine.model import JsonObject
from tests.engine.build import call, compare, corpus, part, tensor

MAPPINGS = Path(__file__).parents[2] / "data" / "mappings"
SAME_CODE = ("q2_shim_stat", "q2_shim_stat_again")
TRAIN_INFER = ("q2_train_stat", "q2_infer_stat")


def path_of(record: str) -> str:
    found = re.match(r"^(?:Module|Cell)\.(.*?)\.?[A-Za-z0-9]+\.(?:forward|backward)\.\d+$", record)
    return re.sub(r"_fsdp_wrapped_module\.?", "", found[1]).strip(".") if found else record


@cache
def ruled(sides: tuple[str, str], rules: str) -> Case:
    return part(*sides, mapping=rules).cases[0]


def partners(found: Case, left: str, *, slot: str = "output.0") -> list[tuple[str, str, str]]:
    """(module, slot, reason) of every partner of a left module's slot in its own node."""
    told = []
    for pair in range(len(found.pairs)):
        at = found.slot_name(pair, 0), found.pairs.elsewhere[pair], found.pairs.direction[pair]
        if at == (slot, 0, 0) and left in [path_of(name) for name in found.pair_records(pair, 0)]:
            reason = Reason(int(found.pairs.reason[pair])).name
            told += [(path_of(name), found.slot_name(pair, 1), reason) for name in found.pair_records(pair, 1)]
    return told


def findings(document: JsonObject) -> dict[str, JsonObject]:
    return {finding["code"]: finding for finding in document["findings"] if finding["code"].startswith("mapping")}


def unmatched(found: Case, side: int) -> set[str]:
    lists = found.pairs.slots[side]
    paired = {found.dumps[side].records.name[int(record)] for record in found.dumps[side].slots.record[lists.values]}
    return {
        path_of(name)
        for name, kept in zip(found.dumps[side].records.name, found.dumps[side].records.recorded, strict=True)
        if kept and name not in paired
    }


def test_a_rule_puts_two_modules_together_and_frees_their_former_partners() -> None:
    found = ruled(SAME_CODE, "pairs:\n- {left: model.layers.1.mlp.gate_proj, right: model.layers.1.mlp.up_proj}\n")
    assert partners(found, "model.layers.1.mlp.gate_proj") == [("model.layers.1.mlp.up_proj", "output.0", "MAPPING")]
    assert partners(found, "model.layers.0.mlp.gate_proj") == [("model.layers.0.mlp.gate_proj", "output.0", "SAME_SLOT")]
    assert {"model.layers.1.mlp.up_proj"} <= unmatched(found, 0)
    assert {"model.layers.1.mlp.gate_proj"} <= unmatched(found, 1)


def test_n_stands_for_every_layer_and_a_rule_for_one_layer_outdoes_it() -> None:
    rules = (
        "pairs:\n- {left: model.layers.N.mlp.gate_proj, right: model.layers.N.mlp.up_proj}\n"
        "- {left: model.layers.2.mlp.gate_proj, right: model.layers.2.mlp.gate_proj}\n"
    )
    found = ruled(SAME_CODE, rules)
    for layer in (0, 1, 3):
        assert partners(found, f"model.layers.{layer}.mlp.gate_proj")[0][0] == f"model.layers.{layer}.mlp.up_proj"
    assert partners(found, "model.layers.2.mlp.gate_proj")[0][0] == "model.layers.2.mlp.gate_proj"
    assert set(findings(part(*SAME_CODE, mapping=rules).document)) == {"mapping_used"}


def test_layers_limit_what_n_stands_for() -> None:
    found = ruled(SAME_CODE, "pairs:\n- {left: model.layers.N.mlp.gate_proj, right: model.layers.N.mlp.up_proj, layers: 1-2}\n")
    moved = [partners(found, f"model.layers.{layer}.mlp.gate_proj")[0][0].endswith("up_proj") for layer in range(4)]
    assert moved == [False, True, True, False]


def test_a_layer_moves_with_all_that_is_below_it_and_the_vocabulary_goes_on_working() -> None:
    """Two code bases: the parts of the left layer still meet the fused module, the residual stream its norm."""
    found = ruled(TRAIN_INFER, "pairs:\n- {left: model.layers.2, right: model.layers.1, descendants: true}\n")
    relation = {
        Relation(int(found.pairs.relation[pair]))
        for pair in range(len(found.pairs))
        if "model.layers.2.self_attn.q_proj" in [path_of(name) for name in found.pair_records(pair, 0)]
        and [path_of(name) for name in found.pair_records(pair, 1)] == ["model.layers.1.self_attn.qkv_proj"]
        and found.slot_name(pair, 0) == "output.0"
    }
    assert relation == {Relation.CONCAT}
    assert partners(found, "model.layers.2.mlp.down_proj")[0][0] == "model.layers.1.mlp.down_proj"
    assert partners(found, "model.layers.1.mlp.down_proj") == []


def test_a_module_set_apart_has_no_partner_and_says_why() -> None:
    rules = "unpaired:\n- {left: model.layers.1.mlp, right: model.layers.1.mlp, descendants: true}\n"
    found = ruled(SAME_CODE, rules)
    below = {f"model.layers.1.mlp{name}" for name in ("", ".gate_proj", ".up_proj", ".down_proj", ".act_fn")}
    assert below <= unmatched(found, 0)
    assert below <= unmatched(found, 1)
    document = part(*SAME_CODE, mapping=rules).document
    assert document["verdict"] == "consistent"  # nothing differs, but not everything was compared
    assert document["coverage"]["left"]["explained"] < document["coverage"]["left"]["records"]


def test_a_rule_that_finds_nothing_and_one_that_is_overruled_are_named_with_their_lines() -> None:
    rules = (
        "pairs:\n"
        "- {left: model.layers.0.mlp.gate_proj, right: model.layers.0.mlp.up_proj}\n"
        "- {left: model.layers.0.mlp.gate_proj, right: model.layers.0.mlp.down_proj}\n"
        "- {left: no.such.module, right: model.norm}\n"
    )
    told = findings(part(*SAME_CODE, mapping=rules).document)
    assert [rule["line"] for rule in told["mapping_rule_contradicted"]["evidence"]["rules"]] == [2]
    assert [rule["line"] for rule in told["mapping_rule_unused"]["evidence"]["rules"]] == [4]
    assert partners(ruled(SAME_CODE, rules), "model.layers.0.mlp.gate_proj")[0][0] == "model.layers.0.mlp.down_proj"
    assert "no.such.module" in told["mapping_rule_unused"]["text"]["zh"]


def test_parts_named_by_a_rule_are_laid_side_by_side(tmp_path: Path) -> None:
    """Half of the elements each, so that together they are the whole: 6² + 8² = 10²."""
    left = {
        "Module.a.L.forward.0": call(tensor(4.0), output=[tensor(6.0, shape=(1, 12, 32))]),
        "Module.b.L.forward.0": call(tensor(4.0), output=[tensor(8.0, shape=(1, 12, 32))]),
    }
    right = {"Module.ab.L.forward.0": call(tensor(4.0), output=[tensor(10.0, shape=(1, 12, 64))])}
    without = compare(tmp_path / "without", left, right)
    assert without["verdict"] == "not_comparable"
    told = compare(tmp_path / "with", left, right, mapping="pairs:\n- {left: [a, b], right: ab}\n")
    assert told["verdict"] in ("identical", "consistent")
    assert told["counts"]["pairs"] == 2  # what goes in is compared once, what comes out together


def test_slots_may_be_paired_across_names(tmp_path: Path) -> None:
    left = {"Module.a.L.forward.0": call(tensor(4.0), output=[tensor(6.0), tensor(7.0)])}
    right = {"Module.a.L.forward.0": call(tensor(4.0), output=[tensor(7.0), tensor(6.0)])}
    assert compare(tmp_path / "without", left, right, exact=True)["verdict"] == "diverged"
    rules = "pairs:\n- {left: a, right: a, slots: {output.0: output.1, output.1: output.0}}\n"
    told = compare(tmp_path / "with", left, right, exact=True, mapping=rules)
    assert (told["verdict"], told["counts"]["pairs"]) == ("identical", 3)


def test_inputs_with_other_names_meet_by_their_place_once_a_rule_says_that_the_modules_are_one(tmp_path: Path) -> None:
    left = {"Module.a.L.forward.0": call(hidden=tensor(4.0), output=[tensor(6.0)])}
    right = {"Module.z.K.forward.0": call(tensor(4.0), output=[tensor(6.0)])}
    told = compare(tmp_path, left, right, mapping="pairs:\n- {left: a, right: z}\n")
    assert (told["verdict"], told["counts"]["pairs"]) == ("identical", 2)


@pytest.mark.parametrize("form", ["layer", "cell"])
def test_msprobe_files_that_say_what_is_known_anyway_change_nothing(form: str) -> None:
    text = (MAPPINGS / f"{form}_mapping.yaml").read_text("utf-8")
    told = corpus(*TRAIN_INFER, mapping=text).document
    assert told["counts"] == corpus(*TRAIN_INFER).document["counts"]
    assert set(findings(told)) == {"mapping_used"}


def test_an_msprobe_data_mapping_is_taken_at_its_word() -> None:
    """It lays the layer's output beside the other side's, which is another tensor; the product would not, and says that the file did."""
    text = (MAPPINGS / "data_mapping.yaml").read_text("utf-8")
    found = ruled(TRAIN_INFER, text)
    assert partners(found, "model.layers.1") == [("model.layers.1", "output.0", "MAPPING")]
    assert corpus(*TRAIN_INFER, mapping=text).document["verdict"] == "diverged"


def test_a_layer_mapping_names_children_by_the_class_above_them(tmp_path: Path) -> None:
    left = {"Module.net.enc.Linear.forward.0": call(output=[tensor(6.0)]), "Module.net.Net.forward.0": call(output=[tensor(5.0)])}
    right = {"Module.model.decoder.Linear.forward.0": call(output=[tensor(6.0)]), "Module.model.Net.forward.0": call(output=[tensor(5.0)])}
    told: dict[str, Any] = compare(tmp_path, left, right, mapping="TopLayer: {net: model}\nNet: {enc: decoder (renamed)}\n")
    assert (told["verdict"], told["counts"]["pairs"]) == ("identical", 2)
    told = compare(tmp_path / "typo", left, right, mapping="TopLayer: {net: model}\nNot: {enc: decoder}\n")
    assert findings(told)["mapping_rule_unused"]["evidence"]["rules"] == [{"line": 2, "rule": "Not: enc ↔ decoder"}]


def test_part_of_a_path_is_replaced_as_a_cell_mapping_asks(tmp_path: Path) -> None:
    left = {f"Cell.net.{n}.fc2.Dense.forward.0": call(output=[tensor(6.0 + n)]) for n in range(3)}
    right = {f"Module.net.{n}.linear2.Linear.forward.0": call(output=[tensor(6.0 + n)]) for n in range(3)}
    assert compare(tmp_path / "without", left, right)["counts"]["pairs"] == 0
    told = compare(tmp_path / "with", left, right, mapping="fc2.Dense: linear2.Linear\n")
    assert (told["counts"]["pairs"], told["counts"]["equal"]) == (3, 3)
