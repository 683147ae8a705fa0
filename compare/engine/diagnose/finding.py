"""One thing the reader should know besides the origins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compare.engine.diagnose.words import Text
from compare.engine.model import JsonObject

MOST_MODULES = 12  # named by a finding


@dataclass(frozen=True, slots=True)
class Finding:
    """``severity``: info, warning or error. ``modules`` are canonical names, ``evidence`` numbers and names behind the sentence."""

    code: str
    severity: str
    text: Text
    modules: Sequence[str] = ()
    evidence: JsonObject = field(default_factory=dict)

    def document(self) -> JsonObject:
        return {"code": self.code, "severity": self.severity, "modules": list(self.modules), "text": self.text, "evidence": self.evidence}
