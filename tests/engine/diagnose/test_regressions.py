"""One test a fault that testing found, named by its symptom."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compare.engine.align.nodes import NodeKind
from compare.engine.diagnose.case import module_name
from compare.engine.diagnose.words import counted
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import CORPUS, bf16, call, compare, part, tensor, verdict, write
from tests.engine.diagnose.test_symmetry import members

ROOT = Path(__file__).resolve().parents[3]
STATISTICS = ("Max", "Min", "Mean", "Norm")
Q_PROJ = "Module._fsdp_wrapped_module.model.layers.2._fsdp_wrapped_module.self_attn.q_proj.Linear.forward.0"


def changed_on_the_way(folder: Path) -> dict[str, Any]:
    """The same run twice, but what q_proj of layer 2 takes in is 1.25 times what the norm before it put out."""
    left = members("q2_shim_stat")["dump.json"]["data"]
    right = copy.deepcopy(left)
    for leaf in (right[Q_PROJ]["input_args"][0], right[Q_PROJ]["output"][0]):
        for name in STATISTICS:
            leaf[name] = bf16(leaf[name] * 1.25)
    return compare_paths([write(folder / "l", left)], [write(folder / "r", right)], Options()).document


def test_an_edge_that_changes_a_tensor_is_told_between_its_ends(tmp_path: Path) -> None:
    first = changed_on_the_way(tmp_path)["first_divergence"]
    ends = ("model.layers.2.input_layernorm", "model.layers.2.self_attn.q_proj")
    assert (first["kind"], first["after"], first["before"]) == ("between", *ends)


def test_an_origin_is_never_a_pair_whose_statistics_are_equal(tmp_path: Path) -> None:
    document = changed_on_the_way(tmp_path)
    first = document["first_divergence"]
    assert any(first["evidence"][name] not in (0.0, None) for name in ("norm_rel", "max_rel", "mean_over_rms"))
    assert document["first_difference"]["order"] <= first["order"]


@pytest.mark.parametrize("missing", [4, 12, 60])
def test_layers_that_were_not_dumped_cost_no_time(missing: int, tmp_path: Path) -> None:
    """The search for what a tensor is made of went through every path of the missing layers: twice as many a layer."""
    paths = []
    for side, name in (("l", "q2_train_stat"), ("r", "q2_infer_stat")):
        data = members(name)["dump.json"]["data"]
        records = {re.sub(r"layers\.3\b", f"layers.{3 + missing}", key): copy.deepcopy(value) for key, value in data.items()}
        for key, value in records.items():
            if side == "r" and f"layers.{3 + missing}.input_layernorm" in key:
                for leaf in value["output"]:
                    leaf |= {statistic: bf16(leaf[statistic] * 1.5) for statistic in STATISTICS}
        paths.append(str(write(tmp_path / side, records)))
    command = [sys.executable, "manage.py", "compare", *paths, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["first_divergence"]["module"]


def test_every_call_of_a_module_has_a_name_of_its_own() -> None:
    case = part("q2b_shim_clean_mix", "q2b_shim_extraops_mix").cases[0]
    nodes = case.nodes
    forward = [n for n in range(len(nodes)) if nodes.kind[n] == NodeKind.API and nodes.direction[n] == 0 and nodes.parent[n] >= 0]
    assert [name for name, count in Counter(module_name(case, node) for node in forward).items() if count > 1] == []


def test_an_empty_tensor_does_not_stop_identical(tmp_path: Path) -> None:
    empty = tensor(None, mean=None, largest=None, smallest=None, shape=(0, 64))
    records = {"Module.a.L.forward.0": call(tensor(), empty)}
    document = compare(tmp_path, records, records)
    assert (document["verdict"], document["counts"]["incomparable"]) == ("identical", 0)


def test_the_sentence_says_that_no_layer_output_is_in_both_dumps(tmp_path: Path) -> None:
    records = {"Module.model.layers.0.fc.Linear.forward.0": call(tensor())}
    headline = compare(tmp_path, records, records)["headline"]
    assert "no layer's output" in headline["en"]
    assert "没有任何一层的输出" in headline["zh"]


def test_numbers_at_the_end_of_the_range_say_nothing_on_stderr(tmp_path: Path) -> None:
    sides = []
    for name, norm, mean in (("l", 1e-320, 1e308), ("r", 1e-310, -1e308)):
        leaf = tensor(norm, mean=mean, largest=norm, smallest=-norm, dtype="torch.float64")
        sides.append(write(tmp_path / name, {"Module.a.L.forward.0": call(tensor(), output=[leaf], parameters={"weight": leaf})}))
    command = [sys.executable, "manage.py", "compare", *map(str, sides)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_inputs_that_were_not_compared_are_not_said_to_agree() -> None:
    """A module matched by hand with one whose input is of another size differed "while its inputs agree", with confidence high."""
    rule = "pairs:\n- {left: model.layers.2.mlp.down_proj, right: model.layers.2.self_attn.o_proj}\n"
    document = compare_paths([CORPUS / "q2_train_stat.zip"], [CORPUS / "q2_infer_stat.zip"], Options(mapping=rule)).document
    first = document["first_divergence"]
    assert (first["module"], first["kind"], first["inputs"]) == ("model.layers.2.mlp.down_proj", "origin", "not_compared")
    assert first["confidence"] != "high"
    assert "its inputs were not compared" in document["headline"]["en"]
    assert "输入没有比较" in document["headline"]["zh"]


def test_a_module_whose_inputs_were_not_dumped_is_not_said_to_have_inputs_that_agree(tmp_path: Path) -> None:
    left = {f"Module.blocks.{n}.Block.forward.0": call(output=[tensor()]) for n in range(4)}
    right = left | {"Module.blocks.2.Block.forward.0": call(output=[tensor(12.0, largest=1.5)])}
    document = compare(tmp_path, left, right)
    first = document["first_divergence"]
    assert (first["kind"], first["inputs"]) == ("origin", "not_compared")
    assert first["confidence"] != "high"
    assert "agree" not in document["headline"]["en"]


def test_equal_checksums_are_not_said_to_be_statistics_alone() -> None:
    headline = verdict("q2_shim_md5", "q2_shim_md5_again")["headline"]
    assert headline["en"].endswith("Rests on checksums and bf16 statistics: equal checksums are equal tensors, but for chance")
    assert headline["zh"].endswith("依据是 校验和与 bf16 统计量：校验和相等即张量相等（巧合除外）")
    assert "checksum" not in verdict("q2_shim_stat", "q2_shim_stat_again")["headline"]["en"]


def test_a_headline_that_rests_on_checksums_has_them_in_its_evidence() -> None:
    document = verdict("q2_shim_md5", "q2_shim_pert1_md5")
    assert document["first_divergence"]["evidence"]["checksums"] == ["8e4df5e2", "1d7f2210"]
    assert "权重不同（校验和 8e4df5e2 / 1d7f2210）" in document["headline"]["zh"]


def test_a_chinese_headline_of_tensors_has_no_english_in_it() -> None:
    headline = verdict("q2_train_tensor", "q2_infer_down2_tensor")["headline"]
    assert "cosine" in headline["en"]
    assert re.search(r"（张量：相对 L2 [\d.]+，余弦相似度 [\d.]+）", headline["zh"])


def test_a_module_set_apart_by_a_rule_is_not_said_to_have_not_been_dumped() -> None:
    rule = "unpaired:\n- {left: model.layers.2.mlp.down_proj, right: model.layers.2.mlp.down_proj}\n"
    document = verdict("q2_train_stat", "q2_infer_down2_stat", mapping=rule)
    assert document["first_divergence"]["kind"] == "between"
    assert "mlp.down_proj, which a rule of the mapping file sets apart" in document["headline"]["en"]
    assert "映射文件中的规则取消了它的配对" in document["headline"]["zh"]
    assert "dumped" not in document["headline"]["en"]


@pytest.mark.parametrize(("count", "said"), [(0, "0 modules"), (1, "1 module"), (2, "2 modules")])
def test_one_of_a_thing_is_not_said_in_the_plural(count: int, said: str) -> None:
    assert counted(count, "module") == said


def test_a_mapping_of_one_rule_is_not_called_one_rules() -> None:
    rule = (
        "pairs:\n- {left: model.layers.1.mlp.gate_proj, right: model.layers.1.mlp.up_proj}\n- {left: model.nowhere, right: model.nowhere}\n"
    )
    texts = {one["code"]: one["text"]["en"] for one in verdict("q2_shim_stat", "q2_shim_stat_again", mapping=rule)["findings"]}
    assert "A mapping file with 2 rules was used: it brings 1 module together" in texts["mapping_used"]
    assert texts["mapping_rule_unused"].startswith("1 rule of the mapping file matches nothing here")


def test_a_norm_that_moves_by_part_of_an_ulp_is_not_within_none() -> None:
    """ "Norm within 0 ulp (0.304 %)", and "within 0 % (0 %)" where there are no ulps to count."""
    for left, right in (("q2_train_stat", "q2_infer_stat"), ("q2f32_train_stat", "q2f32_infer_stat"), ("q2_train_md5", "q2_infer_md5")):
        document = verdict(left, right)
        if document["verdict"] != "consistent":
            continue
        moved = max(float(row["norm_rel"]) for row in document["layers"])
        assert ("within 0 ulp" in document["headline"]["en"]) == (moved == 0)
        assert not re.search(r"within ([\d.e-]+ %) \(\1\)", document["headline"]["en"])
