"""The key data of a comparison, as files that can be sent: as soon as they are compared, whatever the parts do."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from compare.engine.errors import DumpError
from compare.models import Comparison, Loop
from compare.services import storage
from compare.services.refusals import Refusal

FOLDER, OVERVIEW, LOOP = "key_data", "overview.json", "loop.json"


@dataclass(frozen=True)
class KeyDataFiles:
    """The folder that the worker wrote, and the runs whose numbers it is about."""

    result: Path
    left: Path
    right: Path
    etag: str

    @property
    def loop(self) -> Path:
        """What the run verdict will say of them."""
        return self.result / FOLDER / LOOP

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
    """Where they are. Refuses with ``not_ready`` before they are compared, with their own error where that failed, with ``no_key_data``
    where neither run holds any.
    """
    files = find_loop(comparison)
    if not files.overview.is_file():
        raise Refusal("no_key_data", HTTPStatus.CONFLICT)
    return files


def find_loop(comparison: Comparison) -> KeyDataFiles:
    """The same with what was found in configurations alone."""
    row: Loop | None = getattr(comparison, "loop", None)
    if row is not None and row.error is not None:
        raise Refusal(row.error["code"], HTTPStatus.CONFLICT, **row.error["params"])
    if comparison.state != Comparison.State.DONE and (row is None or row.state != Loop.State.DONE):
        raise Refusal("not_ready", HTTPStatus.CONFLICT)
    etag = f'"{comparison.pk}.{comparison.attempt if row is None else row.attempt}.keydata"'
    return KeyDataFiles(storage.result(comparison), storage.columns(comparison.left), storage.columns(comparison.right), etag)


def state(comparison: Comparison) -> dict[str, Any] | None:
    """How far they are, ``{state, error}``; None where neither run holds any, or no worker has looked yet, or one worker does it all."""
    row: Loop | None = getattr(comparison, "loop", None)
    return None if row is None else {"state": row.state, "error": row.error}
