from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.large_dump import Extent, write_large_dump

FILES = ("dump.json", "construct.json", "stack.json")


@pytest.fixture(scope="session")
def long_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    """The files of two dumps of 30,000 nodes: enough work for seconds, so that something can be killed in the middle of it."""
    folder = tmp_path_factory.mktemp("long")
    for side, seed in (("left", 0), ("right", 1)):
        write_large_dump(folder / side, Extent(layers=64, micro_batches=3), seed=seed)
    return [folder / "left" / name for name in FILES], [folder / "right" / name for name in FILES]
