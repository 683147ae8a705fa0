from __future__ import annotations

import pytest

from tests.rooms import api, data_folder, tus  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def _own_room(data_folder, db) -> None:  # noqa: F811
    """Every test of a use case has a data folder and a database of its own."""
