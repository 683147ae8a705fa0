"""The mapping that a comparison used, written and read again, gives the same pairs – in every form, on every pair of dumps here."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.engine.diagnose.case import Case
from compare.engine.exports.finished import from_memory
from compare.engine.exports.mapping import used_mapping
from compare.engine.mapping.write import mapping_text
from compare.engine.pipeline import Comparison
from tests.engine.build import Slot, corpus, pairs, slots_of

FORMS = ("mapping.yaml", "mapping.csv", "layer_mapping.yaml", "cell_mapping.yaml", "data_mapping.yaml")
SIDES = [
    ("q2_train_stat", "q2_infer_stat"),
    ("moe_train_stat", "moe_infer_clean_stat"),
    ("q2_fsdpflat_stat", "q2_infer_tp2_stat"),
    ("q2_train_micro2_stat", "q2_infer_mix"),
    ("q2b_lora_train_stat", "q2b_infer_clean_stat"),
    ("q2b_mcore_tp2_stat", "q2b_infer_clean_stat"),
    ("q2b_shim_clean_mix", "q2b_shim_extraops_mix"),
    ("q2_train_steps2_stat", "q2_train_steps2_pert1_stat"),
]


def exported(comparison: Comparison, name: str, mapping: str | None = None) -> str:
    return mapping_text(used_mapping(from_memory(comparison, mapping)), name)


def paired(comparison: Comparison) -> list[object]:
    return [sorted(map(repr, pairs(case))) for _, verdict in comparison.parts if verdict is not None for case in verdict.cases]


@pytest.mark.parametrize(("left", "right"), SIDES)
def test_an_exported_mapping_gives_the_same_pairs_again(left: str, right: str) -> None:
    plain = corpus(left, right)
    for name in FORMS:
        assert paired(corpus(left, right, mapping=exported(plain, name))) == paired(plain), name


@pytest.mark.parametrize(("left", "right"), SIDES[::2])
def test_a_mapping_fits_the_same_dumps_the_other_way_round(left: str, right: str) -> None:
    text = exported(corpus(left, right), "mapping.yaml")
    assert paired(corpus(right, left, mapping=text)) == paired(corpus(right, left))


MODULES = ["input_layernorm", "self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp", "self_attn"]


@st.composite
def rules(draw: st.DrawFn) -> str:
    lines = ["schema: probe-web/mapping/1", "left: {role: train}", "right: {role: infer}"]
    names = st.tuples(st.sampled_from(["0", "1", "2", "N"]), st.sampled_from(MODULES), st.sampled_from(MODULES), st.booleans())
    for word in ("pairs", "unpaired"):
        lines.append(f"{word}:")
        for layer, left, right, below in draw(st.lists(names, max_size=3)):
            ends = f"left: model.layers.{layer}.{left}, right: model.layers.{layer}.{right}"
            lines.append(f"- {{{ends}, descendants: {str(below).lower()}}}")
    return "\n".join(lines) + "\n"


@cache
def with_rules(left: str, right: str, text: str) -> Comparison:
    return corpus(left, right, mapping=text)


@settings(max_examples=15, deadline=None)
@given(rules())
def test_rules_of_a_person_survive_being_exported_and_imported(text: str) -> None:
    """Whatever was put together or apart by hand is in the exported file."""
    made = with_rules("q2_shim_stat", "q2_shim_stat_again", text)
    again = corpus("q2_shim_stat", "q2_shim_stat_again", mapping=exported(made, "mapping.yaml", text))
    assert paired(again) == paired(made)


@settings(max_examples=10, deadline=None)
@given(rules())
def test_the_same_rules_swapped_give_the_same_pairs_swapped(text: str) -> None:
    made = with_rules("q2_train_stat", "q2_infer_stat", text).parts[0][1]
    other = with_rules("q2_infer_stat", "q2_train_stat", text).parts[0][1]
    assert made is not None
    assert other is not None
    case, turned = made.cases[0], other.cases[0]
    assert at_home(case, (0, 1)) == at_home(turned, (1, 0))


def at_home(case: Case, sides: tuple[int, int]) -> set[tuple[frozenset[Slot], frozenset[Slot]]]:
    """Pairs whose two ends are seen in one node."""
    rows = [row for row in range(len(case.pairs)) if not case.pairs.elsewhere[row]]
    return {(frozenset(slots_of(case, row, sides[0])), frozenset(slots_of(case, row, sides[1]))) for row in rows}
