"""What holds of any pair: parts combine to the whole, names of wrappers, ranks and further calls change nothing, sides may be swapped."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import CORPUS, case, write
from tests.simulator import Scenario, scenarios, simulate
from tests.simulator.faults import Fault
from tests.simulator.parallel import Layout
from tests.simulator.precision import Precision
from tests.simulator.recorder import statistics

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WRAPPERS = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "_forward_module")


def judged(left: Path, right: Path) -> JsonObject:
    return compare_paths([left], [right], Options()).document


def leaf(values: np.ndarray, precision: Precision) -> dict[str, Any]:
    return {
        "type": "torch.Tensor",
        "dtype": precision.torch_name,
        "shape": list(values.shape),
        **statistics(values, precision),
        "requires_grad": False,
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    widths=st.tuples(*[st.integers(1, 40)] * 3),
    rows=st.integers(1, 30),
    scale=st.sampled_from([1e-3, 1.0, 300.0]),
    name=st.sampled_from(["bfloat16", "float16", "float32"]),
)
def test_the_statistics_of_parts_combine_to_those_of_the_whole(
    tmp_path: Path, seed: int, widths: tuple[int, int, int], rows: int, scale: float, name: str
) -> None:
    rng, precision = np.random.default_rng(seed), Precision(name)
    parts = [
        precision.round((rng.standard_normal((rows, width)) * scale + scale * rng.standard_normal()).astype(np.float32)) for width in widths
    ]
    whole = np.concatenate(parts, axis=1)
    given_in = precision.round(rng.standard_normal((rows, 8)).astype(np.float32))
    module = "Module.model.layers.0.self_attn.{}.forward.0"
    left = {
        module.format(f"{part}_proj.Linear"): {
            "input_args": [leaf(given_in, precision)],
            "input_kwargs": {},
            "output": [leaf(values, precision)],
        }
        for part, values in zip("qkv", parts, strict=True)
    }
    fused = {"input_args": [leaf(given_in, precision)], "input_kwargs": {}, "output": [leaf(whole, precision), None]}
    right = {module.format("qkv_proj.QKVParallelLinear"): fused}
    found = case(tmp_path / f"{seed}-{rows}-{name}-{widths}-{scale}", left, right)
    rows_of = [pair for pair in range(len(found.pairs)) if found.quantity(pair) == "query_key_value.0"]
    assert rows_of
    for pair in rows_of:
        assert found.differences.equal[pair], (found.differences.signed[pair], found.differences.slack[pair])
        assert found.differences.elements[pair] == whole.size


@FEW
@given(
    front=st.lists(st.sampled_from([*WRAPPERS, "module"]), max_size=3),
    inside=st.lists(st.sampled_from(WRAPPERS), max_size=2),
    adapter=st.booleans(),
    right=st.sampled_from(["q2_infer_stat", "q2_infer_eps_stat", "q2_infer_down2_stat"]),
)
def test_wrappers_change_no_answer(tmp_path: Path, front: list[str], inside: list[str], adapter: bool, right: str) -> None:
    with zipfile.ZipFile(CORPUS / "q2_plain_stat.zip") as archive:
        document = json.loads(archive.read(next(name for name in archive.namelist() if name.endswith("dump.json"))))
    plain = write(tmp_path / f"plain-{right}", document["data"])

    def wrapped(name: str) -> str:
        parts = name.split(".")
        at = parts.index("layers") + 2 if "layers" in parts else None
        if at is not None and len(parts) > at:
            parts[at:at] = inside
        return ".".join([parts[0], *front, *(["base_model", "model"] if adapter else []), *parts[1:]])

    data = {wrapped(name) if name.startswith("Module.model.") else name: record for name, record in document["data"].items()}
    other = write(tmp_path / ("-".join([right, *front, "in", *inside, str(adapter)])), data)
    expected, found = judged(plain, CORPUS / f"{right}.zip"), judged(other, CORPUS / f"{right}.zip")
    assert found["verdict"] == expected["verdict"]
    assert found["counts"] == expected["counts"]
    assert [origin["module"] for origin in found["origins"]] == [origin["module"] for origin in expected["origins"]]


@FEW
@given(
    layout=st.sampled_from([Layout(2), Layout(4), Layout(1, 2), Layout(2, 2)]),
    fault=st.sampled_from([None, Fault("gelu", 0, 3), Fault("mask_missing", 0, 1), Fault("weight_noise", 0.3, 5, "mlp.down_proj")]),
    seed=st.integers(0, 50),
)
def test_splitting_a_side_over_ranks_changes_no_answer(tmp_path: Path, layout: Layout, fault: Fault | None, seed: int) -> None:
    whole = Scenario("whole", "Qwen2", "small", tokens=24, fault=fault, seed=seed)
    split = Scenario("split", "Qwen2", "small", tokens=24, fault=fault, seed=seed, right_layout=layout)
    place = tmp_path / f"{seed}-{layout.tensor}-{layout.stages}-{fault}".replace("/", "")
    documents = [judged(pair.left, pair.right) for pair in (simulate(one, place / one.name) for one in (whole, split))]
    assert documents[0]["verdict"] == documents[1]["verdict"]
    if fault is not None:
        assert documents[0]["first_divergence"]["module"] == documents[1]["first_divergence"]["module"]


@FEW
@given(places=st.lists(st.floats(0, 1), min_size=1, max_size=6), side=st.sampled_from(["left", "right"]))
def test_further_calls_on_one_side_cost_themselves_alone(tmp_path: Path, places: list[float], side: str) -> None:
    with zipfile.ZipFile(CORPUS / "q2b_shim_clean_mix.zip") as archive:
        document = json.loads(archive.read(next(name for name in archive.namelist() if name.endswith("dump.json"))))
    records = list(document["data"].items())
    call = next(record for name, record in records if name.startswith("Tensor.__mul__."))
    more = list(records)
    for number, place in enumerate(sorted(places)):
        more.insert(int(place * len(records)) + number, (f"Tensor.clamp.{number}.forward", call))
    plain = write(tmp_path / "plain", document["data"], level="mix")
    other = write(tmp_path / f"more-{side}-{hash(tuple(places))}", dict(more), level="mix")
    found = judged(other, plain) if side == "left" else judged(plain, other)
    assert found["counts"]["diverged"] == found["counts"]["noise"] == found["counts"]["rounding"] == 0
    assert found["counts"][f"unmatched_{side}"] == len(places)
    assert found["counts"]["unmatched_left"] + found["counts"]["unmatched_right"] == len(places)


@pytest.mark.parametrize(
    "name", ["clean_latent_moe_tiny", "clean_megatron_tp2_pp2", "fault_latent_scale", "fault_moe_gate_noise", "fault_megatron_tp2_pp2_gelu"]
)
def test_swapping_the_sides_changes_no_answer(name: str, tmp_path: Path) -> None:
    pair = simulate(next(scenario for scenario in scenarios() if scenario.name == name), tmp_path / name)
    there, back = judged(pair.left, pair.right), judged(pair.right, pair.left)
    assert there["verdict"] == back["verdict"]
    assert [origin["module"] for origin in there["origins"]] == [origin["module"] for origin in back["origins"]]
    assert there["counts"]["diverged"] == back["counts"]["diverged"]
