"""The metrics against msprobe's own columns and against torch's figures for known pairs."""

from __future__ import annotations

import ast
import csv
import math
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.diagnose.case import Case
from compare.engine.measure.elements.compare import compared
from compare.engine.measure.elements.layout import Side, best, layouts
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from compare.engine.tensors import open_tensor

DATA = Path(__file__).parents[3] / "data"
ORACLE = DATA / "oracle"
SINGLE = 2e-7  # msprobe divides in float32


def rows(name: str) -> list[dict[str, str]]:
    with (ORACLE / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_msprobes_own_columns_come_out_of_its_tensor_files() -> None:
    checked = 0
    with zipfile.ZipFile(ORACLE / "pert1_tensor.zip") as files:
        for row in rows("pert1_tensor.compare.csv"):
            names = ast.literal_eval(row["Data_name"])
            ends = []
            for side, name in zip(("npu", "bench"), names, strict=True):
                with files.open(f"{side}/{name}") as stream:
                    ends.append(Side([[open_tensor(stream, name)]]))
            layout = best(layouts(*ends))
            assert layout is not None
            found = compared(layout)
            assert found.cosine == pytest.approx(float(row["Cosine"]), abs=5.1e-7), names
            assert found.euclidean == pytest.approx(float(row["EucDist"]), rel=SINGLE, abs=1e-12), names
            assert found.largest == pytest.approx(float(row["MaxAbsErr"]), rel=SINGLE, abs=1e-12), names
            assert found.largest_relative == pytest.approx(float(row["MaxRelativeErr"]), rel=SINGLE, abs=1e-12), names
            assert found.share(found.within[0]) == pytest.approx(float(row["One Thousandth Err Ratio"]), abs=1e-12), names
            assert found.share(found.within[1]) == pytest.approx(float(row["Five Thousandths Err Ratio"]), abs=1e-12), names
            checked += 1
    assert checked > 60


@cache
def case_of(left: str, right: str) -> Case:
    comparison = compare_paths([DATA / "corpus" / f"{left}.zip"], [DATA / "corpus" / f"{right}.zip"], Options())
    verdict = comparison.parts[0][1]
    assert verdict is not None
    return verdict.cases[0]


# The label of an identity → the quantity that both sides hold, n = its layer.
QUANTITIES = {
    r"embed_tokens\.out": "stream.0",
    r"layers\.(\d+)\.input_layernorm\.out": "attention_input.{n}",
    r"layers\.(\d+)\.qkv_proj\.out .*": "query_key_value.{n}",
    r"layers\.(\d+)\.attn\.out .*": "context.{n}",
    r"layers\.(\d+)\.(?:o_proj|self_attn)\.out": "attention_output.{n}",
    r"layers\.(\d+)\.post_attn residual .*": "middle.{n}",
    r"layers\.(\d+)\.post_attention_layernorm\.out": "mlp_input.{n}",
    r"layers\.(\d+)\.gate_up_proj\.out .*": "gate_up.{n}",
    r"layers\.(\d+)\.act_fn\.out .*": "activated.{n}",
    r"layers\.(\d+)\.(?:down_proj|mlp)\.out": "mlp_output.{n}",
    r"layers\.(\d+)\.residual_in .*": "stream.{n}",
    r"norm\.out": "final_hidden",
}
PAIRS = {
    "clean_tensor": ("q2_train_tensor", "q2_infer_tensor"),
    "bug_rope_tensor": ("q2_train_tensor", "q2_infer_rope_tensor"),
    "bug_eps_tensor": ("q2_train_tensor", "q2_infer_eps_tensor"),
    "bug_down2_tensor": ("q2_train_tensor", "q2_infer_down2_tensor"),
    "bug_nan3_tensor": ("q2_train_tensor", "q2_infer_nan3_tensor"),
    "padded": ("q2_train_padded_tensor", "q2_infer_packed_tensor"),
}


def quantity_of(label: str) -> str | None:
    for pattern, quantity in QUANTITIES.items():
        found = re.fullmatch(pattern, label)
        if found:
            return quantity.format(n=found[1]) if found.groups() else quantity
    return None


@pytest.mark.parametrize("truth", PAIRS)
def test_every_identity_has_the_figures_that_torch_gives_it(truth: str) -> None:
    """Through the whole engine: archive, pairing, layout (fused parts, left padding), one pass."""
    case = case_of(*PAIRS[truth])
    tensors = case.differences.tensors
    assert tensors is not None
    checked = 0
    for row in rows(f"tensor_truth.{truth}.csv"):
        quantity = quantity_of(row["label"])
        if quantity is None:
            # the sum of two outputs is compared as the stream of the next layer; the last row of the logits has no partner of its size
            assert "layer.out" in row["label"] or "logits" in row["label"], row["label"]
            continue
        pair = case.representative(0, quantity)
        assert pair is not None, quantity
        place = int(tensors.row[pair])
        assert place >= 0, quantity
        check(tensors, place, row)
        checked += 1
    assert checked >= 45


def check(tensors: Any, place: int, row: dict[str, str]) -> None:
    count = int(tensors.count[place])
    assert count == math.prod(ast.literal_eval(row["shape"]))
    assert int(tensors.nan[place].sum()) == int(row["nan"]) or int(row["nan"]) > 0
    assert round(int(tensors.identical[place]) / count, 4) == pytest.approx(float(row["eq_frac"]), abs=2e-4)
    if int(row["nan"]):
        assert tensors.misplaced[place] > 0
        return
    assert bool(tensors.equal[place]) == (row["bit_equal"] == "True")
    assert tensors.largest[place] == float(row["max_abs"])
    assert tensors.relative_l2[place] == pytest.approx(float(row["rel_l2"]), rel=1e-6, abs=1e-9)
    assert tensors.cosine[place] == pytest.approx(float(row["cos"]), abs=1e-6)


def test_shards_over_two_ranks_are_the_fused_tensor_of_one() -> None:
    """q, k and v lie side by side on each of the two ranks: their parts are put together again."""
    case = case_of("q2_train_tensor", "q2_infer_tp2_tensor")
    tensors = case.differences.tensors
    assert tensors is not None
    for quantity in ("query_key_value.0", "gate_up.0"):
        pair = case.representative(0, quantity)
        assert pair is not None
        assert len(case.pairs.slots[1][pair]) == 2
        assert tensors.relative_l2[tensors.row[pair]] < 0.01
    parameters = np.flatnonzero((case.pairs.group == 1) & tensors.measured)
    assert len(parameters) == 30
    assert tensors.equal[tensors.row[parameters]].all()
