"""A small loop as its tables, for tests that spoil it: two ranks or more, four sequences a rank in micro-batches of two."""

from __future__ import annotations

from typing import Any

import numpy as np

Loop = dict[tuple[str, int, int, int], Any]
PER_TOKEN = ("ref_log_prob", "old_log_prob", "advantages", "log_prob")
SCALARS = ("kl_loss", "loss")
LENGTHS = (4, 2, 3, 1)
WIDTH = 4


def loop(steps: int = 2, ranks: int = 2, *, copies: int = 1, batch: int = 2) -> Loop:
    """``copies`` ranks in a row hold the same; ``batch`` sequences are a micro-batch."""
    tree: Loop = {}
    for step in range(steps):
        for rank in range(ranks):
            g = np.random.default_rng([step, rank // copies])
            tree["prompts", step, rank, 0] = [g.integers(1, 99, 5).astype(np.float32) for _ in LENGTHS]
            tree["responses", step, rank, 0] = [g.integers(1, 99, length).astype(np.float32) for length in LENGTHS]
            valid = np.arange(WIDTH) < np.array(LENGTHS)[:, None]
            for key in PER_TOKEN:
                lines = np.where(valid, -g.exponential(1, (len(LENGTHS), WIDTH)), 0).astype(np.float32)
                for at in range(0, len(LENGTHS), batch):
                    tree[key, step, rank, at // batch] = lines[at : at + batch]
            for key in SCALARS:
                for at in range(0, len(LENGTHS), batch):
                    tree[key, step, rank, at // batch] = np.float32(g.normal())
    return tree


def copy(tree: Loop) -> Loop:
    return {at: [entry.copy() for entry in value] if isinstance(value, list) else np.array(value) for at, value in tree.items()}


def moved(tree: Loop, key: str, *places: tuple[int, int, int]) -> Loop:
    """The same with one number of these tables (step, rank, micro-step) another."""
    found = copy(tree)
    for place in places:
        value = np.array(found[key, *place], np.float32)
        value.flat[0] -= np.float32(0.25)
        found[key, *place] = value
    return found


def permuted(tree: Loop, order: list[int], *, lists: bool = True, tables: bool = True) -> Loop:
    """The sequences of every rank in another order, in the lists, in the tables per token, or in both."""
    found = copy(tree)
    for key, step, rank, micro_step in tree:
        if lists and key in ("prompts", "responses"):
            found[key, step, rank, 0] = [tree[key, step, rank, 0][at] for at in order]
        elif tables and key in PER_TOKEN:
            size = len(tree[key, step, rank, 0])
            lines = np.concatenate([tree[key, step, rank, at] for at in range(len(LENGTHS) // size)])[order]
            found[key, step, rank, micro_step] = lines[micro_step * size : (micro_step + 1) * size]
    return found


def without(tree: Loop, key: str | None = None, step: int | None = None, rank: int | None = None) -> Loop:
    wanted = key, step, rank
    return {at: value for at, value in tree.items() if not all(one is None or one == own for one, own in zip(wanted, at, strict=False))}
