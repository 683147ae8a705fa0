"""A model cut in pipeline stages: what the first stage did wrong comes first, however early in its own dump the second shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine import build

LAYERS = ((0, 1, 2), (3,))  # by rank: many pairs on the first, few on the second
PARTS = (".mlp.gate_proj.Linear", ".mlp.down_proj.Linear", ".DecoderLayer")


def run(root: Path, faulty: tuple[int, str] | None = None, *, backward: bool = False) -> Path:
    """Every rank names its layers by their number in the whole model. From the faulty module on, forward or backward, what is put out is a
    quarter larger.
    """
    forward = [("forward", layer, part) for layers in LAYERS for layer in layers for part in PARTS]
    order = [*forward, *(("backward", layer, part) for _, layer, part in reversed(forward))]
    at = len(order) if faulty is None else order.index(("backward" if backward else "forward", *faulty))
    for rank, layers in enumerate(LAYERS):
        records = {
            f"Module.model.layers.{layer}{part}.{way}.0": build.call(
                build.tensor(10.0 if n > at else 8.0), output=[build.tensor(10.0 if n >= at else 8.0)]
            )
            for n, (way, layer, part) in enumerate(order)
            if layer in layers
        }
        build.write(root / "step0" / f"rank{rank}", records)
    return root


def first(left: Path, right: Path) -> JsonObject:
    document: JsonObject = compare_paths([left], [right], Options()).document
    assert document["verdict"] == "diverged"
    assert document["first_difference"]["rank"] == document["first_divergence"]["rank"]
    return {name: document["first_divergence"][name] for name in ("module", "rank")}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_fault_in_the_first_pipeline_stage_is_not_looked_for_in_the_second(tmp_path: Path, swapped: bool) -> None:
    sides = [run(tmp_path / "left"), run(tmp_path / "right", (2, ".mlp.down_proj.Linear"))]
    assert first(*(reversed(sides) if swapped else sides)) == {"module": "model.layers.2.mlp.down_proj", "rank": 0}


def test_a_gradient_that_the_last_pipeline_stage_got_wrong_is_not_looked_for_in_the_first(tmp_path: Path) -> None:
    sides = run(tmp_path / "left"), run(tmp_path / "right", (3, ".mlp.gate_proj.Linear"), backward=True)
    assert first(*sides) == {"module": "model.layers.3.mlp.gate_proj", "rank": 1}
