"""Numbers and names as they stand in a sentence, in both languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

Text: TypeAlias = dict[str, str]


def both(en: str, zh: str) -> Text:
    return {"en": en, "zh": zh}


def number(value: float | None) -> str:
    """Four significant digits; NaN and infinities by name."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "−Infinity"
    text = f"{value:.4g}"
    return text.replace("-", "−") if "e" not in text else text


def counted(count: int, one: str, more: str | None = None) -> str:
    """``1 module``, ``2 modules``; ``more`` where the plural is not the singular with an s. For English alone."""
    return f"{count} {one if count == 1 else more or one + 's'}"


def ranges(numbers: Sequence[int]) -> list[str]:
    """0, 1, 2, 5 → 0–2, 5."""
    found: list[list[int]] = []
    for one in numbers:
        if found and one == found[-1][1] + 1:
            found[-1][1] = one
        else:
            found.append([one, one])
    return [str(first) if first == last else f"{first}–{last}" for first, last in found]


def percent(value: float | None) -> str:
    """0.0602 → 6.02 %; three significant digits."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    scaled = 100 * value
    return f"{scaled:.3g} %" if scaled >= 0.01 or scaled == 0 else f"{scaled:.1e} %"


def short(module: str) -> str:
    """``model.layers.2.mlp.down_proj`` → ``layers.2 · mlp.down_proj``: how a heading calls a module."""
    path = module.removeprefix("model.")
    parts = path.split(".")
    for position, part in enumerate(parts):
        if part.isdigit() and position + 1 < len(parts):
            return ".".join(parts[: position + 1]) + " · " + ".".join(parts[position + 1 :])
    return path
