"""Both sides uploaded in the page, the right sentence, the place and the numbers: what the product is for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.told import CORPUS, TRAIN, as_number, first_sentence, four_digits, inference, told, two_places
from tests.browser.workbench import Workbench
from tests.live import Stack

# The faults that were put into the inference side: what the sentence begins with in both languages, and the row that is selected.
FAULTS = {
    "eps": ("layers.0 · input_layernorm", "model.layers.0.input_layernorm"),
    "rope": ("layers.0 · self_attn", "model.layers.0.self_attn.attn"),
    "down2": ("layers.2 · mlp.down_proj", "model.layers.2.mlp.down_proj"),
    "nan3": ("layers.3 · self_attn.attn", "model.layers.3.self_attn.attn"),
}


def without_timing(document: dict[str, Any]) -> dict[str, Any]:
    named = {side: {**document[side], "name": ""} for side in ("left", "right")}
    return {**document, **named, "timing": None}


def test_numbers_are_written_as_a_person_reads_them() -> None:
    # The yardstick of this file, by hand.
    assert [four_digits(value) for value in (402, -18.625, 0.001205, 1.4194e-6, 0, 1726.4, 12350.0)] == [
        *("402.0", "−18.63", "0.001205", "1.419e−6", "0", "1726", "12350"),
    ]
    assert as_number("−0.42\u00a0%") == pytest.approx(-0.0042)


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_said_selected_and_proved_with_the_numbers_of_the_command_line(case: str, visit: Visit, site: Stack) -> None:
    place, selected = FAULTS[case]
    document = told(TRAIN, inference(case))
    page = visit("/")
    slug = Landing(page).compare_files([TRAIN], [inference(case)])
    bench = Workbench(page).arrived()

    assert bench.said() == first_sentence(document["headline"]["en"])
    assert bench.said().startswith(f"First divergence: {place} — ")
    served = json.loads(site.get(f"/api/v1/comparisons/{slug}/verdict.json").body)
    assert without_timing(served) == without_timing(document)

    row = bench.selected()
    assert row.path == selected
    assert row.text.startswith("Origin ")
    expect(bench.selection).to_be_in_viewport()
    expect(bench.detail.get_by_role("heading", level=2)).to_have_attribute("title", selected)
    holds_the_evidence(bench, document["first_divergence"])

    bench.speak("zh")
    assert bench.said() == first_sentence(document["headline"]["zh"])
    assert bench.said().startswith(f"首个差异：{place} — ")
    assert bench.selected().text.startswith("源头 ")
    bench.speak("en")
    opens_the_same_elsewhere(bench, visit)


def opens_the_same_elsewhere(bench: Workbench, visit: Visit) -> None:
    """Another selection, a filter, rows opened and closed: the link shows them in a browser that never saw this server."""
    # A layer that is closed again goes into the fold of its neighbours: one of its modules keeps its row.
    closed, opened = (
        next(row for row in bench.rows() if row.open is False),
        [row for row in bench.rows() if row.open and "layers" not in row.name][-1],
    )
    bench.toggle(closed.path)
    bench.toggle(opened.path)
    unfiltered = bench.rows()
    bench.filter("norm")
    chosen = [row for row in bench.rows() if row.name.endswith("norm")][1]
    bench.select(chosen.path)
    filtered = bench.rows()
    assert chosen.path == bench.selected().path
    assert unfiltered != filtered

    there = Workbench(visit(bench.shared_link())).arrived()
    assert there.selected().path == chosen.path
    assert there.rows() == filtered
    expect(there.detail.get_by_role("heading", level=2)).to_have_attribute("title", chosen.path)
    expect(there.page.get_by_role("button", name="Remove norm")).to_be_visible()
    for one in (there, bench):
        one.page.get_by_role("button", name="Clear the filter").click()
        expect(one.page.locator("output")).to_be_hidden()
    assert opening(there) == opening(bench) == [(row.path, row.open) for row in unfiltered]


def opening(bench: Workbench) -> list[tuple[str, bool | None]]:
    return [(row.path, row.open) for row in bench.rows()]


def holds_the_evidence(bench: Workbench, origin: dict[str, Any]) -> None:
    """The statistics of the slot that is "first here" are the evidence of the verdict document, digit for digit."""
    slot = bench.slot("first here")
    assert slot["head"].startswith(origin["slot"].removeprefix("parameters."))
    cells = {row[0]["text"]: row for row in slot["statistics"]}
    evidence, relative = origin["evidence"], 4
    # The extremes stand on two lines of the table, the larger of the two in the document.
    for names, key in ((["Norm"], "norm_rel"), (["Max", "Min"], "max_rel"), (["Mean"], "mean_over_rms")):
        if evidence[key] is not None:
            shown = [as_number(cells[name][relative]["title"] or cells[name][relative]["text"]) for name in names]
            assert max(map(abs, shown)) == pytest.approx(evidence[key], rel=1e-9), names
    if evidence["ulps"] is not None:
        assert as_number(cells["Norm"][5]["text"]) == evidence["ulps"]
    for row in slot["statistics"]:
        for cell in row[1:3]:
            assert cell["text"] == ("NaN" if cell["title"] == "NaN" else four_digits(as_number(cell["title"])))
    if origin["kind"] == "nonfinite":
        assert {row[2]["text"] for row in slot["statistics"]} == {"NaN"}
        assert "NaN" not in {row[1]["text"] for row in slot["statistics"]}


def test_a_clean_pair_is_said_to_be_consistent_and_what_that_rests_on(visit: Visit) -> None:
    document = told(TRAIN, inference("clean"))
    page = visit("/")
    Landing(page).compare_files([TRAIN], [inference("clean")])
    bench = Workbench(page).arrived()
    assert bench.said() == first_sentence(document["headline"]["en"])
    assert bench.said().startswith("Consistent — ")
    expect(page.get_by_label("Verdict", exact=True)).to_contain_text("Rests on bf16 statistics, not tensors")
    expect(page.get_by_text("Origin", exact=True)).to_have_count(0)
    shows_the_layers(bench, document)
    tells_of_the_residual_stream(bench, document, "en")
    bench.speak("zh")
    assert bench.said() == first_sentence(document["headline"]["zh"])
    assert bench.said().startswith("两侧一致 — ")
    tells_of_the_residual_stream(bench, document, "zh")
    bench.speak("en")
    page.get_by_role("tab", name="Tree").click()
    expect(bench.tree).to_be_visible()
    opens_the_same_elsewhere(bench, visit)


def test_the_walkthrough_is_consistent_and_shows_what_pairing_by_name_would_have_said(visit: Visit) -> None:
    left, right = CORPUS / "seed24_train.zip", CORPUS / "seed24_infer.zip"
    document = told(left, right)
    page = visit("/")
    Landing(page).compare_files([left], [right])
    bench = Workbench(page).arrived()
    assert bench.said().startswith("Consistent — ")
    layers = shows_the_layers(bench, document)
    # The published numbers: 79.00 against 63.25 and 538.36 against 684.0 by name, nothing at all by the residual stream.
    for index, by_name, left_norm, right_norm, rejected in ((1, 19.9, 79.0, 79.0, 63.25), (23, 27.1, 538.36, 540.0, 684.0)):
        cells = layers[index]
        struck = bench.layers.locator("tbody tr").nth(index).locator("s")
        assert as_number(struck.inner_text()) * 100 == pytest.approx(by_name, abs=0.06)
        assert [as_number(cells[at]["title"]) for at in (2, 3, 4)] == [left_norm, right_norm, rejected]
        assert "diverged" not in cells[1]["text"]
    assert as_number(layers[1][7]["text"]) == 0
    assert as_number(layers[23][7]["text"]) == pytest.approx(0.003, abs=0.0001)
    tells_of_the_residual_stream(bench, document, "en")
    expect(page.get_by_text("0 of 1,089 pairs diverged")).to_be_visible()


def shows_the_layers(bench: Workbench, document: dict[str, Any]) -> list[list[dict[str, str]]]:
    """Every line of the layer table is the document's; an alarming number by name is struck through. Returns its cells."""
    lines = bench.layers.locator("tbody tr")
    cells = lines.evaluate_all("(rows) => rows.map((row) => [...row.cells].map((cell) => ({text: cell.innerText, title: cell.title})))")
    assert len(cells) == len(document["layers"])
    for line, layer in zip(cells, document["layers"], strict=True):
        assert line[1]["text"].startswith(f"layers.{layer['index']}")
        assert [as_number(line[2]["title"]), as_number(line[3]["title"])] == [layer["left_norm"], layer["right_norm"]]
        assert line[2]["text"] == four_digits(layer["left_norm"])
        assert line[5]["text"] in {
            two_places(layer["by_name"]["norm_rel"]),
            f"{layer['by_name']['norm_rel'] * 100:.1f}\u00a0%",
            "<\u00a00.01\u00a0%",
        }
    struck = {as_number(text) for text in lines.locator("s").all_inner_texts()}
    alarming = {round(layer["by_name"]["norm_rel"], 4) for layer in document["layers"] if layer["by_name"]["norm_rel"] > 0.02}
    assert {round(share, 3) for share in alarming} <= {round(share, 3) for share in struck}
    return cells


def tells_of_the_residual_stream(bench: Workbench, document: dict[str, Any], language: str) -> None:
    [finding] = [finding for finding in document["findings"] if finding["code"] == "residual_pair_output"]
    expect(bench.page.get_by_text(finding["text"][language])).to_be_attached()
