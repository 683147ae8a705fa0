"""What all resources share: JSON in and out, one shape of errors, lists by cursor, answers that a browser already has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils.cache import get_conditional_response
from rest_framework.pagination import CursorPagination
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from compare.api import errors
from compare.api.render import JSONRenderer


class Resource(APIView):
    """The base of every view of the API."""

    parser_classes: Sequence[type[BaseParser]] = (JSONParser,)
    renderer_classes = (JSONRenderer,)

    def get_exception_handler(self) -> Callable[..., Response]:
        return errors.handle

    def valid(self, serializer: type[Serializer[Any]], partial: bool = False) -> dict[str, Any]:
        """The checked body of the request."""
        checked = serializer(data=self.request.data, partial=partial)
        checked.is_valid(raise_exception=True)
        return dict(checked.validated_data)


class Newest(CursorPagination):
    """Newest first, 50 a page. ``next`` and ``previous`` are cursors to send back, not addresses."""

    page_size = 50
    ordering = ("-created_at", "-id")

    def get_next_link(self) -> str | None:
        return _cursor(super().get_next_link())

    def get_previous_link(self) -> str | None:
        return _cursor(super().get_previous_link())

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        cursor = {"type": "string", "nullable": True}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": cursor, "previous": cursor, "results": schema},
        }


def page(view: Resource, request: Request, rows: QuerySet[Any], serializer: type[Serializer[Any]]) -> Response:
    """One page of a list."""
    paginator = Newest()
    found = paginator.paginate_queryset(rows, request, view=view)
    return paginator.get_paginated_response(serializer(found, many=True).data)


def unless_known(request: Request, etag: str, answer: Callable[[], HttpResponseBase], *, for_ever: bool = False) -> HttpResponseBase:
    """``answer()``, or 304 when the sender holds it already. ``for_ever``: the content at this address never changes."""
    known = get_conditional_response(request._request, etag=etag)
    response = known if known is not None and known.status_code == 304 else answer()
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, max-age=31536000, immutable" if for_ever else "private, no-cache"
    return response


def _cursor(link: str | None) -> str | None:
    return parse_qs(urlsplit(link).query)["cursor"][0] if link else None
