"""Mapping files as text: each form is known by its shape, and what is wrong is said with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.errors import DumpError
from compare.engine.mapping.read import read_mapping
from compare.engine.mapping.rules import MappingRules, Rule
from compare.engine.mapping.write import UsedMapping, UsedPair, mapping_text


def only(text: str) -> Rule:
    found = read_mapping(text)
    assert len(found.rules) == 1
    return found.rules[0]


def test_a_pair_of_modules_is_read_with_all_that_limits_it() -> None:
    rule = only("schema: probe-web/mapping/1\npairs:\n- {left: a.N.q, right: b.N.qkv, layers: '0-2, 5', descendants: true, reason: why}\n")
    assert (rule.left, rule.right, rule.line, rule.pair, rule.descendants) == (("a.N.q",), ("b.N.qkv",), 3, True, True)
    assert rule.layers == {0, 1, 2, 5}


def test_a_record_name_is_as_good_as_a_module_path() -> None:
    rule = only("pairs:\n- {left: Module.model.layers.0.mlp.Qwen2MLP.forward.0, right: model.layers.0.mlp}\n")
    assert rule.left == rule.right == ("model.layers.0.mlp",)


def test_an_unpaired_module_needs_one_side_only() -> None:
    rule = only("unpaired:\n- {right: model.norm}\n")
    assert (rule.pair, rule.left, rule.right) == (False, (), ("model.norm",))


def test_several_files_in_one_keep_their_lines_and_each_its_form() -> None:
    text = "pairs:\n- {left: a, right: b}\n---\nTopLayer:\n  c: d\n---\nrule,left,right\npair,e,f\n"
    found = read_mapping(text)
    assert [(rule.left, rule.line) for rule in found.rules] == [(("a",), 2), (("e",), 8)]
    assert [(rule.owner, rule.left, rule.right, rule.line) for rule in found.classes] == [("TopLayer", "c", "d", 5)]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("pairs:\n- {left: a, right: b\n- x", "mapping_malformed", 3),
        ("pairs:\n- {left: &x a, right: *x}\n", "mapping_malformed", 2),
        ("pairs:\n- {left: a, right: b, colour: red}\n", "mapping_key", 2),
        ("pairs:\n- {left: a}\n", "mapping_value", 2),
        ("pairs:\n- {left: [a, b], right: [c, d]}\n", "mapping_value", 2),
        ("pairs:\n- {left: a.N, right: b}\n", "mapping_value", 2),
        ("pairs:\n- {left: a.N, right: b.N, layers: many}\n", "mapping_value", 2),
        ("pairs:\n- {left: a, right: b, descendants: perhaps}\n", "mapping_value", 2),
        ("schema: probe-web/mapping/9\npairs: []\n", "mapping_version", 1),
        ("pairs: everything\n", "mapping_value", 1),
        ("- a\n- b\n", "mapping_shape", 1),
        ("just words", "mapping_shape", 1),
        ("pairs:\n- a\n", "mapping_shape", 2),
        ("rule,left,right\npair,a\n", "mapping_malformed", 2),
        ("rule,left,right\nperhaps,a,b\n", "mapping_value", 2),
        ("\0", "mapping_malformed", 1),
        ("a.forward.0: b.forward.0.input.0\n", "mapping_value", 1),
        ("A: {b: ''}\n", "mapping_value", 1),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(DumpError) as refused:
        read_mapping(text)
    assert (refused.value.code, refused.value.params["line"]) == (code, line)


def test_a_mapping_of_many_megabytes_is_refused() -> None:
    with pytest.raises(DumpError, match="at most"):
        read_mapping("x" * 5_000_000)


@given(st.text(max_size=400) | st.from_regex(r"(pairs|unpaired|schema|left|A):[ \n\-{}\[\]a-zN*.,:&!]{0,80}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found: object = read_mapping(text)
    except DumpError as refusal:
        found = refusal.code
    assert isinstance(found, MappingRules) or str(found).startswith("mapping_")


NAMES = st.text("abN0._*'\"{}[]:=+@ é\u4e2d", min_size=1, max_size=12).filter(lambda text: text == text.strip() and " + " not in text)
# Patterns stand for many modules, and a number is written as N where it is that of every layer.
PATHS = st.lists(
    NAMES.filter(lambda text: not any(part in ("N", "*") or part.isdigit() for part in text.split("."))), min_size=1, max_size=3
)


@given(PATHS, PATHS, st.sampled_from(["mapping.yaml", "mapping.csv"]))
def test_whatever_a_module_is_called_it_is_written_so_that_it_is_read_again(left: list[str], right: list[str], name: str) -> None:
    sides = (tuple(left), (right[0],))
    used = UsedMapping(("=left", "right: 1"), ("train", "infer"), [UsedPair(*sides, "same", 'a "reason", with: marks')])
    rule = only(mapping_text(used, name))
    assert (tuple(rule.left), tuple(rule.right)) == sides


def test_a_spreadsheet_calculates_nothing_of_a_mapping() -> None:
    used = UsedMapping(("a", "b"), ("train", "infer"), [UsedPair(("=1+1",), ("@x",), "same", "-2")])
    assert mapping_text(used, "mapping.csv").splitlines()[1] == "pair,'=1+1,'@x,,,,same,'-2,"
