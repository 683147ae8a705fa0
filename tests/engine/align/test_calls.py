"""API calls: named ``<module>/<Prefix.api.N>``, matched in sequence within their module where both sides run the same code."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from compare.engine.align.nodes import NodeKind
from compare.engine.diagnose.case import Case, module_name
from tests.engine.build import call, case, compare, part, tensor


def names(found: Case) -> dict[str, tuple[list[str], list[str]]]:
    """Name of every API node → its records on both sides."""
    nodes = found.nodes
    return {
        module_name(found, node): (found.records_of(node, 0), found.records_of(node, 1))
        for node in range(len(nodes))
        if nodes.kind[node] == NodeKind.API and nodes.direction[node] == 0
    }


def inside(module: str, *apis: str, counters: Counter[str] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """API calls within one module call, and the construct.json that says so."""
    counters = Counter() if counters is None else counters
    records: dict[str, Any] = {}
    construct: dict[str, Any] = {module: None}
    for api in apis:
        name = f"{api}.{counters[api]}.forward"
        counters[api] += 1
        records[name] = call(tensor())
        construct[name] = module
    records[module] = call(tensor())
    return records, construct


def test_a_call_is_named_by_its_module_and_its_number_within_it(tmp_path: Path) -> None:
    counters: Counter[str] = Counter()
    first, first_parents = inside(
        "Module.model.layers.0.mlp.MLP.forward.0", "Functional.linear", "Tensor.__mul__", "Functional.linear", counters=counters
    )
    second, second_parents = inside("Module.model.layers.1.mlp.MLP.forward.0", "Functional.linear", counters=counters)
    records, construct = first | second, first_parents | second_parents
    found = names(case(tmp_path, records, records, left_construct=construct, right_construct=construct))
    assert set(found) == {
        "model.layers.0.mlp/Functional.linear.0",
        "model.layers.0.mlp/Tensor.__mul__.0",
        "model.layers.0.mlp/Functional.linear.1",
        "model.layers.1.mlp/Functional.linear.0",
    }
    assert found["model.layers.1.mlp/Functional.linear.0"] == (["Functional.linear.2.forward"], ["Functional.linear.2.forward"])


def test_a_call_without_a_module_has_its_bare_name(tmp_path: Path) -> None:
    records = {f"Functional.linear.{n}.forward": call(tensor()) for n in range(2)}
    assert set(names(case(tmp_path, records, records))) == {"Functional.linear.0", "Functional.linear.1"}


def test_inserted_calls_leave_every_other_with_its_own_partner(tmp_path: Path) -> None:
    module = "Module.model.block.Block.forward.0"
    left, left_parents = inside(module, "Functional.linear", "Tensor.__add__", "Functional.silu", "Functional.linear")
    right, right_parents = inside(
        module, "Functional.linear", "Tensor.to", "Tensor.__add__", "Functional.silu", "Tensor.contiguous", "Functional.linear"
    )
    found = names(case(tmp_path, left, right, left_construct=left_parents, right_construct=right_parents))
    alone = {name: sides for name, sides in found.items() if not sides[0] or not sides[1]}
    assert set(alone) == {"model.block/Tensor.to.0", "model.block/Tensor.contiguous.0"}
    assert found["model.block/Functional.linear.1"] == (["Functional.linear.1.forward"], ["Functional.linear.1.forward"])


def test_two_extra_calls_in_a_real_dump_cost_two_rows() -> None:
    """Two more calls in layer 1 shift every later counter of the process; only those two are without a partner."""
    found = names(part("q2b_shim_clean_mix", "q2b_shim_extraops_mix").cases[0])
    assert [name for name, (left, right) in found.items() if not right] == []
    extra = [name for name, (left, right) in found.items() if not left]
    assert len(extra) == 2
    assert all(name.startswith("model.layers.1") for name in extra)


def test_partners_are_calls_of_the_same_api_in_the_same_module() -> None:
    found = names(part("q2b_shim_clean_mix", "q2b_shim_extraops_mix").cases[0])
    for left, right in found.values():
        apis = {re.sub(r"\.\d+\.forward$", "", record) for record in [*left, *right]}
        assert len(apis) == 1


def test_every_name_is_unique_within_its_call() -> None:
    for pair in (("q2_train_mix", "q2_infer_mix"), ("q2b_shim_clean_mix", "q2b_shim_clean_mix")):
        found = part(*pair).cases[0]
        nodes = found.nodes
        keys = Counter(
            (
                module_name(found, n),
                int(nodes.call[n]),
                int(nodes.direction[n]),
                bool(nodes.recompute[n]),
                int(nodes.parent[n]),
                len(nodes.records[0][n]) > 0,
            )
            for n in range(len(nodes))
        )
        assert [key for key, count in keys.items() if count > 1 and "/" in key[0]] == []


def test_calls_of_different_code_are_not_matched_by_their_numbers() -> None:
    """Hugging Face and the engine both call linear; the n-th of one is not the n-th of the other."""
    found = names(part("q2_train_mix", "q2_infer_mix").cases[0])
    assert not [name for name, (left, right) in found.items() if left and right]


def test_a_divergence_in_a_call_is_named_by_the_call(tmp_path: Path) -> None:
    """Inputs of the second linear agree, its output does not."""

    def records(norm: float) -> dict[str, Any]:
        return {
            "Functional.linear.0.forward": call(tensor()),
            "Functional.linear.1.forward": call(tensor(), output=[tensor(norm)]),
            "Functional.silu.0.forward": call(tensor(norm), output=[tensor(norm)]),
        }

    document = compare(tmp_path, records(8.0), records(12.0), level="mix")
    assert document["verdict"] == "diverged"
    assert document["first_divergence"]["module"] == "Functional.linear.1"
    assert document["first_divergence"]["kind"] == "origin"
