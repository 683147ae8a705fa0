"""Figures, not tests: how fast and how small a comparison is (`python -m tests.bench`), and how often its answer is right
(`python -m tests.bench.scoreboard`)."""
