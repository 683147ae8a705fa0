"""A scenario, its truth, and the pair of dumps it becomes."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.simulator.backward import record_backward
from tests.simulator.families import FAMILIES, SIZES, Family, Size
from tests.simulator.faults import Fault, acceptable, damage_weights
from tests.simulator.inference_side import NO_FAULT, InferenceModel, Kernels
from tests.simulator.megatron_side import MegatronModel
from tests.simulator.noise import combine, measure, step, ulps
from tests.simulator.parallel import Layout, Ranks
from tests.simulator.precision import Array, Precision
from tests.simulator.recorder import Recorder, statistics
from tests.simulator.train_side import Tape, TrainModel, TrainStyle
from tests.simulator.weights import Character, Weights, make_weights
from tests.simulator.wrapping import radix, records_root, wrapper

PARTNERS = {
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
READ_AT_INPUT = {"attn": "o_proj", "mla_attn": "o_proj", "act_fn": "mlp.down_proj"}


@dataclass(frozen=True)
class Scenario:
    """Everything that decides a pair of dumps. `right` is `inference` or `train` (same code on both sides).

    `right_dtype` is the inference side's where it is another than `dtype`; `high` leaves Mean and Norm out of both sides. `other`
    changes what is fed to the right side: `tokens`, `length`, `shorter` or nothing. `padding` keeps that many padded rows on the
    training side. `micro_batches` > 1 gives the training side further calls with prompts of their own. `backward` is None, `gradients`
    or `placeholders` (FSDP1: parameter gradients are null and come after their layer). `style.wrapping` `megatron` runs the training side
    as Megatron-core does, over the ranks of `layout`; `right_layout` deals the inference side out to ranks. `engine` is `vllm` or
    `sglang`.
    """

    name: str
    family: str = "Qwen2"
    size: str = "tiny"
    dtype: str = "bfloat16"
    right_dtype: str = ""
    high: bool = False
    tokens: int = 12
    seed: int = 0
    character: Character = field(default_factory=Character)
    style: TrainStyle = field(default_factory=TrainStyle)
    kernels: Kernels = field(default_factory=Kernels)
    fault: Fault | None = None
    right: str = "inference"
    right_style: TrainStyle | None = None
    engine: str = "vllm"
    other: str = ""
    padding: int = 0
    micro_batches: int = 1
    backward: str | None = None
    mix: bool = False
    layout: Layout = field(default_factory=Layout)
    right_layout: Layout = field(default_factory=Layout)
    gradient_fault: Fault | None = None


@dataclass(frozen=True)
class Truth:
    """`verdicts` and `modules` are the acceptable answers (modules: most precise first; empty = none expected). `effect` is the
    fault's own relative L2 change at the first of `modules`, measured on the arrays by running the inference side with and without
    it; `noise` is the honest difference of the two sides there; both None where there is no fault. `moved` and `honest` are the same
    two differences as the written statistics show them (uNorm, uExtreme, z as in `noise`). `parameter_visible` says whether
    a weight fault changes any written statistic of its parameter."""

    verdicts: tuple[str, ...]
    modules: tuple[str, ...] = ()
    premises: dict[str, str] = field(default_factory=dict)
    effect: float | None = None
    noise: float | None = None
    moved: dict[str, float] = field(default_factory=dict)
    honest: dict[str, float] = field(default_factory=dict)
    parameter_visible: bool | None = None

    @property
    def clear(self) -> bool:
        """A fault that stands well out of the noise where it happens."""
        return self.effect is not None and self.noise is not None and not self.effect < 5 * max(self.noise, 1e-7)

    @property
    def shown(self) -> bool:
        """Whether the statistics written there move by more than the two sides honestly differ; NaN and Inf always show."""
        if self.effect == float("inf"):
            return True
        moved, honest = ({key: side.get(key, 0.0) for key in ("uNorm", "uExtreme", "z")} for side in (self.moved, self.honest))
        return (
            moved["uNorm"] >= 2 + honest["uNorm"]
            or moved["uExtreme"] >= max(4.0, honest["uExtreme"] + 2)
            or moved["z"] >= max(0.03, 4 * honest["z"])
        )


@dataclass(frozen=True)
class Pair:
    left: Path
    right: Path
    truth: Truth


def simulate(scenario: Scenario, folder: Path | None = None, *, tensors: bool = False) -> Pair:
    """Write both sides below `folder` (a new temporary folder where None), with their tensor files or without, and say what is true of
    them."""
    folder = Path(tempfile.mkdtemp(prefix="simulated-")) if folder is None else folder
    built = Build(scenario)
    left, right, truth = built.run()
    for side, recorder in (("left", left), ("right", right)):
        for rank, one in enumerate(recorder.ranks if isinstance(recorder, Ranks) else [recorder]):
            one.write(folder / side / "step0" / f"rank{rank}", tensors=tensors)
    document: dict[str, Any] = asdict(truth) | {"clear": truth.clear, "shown": truth.shown, "scenario": asdict(scenario)}
    (folder / "truth.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return Pair(folder / "left", folder / "right", truth)


class Build:
    """One scenario being computed."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.family: Family = FAMILIES[scenario.family]
        self.size: Size = SIZES[scenario.size]
        self.precision = Precision(scenario.dtype)
        self.right_precision = Precision(scenario.right_dtype or scenario.dtype)
        self.weights = make_weights(self.family, self.size, self.precision, scenario.seed, scenario.character)
        rng = np.random.default_rng(scenario.seed + 104729)
        self.tokens = rng.integers(1, self.size.vocabulary, size=scenario.tokens)
        if scenario.character.massive:
            self.tokens[0] = 0
        self.rng = rng

    def run(self) -> tuple[Recorder, Recorder, Truth]:
        scenario, fault = self.scenario, self.scenario.fault
        modules = acceptable(fault, self.size, fused=scenario.right != "train") if fault else ()
        watched = frozenset(path for module in modules for path in _watched(module))
        left = self.train(self.weights, scenario.style, watched)
        damaged = self.weights
        if fault and fault.is_weight:
            damaged = damage_weights(self.weights, fault, self.size, self.family, self.precision, scenario.seed)
        if scenario.right == "train":
            right = self.train(damaged, scenario.right_style or scenario.style, watched, scenario.gradient_fault)
            return left, right, self._same_code_truth(modules, left, right)
        right = self._infer(damaged, fault or NO_FAULT, watched)
        return left, right, self._truth(modules, left, right, watched, damaged)

    # -- sides -------------------------------------------------------------------------------------------------------
    def _megatron(self, weights: Weights) -> Recorder:
        def recorder() -> Recorder:
            return Recorder(self.precision, trains=True, mix=False, wrap=wrapper("megatron"), source="/opt/megatron/core/models/gpt.py")

        ranks = Ranks(self.scenario.layout, self.size, recorder, recorder())
        MegatronModel(self.family, self.size, self.precision, weights, ranks).forward(self.tokens, np.arange(self.tokens.size))
        return ranks

    def train(self, weights: Weights, style: TrainStyle, watched: frozenset[str], gradient_fault: Fault | None = None) -> Recorder:
        scenario = self.scenario
        if style.wrapping == "megatron":
            return self._megatron(weights)
        recorder = Recorder(
            self.precision,
            trains=True,
            mix=scenario.mix,
            wrap=wrapper(style.wrapping),
            watched=watched,
            high=scenario.high,
            source=f"/opt/venv/lib/python3.11/site-packages/transformers/models/{self.family.name.lower()}/"
            f"modeling_{self.family.name.lower()}.py",
        )
        model = TrainModel(self.family, self.size, self.precision, weights, recorder, style, records_root(style.wrapping))
        rng = np.random.default_rng(scenario.seed + 15485863)
        for batch in range(scenario.micro_batches):
            tokens = self.tokens if batch == 0 else rng.integers(1, self.size.vocabulary, size=scenario.tokens + batch)
            positions, keep = np.arange(tokens.size), None
            if scenario.padding:
                tokens = np.concatenate([np.zeros(scenario.padding, dtype=tokens.dtype), tokens])
                positions = np.concatenate([np.zeros(scenario.padding, dtype=np.int64), positions])
                keep = (np.arange(tokens.size) >= scenario.padding).astype(np.int64)[None]
            tape = Tape() if scenario.backward else None
            logits = model.forward(tokens[None], positions[None], keep, tape)
            if tape is not None:
                record_backward(
                    model,
                    tape,
                    tokens[None],
                    positions[None],
                    logits,
                    batch,
                    placeholders=scenario.backward == "placeholders",
                    fault=gradient_fault,
                )
        return recorder

    def engine_recorder(self, watched: frozenset[str] = frozenset()) -> Recorder:
        scenario = self.scenario
        return Recorder(
            self.right_precision,
            trains=False,
            mix=scenario.mix,
            wrap=radix if scenario.engine == "sglang" else lambda path, kind: (path, kind),
            watched=watched,
            high=scenario.high,
            source=f"/opt/venv/lib/python3.11/site-packages/{scenario.engine}/models/{self.family.name.lower()}.py",
        )

    def _infer(self, weights: Weights, fault: Fault, watched: frozenset[str]) -> Recorder:
        scenario = self.scenario

        def recorder() -> Recorder:
            return self.engine_recorder(watched)

        layout = scenario.right_layout
        unreduced = fault.kind.startswith("unreduced")
        runs: list[Recorder] = []
        for rank in range(layout.tensor if unreduced else 1):  # where nothing is added up, each rank goes on by itself
            runs.append(recorder() if layout.ranks == 1 else Ranks(layout, self.size, recorder, recorder()))
            self._engine(runs[-1], weights, fault, rank)
        if unreduced:
            whole = runs[0]
            assert isinstance(whole, Ranks)
            every = [run.ranks for run in runs if isinstance(run, Ranks)]
            whole.ranks = [every[rank % layout.tensor][rank] for rank in range(layout.ranks)]
        return runs[0]

    def _engine(self, recorder: Recorder, weights: Weights, fault: Fault, rank: int) -> None:
        scenario = self.scenario
        tokens = self.tokens
        if self.right_precision != self.precision:
            weights = {name: self.right_precision.round(values) for name, values in weights.items()}
        if scenario.other == "tokens":
            tokens = self.rng.permutation(self.size.vocabulary)[: tokens.size] if tokens.size <= self.size.vocabulary else tokens[::-1]
        elif scenario.other == "length":
            tokens = np.concatenate([tokens, tokens[:3]])
        elif scenario.other == "shorter":
            tokens = tokens[:-2]
        positions = np.arange(tokens.size)
        if fault.kind == "positions_offset":
            positions = positions + int(fault.size)
        elif fault.kind == "positions_wrong":
            positions = wrong_positions(positions, int(fault.size))
        with np.errstate(invalid="ignore", over="ignore"):
            ranks = scenario.right_layout.tensor
            model = InferenceModel(self.family, self.size, self.right_precision, weights, recorder, scenario.kernels, fault, ranks, rank)
            model.forward(tokens, positions)

    # -- truth -------------------------------------------------------------------------------------------------------
    def _truth(self, modules: tuple[str, ...], left: Recorder, right: Recorder, watched: frozenset[str], damaged: Weights) -> Truth:
        scenario, fault = self.scenario, self.scenario.fault
        if scenario.other == "tokens":
            return Truth(("not_comparable",), premises={"tokens": "failed"})
        if scenario.other or scenario.padding:
            return Truth(("not_comparable",), premises={"length": "failed"})
        if fault is None:
            return Truth(("consistent", "identical"))
        clean = self._infer(self.weights, NO_FAULT, watched)
        if scenario.style.wrapping == "megatron":  # whose own tensors lie in another order: honest noise is that of the plain training side
            left = self.train(self.weights, TrainStyle(), watched)
        place = next((module for module in modules if _values(right, module) and _values(left, module)), modules[0])
        effect, noise = _effect(place, clean, right), _effect(place, left, clean)
        moved, honest = self._shown(place, clean, right), self._shown(place, left, clean)
        premises = {"positions": "failed"} if self._positions_seen(fault) else {}
        if fault.kind == "positions_offset":
            return Truth(("consistent", "identical"), (), premises, effect, noise, moved, honest)
        visible = self._parameter_visible(damaged) if fault.is_weight else None
        truth = Truth(("diverged",), modules, premises, effect, noise, moved, honest, visible)
        if visible or (truth.clear and truth.shown):
            return truth
        return replace(truth, verdicts=("diverged", "consistent"))

    def _positions_seen(self, fault: Fault) -> bool:
        """Whether Max and Min of the positions, all that is written of integers, tell that they are others."""
        if fault.kind == "positions_wrong":
            wrong = wrong_positions(np.arange(self.scenario.tokens), int(fault.size))
            return (int(wrong.min()), int(wrong.max())) != (0, self.scenario.tokens - 1)
        return fault.kind == "positions_offset"

    def _shown(self, module: str, one: Recorder, other: Recorder) -> dict[str, float]:
        """Largest uNorm, uExtreme and z between the statistics of a module's outputs on two sides."""
        worst: dict[str, float] = {}
        for a, b in zip(_values(one, module) or [], _values(other, module) or [], strict=False):
            leaves = [self._leaf(values) for values in (a, b)]
            if all(np.isfinite(leaf[key]) for leaf in leaves for key in ("Max", "Min", "Mean", "Norm")):
                for key, value in measure(leaves[0], leaves[1]).items():
                    worst[key] = max(worst.get(key, 0.0), value)
        return worst

    def _same_code_truth(self, modules: tuple[str, ...], left: Recorder, right: Recorder) -> Truth:
        scenario = self.scenario
        if scenario.gradient_fault:
            layer = f"model.layers.{scenario.gradient_fault.first_layer}"
            return Truth(("diverged",), (f"{layer}.mlp.down_proj", f"{layer}.mlp", layer))
        if scenario.fault is None:
            same_names = scenario.right_style is None
            return Truth(("identical",) if same_names else ("identical", "consistent"))
        damaged = damage_weights(self.weights, scenario.fault, self.size, self.family, self.precision, scenario.seed)
        visible = self._parameter_visible(damaged, fused=False)
        moved = self._shown(modules[0], left, right)
        verdicts = ("diverged",) if visible else ("diverged", "consistent")
        return Truth(verdicts, modules, {}, _effect(modules[0], left, right), 0.0, moved, parameter_visible=visible)

    def _parameter_visible(self, damaged: Weights, *, fused: bool = True) -> bool:
        """Whether written statistics of a parameter differ by more than rounding can: exactly where it stands alone, beyond what the
        parts' own rounding allows where one side holds it fused."""
        changed = [name for name in self.weights if damaged.get(name) is not self.weights[name]]
        if any(name not in damaged for name in changed):
            return True
        for name in changed:
            path, kind = name.rsplit(".", 1)
            parent, _, leaf = path.rpartition(".")
            group = next((parts for parts in PARTNERS.values() if fused and leaf in parts), None)
            if group is None:
                if self._leaf(self.weights[name]) != self._leaf(damaged[name]):
                    return True
                continue
            parts = [self._leaf(self.weights[f"{parent}.{part}.{kind}"]) for part in group]
            whole = self._leaf(np.concatenate([damaged[f"{parent}.{part}.{kind}"] for part in group]))
            expected = combine(parts)
            slack = step(max(abs(part["Mean"]) for part in [*parts, whole]), whole["dtype"])
            norm_limit = 4.0 if self.precision.name == "float32" else 1.2
            if (expected["Max"], expected["Min"]) != (whole["Max"], whole["Min"]) or abs(expected["Mean"] - whole["Mean"]) > slack:
                return True
            if ulps(expected["Norm"], whole["Norm"], whole["dtype"]) > norm_limit:
                return True
        return False

    def _leaf(self, values: Array) -> dict[str, Any]:
        shape = {"dtype": self.right_precision.torch_name, "shape": list(values.shape), "n": values.size}
        return {**statistics(values, self.right_precision), **shape}


def wrong_positions(positions: Array, kind: int) -> Array:
    """Positions that no constant offset explains: 0 doubled, 1 reversed, 2 restarted half way, 3 all zero."""
    if kind == 0:
        return positions * 2
    if kind == 1:
        return positions[::-1].copy()
    if kind == 2:
        return np.where(positions < positions.size // 2, positions, positions - positions.size // 2)
    return np.zeros_like(positions)


def _watched(module: str) -> list[str]:
    """The module and its partners on the training side."""
    parent, _, leaf = module.rpartition(".")
    watched = [module] + [f"{parent}.{part}" for part in PARTNERS.get(leaf, ())]
    if leaf in READ_AT_INPUT:
        watched.append(f"{parent}.{READ_AT_INPUT[leaf].split('.')[-1]}")
    return watched


def _values(recorder: Recorder, module: str) -> list[Array] | None:
    """Output arrays of a module as flat [T, …], whichever side they come from."""
    parent, _, leaf = module.rpartition(".")
    if leaf in PARTNERS and module not in recorder.seen:
        parts = [recorder.seen.get(f"{parent}.{part}") for part in PARTNERS[leaf]]
        if any(part is None for part in parts):
            return None
        return [np.concatenate([part[1][0].reshape(-1, part[1][0].shape[-1]) for part in parts if part], axis=-1)]
    if leaf in READ_AT_INPUT and (recorder.trains or module not in recorder.seen):
        seen = recorder.seen.get(f"{parent}.{READ_AT_INPUT[leaf].split('.')[-1]}")
        return None if seen is None else [seen[0][0].reshape(-1, seen[0][0].shape[-1])]
    seen = recorder.seen.get(module)
    if seen is None:
        return None
    return [value.reshape(-1, value.shape[-1]) for value in seen[1] if isinstance(value, np.ndarray)]


def _effect(module: str, one: Recorder, other: Recorder) -> float | None:
    """Largest relative L2 difference of the outputs that both have; NaN or Inf on one side alone is infinitely large."""
    left, right = _values(one, module), _values(other, module)
    if not left or not right:
        return None
    worst = 0.0
    for a, b in zip(left, right, strict=False):
        if a.shape != b.shape:
            return None
        if not np.isfinite(b).all():
            return float("inf")
        size = float(np.linalg.norm(a.astype(np.float64)))
        worst = max(worst, float(np.linalg.norm(a.astype(np.float64) - b.astype(np.float64))) / (size or 1.0))
    return worst
