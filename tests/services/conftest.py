from __future__ import annotations

import pytest

from compare.services import broker
from tests.rooms import api, data_folder, tus  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def _own_room(data_folder, db) -> None:  # noqa: F811
    """Every test of a use case has a data folder and a database of its own."""


@pytest.fixture
def rung(monkeypatch) -> list[tuple[str, str | int, int]]:
    """(task, row, priority) of the messages that the broker took; the broker of these tests is a list."""
    taken: list[tuple[str, str | int, int]] = []

    def send(name, *, args, priority, **_):
        taken.append((name.rpartition(".")[2], args[0], priority))

    monkeypatch.setattr(broker.current_app, "send_task", send)
    monkeypatch.setattr(broker, "waiting", lambda: 0)
    return taken
