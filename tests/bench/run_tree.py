"""Writes an archive in the shape of an RL run: stages × steps × ranks of small statistics dumps. Numbers are drawn, the shape is real."""

from __future__ import annotations

import json
import random
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAGES = (
    "actor_generate_sequences",
    "reference_compute_log_prob",
    "critic_compute_values",
    "actor_compute_log_prob",
    "critic_update",
    "actor_update",
)


@dataclass(frozen=True)
class RunTree:
    """How much there is. The ranks of a step hold the same model; ``layers`` has two linears and a norm each."""

    stages: int = 6
    steps: int = 20
    ranks: int = 8
    layers: int = 4

    @property
    def parts(self) -> int:
        return self.stages * self.steps


def write_run_tree(archive: Path, tree: RunTree, drifted: tuple[str, int] | None = None, loop: Path | None = None) -> Path:
    """``drifted``: the stage and step in which every layer from the second on differs by two percent. ``loop``: an archive of a real run,
    whose key data and configuration stand beside the dumps.
    """
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        if loop is not None:
            _copy_loop(loop, out)
        for stage in STAGES[: tree.stages]:
            for step in range(tree.steps):
                factor = 1.02 if drifted == (stage, step) else 1.0
                for rank in range(tree.ranks):
                    dump, construct = _dump(tree, step, factor)
                    out.writestr(f"{stage}/step{step}/rank{rank}/dump.json", dump)
                    out.writestr(f"{stage}/step{step}/rank{rank}/construct.json", construct)
    return archive


def _copy_loop(run: Path, out: zipfile.ZipFile) -> None:
    with zipfile.ZipFile(run) as held:
        for name in held.namelist():
            if name.startswith("data/") or name == "configurations.json":
                out.writestr(name, held.read(name))


def _dump(tree: RunTree, step: int, factor: float) -> tuple[str, str]:
    draw = random.Random(step)  # noqa: S311  the same numbers on both sides
    data: dict[str, Any] = {}
    construct: dict[str, str | None] = {}
    stream = _tensor(draw, [1, 128, 64])
    for layer in range(tree.layers):
        above = f"Module.model.layers.{layer}.DecoderLayer.forward.0"
        entered = stream
        for name, kind, shape in (
            ("input_layernorm", "RMSNorm", [64]),
            ("mlp.up_proj", "Linear", [256, 64]),
            ("mlp.down_proj", "Linear", [64, 256]),
        ):
            record = f"Module.model.layers.{layer}.{name}.{kind}.forward.0"
            made = _tensor(draw, [1, 128, shape[0]], factor if layer else 1.0)
            weight = {"weight": _tensor(draw, shape)}
            data[record] = {"input_args": [stream], "input_kwargs": {}, "output": [made], "parameters": weight}
            construct[record] = above
            stream = made
        data[above] = {"input_args": [entered], "input_kwargs": {}, "output": [stream], "parameters": {}}
        construct[above] = None
    head = {"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None, "data": data}
    return json.dumps(head), json.dumps(construct)


def _tensor(draw: random.Random, shape: list[int], factor: float = 1.0) -> dict[str, Any]:
    size = 1
    for extent in shape:
        size *= extent
    norm = size**0.5 * (0.9 + draw.random() / 5) * factor
    return {
        "type": "torch.Tensor",
        "dtype": "torch.bfloat16",
        "shape": shape,
        "Max": (3 + draw.random()) * factor,
        "Min": -(3 + draw.random()) * factor,
        "Mean": draw.gauss(0, 0.01) * factor,
        "Norm": norm,
        "requires_grad": False,
    }
