"""What a comparison may be asked besides its two sides: the long names of the command line, the same on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compare.engine.errors import DumpError
from compare.engine.mapping.read import read_mapping


@dataclass(frozen=True, slots=True)
class Options:
    """``step``, ``rank``, ``stage``: ``"2"`` for both sides or ``"0:2"`` for each. ``exact``: any pair that is not equal counts as
    diverged. ``baseline``: where the second dump of the left side is (a path on the command line, a run id on the wire; whoever runs the
    comparison finds it). ``mapping``: the text of a mapping file, already known to be readable. ``left_role``, ``right_role``: train or
    infer where a person said so, else None (told from the dump)."""

    step: str | None = None
    rank: str | None = None
    stage: str | None = None
    exact: bool = False
    baseline: str | None = None
    mapping: str | None = None
    left_role: str | None = None
    right_role: str | None = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Options:
        """Raises DumpError ``option_unknown``, ``option_invalid``, or what is wrong with the mapping."""
        known = {"step", "rank", "stage", "exact", "baseline", "mapping", "left_role", "right_role"}
        values: dict[str, Any] = {}
        for name, value in document.items():
            if value is None or (name in ("baseline", "mapping") and value in ("", False)):
                continue
            if name not in known:
                raise DumpError("option_unknown", "options", name=str(name)[:40])
            if name == "exact":
                if not isinstance(value, bool):
                    raise DumpError("option_invalid", "options", name=name, value=str(value)[:40])
                values[name] = value
            elif isinstance(value, bool) or not isinstance(value, str | int):
                raise DumpError("option_invalid", "options", name=name, value=str(value)[:40])
            else:
                values[name] = str(value)
        options = cls(**values)
        if options.mapping is not None:
            read_mapping(options.mapping)
        for name in ("step", "rank"):
            for end in options.each(name):
                if end is not None and not end.isdigit():
                    raise DumpError("option_invalid", "options", name=name, value=end[:40])
        return options

    def each(self, name: str) -> tuple[str | None, str | None]:
        """The choice for the left and the right side."""
        text: str | None = getattr(self, name)
        if text is None:
            return None, None
        left, colon, right = text.partition(":")
        return (left or None, right or None) if colon else (text, text)

    def numbers(self, name: str) -> tuple[int | None, int | None]:
        """The choice of a step or rank for each side, as numbers."""
        left, right = self.each(name)
        return None if left is None else int(left), None if right is None else int(right)
