"""Parts that one run has alone are called that, and runs whose steps do not meet are told how to pair them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine import build
from tests.engine.keydata.loops import loop
from tests.engine.keydata.trees import write

REFERENCE, UPDATE = "reference_compute_log_prob", "actor_update"


def run(root: Path, *parts: tuple[str, int]) -> Path:
    """The same two layers in every part (stage, step)."""
    modules = ("embed_tokens", *(f"layers.{layer}.mlp.{part}" for layer in range(2) for part in ("gate_proj", "down_proj")), "norm")
    for stage, step in parts:
        call = build.call(build.tensor(8.0), output=[build.tensor(8.0)])
        build.write(root / stage / f"step{step}" / "rank0", {f"Module.model.{name}.Linear.forward.0": call for name in modules})
    return root


def compared(left: Path, right: Path, **options: str) -> JsonObject:
    return compare_paths([left], [right], Options(**options)).document


def every(stages: Sequence[str], steps: Sequence[int]) -> list[tuple[str, int]]:
    return [(stage, step) for stage in stages for step in steps]


@pytest.mark.parametrize(
    ("missing", "en", "zh"),
    [
        (every((REFERENCE, UPDATE), [2]), "2 parts only on the {} (step 2)", "仅{}有 2 个部分（第 2 步）"),
        (every((REFERENCE, UPDATE), [1, 2]), "4 parts only on the {} (steps 1–2)", "仅{}有 4 个部分（第 1–2 步）"),
        (every((UPDATE,), [0, 1, 2]), "3 parts only on the {} (actor_update)", "仅{}有 3 个部分（actor_update）"),
        ([(UPDATE, 1)], "1 part only on the {} (actor_update step 1)", "仅{}有 1 个部分（actor_update 第 1 步）"),
    ],
)
def test_parts_of_one_side_were_said_to_be_impossible_to_compare(tmp_path: Path, missing: list[tuple[str, int]], en: str, zh: str) -> None:
    whole = every((REFERENCE, UPDATE), [0, 1, 2])
    runs = run(tmp_path / "whole", *whole), run(tmp_path / "short", *(part for part in whole if part not in missing))
    for sides, names in ((runs, ("left", "左侧")), (runs[::-1], ("right", "右侧"))):
        document = compared(*sides)
        count = len(whole) - len(missing)
        assert document["verdict"] == "consistent"
        parts = "1 part" if count == 1 else f"{count} parts"
        assert document["headline"] == {
            "en": f"Consistent — {parts} compared, nothing beyond noise; {en.format(names[0])}",
            "zh": f"一致 — 比较了 {count} 个部分，没有超出噪声的差异；{zh.format(names[1])}",
        }


def test_a_part_that_failed_is_not_counted_with_those_of_one_side(tmp_path: Path) -> None:
    left = run(tmp_path / "left", *every((REFERENCE, UPDATE), [0, 1]))
    right = run(tmp_path / "right", (REFERENCE, 0), (UPDATE, 0), (REFERENCE, 1))
    dump = right / REFERENCE / "step1" / "rank0" / "dump.json"
    dump.write_bytes(dump.read_bytes()[:-200])
    said = compared(left, right)["headline"]["en"]
    assert said.startswith(
        "Not comparable — 1 of 3 parts could not be compared; the other 2 show nothing beyond noise; 1 part only on the left"
    )


def test_a_resumed_run_was_told_that_no_part_is_on_both_sides_without_a_word_on_the_option_step(tmp_path: Path) -> None:
    left = run(tmp_path / "left", *every((REFERENCE, UPDATE), [0, 1, 2]))
    right = run(tmp_path / "right", *every((REFERENCE, UPDATE), [10, 11, 12]))
    document = compared(left, right)
    assert document["headline"] == {
        "en": "Not comparable — no step is on both sides (left: steps 0–2; right: steps 10–12); "
        "choose two to compare with the option step, such as 0:10",
        "zh": "无法比较 — 两侧没有相同的步（左侧为第 0–2 步，右侧为第 10–12 步）；可用选项 step 指定要对照的两步，例如 0:10",
    }
    assert compared(left, right, step="0:10")["verdict"] == "identical"


def test_stages_that_do_not_meet_are_not_blamed_on_their_steps(tmp_path: Path) -> None:
    left, right = run(tmp_path / "left", *every((REFERENCE,), [0, 1])), run(tmp_path / "right", *every((UPDATE,), [4, 5]))
    assert "option step" not in compared(left, right)["headline"]["en"]


def test_key_data_of_a_resumed_run_alone_say_the_same(tmp_path: Path) -> None:
    right = {(key, step + 10, rank, micro): value for (key, step, rank, micro), value in loop().items()}
    document = compared(write(loop(), tmp_path / "left"), write(right, tmp_path / "right"))
    (finding,) = [finding for finding in document["findings"] if finding["code"] == "steps_apart"]
    assert finding["text"]["en"].startswith("No step is on both sides (left: steps 0–1; right: steps 10–11); choose two")
