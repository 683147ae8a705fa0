"""A finished comparison folder: the tree as docs/formats.md says it, what its columns mean, and every node in full."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compare.engine.diagnose.verdict import PartVerdict
from compare.engine.errors import DumpError
from compare.engine.ingest import paths_to_sources
from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths, compare_runs, read_run
from compare.engine.store.reader import PartReader
from tests.engine.build import CORPUS, part
from tests.engine.store.decoder import (
    AMPLIFIED,
    API,
    CONTAINER,
    DIVERGED,
    INCOMPARABLE,
    INHERITED,
    LEFT_ONLY,
    MODULE,
    NO_PAIR,
    NOT_COMPARABLE,
    ORIGIN,
    PART,
    RIGHT_ONLY,
    SECTION,
    Tree,
    bare,
    known,
)

PAIRS = {
    "clean": ("q2_train_stat", "q2_infer_stat"),
    "swapped": ("q2_infer_down2_stat", "q2_train_stat"),
    "down2": ("q2_train_stat", "q2_infer_down2_stat"),
    "rope": ("q2_train_stat", "q2_infer_rope_stat"),
    "nan3": ("q2_train_stat", "q2_infer_nan3_stat"),
    "same_code": ("q2_plain_stat", "q2_shim_stat"),
    "gradients": ("q2b_shim_clean_stat", "q2b_shim_grad15_stat"),
    "micro_batches": ("q2_train_micro2_stat", "q2_train_micro2_stat"),
    "extra_calls": ("q2b_shim_clean_mix", "q2b_shim_extraops_mix"),
    "tokens": ("q2b_train_stat", "q2b_infer_tok_stat"),
    "recomputation": ("q2_ckpt_stat", "q2_shim_stat"),
}


@dataclass(frozen=True)
class Published:
    folder: Path
    tree: Tree
    reader: PartReader
    document: JsonObject
    verdict: PartVerdict
    nodes: list[JsonObject]  # every row in full


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@cache
def publish(place: Path, name: str) -> Published:
    left, right = PAIRS[name]
    for run in (left, right):
        if not (place / run).exists():
            read_run(paths_to_sources([CORPUS / f"{run}.zip"]), f"{run}.zip", place / run, lambda *_: None)
    folder = place / name
    document = compare_runs(place / left, place / right, Options(), folder, lambda *_: None, lambda _: None)
    tree = Tree.of(folder / "parts" / "0" / "tree.bin.gz")
    reader = PartReader(folder / "parts" / "0", place / left, place / right)
    return Published(folder, tree, reader, document, part(left, right), [reader.node(row) for row in range(tree.rows)])


@pytest.fixture(params=PAIRS)
def published(request: pytest.FixtureRequest, place: Path) -> Published:
    return publish(place, request.param)


# --- the tree on the wire -------------------------------------------------------------------------------------------------------------


def test_rows_are_in_pre_order_with_sizes_and_depths(published: Published) -> None:
    tree = published.tree
    parent, size, depth = tree.columns["parent"], tree.columns["size"], tree.columns["depth"]
    counted = [1] * tree.rows
    for row in reversed(range(tree.rows)):
        above = parent[row]
        assert -1 <= above < row
        assert depth[row] == (0 if above < 0 else depth[above] + 1)
        if above >= 0:
            counted[above] += counted[row]
            assert row < above + size[above]
    assert list(size) == counted
    for row in range(tree.rows):
        for inside in tree.descendants(row):
            assert parent[inside] >= row


def test_the_header_says_what_the_tree_is(published: Published) -> None:
    header = published.tree.header
    assert {"format", "rows", "columns", "strings", "reasons", "layers", "compared", "directions", "sides", "backward"} <= set(header)
    assert header["sides"] == {side: published.document[side]["role"] for side in ("left", "right")}
    assert header["layers"] == published.verdict.cases[0].sides.layers
    assert header["compared"] == int(published.verdict.cases[0].grades.comparable.sum())
    for origin in published.document["origins"]:
        assert origin["of"] == header["compared"]


def test_every_string_index_is_a_string(published: Published) -> None:
    tree = published.tree
    for name in ("name", "right_name", "module", "left_class", "right_class"):
        assert all(-1 <= index < len(tree.strings) for index in tree.columns[name])
    assert all(index >= 0 for index in tree.columns["name"])
    assert all(reason == 255 or reason < len(tree.header["reasons"]) for reason in tree.columns["reason"])


def test_worst_is_the_largest_difference_among_the_descendants(published: Published) -> None:
    tree = published.tree
    kind, difference = tree.columns["kind"], tree.columns["difference"]
    for row in range(tree.rows):
        inside = [difference[i] for i in tree.descendants(row) if kind[i] != PART and known(difference[i])]
        if inside:
            assert tree.columns["worst"][row] == max(inside)
        else:
            assert not known(tree.columns["worst"][row])


def test_counts_inside_are_those_of_the_descendants(published: Published) -> None:
    tree = published.tree
    for name, role in (("inside_origin", ORIGIN), ("inside_inherited", INHERITED), ("inside_amplified", AMPLIFIED)):
        for row in range(tree.rows):
            assert tree.columns[name][row] == sum(tree.columns["role"][inside] == role for inside in tree.descendants(row))


def test_no_ancestor_hides_a_divergence(published: Published) -> None:
    """A parent shows its worst child: whoever is diverged is found by following the largest worst, or inside_… from the root."""
    tree = published.tree
    for row in range(tree.rows):
        if tree.columns["role"][row] in (ORIGIN, INHERITED, AMPLIFIED):
            above = tree.columns["parent"][row]
            while above >= 0:
                assert sum(tree.columns[name][above] for name in ("inside_origin", "inside_inherited", "inside_amplified")) > 0
                above = tree.columns["parent"][above]


def test_each_origin_of_the_verdict_is_one_row(published: Published) -> None:
    tree = published.tree
    rows = {tree.columns["origin"][row]: row for row in range(tree.rows) if tree.columns["origin"][row] >= 0}
    assert sorted(rows) == list(range(len(published.document["origins"])))
    assert sum(role == ORIGIN for role in tree.columns["role"]) == len(rows)
    for index, row in rows.items():
        origin = published.document["origins"][index]
        shown = tree.string("module", row)
        assert shown in (origin["module"], origin["before"]) or (shown is not None and origin["module"].startswith(shown))
        assert tree.columns["role"][row] == ORIGIN


def test_roles_of_unmatched_rows_say_which_side_they_are_on(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        if tree.columns["kind"][row] in (MODULE, API):
            left, right = tree.columns["left_count"][row], tree.columns["right_count"][row]
            assert left + right > 0
            if tree.columns["role"][row] == LEFT_ONLY:
                assert (left > 0, right > 0) == (True, False)
            if tree.columns["role"][row] == RIGHT_ONLY:
                assert (left > 0, right > 0) == (False, True)
            if not left or not right:
                assert tree.columns["role"][row] in (LEFT_ONLY, RIGHT_ONLY, NOT_COMPARABLE) or tree.columns["grade"][row] != NO_PAIR


def test_a_row_without_a_partner_has_a_reason(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        if tree.columns["role"][row] in (LEFT_ONLY, RIGHT_ONLY) and tree.columns["kind"][row] in (MODULE, API):
            assert tree.columns["reason"][row] != 255


def test_only_what_was_compared_has_a_difference_and_a_floor(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        difference, floor, order = (tree.columns[name][row] for name in ("difference", "floor", "order"))
        assert known(difference) == known(floor)
        assert known(difference) == (order >= 0) or tree.columns["kind"][row] == PART
        assert -1 <= order < tree.header["compared"]
        if known(difference):
            assert difference >= 0
            assert floor > 0 or math.isclose(floor, 0.0)
        if tree.columns["grade"][row] in (NO_PAIR, INCOMPARABLE) and tree.columns["kind"][row] != PART:
            assert not known(difference)


def test_sections_stand_only_where_there_is_more_than_one_call_or_direction(published: Published) -> None:
    tree = published.tree
    roots = [row for row in range(tree.rows) if tree.columns["parent"][row] < 0]
    sections = [row for row in range(tree.rows) if tree.columns["kind"][row] == SECTION]
    groups = {
        (tree.columns["direction"][row], tree.columns["call"][row])
        for row in range(tree.rows)
        if tree.columns["kind"][row] in (MODULE, API, CONTAINER)
    }
    if sections:
        assert roots == sections
        assert len(sections) > 1
        assert len({tree.string("name", row) for row in sections}) == len(sections)
    else:
        assert len(groups) >= 1


def test_parts_belong_to_the_row_of_their_fused_partner(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        if tree.columns["kind"][row] == PART:
            above = tree.columns["parent"][row]
            assert max(tree.columns["left_count"][above], tree.columns["right_count"][above]) > 1
            assert tree.columns["size"][row] == 1
            assert tree.columns["left_count"][row] + tree.columns["right_count"][row] == 1
            assert tree.columns["role"][row] == 0


# --- the tree as the reader sees it -----------------------------------------------------------------------------------------------------


def row_of(tree: Tree, module: str, direction: int = 0) -> int:
    return next(
        row
        for row in range(tree.rows)
        if tree.string("module", row) == module and tree.columns["kind"][row] == MODULE and tree.columns["direction"][row] == direction
    )


def test_query_key_and_value_are_one_row_with_three_parts(place: Path) -> None:
    tree = publish(place, "clean").tree
    row = row_of(tree, "model.layers.1.self_attn.qkv_proj")
    assert (tree.string("name", row), tree.string("right_name", row)) == ("q_proj, k_proj, v_proj", "qkv_proj")
    assert (tree.columns["left_count"][row], tree.columns["right_count"][row]) == (3, 1)
    assert [tree.string("name", inside) for inside in tree.descendants(row)] == ["q_proj", "k_proj", "v_proj"]
    assert (tree.string("left_class", row), tree.string("right_class", row)) == ("Linear", "QKVParallelLinear")


def test_swapped_sides_have_the_three_on_the_right(place: Path) -> None:
    tree = publish(place, "swapped").tree
    row = row_of(tree, "model.layers.1.self_attn.qkv_proj")
    assert (tree.columns["left_count"][row], tree.columns["right_count"][row]) == (1, 3)
    assert (tree.string("name", row), tree.string("right_name", row)) == ("qkv_proj", "q_proj, k_proj, v_proj")


def test_the_fault_is_told_from_what_it_causes(place: Path) -> None:
    tree = publish(place, "down2").tree
    origin = row_of(tree, "model.layers.2.mlp.down_proj")
    assert tree.columns["role"][origin] == ORIGIN
    assert tree.columns["grade"][origin] == DIVERGED
    for module in ("model.layers.0.mlp.down_proj", "model.layers.1", "model.layers.2.self_attn.o_proj", "model.layers.2.mlp.gate_up_proj"):
        assert tree.columns["grade"][row_of(tree, module)] < DIVERGED
    chain, row = [], tree.columns["parent"][origin]
    while row >= 0:
        chain.append(tree.string("module", row))
        assert tree.columns["inside_origin"][row] == 1
        row = tree.columns["parent"][row]
    assert chain[:2] == ["model.layers.2.mlp", "model.layers.2"]


def test_the_output_difference_of_a_row_is_worked_out_by_hand(place: Path) -> None:
    """|ΔNorm|/Norm, |ΔMax| and |ΔMin| over the largest extreme, |ΔMean|/RMS of down_proj in layer 2; what is shown is one of them."""
    found = publish(place, "down2")
    node = found.reader.node(row_of(found.tree, "model.layers.2.mlp.down_proj"))
    output = next(slot for slot in node["slots"] if slot["slot"] == "output.0")
    numbers = {entry["name"]: entry for entry in output["statistics"]}
    elements = math.prod(output["left"][0]["shape"])
    extreme = max(abs(numbers[name][side]) for name in ("max", "min") for side in ("left", "right"))
    norm = max(abs(numbers["norm"][side]) for side in ("left", "right"))
    by_hand = {
        "norm": abs(numbers["norm"]["right"] - numbers["norm"]["left"]) / norm,
        "max": abs(numbers["max"]["right"] - numbers["max"]["left"]) / extreme,
        "min": abs(numbers["min"]["right"] - numbers["min"]["left"]) / extreme,
        "mean": abs(numbers["mean"]["right"] - numbers["mean"]["left"]) * math.sqrt(elements) / norm,
    }
    for name, value in by_hand.items():
        assert abs(numbers[name]["relative"]) == pytest.approx(value, rel=1e-9)
    assert any(node["difference"] == pytest.approx(value, rel=1e-6) for value in by_hand.values())


def test_nan_on_one_side_is_an_infinite_difference(place: Path) -> None:
    found = publish(place, "nan3")
    row = row_of(found.tree, "model.layers.3.self_attn.attn")
    assert found.tree.columns["difference"][row] == math.inf
    node = found.reader.node(row)
    assert node["difference"] == "Infinity"
    output = next(slot for slot in node["slots"] if slot["slot"] == "output.0")
    assert {entry["right"] for entry in output["statistics"]} == {"NaN"}
    assert all(entry["over"] for entry in output["statistics"])


def test_layers_lie_under_the_decoder_in_their_order(place: Path) -> None:
    tree = publish(place, "clean").tree
    above = tree.columns["parent"][row_of(tree, "model.layers.0")]
    below = [row for row in tree.descendants(above) if tree.columns["parent"][row] == above and tree.columns["layer"][row] >= 0]
    layers = [tree.columns["layer"][row] for row in below if tree.columns["kind"][row] == MODULE]
    assert layers == [0, 1, 2, 3]


# --- a node in full -------------------------------------------------------------------------------------------------------------------

GROUPS = {"input", "parameters", "output", "parameters_grad"}
STATES = {"agrees", "differs", "first", "left_only", "right_only", "not_comparable"}
GRADES = {"equal", "rounding", "noise", "diverged", "incomparable", "no_pair"}


def strict(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False), parse_constant=bare)


def test_every_row_answers_with_strict_json_of_the_documented_shape(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        node = published.nodes[row]
        assert strict(node) == node
        assert {
            "n",
            "module",
            "kind",
            "direction",
            "call",
            "layer",
            "left",
            "right",
            "relation",
            "confidence",
            "role",
            "grade",
            "difference",
            "floor",
            "growth",
            "order",
            "of",
            "explanation",
            "slots",
            "stacks",
        } <= set(node)
        assert node["n"] == row
        assert node["module"] == tree.string("module", row)
        assert node["kind"] == ("section", "module", "api", "part", "container")[tree.columns["kind"][row]]
        assert node["direction"] == ("forward", "backward")[tree.columns["direction"][row]]
        assert node["order"] == tree.columns["order"][row]
        assert node["grade"] in GRADES
        for slot in node["slots"]:
            assert {
                "group",
                "slot",
                "left",
                "right",
                "relation",
                "reason",
                "elsewhere",
                "state",
                "grade",
                "order",
                "floor",
                "floor_source",
                "statistics",
            } <= set(slot)
            assert slot["floor_source"] in (None, "profile", "measured", "frozen", "baseline")
            assert slot["floor_source"] is None or slot["floor"] is not None
            assert slot["group"] in GROUPS
            assert slot["state"] in STATES
            assert slot["grade"] in GRADES
            assert slot["left"] or slot["right"]
            for entry in slot["statistics"]:
                assert {"name", "left", "right", "difference", "relative", "of", "ulps", "over"} <= set(entry)
                assert entry["name"] in ("norm", "max", "min", "mean", "value")
                assert entry["of"] in ("norm", "rms", "extreme", None)


def test_the_records_of_a_node_are_the_counts_of_its_row(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        node = published.nodes[row]
        for side in ("left", "right"):
            assert tree.columns[f"{side}_count"][row] <= len(node[side])
            if tree.columns["kind"][row] != PART:  # a part shows the fused record beside its own
                assert (tree.columns[f"{side}_count"][row] > 0) == bool(node[side])


def beyond(published: Published) -> list[tuple[str | None, bool, bool]]:
    """Rows whose own outputs were compared, weights aside: module, is the difference beyond the floor, is the grade diverged."""
    tree, found = published.tree, []
    for row, node in enumerate(published.nodes):
        own = any(slot["group"] in ("output", "parameters_grad") and slot["order"] >= 0 for slot in node["slots"])
        weights = any(slot["group"] == "parameters" and slot["grade"] == "diverged" for slot in node["slots"])
        difference = tree.columns["difference"][row]
        if tree.columns["kind"][row] in (MODULE, API) and own and known(difference) and not weights:
            found.append((tree.string("module", row), difference > tree.columns["floor"][row], tree.columns["grade"][row] == DIVERGED))
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_a_node_is_diverged_where_its_difference_is_beyond_its_floor(name: str, place: Path) -> None:
    found = beyond(publish(place, name))
    assert found
    assert [row for row in found if row[1] != row[2]] == []


def test_the_slots_of_all_nodes_are_all_the_pairs(published: Published) -> None:
    case = published.verdict.cases[0]
    orders = [
        slot["order"]
        for row in range(published.tree.rows)
        if published.tree.columns["kind"][row] in (MODULE, API)
        for slot in published.nodes[row]["slots"]
        if slot["order"] >= 0
    ]
    assert sorted(orders) == list(range(int(case.grades.comparable.sum())))


def test_at_most_one_slot_of_a_node_is_the_first_to_differ(published: Published) -> None:
    for row in range(published.tree.rows):
        states = [slot["state"] for slot in published.nodes[row]["slots"]]
        assert states.count("first") <= 1
        if "differs" in states:
            assert "first" in states


def test_an_unmatched_node_says_why_in_both_languages(published: Published) -> None:
    tree = published.tree
    for row in range(tree.rows):
        node = published.nodes[row]
        assert (node["explanation"] is not None) == (tree.columns["reason"][row] != 255)
        if node["explanation"] is not None:
            assert node["explanation"]["code"] == tree.header["reasons"][tree.columns["reason"][row]]
            assert node["explanation"]["text"]["en"]
            assert node["explanation"]["text"]["zh"]


def test_reasons_of_pairs_name_their_tensor(place: Path) -> None:
    found = publish(place, "clean")
    node = found.reader.node(row_of(found.tree, "model.layers.1"))
    slot = next(slot for slot in node["slots"] if slot["reason"] and slot["reason"]["code"] == "residual_stream")
    assert slot["elsewhere"]
    assert "residual stream" in slot["reason"]["text"]["en"]
    assert "残差流" in slot["reason"]["text"]["zh"]
    assert "{" not in slot["reason"]["text"]["en"] + slot["reason"]["text"]["zh"]


def test_stacks_come_with_the_node(place: Path) -> None:
    found = publish(place, "clean")
    node = found.reader.node(row_of(found.tree, "model.layers.1.mlp.down_proj"))
    for side in ("left", "right"):
        assert node["stacks"][side]
        assert all(frame.startswith("File ") for frame in node["stacks"][side])


def test_a_row_that_does_not_exist_is_refused(place: Path) -> None:
    found = publish(place, "clean")
    for number in (-1, found.tree.rows, 10**9):
        with pytest.raises(DumpError) as refused:
            found.reader.node(number)
        assert refused.value.code == "node_unknown"


def test_the_published_verdict_is_that_of_the_paths(published: Published) -> None:
    left, right = PAIRS[published.folder.name]
    direct = compare_paths([CORPUS / f"{left}.zip"], [CORPUS / f"{right}.zip"], Options()).document
    for document in (published.document, json.loads((published.folder / "verdict.json").read_text("utf-8"), parse_constant=bare)):
        assert {key: value for key, value in document.items() if key != "timing"} == {
            key: value for key, value in direct.items() if key != "timing"
        }
    assert json.loads((published.folder / "parts" / "0" / "verdict.json").read_text("utf-8")) == published.document


def test_a_weight_that_only_its_checksum_tells_apart_shows_both_checksums(place: Path) -> None:
    """Its four statistics are equal: the page said "differs, first here" over four zeros."""
    for run in ("q2_shim_md5", "q2_shim_pert1_md5"):
        read_run(paths_to_sources([CORPUS / f"{run}.zip"]), f"{run}.zip", place / run, lambda *_: None)
    runs = (place / "q2_shim_md5", place / "q2_shim_pert1_md5")
    compare_runs(*runs, Options(), place / "md5", lambda *_: None, lambda _: None)
    reader = PartReader(place / "md5" / "parts" / "0", *runs)
    rows = len(Tree.of(place / "md5" / "parts" / "0" / "tree.bin.gz").columns["parent"])
    slots = [slot for row in range(rows) for slot in reader.node(row)["slots"]]
    weight = next(slot for slot in slots if slot["state"] == "first" and slot["group"] == "parameters")
    assert weight["checksum"] == {"left": "8e4df5e2", "right": "1d7f2210", "state": "differs"}
    assert all(one["difference"] == 0 for one in weight["statistics"])
    for slot in slots:
        if slot["checksum"] is not None and slot["checksum"]["state"] == "equal":
            assert slot["checksum"]["left"] == slot["checksum"]["right"]
            assert slot["grade"] in ("equal", "incomparable")


def test_a_node_without_checksums_shows_none(place: Path) -> None:
    assert all(slot["checksum"] is None for node in publish(place, "clean").nodes for slot in node["slots"])
