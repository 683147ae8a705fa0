"""A disk that is full while something is written: one sentence, nothing half stored, and a second try once there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from compare.models import Comparison, Run
from compare.services import comparisons, runs, storage
from tests.rooms import CORPUS, corpus_run, files_below, uploaded_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def small_disk(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """The data folder on a disk of 24 MB: a file system in memory, which only root may mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"LEFT OUT: no disk can be filled here, mounting one needs root ({mounted.stderr.strip()})")
    settings.DATA_DIR, settings.DISK_RESERVE_BYTES = place, 0
    cache.clear()
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=False)


def leave(disk: Path, room: int) -> Path:
    """Fill the disk until so many bytes are left."""
    ballast = disk / "ballast"
    with ballast.open("wb") as out:
        out.write(bytes(max(0, storage.free_bytes() - room)))
    return ballast


def made(disk: Path) -> set[str]:
    return {name for name in files_below(disk) if name.startswith(("runs/", "comparisons/"))}


@pytest.mark.parametrize("room", [0, 40_000, 120_000])
def test_a_run_that_cannot_be_stored_fails_with_a_sentence_and_is_read_once_there_is_room(small_disk: Path, room: int) -> None:
    run = uploaded_run((CORPUS / "q2_train_stat.zip").read_bytes(), "train.zip")
    waiting = comparisons.create(run.pk, run.pk, {})
    ballast = leave(small_disk, room)
    runs.read(run.pk, "1")
    run.refresh_from_db()
    assert (run.state, (run.error or {})["code"]) == ("failed", "disk_full")
    assert "Traceback" not in str(run.error)
    assert not made(small_disk)
    assert Comparison.objects.get().state == "failed"
    ballast.unlink()
    comparisons.retry(Comparison.objects.get())
    runs.read(run.pk, "2")
    comparisons.compare(waiting.pk, "3")
    found = Run.objects.get()
    assert (found.error, found.state, Comparison.objects.get().state) == (None, "ready", "done")


@pytest.mark.parametrize("room", [0, 20_000, 60_000])
def test_a_comparison_that_cannot_be_stored_fails_with_a_sentence_and_is_done_once_there_is_room(small_disk: Path, room: int) -> None:
    left, right = corpus_run("q2_train_stat"), corpus_run("q2_infer_down2_stat")
    comparison = comparisons.create(left.pk, right.pk, {})
    before = made(small_disk)
    ballast = leave(small_disk, room)
    comparisons.compare(comparison.pk, "1")
    comparison.refresh_from_db()
    assert (comparison.state, (comparison.error or {})["code"]) == ("failed", "disk_full")
    assert comparison.verdict == ""
    assert made(small_disk) == before
    ballast.unlink()
    comparisons.retry(comparison)
    comparisons.compare(comparison.pk, "2")
    comparison.refresh_from_db()
    assert (comparison.state, comparison.first_module) == ("done", "model.layers.2.mlp.down_proj")
