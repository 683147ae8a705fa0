"""A small decoder in two calling conventions, run in numpy with honest rounding, dumped as msprobe dumps it.

`simulate(scenario)` writes a train dump and an inference dump whose differences are known: rounding alone, or rounding and one
fault. `scenarios()` is a named catalogue; `python -m tests.simulator OUT` writes it to a folder. Nothing here reads the product's
code: what belongs here is how models compute and what dumps look like.
"""

from __future__ import annotations

import os

# One thread: matrices are small, several catalogues may be made at once, and sums keep one order.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.simulator.catalogue import scenarios
from tests.simulator.scenario import Pair, Scenario, Truth, simulate

__all__ = ["Pair", "Scenario", "Truth", "scenarios", "simulate"]
