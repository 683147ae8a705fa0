"""The chain of a verdict as lines of text: configuration → key data → stage → rank → module → cause."""

from __future__ import annotations

from collections.abc import Iterator

from compare.engine.diagnose.words import Text, both
from compare.engine.model import JsonObject

SIGNS = {
    "equal": "=", "padding": "≈", "differs": "≠", "consequence": "→", "left_only": "left only", "right_only": "right only",
    "not_compared": "?",
}  # fmt: skip
ASIDE = {  # tables that the sign of their key does not speak for
    "left_only": "only left", "right_only": "only right", "not_read": "not read", "not_comparable": "not comparable",
    "padding": "only padding",
}  # fmt: skip
MOST_SETTINGS = 5
TOLD = ("warning", "error")


def chain_lines(document: JsonObject) -> list[str]:
    """English, for a terminal; of the verdict of a single part that its configurations differ, if they do."""
    return [*_settings(document), *(_lines(document) if "parts" in document else ())]


def settings_words(document: JsonObject) -> Text | None:
    """Which settings differ, those that matter first; None where none does."""
    settings = document.get("configurations")
    if not settings:
        return None
    shown = [f"{row['path']} {_value(row['left'])} / {_value(row['right'])}" for row in settings[:MOST_SETTINGS]]
    left = len(settings) - MOST_SETTINGS
    more = both(f" and {left} more", f" 等 {len(settings)} 项") if left > 0 else both("", "")
    count = "1 setting differs" if len(settings) == 1 else f"{len(settings)} settings differ"
    return both(f"{count}: {', '.join(shown)}{more['en']}", f"{len(settings)} 项设置不同：{'、'.join(shown)}{more['zh']}")


def _settings(document: JsonObject) -> Iterator[str]:
    told = settings_words(document)
    if told is not None:
        yield f"configuration: {told['en']}"
    for finding in document.get("findings", []):
        if finding["code"] == "configuration_one_sided":
            yield f"configuration: on the {finding['evidence']['side']} side only"


def _lines(document: JsonObject) -> Iterator[str]:
    if document["key_data"]:
        yield "key data: " + ", ".join(f"{row['key']} {_sign(row)}" for row in document["key_data"])
    yield from (finding["text"]["en"] for finding in document["findings"] if finding["severity"] in TOLD)
    first = document["first"]
    if first is None:
        return
    place = [f"step {first['step']}" if first["step"] is not None else "", f"rank {first['rank']}" if first["rank"] is not None else ""]
    where = ", ".join(word for word in (first["stage"], *place) if word)
    if where and first["stage"] and document.get("first_part", first) is None:
        yield f"made by: {where}, which agrees"
    elif where:
        yield f"{'stage' if first['stage'] else 'place'}: {where}"
    if first["module"]:
        yield f"module: {first['module']}"
    for cause in (document.get("first_origin") or {}).get("causes", [])[:3]:
        yield f"cause: {cause['text']['en']} ({cause['score']:.2f})"


def _sign(row: JsonObject) -> str:
    counts = {state: row["counts"].get(state, 0) for state in ASIDE if state != row["state"]}
    aside = ", ".join(f"{count} {ASIDE[state]}" for state, count in counts.items() if count)
    return f"{SIGNS[row['state']]} ({aside})" if aside else SIGNS[row["state"]]


def _value(value: object) -> str:
    return "–" if value is None else str(value)[:60]
