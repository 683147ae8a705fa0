"""The key data of a finished comparison, as files that can be sent."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from compare.engine.errors import DumpError
from compare.models import Comparison
from compare.services import storage
from compare.services.refusals import Refusal

FOLDER, OVERVIEW = "key_data", "overview.json"


@dataclass(frozen=True)
class KeyDataFiles:
    """The folder that the worker wrote, and the runs whose numbers it is about."""

    result: Path
    left: Path
    right: Path
    etag: str

    @property
    def overview(self) -> Path:
        return self.result / FOLDER / OVERVIEW

    def tables(self, n: int) -> Path:
        """The tables of key n."""
        path = self.result / FOLDER / f"{n}.json"
        if not path.is_file():
            raise Refusal("key_data_unknown", HTTPStatus.NOT_FOUND, n=n, t="–")
        return path

    def table(self, n: int, t: int, row: int, start: int) -> dict[str, Any]:
        """Table t of key n with its values, from ``start`` on in line ``row``."""
        from compare.engine.keydata.published import KeyDataReader  # only here: numpy is not needed before

        try:
            return KeyDataReader(self.result, self.left, self.right).table(n, t, row, start)
        except DumpError as error:
            raise Refusal(error.code, HTTPStatus.NOT_FOUND, **error.params) from None


def find(comparison: Comparison) -> KeyDataFiles:
    """Where they are. Refuses with ``not_ready`` before the comparison is done, ``no_key_data`` where neither run holds any."""
    if comparison.state != Comparison.State.DONE:
        raise Refusal("not_ready", HTTPStatus.CONFLICT)
    result = storage.result(comparison)
    if not (result / FOLDER / OVERVIEW).is_file():
        raise Refusal("no_key_data", HTTPStatus.CONFLICT)
    etag = f'"{comparison.pk}.{comparison.attempt}.keydata"'
    return KeyDataFiles(result, storage.columns(comparison.left), storage.columns(comparison.right), etag)
