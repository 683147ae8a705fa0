"""What a run verdict says of the size of a difference: none where there is none, and how many where the numbers are names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.keydata.loops import Loop, copy, loop
from tests.engine.keydata.trees import write


def compared(left: Loop, right: Loop, folder: Path) -> JsonObject:
    paths = [write(tree, folder / name) for name, tree in (("left", left), ("right", right))]
    return compare_paths(paths[:1], paths[1:], Options()).document


def said(document: JsonObject, code: str) -> dict[str, str]:
    (finding,) = [finding for finding in document["findings"] if finding["code"] == code]
    text: dict[str, str] = finding["text"]
    return text


def spoiled(place: tuple[str, int, int, int], *numbers: float) -> Loop:
    """The loop with its first numbers of a table others."""
    found = copy(loop())
    found[place].flat[: len(numbers)] = numbers
    return found


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("numbers", "en", "zh"),
    [
        ((np.nan,), "(NaN on one side at 1 place in the first table that differs)", "（首个不同的表中 1 处仅一侧为 NaN）"),
        ((np.nan, np.nan), "(NaN on one side at 2 places in the first table that differs)", "（首个不同的表中 2 处仅一侧为 NaN）"),
        (
            (np.inf,),
            "(Inf where the other side holds something else in the first table that differs)",
            "（首个不同的表中一侧为 Inf，另一侧对应位置为其他值）",
        ),
        (
            (np.nan, 1000.0),
            "apart, NaN on one side at 1 place in the first table that differs)",
            "，1 处仅一侧为 NaN）",
        ),
    ],
)
def test_nan_and_inf_were_at_most_0_and_at_most_infinity_apart(
    tmp_path: Path, numbers: tuple[float, ...], en: str, zh: str, *, there: bool
) -> None:
    trees = loop(), spoiled(("old_log_prob", 1, 0, 0), *numbers)
    text = said(compared(*(trees if there else trees[::-1]), tmp_path), "key_data_actor_forward")
    assert text["en"].endswith(en)
    assert text["zh"].endswith(zh)
    assert "at most 0 " not in text["en"]


def test_a_table_of_another_shape_was_at_most_0_apart(tmp_path: Path) -> None:
    right = copy(loop())
    right["kl_loss", 1, 0, 1] = np.repeat(right["kl_loss", 1, 0, 1], 4).reshape(1, 4)
    left = copy(loop())
    left["kl_loss", 1, 0, 1] = np.repeat(left["kl_loss", 1, 0, 1], 5).reshape(1, 5)
    text = said(compared(left, right, tmp_path), "key_data_kl_loss")
    assert text["en"].endswith("(shapes [1, 5] and [1, 4] in the first table that differs)")
    assert text["zh"].endswith("（首个不同的表中形状为 [1, 5] 与 [1, 4]）")


def test_token_ids_were_said_to_lie_at_most_so_far_apart(tmp_path: Path) -> None:
    """Of two responses of step 1 one token each is another."""
    right: dict[Any, Any] = copy(loop())
    for at in (0, 1):
        right["responses", 1, 0, 0][at][1] += 173
    document = compared(loop(), right, tmp_path)
    text = said(document, "key_data_responses")
    assert text["en"].endswith("(1 of 4 tokens differs in the first table that differs)")
    assert text["zh"].endswith("（首个不同的表中 4 个词元中有 1 个不同）")
    (drift,) = [row for row in document["drift"] if row["key"] == "responses"]
    assert (drift["measure"], drift["values"]) == ("differing_tokens", [0, 2])
    assert drift["text"]["en"].startswith("responses (tokens that differ): nothing before step 1, then 2")
    assert drift["text"]["zh"].startswith("responses（不同的词元数）：第 1 步之前没有，之后为 2")
    assert "173" not in str(document["drift"])
