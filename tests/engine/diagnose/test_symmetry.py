"""Swapping the sides mirrors everything and changes no name; renaming wrappers changes nothing at all."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compare.engine.model import JsonObject
from compare.engine.options import Options
from compare.engine.pipeline import compare_paths
from tests.engine.build import CORPUS, pairs, part, verdict, write
from tests.engine.diagnose.truth import CORE, FURTHER, Known

PAIRS = {(known.left, known.right, known.options.get("exact", False)): known for known in [*CORE, *FURTHER] if "step" not in known.options}
swapped = pytest.mark.parametrize("known", PAIRS.values(), ids=str)


def both(known: Known) -> tuple[JsonObject, JsonObject]:
    return verdict(known.left, known.right, **known.options), verdict(known.right, known.left, **known.options)


@swapped
def test_swapping_the_sides_keeps_the_verdict(known: Known) -> None:
    there, back = both(known)
    assert there["verdict"] == back["verdict"]
    assert [(p["code"], p["state"]) for p in there["premises"]] == [(p["code"], p["state"]) for p in back["premises"]]


@swapped
def test_swapping_the_sides_keeps_the_places(known: Known) -> None:
    there, back = both(known)
    for member in ("first_difference", "first_divergence"):
        ours, theirs = there[member], back[member]
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours["module"] == theirs["module"]
            assert (ours["left"], ours["right"]) == (theirs["right"], theirs["left"])
    assert [(o["module"], o["kind"], o["after"], o["before"]) for o in there["origins"]] == [
        (o["module"], o["kind"], o["after"], o["before"]) for o in back["origins"]
    ]


@swapped
def test_swapping_the_sides_mirrors_the_layers_and_the_coverage(known: Known) -> None:
    there, back = both(known)
    assert [(row["index"], row["grade"], row["left_norm"], row["right_norm"]) for row in there["layers"]] == [
        (row["index"], row["grade"], row["right_norm"], row["left_norm"]) for row in back["layers"]
    ]
    assert there["coverage"]["left"] == back["coverage"]["right"]
    assert there["coverage"]["right"] == back["coverage"]["left"]
    counts = back["counts"] | {"unmatched_left": back["counts"]["unmatched_right"], "unmatched_right": back["counts"]["unmatched_left"]}
    assert there["counts"] == counts


@swapped
def test_swapping_the_sides_gives_the_mirrored_pairs(known: Known) -> None:
    there, back = (part(a, b, **known.options).cases[0] for a, b in ((known.left, known.right), (known.right, known.left)))
    assert sorted(map(str, ((sorted(left), sorted(right)) for left, right in pairs(there)))) == sorted(
        map(str, ((sorted(left), sorted(right)) for right, left in pairs(back)))
    )


def layer(path: str) -> str:
    return r"(model\.layers\.\d+)" + path


def unwrapped(name: str) -> str:
    return name.replace("_fsdp_wrapped_module.", "")


# How other trainers would have written the FSDP1 names of the corpus. Classes are the component before .forward.
WRAPPINGS: dict[str, Callable[[str], str]] = {
    "plain": unwrapped,
    "ddp": lambda name: unwrapped(name).replace("Module.", "Module.module.", 1),
    "ddp_twice": lambda name: unwrapped(name).replace("Module.", "Module.module.module.", 1),
    "compile": lambda name: unwrapped(name).replace("Module.", "Module._orig_mod.", 1),
    "compiled_layers": lambda name: re.sub(layer(""), r"\1._orig_mod", unwrapped(name)),
    "checkpoint": lambda name: re.sub(layer(""), r"\1._checkpoint_wrapped_module", unwrapped(name)),
    "fsdp_checkpoint": lambda name: re.sub(r"(model\.layers\.\d+\._fsdp_wrapped_module)", r"\1._checkpoint_wrapped_module", name),
    "peft": lambda name: name.replace("_fsdp_wrapped_module.", "_fsdp_wrapped_module.base_model.model.", 1),
    "list": lambda name: name.replace("Module.", "Module.0.", 1),
    "fsdp2": lambda name: re.sub(r"\.(Qwen2DecoderLayer|Qwen2ForCausalLM)\.", r".FSDP\1.", unwrapped(name)),
    "ddp_compile_peft": lambda name: unwrapped(name).replace("Module.", "Module.module._orig_mod.base_model.model.", 1),
}


def members(name: str) -> dict[str, Any]:
    with zipfile.ZipFile(CORPUS / f"{name}.zip") as archive:
        return {
            entry.rsplit("/", 1)[1]: json.loads(archive.read(entry))
            for entry in archive.namelist()
            if entry.endswith(("dump.json", "construct.json"))
        }


def without_names(document: JsonObject) -> JsonObject:
    """The document without the raw record names, the side's name and the seconds."""
    kept = {key: value for key, value in document.items() if key not in ("left", "right", "timing")}
    for place in [kept["first_difference"], kept["first_divergence"], *kept["origins"]]:
        if place is not None:
            place.pop("left", None)
            place.pop("right", None)
    return kept


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("right", ["q2_infer_stat", "q2_infer_down2_stat"])
def test_renaming_wrappers_changes_nothing(wrapping: str, right: str, tmp_path: Path) -> None:
    files, rename = members("q2_train_stat"), WRAPPINGS[wrapping]
    records = {rename(name): value for name, value in files["dump.json"]["data"].items()}
    assert list(records) != list(files["dump.json"]["data"])
    construct = {
        rename(child): parent and [rename(parent[0]), *parent[1:]] if isinstance(parent, list) else parent and rename(parent)
        for child, parent in files["construct.json"].items()
    }
    path = write(tmp_path / "step0" / "rank0", records, construct)
    found = compare_paths([path], [CORPUS / f"{right}.zip"], Options()).document
    expected = json.loads(json.dumps(verdict("q2_train_stat", right)))
    assert without_names(found) == without_names(expected)


def test_the_inner_model_alone_is_called_as_within_its_head(tmp_path: Path) -> None:
    """A dump of model.model has no ``model.`` in front, on either side of the comparison."""
    files = members("q2_train_stat")
    inner = {
        unwrapped(name).replace("Module.model.", "Module.", 1): value
        for name, value in files["dump.json"]["data"].items()
        if "model." in name
    }
    path = write(tmp_path / "step0" / "rank0", inner)
    found = compare_paths([path], [CORPUS / "q2_infer_down2_stat.zip"], Options()).document
    assert found["first_divergence"]["module"] == "model.layers.2.mlp.down_proj"
    assert [row["index"] for row in found["layers"]] == [0, 1, 2, 3]
