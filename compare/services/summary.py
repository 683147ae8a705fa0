"""What a list shows of a verdict, copied into the comparison's row."""

from __future__ import annotations

from typing import Any

NO_VERDICT: dict[str, str] = {"verdict": "", "headline_en": "", "headline_zh": "", "first_module": ""}


def summary(verdict: dict[str, Any]) -> dict[str, str]:
    """Of a verdict or a run verdict."""
    first = verdict.get("first_divergence") or verdict.get("first") or {}
    return {
        "verdict": verdict["verdict"],
        "headline_en": verdict["headline"]["en"],
        "headline_zh": verdict["headline"]["zh"],
        "first_module": (first.get("module") or "")[:500],
    }
