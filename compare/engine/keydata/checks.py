"""What one run's key data must fulfil whatever it is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from compare.engine.keydata.alignment import Place, Tables
from compare.engine.keydata.copies import check_copies
from compare.engine.keydata.numbers import Array, values
from compare.engine.keydata.tables import entry_order
from compare.engine.loop import key_order, quantity
from compare.engine.model import Statistic

LARGEST_LOG_PROB = 1e-6  # a log-probability is not positive; what rounding may add
SAME_POLICY = 1e-6  # |log_prob − old_log_prob| before the first update
SMALLEST_KL = -1e-6
OFF_CENTRE = 0.25  # |mean| of the advantages of a step over their root mean square
FLAT = 0.05  # advantages whose root mean square is smaller come from groups of equal rewards: their mean says nothing
UNKNOWN = -1  # of a place: the number of a rank or micro-step that is not named
LOG_PROBS = frozenset({"log_prob", "old_log_prob", "ref_log_prob", "rollout_log_probs"})


@dataclass(frozen=True, slots=True)
class Check:
    """``tables`` (or steps) were looked at and ``failed`` of them do not hold; ``worst`` is the number that says how badly, ``first`` where
    first: of a check over whole steps without rank and micro-step."""

    code: str
    key: str
    tables: int
    failed: int
    worst: float | None
    first: Place | None


Measured = float | None  # how far a table is from what it should be; None where it is as it should be


def check(side: Tables) -> list[Check]:
    """Every check that applies to the keys the run has, in pipeline order."""
    found: list[Check] = []
    for key in sorted(side.by_key, key=key_order):
        known = quantity(key)
        name = known.key if known else key
        found.append(_each(side, key, "nonfinite", _nonfinite))
        if name in LOG_PROBS:
            found.append(_each(side, key, "log_prob_positive", _positive))
        if name == "kl_loss":
            found.append(_each(side, key, "kl_negative", _negative))
        if known is not None and known.kind == "tokens":
            found.append(_each(side, key, "tokens_not_integral", _not_integral))
        if name == "advantages":
            found.append(_centred(side, key))
        if name == "log_prob":
            found.append(_on_policy(side, key))
    for copied in check_copies(side):
        first = min(copied.failed, key=_ordered, default=None)
        found.append(Check("copies_differ", copied.key, copied.tables, len(copied.failed), None, first))
    return [one for one in found if one.tables]


def probability_differences(side: Tables) -> dict[int, float]:
    """Of verl's token-level check: for every step the mean |p(rollout) − p(training)| over the tokens that its mask keeps (all, without a
    mask of the same shape)."""
    found: dict[int, float] = {}
    for place, row in sorted(side.named("prob_diff").items()):
        kept = _numbers(side, row)
        if kept is not None and kept.size:
            found[place[0]] = float(np.abs(kept.astype(np.float64)).mean())
    return found


def _each(side: Tables, key: str, code: str, measure: Callable[[Array], Measured]) -> Check:
    tables, failed = 0, list[tuple[Place, float]]()
    for place, array in _arrays(side, key):
        tables += 1
        distance = measure(array)
        if distance is not None:
            failed.append((place, distance))
    worst = max((distance for _, distance in failed), key=abs, default=None)
    return Check(code, key, tables, len(failed), worst, failed[0][0] if failed else None)


def _nonfinite(array: Array) -> Measured:
    count = array.size - int(np.isfinite(array).sum())
    return float(count) if count else None


def _positive(array: Array) -> Measured:
    largest = float(np.nanmax(array)) if array.size and not np.isnan(array).all() else 0.0
    return largest if largest > LARGEST_LOG_PROB else None


def _negative(array: Array) -> Measured:
    smallest = float(np.nanmin(array)) if array.size and not np.isnan(array).all() else 0.0
    return smallest if smallest < SMALLEST_KL else None


def _not_integral(array: Array) -> Measured:
    with np.errstate(invalid="ignore"):
        count = int(((array != np.floor(array)) | (array < 0)).sum())
    return float(count) if count else None


def _centred(side: Tables, key: str) -> Check:
    """Step by step over all sequences of all ranks, padding left out where it is known.

    Each sequence counts once, as where rewards are centred in groups (GRPO), or each token does, as where all are whitened (PPO): either
    will do.
    """
    lines: defaultdict[int, list[Array]] = defaultdict(list)
    for place, row in sorted(side.by_key[key].items(), key=lambda entry: _ordered(entry[0])):
        array, lengths = values(side.table, row), side.lengths(row)
        if array is None or array.ndim != 2 or not array.size:
            continue
        kept = [line if lengths is None else line[: lengths[at]] for at, line in enumerate(array.astype(np.float64))]
        if any(len(line) for line in kept) and all(np.isfinite(line).all() for line in kept):
            lines[place[0]] += [line for line in kept if len(line)]
    looked, failed = 0, dict[int, float]()
    for step, found in lines.items():
        means, squares = [float(line.mean()) for line in found], [float((line**2).mean()) for line in found]
        size = float(np.sqrt(np.mean(squares)))
        if len(found) > 1 and size > FLAT:
            looked += 1
            of_sequences, of_tokens = float(np.mean(means)), float(np.concatenate(found).mean())
            if min(abs(of_sequences), abs(of_tokens)) > OFF_CENTRE * size:
                failed[step] = of_sequences
    worst = max(failed.values(), key=abs, default=None)
    return Check("advantages_off_centre", key, looked, len(failed), worst, _whole(min(failed)) if failed else None)


def _whole(step: int) -> Place:
    """A step, and no table of it."""
    return step, UNKNOWN, UNKNOWN, "0"


def _on_policy(side: Tables, key: str) -> Check:
    """Before the first update of a step the policy is the one that made old_log_prob."""
    old = side.named("old_log_prob")
    looked, failed = 0, list[tuple[Place, float]]()
    for place, array in _arrays(side, key):
        row = old.get(place)
        before = _numbers(side, row) if row is not None and place[2] <= 0 else None
        if before is None or before.shape != array.shape or not array.size:
            continue
        looked += 1
        with np.errstate(invalid="ignore"):
            distance = float(np.nanmax(np.abs(array.astype(np.float64) - before), initial=0))
        if distance > SAME_POLICY:
            failed.append((place, distance))
    worst = max((distance for _, distance in failed), default=None)
    return Check("on_policy", key, looked, len(failed), worst, failed[0][0] if failed else None)


def _arrays(side: Tables, key: str) -> Iterator[tuple[Place, Array]]:
    """The numbers of every table in order, without padding where that is known; where only a .json is there, its statistics."""
    for place, row in sorted(side.by_key[key].items(), key=lambda entry: _ordered(entry[0])):
        array = _numbers(side, row)
        if array is not None:
            yield place, array
        elif side.table.present[row]:
            kept = [at for at in (Statistic.MAX, Statistic.MIN) if side.table.present[row] & 1 << at]
            yield place, np.asarray(side.table.statistics[row])[kept]


def _numbers(side: Tables, row: int) -> Array | None:
    """A table's numbers, [*shape]; those that are no padding, [numbers], where that is known."""
    array, valid = values(side.table, row), side.valid(row)
    return array if array is None or valid is None else array[valid]


def _ordered(place: Place) -> tuple[object, ...]:
    return *place[:3], *entry_order(place[3])
