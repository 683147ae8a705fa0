"""What the tests of the service rooms share: a data folder of their own, archives, a client that speaks tus, a worker in this process."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from rest_framework.response import Response
from rest_framework.test import APIClient

from compare.models import Comparison, Loop, Part, Run
from compare.services import comparisons, runs, spread, uploads

CORPUS = Path(__file__).parent / "data" / "corpus"
TUS = {"HTTP_TUS_RESUMABLE": "1.0.0"}


@pytest.fixture
def data_folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """An empty data folder. Nothing of one test is seen by the next."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DISK_RESERVE_BYTES = 0
    settings.DATA_DIR.mkdir()
    cache.clear()
    yield settings.DATA_DIR
    cache.clear()


@pytest.fixture
def api() -> APIClient:
    """A client on the server's own machine."""
    return APIClient(raise_request_exception=False)


class TusClient:
    """The four requests of tus 1.0."""

    def __init__(self, client: APIClient) -> None:
        self.client = client

    def create(self, length: int, name: str = "dump.zip", **headers: str) -> Response:
        encoded = base64.b64encode(name.encode()).decode()
        return self.client.post(
            "/api/v1/uploads/", HTTP_UPLOAD_LENGTH=str(length), HTTP_UPLOAD_METADATA=f"filename {encoded}", **{**TUS, **headers}
        )

    def patch(self, url: str, offset: int, content: bytes, **headers: str) -> Response:
        headers = {**TUS, "HTTP_UPLOAD_OFFSET": str(offset), **headers}
        return self.client.generic("PATCH", url, content, content_type="application/offset+octet-stream", **headers)

    def head(self, url: str) -> Response:
        return self.client.head(url, **TUS)

    def delete(self, url: str) -> Response:
        return self.client.delete(url, **TUS)

    def send(self, content: bytes, name: str = "dump.zip") -> str:
        """A whole upload; returns its id."""
        url = self.create(len(content), name)["Location"]
        if content:
            assert self.patch(url, 0, content).status_code == 204
        return str(url).rstrip("/").rsplit("/", 1)[-1]


@pytest.fixture
def tus(api: APIClient) -> TusClient:
    return TusClient(api)


def archive(**members: bytes | str) -> bytes:
    """A zip archive of the given members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def uploaded_run(content: bytes, name: str = "dump.zip", role: str = "auto") -> Run:
    """A queued run of one uploaded file."""
    upload = uploads.create(name, len(content))
    if content:
        uploads.append(upload, 0, io.BytesIO(content), len(content))
    return runs.create_from_uploads([upload.pk], "", role)


def files_below(folder: Path) -> set[str]:
    """Every file below a folder, by relative path."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def corpus_run(name: str, role: str = "auto") -> Run:
    """A run of one of the dumps in tests/data/corpus, read by the real engine in this process."""
    run = uploaded_run((CORPUS / f"{name}.zip").read_bytes(), f"{name}.zip", role)
    runs.read(run.pk, "test")
    run.refresh_from_db()
    return run


def corpus_comparison(left: str, right: str, **options: Any) -> Comparison:
    """Two dumps of the corpus, compared by the real engine in this process."""
    comparison = comparisons.create(corpus_run(left).pk, corpus_run(right).pk, options)
    worked_off(comparison)
    return comparison


def worked_off(comparison: Comparison) -> None:
    """All that a worker would do for a comparison, done in this process."""
    comparisons.compare(comparison.pk, "test")
    for loop in Loop.objects.filter(comparison=comparison, state="queued"):
        spread.compare_loop(loop.pk, "test", "this process")
    for part in Part.objects.filter(comparison=comparison, state="queued"):
        spread.compare(part.pk, "test", "this process")
    spread.reduce(comparison.pk, "test")
    comparison.refresh_from_db()
