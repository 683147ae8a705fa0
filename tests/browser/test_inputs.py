"""Everything a side takes: archives, loose json files, folders chosen and dropped; the example; the list of comparisons and its search."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.landing import Landing
from tests.browser.told import CORPUS, TRAIN, inference
from tests.browser.workbench import Workbench

DOWN2 = "First divergence: layers.2 · mlp.down_proj — weights differ"


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The down2 pair as folders, as msprobe writes them: `train/step0/rank0/dump.json` …"""
    folder = tmp_path_factory.mktemp("unpacked")
    for name, archive in (("train", TRAIN), ("infer", inference("down2"))):
        rank = folder / name / "step0" / "rank0"
        rank.mkdir(parents=True)
        with zipfile.ZipFile(archive) as members:
            for member in ("dump.json", "construct.json", "stack.json"):
                (rank / member).write_bytes(members.read(f"step0/rank0/{member}"))
    return {name: folder / name for name in ("train", "infer")}


def rank(folder: Path) -> list[Path]:
    return sorted((folder / "step0" / "rank0").iterdir())


def test_a_folder_is_dropped_with_everything_in_it_and_loose_json_files_beside_it(visit: Visit, unpacked: dict[str, Path]) -> None:
    page = visit("/")
    landing = Landing(page)
    landing.drop("left", unpacked["train"])
    landing.drop("right", *rank(unpacked["infer"]))
    landing.ready("left")
    landing.ready("right")
    for side in ("left", "right"):
        expect(landing.fact(side, "Structure")).to_have_text("construct.json and stack.json found")
    expect(landing.fact("left", "Extent")).to_have_text("1 step × 1 rank, 154 records")
    expect(landing.fact("left", "Role")).to_contain_text("train, guessed from FSDP wrappers")
    expect(landing.fact("right", "Role")).to_contain_text("inference, guessed from engine modules")
    landing.compare()
    assert Workbench(page).arrived().said().startswith(DOWN2)


def test_a_folder_is_chosen_and_a_tar_archive_beside_it(visit: Visit, unpacked: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "rollout.tar.gz", "w:gz") as archive:
        archive.add(unpacked["infer"], "rollout")
    page = visit("/")
    landing = Landing(page)
    landing.choose_folder("left", unpacked["train"])
    landing.choose("right", tmp_path / "rollout.tar.gz")
    expect(landing.ready("left")).to_contain_text("train")
    expect(landing.ready("right")).to_contain_text("rollout")
    landing.compare()
    assert Workbench(page).arrived().said().startswith(DOWN2)


def test_without_construct_and_stack_the_card_says_what_that_costs(visit: Visit, unpacked: dict[str, Path]) -> None:
    landing = Landing(visit("/"))
    landing.choose("left", unpacked["train"] / "step0" / "rank0" / "dump.json")
    landing.ready("left")
    expect(landing.fact("left", "Structure")).to_have_text(
        "no construct.json: structure is read from names; no stack.json: no source lines"
    )


def test_an_archive_is_dropped_and_its_card_holds_the_sum_of_its_bytes(visit: Visit) -> None:
    landing = Landing(visit("/"))
    landing.drop("right", inference("clean"))
    landing.ready("right")
    assert landing.sha256("right") == hashlib.sha256(inference("clean").read_bytes()).hexdigest()
    landing.zone("right").get_by_role("button", name="Remove").click()
    expect(landing.zone("right")).to_contain_text("Drop the inference dump here")


def test_sides_that_were_mixed_up_are_pointed_out_and_swapped(visit: Visit) -> None:
    landing = Landing(visit("/"))
    landing.choose("left", inference("clean"))
    landing.choose("right", TRAIN)
    landing.ready("left")
    landing.ready("right")
    expect(landing.fact("left", "Role")).to_contain_text("reads like inference")
    landing.fact("left", "Role").get_by_role("button", name="swap the sides").click()
    expect(landing.fact("left", "Role")).to_contain_text("train, guessed from FSDP wrappers")
    expect(landing.zone("right")).to_contain_text("q2_infer_stat")


def test_the_example_opens_in_one_click_and_by_one_key(visit: Visit) -> None:
    page = visit("/")
    page.get_by_role("button", name="Open the example").click()
    assert Workbench(page).arrived().said().startswith(DOWN2)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Where do these two runs first part?")
    page.keyboard.press("e")
    Workbench(page).arrived()


def test_what_was_compared_is_listed_with_its_verdict_and_found_by_name_and_verdict(visit: Visit, tmp_path: Path) -> None:
    left, right = tmp_path / "grpo-step-7-train.zip", tmp_path / "grpo-step-7-rollout.zip"
    left.write_bytes((CORPUS / "q2b_train_stat.zip").read_bytes())
    right.write_bytes((CORPUS / "q2b_infer_tok_stat.zip").read_bytes())
    page = visit("/")
    slug = Landing(page).compare_files([left], [right])
    Workbench(page).sentence.wait_for()
    page.go_back()
    recent = page.get_by_role("region", name="Recent comparisons")
    expect(recent.get_by_role("listitem").first).to_contain_text("Not comparable")
    expect(recent.get_by_role("listitem").first).to_contain_text("grpo-step-7-train")
    search = recent.get_by_role("searchbox", name="Search names and verdicts")
    for text in ("grpo-step-7", "not comparable"):
        search.fill(text)
        expect(recent.get_by_role("listitem")).to_have_count(1)
        expect(recent.get_by_role("link")).to_have_attribute("href", f"/c/{slug}")
    search.fill("no such thing")
    expect(recent).to_contain_text("Nothing matches “no such thing”.")
    recent.get_by_role("button", name="Clear the search").click()
    recent.locator(f"a[href='/c/{slug}']").click()
    assert Workbench(page).said().startswith("Not comparable — ")


def test_a_run_stays_on_its_side_when_the_page_is_loaded_again(visit: Visit) -> None:
    page = visit("/")
    landing = Landing(page)
    landing.choose("left", TRAIN)
    landing.ready("left")
    page.reload()
    expect(landing.ready("left")).to_contain_text("q2_train_stat")
