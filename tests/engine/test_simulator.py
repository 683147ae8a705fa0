"""The simulator is only worth something if its dumps look like real ones, its noise is like real noise, and its truth is true."""

from __future__ import annotations

import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator import Scenario, scenarios, simulate
from tests.simulator.faults import Fault
from tests.simulator.inference_side import Kernels
from tests.simulator.noise import noise_of_pair, step, ulps
from tests.simulator.precision import Precision, round_bfloat16, round_float8, round_float16
from tests.simulator.recorder import statistics
from tests.simulator.train_side import TrainStyle

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
STATISTICS = ("Max", "Min", "Mean", "Norm")


def real(name: str, file: str = "dump.json") -> Any:
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
        member = next(entry for entry in archive.namelist() if entry.endswith(f"rank0/{file}"))
        return json.loads(archive.read(member))


def written(folder: Path, file: str = "dump.json") -> Any:
    return json.loads((folder / "step0" / "rank0" / file).read_text(encoding="utf-8"))


def skeleton(value: Any) -> Any:
    """A dump without its numbers: names, order, shapes, dtypes, and which statistics are null."""
    if isinstance(value, dict):
        return [(key, value[key] is None if key in STATISTICS else skeleton(value[key])) for key in value]
    if isinstance(value, list):
        return [skeleton(item) for item in value]
    return value


@pytest.mark.parametrize(
    ("name", "side", "changes"),
    [
        ("q2_train_stat", "left", {"style": TrainStyle("fsdp1"), "backward": "placeholders"}),
        ("q2_shim_stat", "left", {"style": TrainStyle("fsdp1"), "backward": "gradients"}),
        ("q2_plain_stat", "left", {"style": TrainStyle("plain"), "backward": "gradients"}),
        ("q2_ckpt_stat", "left", {"style": TrainStyle("fsdp1", recompute=True), "backward": "gradients"}),
        ("q2_infer_stat", "right", {}),
    ],
)
def test_a_simulated_dump_has_the_names_order_and_shapes_of_the_real_one(name: str, side: str, changes: dict[str, Any], tmp_path: Path):
    simulate(Scenario("x", "Qwen2", "tiny", tokens=12, **changes), tmp_path)
    assert list(written(tmp_path / side)["data"]) == list(real(name)["data"])
    assert skeleton(written(tmp_path / side)) == skeleton(real(name))
    assert list(written(tmp_path / side, "construct.json").items()) == list(real(name, "construct.json").items())


@pytest.mark.parametrize(("name", "side"), [("q2_shim_mix", "left"), ("q2_infer_mix", "right")])
def test_simulated_api_calls_are_those_of_a_real_mixed_dump(name: str, side: str, tmp_path: Path):
    kernels = Kernels(norm_once=False, activation_once=False)
    simulate(Scenario("x", style=TrainStyle("fsdp1"), kernels=kernels, mix=True, backward="gradients"), tmp_path)

    def forwards(names: dict[str, Any]) -> list[str]:
        """Forward records inside modules, and the loss; call numbers out, since the launcher makes calls of its own before."""
        inside = [entry for entry in names if "forward" in entry and (names[entry] or not re.match(r"T(ensor|orch)", entry))]
        return [re.sub(r"\.\d+\.forward$", ".forward", entry) for entry in inside]

    simulated, recorded = written(tmp_path / side), real(name)
    assert forwards(simulated["data"]) == forwards(recorded["data"])
    assert forwards(written(tmp_path / side, "construct.json")) == forwards(real(name, "construct.json"))
    both = [entry for entry in simulated["data"] if entry in recorded["data"] and ".forward" in entry]
    assert len(both) > 180
    for entry in both:
        assert skeleton(simulated["data"][entry]) == skeleton(recorded["data"][entry])


def test_stacks_name_every_forward_record_once_as_in_a_real_dump(tmp_path: Path):
    simulate(Scenario("x", style=TrainStyle("fsdp1"), backward="placeholders"), tmp_path)
    for stacks, dump in ((written(tmp_path / "left", "stack.json"), written(tmp_path / "left")),):
        named = [name for names, frames in stacks.values() for name in names if frames]
        assert sorted(named) == sorted(name for name in dump["data"] if ".forward." in name)
        assert list(stacks) == [str(index) for index in range(len(stacks))]


@given(st.floats(width=32))
def test_bfloat16_rounding_takes_the_nearest_value_with_eight_bits(value: float):
    rounded = float(round_bfloat16(np.array([value], dtype=np.float32))[0])
    if math.isnan(value):
        assert math.isnan(rounded)
        return
    assert np.array([rounded], dtype=np.float32).view(np.uint32)[0] & 0xFFFF == 0
    if math.isfinite(value) and math.isfinite(rounded) and abs(value) > 1e-37:
        assert abs(rounded - value) <= 2.0 ** (math.frexp(value)[1] - 9)


def test_bfloat16_rounding_breaks_ties_to_even():
    ties = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 3.4e38], dtype=np.float32)
    assert round_bfloat16(ties).tolist() == [1.0, 1 + 2.0**-6, -1.0, math.inf]


def test_low_precisions_round_as_hand_arithmetic_does():
    assert round_float16(np.array([1 + 2.0**-11, 70000.0], dtype=np.float32)).tolist() == [1.0, math.inf]
    assert round_float8(np.array([1.06, 1.07, -3.3, 0.0], dtype=np.float32)).tolist() == [1.0, 1.125, -3.25, 0.0]


def test_float16_steps_stop_shrinking_below_the_smallest_normal_number():
    """A fused weight's mean of 2.8e-5 is subnormal in float16: half a step of 2^-24 is rounding, not a difference of weights."""
    assert step(2.8e-5, "torch.float16") == 2.0**-24
    assert step(1.0, "torch.float16") == 2.0**-10
    assert step(1.0, "torch.bfloat16") == 2.0**-7
    assert ulps(2.816319465637207e-05, 2.8133392333984375e-05, "torch.float16") == pytest.approx(0.5, abs=0.01)


def test_statistics_follow_the_rules_of_the_dumper():
    half = Precision("bfloat16")
    assert statistics(np.array([3, 1], dtype=np.int64), half) == {"Max": 3, "Min": 1, "Mean": None, "Norm": None}
    assert statistics(np.array([True, False]), half) == {"Max": True, "Min": False, "Mean": None, "Norm": None}
    assert statistics(np.float32(2.5)[...], half) == dict.fromkeys(STATISTICS, 2.5)
    assert statistics(np.array([3.0, 4.0], dtype=np.float32), half) == {"Max": 4.0, "Min": 3.0, "Mean": 3.5, "Norm": 5.0}
    assert all(math.isnan(value) for value in statistics(np.array([1.0, math.nan], dtype=np.float32), half).values())
    third = statistics(np.array([1.0, 1.0, 0.0], dtype=np.float32), half)
    assert third["Mean"] == 0.66796875  # 2/3 with eight bits


def test_the_same_scenario_is_the_same_dump(tmp_path: Path):
    scenario = Scenario("x", "Qwen3", "nano", tokens=9, seed=5, backward="gradients", style=TrainStyle("fsdp1"))
    simulate(scenario, tmp_path / "one")
    simulate(scenario, tmp_path / "two")
    for side in ("left", "right"):
        assert written(tmp_path / "one" / side) == written(tmp_path / "two" / side)


@pytest.mark.parametrize("kernels", [Kernels(), Kernels(split=1, norm_once=False, activation_once=False, block=1000)])
def test_clean_noise_stays_where_real_clean_pairs_stay(kernels: Kernels, tmp_path: Path):
    """Real clean bfloat16 pairs: Norm ≤ 1.11 ulps, extremes ≤ 5 ulps, z ≤ 0.067 in tiny models; half the pairs are equal in Norm."""
    measures = []
    for seed in range(4):
        pair = simulate(Scenario("x", "Qwen2", "tiny", tokens=12, seed=seed, kernels=kernels), tmp_path / str(seed))
        measures += [row for rows in noise_of_pair(pair.left, pair.right).values() for _, row in rows]
    assert max(row["uNorm"] for row in measures) <= 1.2
    assert max(row["uExtreme"] for row in measures) <= 8
    assert max(row["z"] for row in measures) <= 0.15
    assert np.median([row["z"] for row in measures]) <= 0.03
    assert any(row["uExtreme"] > 0 for row in measures), "a pair without any noise proves nothing"


def test_the_stream_of_the_training_side_is_the_second_output_of_the_next_norm(tmp_path: Path):
    pair = simulate(Scenario("x", "Llama", "small", tokens=24), tmp_path)
    left, right = written(pair.left)["data"], written(pair.right)["data"]
    for layer in range(7):
        stream = left[f"Module.model.layers.{layer}.LlamaDecoderLayer.forward.0"]["output"][0]["Norm"]
        fused = right[f"Module.model.layers.{layer + 1}.input_layernorm.RMSNorm.forward.0"]["output"][1]["Norm"]
        assert fused == pytest.approx(stream, rel=2.0**-7)


@pytest.mark.parametrize(
    ("fault", "module"),
    [
        (Fault("weight_noise", 0.2, 2, "mlp.down_proj"), "model.layers.2.mlp.down_proj"),
        (Fault("weight_noise", 0.2, 1, "self_attn.k_proj"), "model.layers.1.self_attn.qkv_proj"),
        (Fault("eps", 1e-3), "model.layers.0.input_layernorm"),
        (Fault("gelu", 0, 3), "model.layers.3.mlp.act_fn"),
        (Fault("output_scale", 0.5, 1, "self_attn.o_proj"), "model.layers.1.self_attn.o_proj"),
        (Fault("residual_scale", 0.5, 1, "mlp"), "model.layers.2.input_layernorm"),
        (Fault("nan", 0, 2, "mlp.down_proj"), "model.layers.2.mlp.down_proj"),
        (Fault("weight_noise", 0.2, None, "model.norm"), "model.norm"),
    ],
)
def test_nothing_before_the_named_module_feels_the_fault(fault: Fault, module: str, tmp_path: Path):
    clean = simulate(Scenario("x", "Qwen2", "tiny", seed=3), tmp_path / "clean")
    bad = simulate(Scenario("x", "Qwen2", "tiny", seed=3, fault=fault), tmp_path / "bad")
    assert bad.truth.modules[0] == module
    assert bad.truth.clear
    before, after = written(clean.right)["data"], written(bad.right)["data"]
    assert list(before) == list(after)
    changed = [name for name in before if repr(before[name]["output"]) != repr(after[name]["output"])]
    assert re.sub(r"^Module\.(.*)\.\w+\.forward\.\d+$", r"\1", changed[0]) == module


def test_a_constant_offset_of_positions_is_harmless(tmp_path: Path):
    pair = simulate(Scenario("x", "Qwen2", "tiny", fault=Fault("positions_offset", 7)), tmp_path)
    assert pair.truth.verdicts == ("consistent", "identical")
    assert pair.truth.effect is not None
    assert pair.truth.effect < 0.01


def test_gradients_are_those_of_the_loss(tmp_path: Path):
    """d loss / d (final norm weight) by finite differences, in float32."""
    from tests.simulator import scenario as building

    scenario = Scenario("x", "Qwen3", "nano", "float32", tokens=7, seed=11, backward="gradients", right="train")
    simulate(scenario, tmp_path)

    def loss(shift: float) -> float:
        built = building.Build(scenario)
        name = "model.layers.0.self_attn.q_norm.weight"
        built.weights[name] = built.weights[name].astype(np.float32) * (1 + 0)
        built.weights[name][3] += shift
        recorder = built.train(built.weights, TrainStyle(), frozenset({"lm_head"}))
        logits = recorder.seen["lm_head"][1][0][0].astype(np.float64)
        picked = logits - logits.max(-1, keepdims=True)
        picked -= np.log(np.exp(picked).sum(-1, keepdims=True))
        return -float(np.mean([picked[row, token] for row, token in enumerate(built.tokens[1:])]))

    step = 1e-2
    slope = (loss(step) - loss(-step)) / (2 * step)
    built = building.Build(scenario)
    kept: dict[str, Any] = {}
    recorder_type = building.Recorder
    original = recorder_type.parameters_grad

    def keep(self: Any, path: str, kind: str, gradients: dict[str, Any], number: int = 0) -> None:
        kept[path] = gradients
        original(self, path, kind, gradients, number)

    recorder_type.parameters_grad = keep
    try:
        built.train(built.weights, TrainStyle(), frozenset())
    finally:
        recorder_type.parameters_grad = original
    assert float(kept["model.layers.0.self_attn.q_norm"]["weight"][3]) == pytest.approx(slope, rel=0.03, abs=1e-6)


def test_the_catalogue_is_wide_and_its_names_and_seeds_are_its_own():
    everything = list(scenarios())
    names = [scenario.name for scenario in everything]
    assert len(set(names)) == len(names)
    assert sum(name.startswith("clean_") for name in names) >= 40
    assert sum(scenario.fault is not None for scenario in everything) >= 80
    held_out = {scenario.name: scenario.seed for scenario in scenarios(1)}
    assert all(held_out[scenario.name] != scenario.seed for scenario in everything)
