"""The bounds of `python -m tests.bench`, for runners that collect tests."""

from __future__ import annotations

import pytest

from tests.bench import reading, scoreboard, tensors, upload, workers
from tests.bench.__main__ import main


@pytest.mark.timeout(1800)
def test_a_comparison_of_large_dumps_stays_near_the_cost_of_reading_them():
    assert main([]) == 0


@pytest.mark.timeout(1800)
def test_reading_200_000_nodes_a_side_costs_little_more_than_json_loads():
    assert reading.main() == 0


@pytest.mark.timeout(1800)
def test_2_gb_through_the_web_server_cost_it_little_memory():
    assert upload.main() == 0


@pytest.mark.timeout(3600)
def test_what_a_second_worker_saves_is_printed():
    assert workers.main() == 0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [0, 1])
def test_faults_are_found_in_the_right_layer_and_honest_pairs_stay_quiet(seed):
    """Fixed seeds, and fresh ones of the same scenarios."""
    assert scoreboard.main(["--seed", str(seed)]) == 0


@pytest.mark.timeout(1800)
def test_a_tensor_pair_is_compared_at_half_the_speed_of_reading_it_and_in_little_memory():
    assert tensors.main() == 0
