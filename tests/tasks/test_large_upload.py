"""A large upload costs the web server little memory, whatever happens on the way. `./test bench` does the same with 2 GB."""

from __future__ import annotations

import sys

import pytest

from tests.large_upload import send
from tests.live import free_port

pytestmark = pytest.mark.timeout(280)


def test_a_large_upload_costs_little_memory_and_survives_dropped_connections_and_a_restart(start_stack, tmp_path, capsys):
    figures = send(start_stack, tmp_path, free_port(), megabytes=256)
    with capsys.disabled():
        sys.stdout.write(f"\n{figures}\n")
    assert (figures.dropped, figures.restarts) == (2, 1)
    assert figures.cost_mb <= 100
    assert figures.sent < 1.6 * figures.bytes
    assert "Consistent" in figures.verdict
