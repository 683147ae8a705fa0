from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.keydata.configuration import MOST_ENTRIES, differences, flatten, preconditions, read_configuration, same
from compare.engine.model import Configuration

names = st.text(st.characters(codec="ascii", exclude_characters="/", categories=("L", "N", "P")), min_size=1, max_size=6)
leaves = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4) | st.lists(st.integers(), max_size=3)
)
trees = st.recursive(
    st.dictionaries(names, leaves, min_size=1, max_size=4), lambda inner: st.dictionaries(names, inner | leaves, min_size=1, max_size=4)
)


def configuration(content: dict[str, Any]) -> Configuration:
    return Configuration("configurations.json", content)


def read(path: str, text: str) -> Configuration | None:
    return read_configuration(path, io.BytesIO(text.encode()))


def leaves_of(tree: dict[str, Any]) -> int:
    return sum(leaves_of(value) if isinstance(value, dict) and value else 1 for value in tree.values())


@given(trees)
def test_flattening_keeps_every_leaf_under_its_path(tree: dict[str, Any]) -> None:
    flat = flatten(tree)
    assert len(flat) == leaves_of(tree)
    for path, value in flat.items():
        place: Any = tree
        for name in path.split("/"):
            place = place[name]
        assert place == value


@given(trees, trees)
def test_differences_swap_with_the_sides_and_a_configuration_equals_itself(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert differences(configuration(left), configuration(left)) == []
    there = {row["path"]: (row["left"], row["right"]) for row in differences(configuration(left), configuration(right))}
    back = {row["path"]: (row["right"], row["left"]) for row in differences(configuration(right), configuration(left))}
    assert there == back


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
     (1, "1", True), (1.0, 1, True), ("1e-6", 0.000001, True), ("True", True, True), (None, "null", True), ("0.50", "0.5", True),
     (1, True, False), ("fp16", "bf16", False), (0, None, False), ([1, "2"], [1.0, 2], True), ([1], [1, 2], False),
     (2**53, 2**53 + 1, False)],
)  # fmt: skip
def test_numbers_in_quotes_are_numbers_and_booleans_are_none(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) is same(b, a) is equal


def test_what_matters_for_consistency_comes_first_with_its_reason() -> None:
    left = configuration(
        {"actor": {"notes": "a", "use_remove_padding": True}, "generate": {"sampling_config": {"temperature": 1.0, "top_p": "0.90"}}}
    )
    right = configuration({"actor": {"notes": "b", "extra": 1}, "generate": {"sampling_config": {"temperature": 0.7, "top_p": 0.9}}})
    rows = differences(left, right)
    assert [(row["path"], row["matters"], row["state"]) for row in rows] == [
        ("actor/use_remove_padding", True, "left_only"),
        ("generate/sampling_config/temperature", True, "differs"),
        ("actor/extra", False, "right_only"),
        ("actor/notes", False, "differs"),
    ]
    assert "temperature" in rows[1]["why"]["en"]


def test_preconditions_are_detected_wherever_they_stand() -> None:
    left = configuration({"actor_rollout_ref": {"model": {"use_remove_padding": "True"}, "rollout": {"enforce_eager": False}}})
    found = {row["code"]: row for row in preconditions(left, None)}
    assert (found["remove_padding"]["left"]["state"], found["remove_padding"]["right"]["state"]) == ("ok", "unknown")
    assert found["eager"]["left"] == {"state": "failed", "path": "actor_rollout_ref/rollout/enforce_eager", "value": False}
    assert preconditions(None, None) == []


def test_a_log_gives_the_last_configuration_that_verl_printed() -> None:
    """As verl prints it: a dict of Python over several lines, behind the name of the process."""
    text = """starting
(TaskRunner pid=1) {'actor_rollout_ref': {'actor': {'lr': 1}}}
(TaskRunner pid=17) \x1b[36m{'actor_rollout_ref': {'actor': {'lr': 1e-06, 'note': 'a } b'},
(TaskRunner pid=17)                        'rollout': {'temperature': 1.0}},
(TaskRunner pid=17)  'trainer': {'balance_batch': False,
(TaskRunner pid=17)              'limits': {'most': 1}
(TaskRunner pid=17)              ,'logger': ['console', None]}}
(TaskRunner pid=17) step: 1"""
    found = read("train.log", text)
    assert found is not None
    assert flatten(found.content) == {
        "actor_rollout_ref/actor/lr": 1e-06,
        "actor_rollout_ref/actor/note": "a } b",
        "actor_rollout_ref/rollout/temperature": 1.0,
        "trainer/balance_batch": False,
        "trainer/limits/most": 1,
        "trainer/logger": ["console", None],
    }


def test_yaml_is_a_configuration_only_with_a_trainer_s_names() -> None:
    found = read("grpo.yaml", "rl_config:\n  seed: 7\nactor_config: {tensor_model_parallel_size: 2}\n")
    assert found is not None
    assert flatten(found.content) == {"rl_config/seed": 7, "actor_config/tensor_model_parallel_size": 2}
    assert read("compose.yaml", "services: {web: 1}") is None


def test_python_s_spelling_of_numbers_that_are_none_is_read() -> None:
    found = read("configurations.json", '{"rl": {"gamma": NaN, "limit": Infinity}}')
    assert found is not None
    assert not differences(found, found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("configurations.json", "["),
        ("configurations.json", "[1]"),
        ("configurations.json", "[" * 100_000),
        ("configurations.json", '{"a":' * 100_000),
        ("a.yaml", "[" * 100_000),
        ("a.yaml", "!!python/object/apply:os.system ['true']"),
        ("a.yaml", "rl: !!python/object/apply:os.system ['true']"),
        ("a.log", "{'actor_rollout_ref': __import__('os').system('true')}"),
        ("a.log", "{'actor_rollout_ref': " + "[" * 50_000 + "}"),
        ("a.txt", "{'actor_rollout_ref'" * 1000),
    ],
)
def test_what_is_no_configuration_is_none_and_runs_nothing(path: str, text: str) -> None:
    assert read(path, text) is None


def test_aliases_that_multiply_are_cut_off() -> None:
    """A thousand million entries in ten lines."""
    lines = ["rl: &a0 {x: 1}", *(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10))]
    found = read("a.yaml", "\n".join(lines))
    assert found is not None
    assert len(json.dumps(found.content)) < 20 * MOST_ENTRIES
    merged = ["rl: &a0 {x: 1}", *(f"b{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}], y{n}: 1}}" for n in range(1, 10))]
    assert read("a.yaml", "\n".join(merged)) is not None
