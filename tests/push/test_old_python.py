"""It runs on what a training host has: Python 3.8 or newer, and nothing else."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compare import push
from tests.rooms import CORPUS

SOURCE = Path(push.__file__).read_text()
TREE = ast.parse(SOURCE, feature_version=(3, 8))

# Names that Python 3.9 and later added to what this file works with.
NEWER = {
    *("removeprefix", "removesuffix", "bit_count", "pairwise", "batched", "file_digest", "is_relative_to", "with_stem", "hardlink_to"),
    *(
        "readlink",
        "walk_up",
        "ExceptionGroup",
        "add_note",
        "chdir",
        "to_thread",
        "TaskGroup",
        "nullcontext_async",
        "UTC",
        "BooleanOptionalAction",
    ),
    *("randbytes", "lcm", "cache", "aclosing", "StrEnum", "Self", "TypeAlias", "ParamSpec", "tomllib", "zoneinfo", "graphlib"),
}
STANDARD = {
    *(
        "__future__",
        "argparse",
        "base64",
        "contextlib",
        "functools",
        "hashlib",
        "http",
        "io",
        "json",
        "os",
        "pathlib",
        "re",
        "ssl",
        "struct",
        "sys",
    ),
    *("tarfile", "tempfile", "time", "traceback", "typing", "urllib", "zipfile", "zlib"),
}


def pythons() -> list[str]:
    """Every Python 3.8 or newer on this machine, one a version, those of pyenv too."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path) for path in home.glob("3.*/bin/python3")]
    found += [path for minor in range(8, 16) if (path := shutil.which(f"python3.{minor}"))]
    versions = {}
    for path in found:
        asked = subprocess.run([path, "-c", "import ssl, sys; print(sys.version_info[1])"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and int(asked.stdout) >= 8:
            versions[int(asked.stdout)] = path
    return [versions[minor] for minor in sorted(versions)] or [sys.executable]


def test_its_syntax_is_that_of_python_3_8():
    assert not any(type(node).__name__ in {"Match", "TryStar", "TypeAlias"} for node in ast.walk(TREE))
    for node in ast.walk(TREE):
        if isinstance(node, ast.With):
            # Parenthesised context managers parse under every feature version of newer parsers.
            assert not re.match(r"with \((?!.*\) as)", ast.get_source_segment(SOURCE, node) or "")


def test_it_imports_the_standard_library_of_python_3_8_alone():
    imported = {alias.name.split(".")[0] for node in ast.walk(TREE) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").split(".")[0] for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom)}
    assert imported <= STANDARD


def test_it_uses_no_name_that_is_newer():
    used = {node.attr for node in ast.walk(TREE) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(TREE) if isinstance(node, ast.Name)}
    used |= {alias.name for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert used.isdisjoint(NEWER), used & NEWER


def test_newer_annotations_are_never_evaluated():
    """``list[str]`` and ``X | None`` are for readers: where Python would compute them, 3.8 fails."""
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in TREE.body)
    annotations: set[int] = set()
    for node in ast.walk(TREE):
        for part in ("annotation", "returns"):
            if getattr(node, part, None) is not None:
                annotations |= {id(inner) for inner in ast.walk(getattr(node, part))}
    builtin = {"list", "dict", "tuple", "set", "frozenset", "type"}
    for node in ast.walk(TREE):
        if id(node) in annotations:
            continue
        if isinstance(node, ast.Subscript):
            assert not (isinstance(node.value, ast.Name) and node.value.id in builtin), ast.unparse(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = {ast.unparse(node.left), ast.unparse(node.right)}
            assert sides.isdisjoint({"None", "str", "int", "bytes", "dict", "list"}), ast.unparse(node)


@pytest.mark.timeout(280)
@pytest.mark.parametrize("python", pythons(), ids=lambda path: path.split("/")[-3] if ".pyenv" in path else Path(path).name)
def test_it_runs_on_every_python_at_hand(live_stack, tmp_path, python):
    served = live_stack.get("/push.py")
    assert served.body.decode() == SOURCE
    environment = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    sides = [str(CORPUS / "q2_train_stat.zip"), str(CORPUS / "q2_infer_down2_stat.zip")]
    done = subprocess.run(
        [python, "-W", "error", "-", *sides, "--server", live_stack.url, "--wait"],
        input=served.body,
        capture_output=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    link, sentence = done.stdout.decode().splitlines()
    assert link.startswith(f"{live_stack.url}/c/")
    assert "down_proj" in sentence
