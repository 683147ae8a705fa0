"""Where files are in the data folder. Every name in it is made here: slugs, sums and numbers, never a word from an upload.

uploads/<slug>.part              bytes that are still arriving
uploads/incoming/                multipart files, until they are blobs
blobs/<2>/<sha256>               content
runs/<slug>/columns/             what the engine read
comparisons/<slug>/result/       what the engine found; served as it is. parts/<n>/ and key_data/ of a spread comparison appear one by one
comparisons/<slug>/exports/      reports, tables, mappings made of it when somebody asked
…/<slug>/attempt-<n>.tmp/        an attempt in the making; a rename publishes it
…/<slug>/attempt-part-<n>-<attempt>.tmp/, attempt-loop-<attempt>.tmp/     the same of a piece of a spread comparison
comparisons/<slug>/attempt-<n>.verdict.json    the verdict, known before the tree is written
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db.models import Model

from compare.models import Blob, Comparison, Job, Part, Piece, Run, Upload

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def root() -> Path:
    return Path(settings.DATA_DIR)


def uploads() -> Path:
    return _made(root() / "uploads")


def incoming() -> Path:
    """Where multipart files land: in the data folder, so that becoming a blob is a rename."""
    return _made(uploads() / "incoming")


def part(upload_id: str) -> Path:
    return uploads() / f"{upload_id}.part"


def blob(sha256: str) -> Path:
    return root() / "blobs" / sha256[:2] / sha256


def job(row: Job) -> Path:
    """The folder of one run or comparison."""
    return root() / ("runs" if isinstance(row, Run) else "comparisons") / row.pk


def columns(run: Run) -> Path:
    return job(run) / "columns"


def contents(run: Run) -> tuple[Path, ...]:
    """The files that a run was read from, in their order: tensors are read out of them when runs are compared."""
    return tuple(blob(sha256) for sha256 in run.files.values_list("blob_id", flat=True))


def result(comparison: Comparison) -> Path:
    return job(comparison) / "result"


def part_result(comparison: Comparison, n: int) -> Path:
    """What the engine found in part ``n``."""
    return result(comparison) / "parts" / str(n)


def key_data(comparison: Comparison) -> Path:
    """What the engine found in key data and configurations."""
    return result(comparison) / "key_data"


def piece_result(piece: Piece) -> Path:
    """Where a piece of a spread comparison is published."""
    return part_result(piece.comparison, piece.n) if isinstance(piece, Part) else key_data(piece.comparison)


def piece_attempt(piece: Piece, number: int) -> Path:
    """Where attempt ``number`` builds it."""
    return job(piece.comparison) / f"attempt-{_piece(piece)}-{number}.tmp"


def exports(comparison: Comparison) -> Path:
    """Files that workers made of a finished comparison."""
    return job(comparison) / "exports"


def attempt(row: Job, number: int) -> Path:
    """Where attempt ``number`` builds."""
    return job(row) / f"attempt-{number}.tmp"


def clear_attempts(row: Job) -> None:
    """Remove whatever earlier attempts left, and make the folder that the next one builds in."""
    for left_over in _attempts(_made(job(row))):
        remove(left_over)


def clear_attempt(row: Job) -> None:
    """Remove what the row's present attempt left when it died, and nothing that a later one is making."""
    for left_over in _attempts(job(row), row.attempt):
        remove(left_over)


def clear_piece_attempt(piece: Piece) -> None:
    """Remove what the present attempt at a piece left when it died."""
    for left_over in _attempts(job(piece.comparison), f"{_piece(piece)}-{piece.attempt}"):
        remove(left_over)


def early_verdict(comparison: Comparison) -> Path:
    """The verdict of the present attempt, while its tree is still being written."""
    return job(comparison) / f"attempt-{comparison.attempt}.verdict.json"


def publish(made: Path, place: Path) -> None:
    """Put a complete folder in its place, at once. An older one is there only where a worker died between this and its row."""
    remove(place)
    _made(place.parent)
    made.replace(place)


def write(path: Path, content: bytes) -> None:
    """Write a whole file at once: a reader sees the old content or the new, never a half."""
    making = path.with_name(path.name + ".tmp")
    try:
        making.write_bytes(content)
        making.replace(path)
    except OSError:
        making.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Remove a file or a folder; one that is not there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def end_attempt(made: Path) -> None:
    """Remove what an attempt was building, and the folder of its row where nothing else is in it."""
    remove(made)
    with suppress(OSError):  # not empty, or gone
        made.parent.rmdir()


def everything() -> Iterator[tuple[Path, str, type[Model] | None]]:
    """Every file and folder that should have a row: where it is, the row's key and model. What is still in the making has none."""
    for path in (root() / "uploads").glob("*.part"):
        yield path, path.stem, Upload
    for path in (root() / "uploads" / "incoming").glob("*"):
        yield path, path.name, None
    for path in (root() / "blobs").glob("*/*"):
        yield path, path.name, Blob
    for folder, model in (("runs", Run), ("comparisons", Comparison)):
        for path in (root() / folder).glob("*"):
            yield path, path.name, model
            yield from ((left_over, left_over.name, None) for left_over in _attempts(path))


def made_bytes() -> int:
    """Bytes of the files below the folders of runs and comparisons; what vanishes meanwhile is not counted."""
    total = 0
    folders = [str(root() / name) for name in ("runs", "comparisons")]
    while folders:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def free_bytes() -> int:
    return shutil.disk_usage(_made(root())).free


def _attempts(folder: Path, number: int | str = "*") -> list[Path]:
    # The engine builds in a hidden folder beside its destination.
    return [*folder.glob(f"attempt-{number}.*"), *folder.glob(f".attempt-{number}.*")]


def _piece(piece: Piece) -> str:
    return f"part-{piece.n}" if isinstance(piece, Part) else "loop"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
