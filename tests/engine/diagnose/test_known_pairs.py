"""The answer to every pair of real dumps whose truth is known: word, place, layers, coverage, premises, findings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compare.engine.model import JsonObject
from tests.engine.build import verdict
from tests.engine.diagnose.truth import AGREES, CORE, FURTHER, Known

EVERY = [*CORE, *FURTHER]
MOST_ORIGINS = 16


def answer(known: Known) -> JsonObject:
    return verdict(known.left, known.right, **known.options)


every = pytest.mark.parametrize("known", EVERY, ids=str)


@every
def test_the_verdict_is_the_known_one(known: Known) -> None:
    assert answer(known)["verdict"] in known.verdicts


@pytest.mark.parametrize("known", [known for known in EVERY if known.modules], ids=str)
def test_the_first_divergence_is_at_the_fault(known: Known) -> None:
    first = answer(known)["first_divergence"]
    assert first["module"] in known.modules or (first["kind"] == "between" and first["before"] in known.modules)


@pytest.mark.parametrize("known", [known for known in EVERY if known.difference], ids=str)
def test_the_first_difference_is_at_the_perturbation(known: Known) -> None:
    assert answer(known)["first_difference"]["module"] in known.difference


@pytest.mark.parametrize("known", [known for known in EVERY if known.clean], ids=str)
def test_layers_before_the_fault_agree(known: Known) -> None:
    rows = {row["index"]: row["grade"] for row in answer(known)["layers"]}
    assert [rows.get(index) for index in known.clean if rows.get(index) not in AGREES] == []


@pytest.mark.parametrize("known", [known for known in EVERY if known.explained], ids=str)
def test_nearly_every_record_is_matched_or_explained(known: Known) -> None:
    for name, least in zip(("left", "right"), known.matched, strict=True):
        found = answer(known)["coverage"][name]
        assert 0 < found["matched"] <= found["explained"] <= found["records"]
        assert found["explained"] >= known.explained * found["records"]
        assert found["matched"] >= least * found["records"]


@pytest.mark.parametrize("known", [known for known in EVERY if known.findings], ids=str)
def test_the_findings_are_there(known: Known) -> None:
    assert set(known.findings) <= {finding["code"] for finding in answer(known)["findings"]}


@pytest.mark.parametrize("known", [known for known in EVERY if known.premise], ids=str)
def test_a_broken_premise_ends_the_comparison_and_is_named(known: Known) -> None:
    document = answer(known)
    failed = [premise["code"] for premise in document["premises"] if premise["state"] == "failed"]
    assert known.premise in failed
    assert document["first_divergence"] is None
    assert document["first_difference"] is None
    assert document["origins"] == []


@every
def test_the_first_divergence_is_the_first_origin_and_only_a_diverged_pair_has_one(known: Known) -> None:
    document = answer(known)
    origins = document["origins"]
    assert document["first_divergence"] == (origins[0] if origins else None)
    assert bool(origins) == (document["verdict"] == "diverged")
    assert len(origins) <= MOST_ORIGINS
    assert [origin["order"] for origin in origins] == sorted(origin["order"] for origin in origins)


@every
def test_the_premises_are_all_reported_once(known: Known) -> None:
    premises = answer(known)["premises"]
    assert [premise["code"] for premise in premises] == ["tokens", "length", "positions", "weights", "overlap"]
    assert {premise["state"] for premise in premises} <= {"ok", "failed", "unknown"}


@every
def test_counts_add_up(known: Known) -> None:
    counts = answer(known)["counts"]
    assert counts["pairs"] == sum(counts[grade] for grade in ("equal", "rounding", "noise", "diverged", "incomparable"))
    assert all(value >= 0 for value in counts.values())


@every
def test_places_in_the_order_of_execution_lie_within_the_compared_pairs(known: Known) -> None:
    document = answer(known)
    for origin in document["origins"]:
        assert 0 <= origin["order"] < origin["of"]


@every
def test_the_first_difference_is_not_after_the_first_divergence(known: Known) -> None:
    document = answer(known)
    if document["origins"]:
        assert document["first_difference"]["order"] <= document["origins"][0]["order"]


def texts(value: Any) -> list[JsonObject]:
    """Every object of the document that is a text in both languages."""
    if isinstance(value, dict):
        own = [value] if set(value) == {"en", "zh"} else []
        return own + [text for member in value.values() for text in texts(member)]
    return [text for member in value for text in texts(member)] if isinstance(value, list) else []


@every
def test_every_text_is_there_in_both_languages(known: Known) -> None:
    document = answer(known)
    found = texts(document)
    assert document["headline"] in found
    assert len(found) >= 1 + len(document["findings"]) + sum(len(origin["causes"]) for origin in document["origins"])
    for text in found:
        assert text["en"].strip()
        assert text["zh"].strip()
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text["zh"]), text
        assert not any("\u4e00" <= letter <= "\u9fff" for letter in text["en"]), text
        assert "{" not in text["en"] + text["zh"]
        assert "nan" not in text["en"].split()


@every
def test_the_document_is_strict_json(known: Known) -> None:
    document = answer(known)

    def bare(name: str) -> None:
        raise AssertionError(f"bare {name}")

    assert json.loads(json.dumps(document, allow_nan=False), parse_constant=bare) == document


@every
def test_the_document_has_the_members_of_its_schema(known: Known) -> None:
    document = answer(known)
    assert document["schema"] == "probe-web/verdict/1"
    assert list(document) == [
        "schema",
        "left",
        "right",
        "verdict",
        "headline",
        "premises",
        "first_difference",
        "first_divergence",
        "origins",
        "coverage",
        "layers",
        "findings",
        "counts",
        "ranks_alone",
        "by_rank",
        "timing",
    ]
    for side in ("left", "right"):
        assert {"name", "role", "framework", "task", "level", "step", "ranks", "records"} <= set(document[side])
    assert set(document["counts"]) == {
        "pairs",
        "equal",
        "rounding",
        "noise",
        "diverged",
        "incomparable",
        "unmatched_left",
        "unmatched_right",
    }
    assert set(document["timing"]) == {"read_s", "align_s", "measure_s", "diagnose_s"}
    for origin in document["origins"]:
        assert set(origin) == {
            "module",
            "left",
            "right",
            "slot",
            "direction",
            "order",
            "of",
            "stage",
            "step",
            "rank",
            "kind",
            "after",
            "before",
            "inputs",
            "evidence",
            "confidence",
            "causes",
        }
        assert set(origin["evidence"]) == {"norm_rel", "max_rel", "mean_over_rms", "ulps", "cosine", "rel_l2", "checksums"}
        assert origin["kind"] in ("origin", "nonfinite", "between", "weights")
        assert origin["confidence"] in ("high", "medium", "low")
        assert (origin["after"] is not None or origin["before"] is not None) == (origin["kind"] == "between")
        assert [cause["score"] for cause in origin["causes"]] == sorted((cause["score"] for cause in origin["causes"]), reverse=True)
    for row in document["layers"]:
        assert {"index", "left", "right", "left_norm", "right_norm", "norm_rel", "ulps", "grade", "compared"} <= set(row)
    assert [row["index"] for row in document["layers"]] == sorted({row["index"] for row in document["layers"]})


@every
def test_matched_records_and_unmatched_ones_are_all_the_records(known: Known) -> None:
    document = answer(known)
    for side in ("left", "right"):
        coverage = document["coverage"][side]
        assert coverage["records"] == document[side]["records"]
        assert document["counts"][f"unmatched_{side}"] == coverage["records"] - coverage["matched"]
