"""A mixture of experts in both conventions: routing by the best few of a softmax, weights that add up to one, an expert for everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.simulator.precision import Array

if TYPE_CHECKING:
    from tests.simulator.inference_side import InferenceModel
    from tests.simulator.train_side import TrainModel


def silu(values: Array) -> Array:
    return (values / (1.0 + np.exp(-values))).astype(np.float32)


def route(logits: Array, chosen: int, *, offset: int = 0, normalise: bool = True) -> tuple[Array, Array]:
    """(experts, weights), both [T, chosen], of router logits [T, E]. ``offset`` > 0 skips that many of the best."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)
    order = np.argsort(-shares, axis=-1, kind="stable")[:, offset : offset + chosen]
    weights = np.take_along_axis(shares, order, axis=-1)
    return order, (weights / weights.sum(axis=-1, keepdims=True) if normalise else weights).astype(np.float32)


def train_block(model: TrainModel, path: str, normed: Array) -> Array:
    """[B, S, H] → [B, S, H], as transformers runs it: one expert after the other, each for its tokens."""
    rec, p, family, weights = model.recorder, model.precision, model.family, model.weights
    with rec.module(path, family.class_of("SparseMoeBlock"), [normed]) as block:
        flat = normed.reshape(-1, normed.shape[-1])
        name = f"{path}.gate"
        router = "Linear" if family.listed else family.class_of("TopKRouter")
        with rec.module(name, router, [flat], parameters={"weight": weights[f"{name}.weight"]}) as call:
            logits = p.round(flat @ weights[f"{name}.weight"].T)
            experts, shares = route(logits, family.chosen)
            shares = p.round(shares)
            call.output = [logits] if family.listed else [logits, shares, experts]
        stacked = {part: weights[f"{path}.experts.{part}"] for part in ("gate_up_proj", "down_proj")}
        total = np.zeros_like(flat)
        if family.listed:
            for expert in range(family.experts):
                total = _run_expert(model, f"{path}.experts.{expert}", stacked, expert, flat, experts, shares, total)
        else:
            kind = family.class_of("Experts")
            with rec.module(f"{path}.experts", kind, [flat, experts, shares], parameters=stacked) as call:
                for expert in range(family.experts):
                    total = _run_expert(model, "", stacked, expert, flat, experts, shares, total)
                call.output = [total]
        if family.shared:
            total = p.round(total + _shared(model, f"{path}.shared_experts", flat))
        output = total.reshape(normed.shape)
        block.output = [output]
    return output


def _run_expert(
    model: TrainModel, path: str, stacked: dict[str, Array], expert: int, flat: Array, experts: Array, shares: Array, total: Array
) -> Array:
    """``total`` with what one expert adds for its tokens; recorded under ``path`` where experts are modules."""
    rec, p = model.recorder, model.precision
    rows, column = np.nonzero(experts == expert)
    if not len(rows):
        return total
    taken, (gate_weight, up_weight) = flat[rows], np.split(stacked["gate_up_proj"][expert], 2)
    down_weight = stacked["down_proj"][expert]

    def linear(part: str, values: Array, weight: Array) -> Array:
        made = p.round(values @ weight.T)
        if path:
            with rec.module(f"{path}.{part}", "Linear", [values], parameters={"weight": weight}) as call:
                call.output = [made]
        return made

    def run() -> Array:
        gate, up = linear("gate_proj", taken, gate_weight), linear("up_proj", taken, up_weight)
        return linear("down_proj", p.round(p.round(silu(gate)) * up), down_weight)

    if path:
        with rec.module(path, model.family.class_of("MLP"), [taken]) as call:
            made = run()
            call.output = [made]
    else:
        made = run()
    summed = total.copy()
    np.add.at(summed, rows, p.round(made * shares[rows, column][:, None]))
    return p.round(summed)


def _shared(model: TrainModel, path: str, flat: Array) -> Array:
    with model.recorder.module(path, model.family.class_of("MLP"), [flat]) as call:
        gate, up = model.linear(f"{path}.gate_proj", flat), model.linear(f"{path}.up_proj", flat)
        with model.recorder.module(f"{path}.act_fn", model.family.activation_class, [gate]) as act:
            active = model.precision.round(silu(gate))
            act.output = [active]
        output = model.linear(f"{path}.down_proj", model.precision.round(active * up))
        call.output = [output]
    return output


def engine_block(model: InferenceModel, layer: int, normed: Array) -> Array:
    """[T, H] → [T, H], as an engine runs it: one kernel for all experts, summed in float32 and rounded once."""
    rec, p, family, weights, fault = model.recorder, model.precision, model.family, model.weights, model.fault
    path = f"model.layers.{layer}.mlp"
    with rec.module(path, family.class_of("SparseMoeBlock"), [normed]) as block:
        shared = _engine_shared(model, layer, normed) if family.shared else None
        name = f"{path}.gate"
        with rec.module(name, "ReplicatedLinear", [normed], parameters={"weight": weights[f"{name}.weight"]}) as call:
            logits = model.stain(p.round(model.product(normed, weights[f"{name}.weight"])), layer, "mlp.gate")
            call.output = [logits, None]
        stacked = {"w13_weight": weights[f"{path}.experts.gate_up_proj"], "w2_weight": weights[f"{path}.experts.down_proj"]}
        kwargs = {"hidden_states": normed, "router_logits": logits}
        with rec.module(f"{path}.experts", "FusedMoE", [], kwargs, parameters=stacked) as call:
            offset, normalise = int(fault.hits("routing_shifted", layer)), not fault.hits("routing_unnormalised", layer)
            experts, shares = route(logits, family.chosen, offset=offset, normalise=normalise)
            total = np.zeros_like(normed)
            for expert in range(family.experts):
                rows, column = np.nonzero(experts == expert)
                gate, up = np.split(normed[rows] @ stacked["w13_weight"][expert].T, 2, axis=-1)
                active = p.round(silu(gate) * up)
                made = p.round(active @ stacked["w2_weight"][expert].T)
                np.add.at(total, rows, made * shares[rows, column][:, None])
            total = model.stain(p.round(total), layer, "mlp.experts")
            call.output = [total]
        if shared is not None and not fault.hits("shared_skipped", layer):
            total = p.round(total + shared)
        block.output = [total]
    return total


def _engine_shared(model: InferenceModel, layer: int, normed: Array) -> Array:
    rec, p = model.recorder, model.precision
    path, part = f"model.layers.{layer}.mlp.shared_experts", "mlp.shared_experts"
    with rec.module(path, model.family.class_of("MLP"), [normed]) as call:
        names = [f"{path}.gate_proj", f"{path}.up_proj"]
        fused = model.linear(f"{path}.gate_up_proj", "MergedColumnParallelLinear", names, normed, layer, f"{part}.gate_up_proj")
        with rec.module(f"{path}.act_fn", "SiluAndMul", [fused]) as act:
            gate, up = np.split(fused, 2, axis=-1)
            product = p.round(silu(gate) * up)
            act.output = [product]
        names = [f"{path}.down_proj"]
        output = model.linear(names[0], "RowParallelLinear", names, product, layer, f"{part}.down_proj", row=True)
        call.output = [output]
    return output
