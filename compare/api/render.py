"""JSON out. NaN and ±Inf travel as the strings "NaN", "Infinity", "-Infinity": orjson alone would silently write null for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer


def finite(data: Any) -> Any:
    """The same structure with every number that orjson cannot write as text; an ``orjson.Fragment`` is JSON already."""
    if isinstance(data, float):
        if math.isfinite(data):
            return data
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    if isinstance(data, int) and not -(2**63) <= data < 2**64:
        return str(data)
    if isinstance(data, Mapping):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return data


def dumps(data: Any) -> bytes:
    """Data as JSON. What is neither JSON nor an orjson type (DRF's lazy strings) is written as text."""
    return orjson.dumps(finite(data), default=str)


class JSONRenderer(BaseRenderer):
    """The one renderer of the API."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None) -> bytes:
        return b"" if data is None else dumps(data)
