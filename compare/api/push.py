"""``/push.py``: the push client as a lone file, for machines that have Python and nothing of ours."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

FILE = Path(__file__).resolve().parent.parent / "push.py"


@cache
def _content() -> tuple[bytes, str]:
    content = FILE.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


@require_safe
def push_client(request: HttpRequest) -> HttpResponse:
    """``curl -s URL/push.py | python3 - LEFT RIGHT --server URL``."""
    content, etag = _content()
    response = HttpResponse(content, content_type="text/x-python; charset=utf-8", headers={"ETag": etag, "Cache-Control": "no-cache"})
    return get_conditional_response(request, etag=etag, response=response) or response
