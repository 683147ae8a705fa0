from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.engine.keydata.configuration import MOST_ENTRIES, flatten, read_configuration
from compare.engine.keydata.preconditions import preconditions
from compare.engine.keydata.settings import differences, same
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
     (2**53, 2**53 + 1, False), (str(2**53), 2**53 + 1, False), ("1e-6", "0.000001", True), ("1E-06", 1e-6, True), (".5", 0.5, True),
     ("1_000", 1000, False), ("12_3", "123", False), ("0x10", 16, False), ("nan", float("nan"), True), ("-inf", float("-inf"), True),
     ("None", None, True), ("null", "None", True), ("false", False, True), ("1", True, False), ([1, 2], [2, 1], False),
     (["console"], "console", False), ({}, None, False), ("<X {'a': 1}>", "<X {'a': 1}>", True), ("<X {'a': 1}>", "<X {'a': 2}>", False)],
)  # fmt: skip
def test_numbers_in_quotes_are_numbers_and_booleans_are_none(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) is same(b, a) is equal


def test_null_is_not_set_and_no_difference() -> None:
    left = configuration({"a": {"max_model_len": None, "seed": "None", "kept": 1}})
    assert differences(left, configuration({"a": {"kept": "1.0"}})) == differences(configuration({"a": {"kept": 1}}), left) == []
    (row,) = differences(left, configuration({"a": {"kept": 1, "seed": 7}}))
    assert (row["path"], row["left"], row["right"], row["state"]) == ("a/seed", "None", 7, "right_only")


def test_versions_are_texts() -> None:
    left, right = (configuration({"env_vars": {"VLLM_VERSION": given}, "schema_version": given}) for given in ("1.10", "1.1"))
    assert {row["path"] for row in differences(left, right)} == {"env_vars/VLLM_VERSION", "schema_version"}


def opaque(tail: str, address: str) -> str:
    """What json cannot say is written as text by the trainer: a long one of which only the end differs, at another place each time."""
    inside = ", ".join(f"'setting_{n}': {n}" for n in range(200))
    return f'{{"actor": {{"engine": "<MegatronConfig {{{inside}, \'tail\': {tail}}}>", "hook": "<function hook at 0x{address}>"}}}}'


def test_opaque_texts_differ_by_their_last_character_and_not_by_where_they_lay_in_memory() -> None:
    one, again, other = (read("configurations.json", opaque(*given)) for given in (("1", "7f3a10"), ("1", "7ffe22"), ("2", "7f3a10")))
    assert one
    assert len(one.content["actor"]["engine"]) < 3_000
    assert differences(one, again) == []
    assert [row["path"] for row in differences(one, other)] == ["actor/engine"]


def test_numbers_too_large_for_a_column_and_sets_stay_what_they_are() -> None:
    one = read("configurations.json", f'{{"rl": {{"seed": {2**100}}}}}')
    other = read("configurations.json", f'{{"rl": {{"seed": {2**100 + 1}}}}}')
    assert [row["path"] for row in differences(one, other)] == ["rl/seed"]
    sets = [read("a.log", f"{{'actor_rollout_ref': {{'stop': {given}}}}}") for given in ("{1, 2}", "{2, 1}", "{1, 3}")]
    assert differences(sets[0], sets[1]) == []
    assert len(differences(sets[0], sets[2])) == 1


def test_what_ray_is_told_says_nothing_but_the_environment_it_hands_on_does() -> None:
    def told(cpus: int, deterministic: str) -> Configuration:
        variables = {"env_vars": {"HCCL_DETERMINISTIC": deterministic}}
        return configuration({"ray_kwargs": {"ray_init": {"num_cpus": cpus, "runtime_env": variables}}})

    assert differences(told(8, "true"), told(16, "true")) == []
    (row,) = differences(told(8, "true"), told(8, "false"))
    assert (row["path"], row["matters"]) == ("ray_kwargs/ray_init/runtime_env/env_vars/HCCL_DETERMINISTIC", True)


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


def test_a_log_is_read_through_what_others_print_in_between() -> None:
    """As a log of many processes looks: warnings within the printed dict, of the same process and of others."""
    text = """(TaskRunner pid=7) {'actor_rollout_ref': {'actor': {'optim': {'lr': 1e-06,
(TaskRunner pid=7)                                            'min_lr_ratio': None}},
(TaskRunner pid=7) /usr/lib/python3.11/vllm/connections.py:8: RuntimeWarning: Failed to read commit hash:
(TaskRunner pid=7) No module named 'vllm._version'
(TaskRunner pid=7)   from vllm.version import __version__ as VLLM_VERSION
(pid=9)                                  'kl_loss_coef': 99,
2026-05-13 10:00:00,123 INFO worker.py:1879 -- Started a local Ray instance.
(TaskRunner pid=7)                        'rollout': {'logger': ['console',
(TaskRunner pid=7)                                               'wandb']}},
(TaskRunner pid=7)  'trainer': {'nnodes': 1}}
"""
    found = read("train.log", text)
    assert found is not None
    assert flatten(found.content) == {
        "actor_rollout_ref/actor/optim/lr": 1e-06,
        "actor_rollout_ref/actor/optim/min_lr_ratio": None,
        "actor_rollout_ref/rollout/logger": ["console", "wandb"],
        "trainer/nnodes": 1,
    }


def test_a_log_without_the_names_of_processes_is_read_through_lines_with_a_time() -> None:
    text = "{'actor_rollout_ref': {'actor': {'lr': 1}},\n2026-05-13 10:00:00,123 INFO - ready\n 'trainer': {'nnodes': 1}}\n"
    found = read("train.log", text)
    assert found is not None
    assert flatten(found.content) == {"actor_rollout_ref/actor/lr": 1, "trainer/nnodes": 1}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("+ export PROMPTS_ONLY=1", "1"),
        ("PROMPTS_ONLY='1' python3 -m verl.trainer.main_ppo", "1"),
        ("{'env_vars': {'PROMPTS_ONLY': '1', 'A': 'b'}}", "1"),
        ('{"PROMPTS_ONLY": "0"}', "0"),
        ("export PROMPTS_ONLY=0\nexport PROMPTS_ONLY=1", "1"),
        ("export PROMPTS_ONLY=${PROMPTS_ONLY:-1}", None),
        ("echo PROMPTS_ONLY=$PROMPTS_ONLY", None),
        ("MY_PROMPTS_ONLY=1", None),
        ("PROMPTS_ONLY was not set", None),
    ],
)
def test_environment_variables_are_read_off_a_log_as_they_were_put_in(line: str, value: str | None) -> None:
    found = read("train.log", f"{line}\n{{'actor_rollout_ref': {{'actor': {{'lr': 1}}}}}}\n")
    assert found is not None
    assert flatten(found.content).get("environment/PROMPTS_ONLY") == value


class Endless:
    """A log that is longer than anyone would keep: ``head``, then lines of progress, then ``tail``."""

    def __init__(self, head: bytes, size: int, tail: bytes) -> None:
        self.parts = [head, size, tail]
        self.line = b"(TaskRunner pid=7) step:1 - actor/loss:0.25 - {'timing_s/gen': 1.5}\n" * 4096

    def read(self, size: int = -1, /) -> bytes:
        while self.parts:
            part = self.parts.pop(0)
            if isinstance(part, bytes):
                return part
            if part > 0:
                self.parts.insert(0, part - len(self.line))
                return self.line
        return b""


def test_a_log_of_300_megabytes_is_read_in_the_memory_of_a_few_blocks() -> None:
    config = b"{'actor_rollout_ref': {'actor': {'lr': %d},\n 'rollout': {'n': 8}}}\n"
    tracemalloc.start()
    found = read_configuration("train.log", Endless(config % 1, 300 << 20, config % 2))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert flatten(found.content) == {"actor_rollout_ref/actor/lr": 2, "actor_rollout_ref/rollout/n": 8}
    assert most < 8 << 20


def test_a_configuration_on_one_long_line_is_read_across_blocks() -> None:
    inside = ", ".join(f"'setting_{n}': {n}" for n in range(9_000))
    printed = f"{{'actor_rollout_ref': {{{inside}}}}}"
    assert 150_000 < len(printed) < 256 << 10
    found = read("train.log", "x" * 200_000 + "\n" + printed + "\n")
    assert found is not None
    assert len(flatten(found.content)) == 9_000


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
