"""The reader against a real dump: every tensor file of it has the statistics that its dump.json says."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare.engine.tensors import open_tensor, statistics

CORPUS = Path(__file__).parents[2] / "data" / "corpus" / "q2_infer_tensor.zip"
# The dumper computes in float32 and rounds to the tensor's own type: half a unit in the last place, at most doubled by a carry.
ROUNDING = {"torch.bfloat16": 2.0**-8, "torch.float32": 2.0**-23}
SUMMING = 2e-6  # of float32 sums over a few thousand elements


def leaves(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "data_name" in value:
            yield value
        else:
            for inner in value.values():
                yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)


def test_every_tensor_file_has_the_statistics_of_its_dump():
    checked = 0
    with zipfile.ZipFile(CORPUS) as archive:
        for leaf in leaves(json.loads(archive.read("step0/rank0/dump.json"))["data"]):
            place = f"step0/rank0/dump_tensor_data/{leaf['data_name']}"
            with archive.open(place) as stream:
                tensor = open_tensor(stream, place)
            assert f"torch.{tensor.description.dtype}" == leaf["dtype"]
            assert list(tensor.description.shape) == leaf["shape"]
            found = statistics(tensor)
            assert (found.max, found.min) == (leaf["Max"], leaf["Min"]), place
            rounding = ROUNDING.get(leaf["dtype"])
            if rounding is not None:
                rms = found.norm / math.sqrt(tensor.description.size)
                assert abs(found.mean - leaf["Mean"]) <= rounding * abs(found.mean) + SUMMING * rms, place
                assert abs(found.norm - leaf["Norm"]) <= (rounding + SUMMING) * found.norm, place
            checked += 1
    assert checked == 186  # as many files as the archive holds
