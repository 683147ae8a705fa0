"""The comparisons that come with the product: real dumps, taken through the same upload and the same worker as everybody's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compare.models import Comparison, Run
from compare.services import comparisons, runs, uploads

FOLDER = Path(__file__).resolve().parent.parent / "example"


@dataclass(frozen=True)
class Example:
    """Two archives in ``compare/example/``."""

    train: str
    infer: str
    name: str


EXAMPLES = {
    "down2": Example("q2_train_stat.zip", "q2_infer_down2_stat.zip", "Qwen2 · one weight differs in layer 2 | 第 2 层有一个权重不同"),
    "walkthrough": Example("seed24_train.zip", "seed24_infer.zip", "Qwen2, 24 layers · looks 20 % off, is not | 看似相差 20 %，其实一致"),
}
FIRST = "down2"  # the one that the landing page offers


def load() -> list[Comparison]:
    """Make the examples that are not there yet; returns those that were made. A worker does the rest."""
    present = loaded()
    return [_make(key, example) for key, example in EXAMPLES.items() if key not in present]


def loaded() -> dict[str, str]:
    """Comparison ids by example, of those that a reader can open."""
    return dict(Comparison.objects.exclude(example="").order_by("created_at").values_list("example", "pk"))


def _make(key: str, example: Example) -> Comparison:
    left, right = _run(example.train, Run.Role.TRAIN), _run(example.infer, Run.Role.INFER)
    return comparisons.create(left.pk, right.pk, {}, name=example.name, example=key)


def _run(file_name: str, role: str) -> Run:
    """Upload an archive in blocks, as a browser would, and make a run of it."""
    path = FOLDER / file_name
    upload = uploads.create(file_name, path.stat().st_size)
    with path.open("rb") as file:
        while (at := uploads.offset(upload)) < upload.length:
            uploads.append(upload, at, file, min(uploads.BLOCK, upload.length - at))
            upload.refresh_from_db()
    return runs.create_from_uploads([upload.pk], "", role)
