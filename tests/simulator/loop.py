"""The two sides of one loop, step by step: a trainer that counts updates and an engine that counts forward passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.simulator.faults import damage_weights
from tests.simulator.inference_side import NO_FAULT, InferenceModel
from tests.simulator.parallel import Ranks
from tests.simulator.precision import Array
from tests.simulator.recorder import Recorder
from tests.simulator.scenario import Build, Scenario


@dataclass(frozen=True)
class Request:
    """One sequence through the engine: `widths` are the tokens of its forward passes, in order (chunks of the prompt, then 1 each)."""

    tokens: Array
    widths: tuple[int, ...]


def prompt(seed: int, length: int = 12) -> Array:
    return np.random.default_rng(seed).integers(1, 256, size=length)


def write_training(scenario: Scenario, folder: Path, batches: Sequence[Array], *, first: int = 0, tensors: bool = False) -> Path:
    """One step a batch, each of one forward call over all of its tokens."""
    for step, tokens in enumerate(batches, first):
        build = Build(scenario)
        build.tokens = tokens
        build.train(build.weights, scenario.style, frozenset()).write(folder / f"step{step}" / "rank0", tensors=tensors)
    return folder


def write_engine(
    scenario: Scenario, folder: Path, requests: Sequence[Request], *, apart: bool = True, first: int = 0, tensors: bool = False
) -> Path:
    """One request after the other. `apart`: every forward pass is a step of its own, as an engine counts; else all are calls in one
    dump.json, as a trainer's range of tokens writes them."""
    for step, recorder in enumerate(_recorded(scenario, requests, apart), first):
        for rank, one in enumerate(recorder.ranks if isinstance(recorder, Ranks) else [recorder]):
            one.write(folder / f"step{step}" / f"rank{rank}", tensors=tensors)
    return folder


def _recorded(scenario: Scenario, requests: Sequence[Request], apart: bool) -> Iterator[Recorder]:
    build = Build(scenario)
    fault, weights, precision = scenario.fault or NO_FAULT, build.weights, build.right_precision
    if fault.is_weight:
        weights = damage_weights(weights, fault, build.size, build.family, build.precision, scenario.seed)
    layout = scenario.right_layout

    def fresh() -> Recorder:
        one = build.engine_recorder()
        return one if layout.ranks == 1 else Ranks(layout, build.size, build.engine_recorder, one)

    recorder = fresh()
    for request in requests:
        cache: dict[int, tuple[Array, Array]] = {}
        begin = 0
        for width in request.widths:
            model = InferenceModel(build.family, build.size, precision, weights, recorder, scenario.kernels, fault, layout.tensor)
            model.cache = cache
            model.forward(request.tokens[begin : begin + width], np.arange(begin, begin + width))
            begin += width
            if apart:
                yield recorder
                recorder = fresh()
    if not apart:
        yield recorder
