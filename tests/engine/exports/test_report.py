"""The report: everything in one page that loads and runs nothing, in both languages, whatever the names in the dumps."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.exports.blocks import Grid, Heading
from compare.engine.exports.finished import from_memory
from compare.engine.exports.html import html
from compare.engine.exports.markdown import markdown
from compare.engine.exports.report import report
from compare.engine.exports.words import LANGUAGES, Language, word
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import call, corpus, tensor, write
from tests.engine.keydata.trees import write as write_tables

DOWN = ("q2_train_stat", "q2_infer_down2_stat")


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def page(left: str, right: str, language: Language) -> Page:
    return Page(html(report(from_memory(corpus(left, right)), language), language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_its_evidence_and_its_causes_are_on_the_page(language: Language) -> None:
    document = corpus(*DOWN).document
    text = page(*DOWN, language).text
    assert document["headline"][language] in text
    origin = document["first_divergence"]
    assert origin["module"] in text
    assert all(cause["text"][language] in text for cause in origin["causes"])
    assert all(name in text for name in (*origin["left"], *origin["right"]))
    assert all(finding["text"][language] in text for finding in document["findings"])
    assert str(document["counts"]["pairs"]) in text


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    found = page(*DOWN, "en")
    assert not {"script", "link", "img", "iframe", "form", "object", "a"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name in ("src", "href", "style") or name.startswith("on")]


def test_both_languages_say_the_same_things() -> None:
    pages = [page(*DOWN, language) for language in LANGUAGES]
    assert pages[0].tags == pages[1].tags
    english = [word for word in ("Premises", "Origins", "Mapping", "What was not compared", "confidence") if word in pages[1].text]
    assert english == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_of_several_parts_leads_from_the_run_to_the_module(language: Language) -> None:
    sides = ("q2_train_steps2_stat", "q2_train_steps2_pert1_stat")
    document = corpus(*sides).document
    found = page(*sides, language)
    assert document["headline"][language] in found.text
    assert "part-" in "".join(value or "" for name, value in found.attributes if name == "id")
    assert found.text.count("✓") + found.text.count("▲") >= len(document["parts"])


@pytest.mark.parametrize(
    ("language", "title"), [("en", "part 10: reference_compute_log_prob"), ("zh", "部分 10：reference_compute_log_prob")]
)
def test_a_report_counted_parts_from_0_where_the_page_counts_from_1(language: Language, title: str) -> None:
    comparison = corpus("rl_run_a", "rl_run_b")
    assert (comparison.document["first_part"], len(comparison.document["parts"])) == (9, 12)
    text = markdown(report(from_memory(comparison), language)).replace("\\", "")
    assert title in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_rl_run_is_read_out_and_says_what_its_configurations_lack(language: Language, tmp_path: Path) -> None:
    for side, setting in (("left", True), ("right", "false")):
        folder = tmp_path / side / "data" / "loss" / "step0" / "rank0"
        folder.mkdir(parents=True)
        np.save(folder / "loss.npy", np.float32(len(side)))
        (tmp_path / side / "configurations.json").write_text(json.dumps({"actor": {"use_dynamic_bsz": setting}}))
    comparison = compare_paths([tmp_path / "left"], [tmp_path / "right"], Options())
    found = Page(html(report(from_memory(comparison), language), language))
    said = [finding["text"][language] for finding in comparison.document["findings"]]
    assert len(said) == 2
    assert all(text in found.text for text in said)
    (row,) = [row for row in comparison.document["preconditions"] if row["left"]["state"] != "unknown"]
    assert (row["left"]["state"], row["right"]["state"]) == ("failed", "ok")
    assert row["text"][language] in found.text


@pytest.mark.parametrize(("language", "sentence"), [("en", "= 4, wanted 1"), ("zh", "= 4，应为 1")])
def test_equations_stand_in_the_report_with_their_numbers(language: Language, sentence: str, tmp_path: Path) -> None:
    sides = [write(tmp_path / name, {"Module.a.Linear.forward.0": call(tensor())}).parent for name in ("left", "right")]
    settings = {"actor": {"ppo_mini_batch_size": 64}, "data": {"train_batch_size": 256}}
    (sides[0] / "configurations.json").write_text(json.dumps(settings))
    (sides[1] / "configurations.json").write_text(json.dumps({**settings, "actor": {"ppo_mini_batch_size": "<script>"}}))
    comparison = compare_paths([sides[0]], [sides[1]], Options())
    finished = report(from_memory(comparison), language)
    found = Page(html(finished, language))
    assert f"train_batch_size 256 / ppo_mini_batch_size 64 {sentence}" in found.text
    assert "script" not in found.tags
    assert f"train_batch_size 256 / ppo_mini_batch_size 64 {sentence}" in markdown(finished).replace("\\_", "_")


def hostile(folder: Path) -> Any:
    name = "Module.<script>alert(1)</script>.\"'&`|*[x](y)\u202e.L.forward.0"
    left, right = ({name: call(tensor(), output=[tensor(norm)])} for norm in (8.0, 4.0))
    return compare_paths([write(folder / "<b>left", left)], [write(folder / "right", right)], Options())


def test_names_from_a_dump_are_text_and_nothing_else(tmp_path: Path) -> None:
    finished = from_memory(hostile(tmp_path))
    found = Page(html(report(finished, "en"), "en"))
    assert "script" not in found.tags
    assert "alert(1)" in found.text
    assert "\u202e" not in found.text
    text = markdown(report(finished, "en"))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert "\u202e" not in text
    assert all("<script>" not in line.replace("`", " ` ").split("`")[0] for line in text.splitlines())


def test_markdown_tables_keep_their_columns() -> None:
    lines = markdown(report(from_memory(corpus(*DOWN)), "zh")).splitlines()
    for above, line in pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.replace("\\|", "").count("|") == line.replace("\\|", "").count("|")


def test_nothing_compared_is_said_and_not_hidden() -> None:
    sides = ("q2b_train_stat", "q2b_infer_tok_stat")
    text = page(*sides, "en").text
    assert "Not comparable" in text
    assert "fails" in text


def test_a_layer_of_tensors_that_only_its_elements_tell_apart_shows_their_error() -> None:
    """Norm 53 / 53, 0 %, 0 ulp stood beside "diverged", and the median of the elements was called an ulp of the Norm."""
    text = page("q2_train_tensor", "q2_infer_down2_tensor", "en").text
    assert "relative L2" in text
    assert "3.58 %" in text
    assert "elements, median ulp" in text


def test_a_chinese_report_says_what_stands_for_a_layer_in_chinese() -> None:
    text = page(*DOWN, "zh").text
    assert "残差流" in text
    assert "residual stream" not in text
    assert "residual stream: right " in page(*DOWN, "en").text


def test_the_verdict_is_not_said_twice_in_a_row() -> None:
    for language, twice in (("en", r"Consistent\W+Consistent"), ("zh", r"一致[*\s]+(两侧)?一致")):
        text = markdown(report(from_memory(corpus("q2_train_stat", "q2_infer_stat")), language))
        assert not re.search(twice, text)


@pytest.mark.parametrize(
    ("language", "drift", "sentence"),
    [
        ("en", "Drift over the steps", "nothing before step 1, then 0.5"),
        ("zh", "随步数的变化", "第 1 步之前没有，之后为 0.5"),
    ],
)
def test_a_run_of_key_data_alone_shows_its_drift_and_no_empty_table_of_parts(
    language: Language, drift: str, sentence: str, tmp_path: Path
) -> None:
    tree = {("loss", step, 0, 0): np.array([0.5], np.float32) for step in range(2)}
    sides = [
        write_tables(tree, tmp_path / "left"),
        write_tables({**tree, ("loss", 1, 0, 0): np.array([1.0], np.float32)}, tmp_path / "right"),
    ]
    finished = from_memory(compare_paths([sides[0]], [sides[1]], Options()))
    blocks = report(finished, language)
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    assert drift in headings
    assert word("parts", language) not in headings
    assert all(block.rows for block in blocks if isinstance(block, Grid))
    assert sentence in markdown(blocks)
    assert word("checks_of", language, side=word("left", language), holding=1, count=1) in markdown(blocks)


@pytest.mark.parametrize(
    ("language", "told"), [("en", "1 setting differs: rl/run run_a / run_b"), ("zh", "1 项设置不同：rl/run run_a / run_b")]
)
def test_the_chain_of_a_run_begins_with_its_configuration_though_no_setting_that_differs_matters(language: Language, told: str) -> None:
    text = markdown(report(from_memory(corpus("rl_run_a", "rl_run_b")), language)).replace("\\", "")
    chain = text[text.index(told) :]
    places = [chain.index(word) for word in ("ref_log_prob", "reference_compute_log_prob", "model.layers.1.mlp.down_proj")]
    assert places == sorted(places)
    assert word("configuration", language) in text[: text.index(told)].splitlines()[-1]
