"""A judged part → the folder that the server answers from: verdict, tree, and the columns behind node details."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.engine.align.explain import CODES, Explanation
from compare.engine.align.nodes import NodeKind
from compare.engine.align.pairs import Reason, Relation
from compare.engine.diagnose.case import Case
from compare.engine.diagnose.reasons import OTHER_SIZE_TEXT, PAIRED, UNPAIRED, quantity_texts
from compare.engine.diagnose.rollup import Role
from compare.engine.diagnose.tree import Tree, tree_of
from compare.engine.diagnose.verdict import PartVerdict
from compare.engine.errors import printable
from compare.engine.ingest import Progress
from compare.engine.measure.elements.metrics import ULP_EDGES
from compare.engine.measure.elements.table import LAYOUTS, Elements, State
from compare.engine.measure.grades import FloorSource, Grade
from compare.engine.model import Direction, Group, JsonObject
from compare.engine.store.columns import write_columns
from compare.engine.store.tree import compress, encode_tree


def write_verdict(document: JsonObject, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict.json").write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")


@np.errstate(all="ignore")  # what does not fit float32 becomes infinite on the wire
def write_part(part: PartVerdict, folder: Path, dumps: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]], watch: Progress) -> None:
    """``dumps``: for each case the folders of its left and right dumps, relative to their runs. ``watch`` hears of every step."""
    tree = tree_of(part.cases, part.origins)
    rows = {"rows": len(tree.node)}
    watch("store", 0.4, rows)
    (folder / "tree.bin.gz").write_bytes(compress(encode_tree(tree.columns, tree.strings, _facts(part, tree))))
    watch("store", 0.6, rows)
    arrays, strings, meta = row_columns(part, tree)
    write_columns(folder / "columns" / "rows", arrays, strings, meta)
    for index, case in enumerate(part.cases):
        watch("store", 0.7, rows)
        arrays, meta = case_columns(case)
        write_columns(folder / "columns" / str(index), arrays, {}, {"dumps": [list(dumps[0][index]), list(dumps[1][index])], **meta})


def _facts(part: PartVerdict, tree: Tree) -> JsonObject:
    first = part.cases[0]
    directions = [Direction(d).name.lower() for d in np.unique(first.pairs.direction[first.grades.comparable]).tolist()]
    backward = {
        name: any(
            bool((case.dumps[side].records.direction[case.dumps[side].records.recorded] == Direction.BACKWARD).any()) for case in part.cases
        )
        for side, name in enumerate(("left", "right"))
    }
    return {
        "reasons": list(tree.reasons),
        "layers": max(case.sides.layers for case in part.cases),
        "compared": sum(int(case.grades.comparable.sum()) for case in part.cases),
        "directions": directions,
        "sides": {name: part.document[name]["role"] for name in ("left", "right")},
        "backward": backward,
    }


def row_columns(part: PartVerdict, tree: Tree) -> tuple[dict[str, NDArray[Any]], dict[str, Sequence[str]], JsonObject]:
    """What is kept of the tree's rows beside the wire: arrays, strings and meta."""
    names = ("kind", "module", "direction", "call", "layer", "role", "grade", "difference", "floor", "growth", "order", "origin", "reason")
    arrays = {name: tree.columns[name] for name in names}
    arrays |= {"case": tree.case, "node": tree.node, "part": tree.part}
    meta = {
        "kinds": {int(k): k.name.lower() for k in NodeKind},
        "roles": {int(r): r.name.lower() for r in Role},
        "grades": {int(g): g.name.lower() for g in Grade},
        "compared": [int(case.grades.comparable.sum()) for case in part.cases],
        "reasons": [
            *({"code": CODES[code], "text": UNPAIRED[code]} for code in Explanation if code is not Explanation.MATCHED),
            {"code": "other_size", "text": OTHER_SIZE_TEXT},
        ],
        "origins": part.document["origins"],
    }
    return arrays, {"strings": tree.strings}, meta


def case_columns(case: Case) -> tuple[dict[str, NDArray[Any]], JsonObject]:
    """The pairs of a case and what was measured, one row a pair, and the nodes they belong to."""
    pairs, differences, grades = case.pairs, case.differences, case.grades
    order = np.argsort(pairs.node, kind="stable")
    arrays: dict[str, NDArray[Any]] = {
        "pair_of_node": order.astype(np.int32),
        "node_start": np.searchsorted(pairs.node[order], np.arange(len(case.nodes) + 1)),
        "group": pairs.group,
        "relation": pairs.relation,
        "reason": pairs.reason,
        "elsewhere": pairs.elsewhere,
        "quantity": pairs.quantity,
        "compared": differences.compared,
        "signed": differences.signed,
        "scale": differences.scale,
        "ulps": differences.ulps,
        "size": differences.size,
        "bits": differences.stored_bits,
        "over": grades.over,
        "grade": grades.grade,
        "difference": grades.difference,
        "floor": grades.floor,
        "floor_source": grades.floor_source,
        "weight": grades.weight,
        "argument": grades.argument,
        "nothing": grades.nothing,
        "equal": differences.equal,
        "position": case.position(),
        "present_left": differences.sides[0].present,
        "present_right": differences.sides[1].present,
        "values_left": differences.sides[0].values,
        "values_right": differences.sides[1].values,
    }
    if differences.tensors is not None:
        arrays |= _tensor_columns(differences.tensors)
    for side, name in enumerate(("left", "right")):
        arrays[f"{name}_start"], arrays[f"{name}_slot"] = pairs.slots[side].start, pairs.slots[side].values
        arrays[f"{name}_record_start"], arrays[f"{name}_record"] = case.nodes.records[side].start, case.nodes.records[side].values
    meta: JsonObject = {
        "rank": case.rank,
        "primary": case.primary,
        "mapping_swapped": case.sides.rules.swapped,
        "groups": {int(g): g.name.lower() for g in Group},
        "relations": {int(r): r.name.lower().replace("_", "-") for r in Relation},
        "reasons": {int(r): {"code": r.name.lower(), "text": PAIRED[r]} for r in Reason},
        "grades": {int(g): g.name.lower() for g in Grade},
        "floor_sources": {int(s): s.name.lower() for s in FloorSource},
        "quantities": quantity_texts(pairs.quantity_names, case.sides.layers),
    }
    if differences.tensors is not None:
        meta["tensors"] = _tensor_facts(differences.tensors)
    return arrays, meta


def _tensor_columns(tensors: Elements) -> dict[str, NDArray[Any]]:
    columns = {field.name: getattr(tensors, field.name) for field in fields(tensors)}
    measured = {f"tensor.{name}": column for name, column in columns.items() if name not in ("row", "state", "faults")}
    return {"tensor_row": tensors.row, "tensor_state": tensors.state, **measured}


def _tensor_facts(tensors: Elements) -> JsonObject:
    return {
        "states": {int(s): s.name.lower() for s in State},
        "layouts": list(LAYOUTS),
        "ulp_edges": list(ULP_EDGES),
        "faults": [
            {"pair": f.pair, "side": ("left", "right")[f.side], "file": printable(f.file), "code": f.code, "params": f.params}
            for f in tensors.faults
        ],
    }
