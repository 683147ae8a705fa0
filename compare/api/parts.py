"""What is inside a finished comparison: the tree on the wire, one node in full, verdict documents, downloads."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from django.http import FileResponse, HttpResponse, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api.base import Resource, unless_known
from compare.api.comparisons import find_to_read
from compare.services import exports, parts
from compare.services.refusals import Refusal


class Tree(Resource):
    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, slug: str, n: int | None = None) -> HttpResponseBase:
        """The whole aligned tree as binary columns (docs/formats.md), gzip-encoded. It never changes."""
        part = parts.find(find_to_read(slug)[0], n)
        return unless_known(request, part.etag, lambda: send_gzip(part.tree), for_ever=True)


class Node(Resource):
    @extend_schema(responses={200: {"type": "object", "additionalProperties": True}})
    def get(self, request: Request, slug: str, row: int, n: int | None = None) -> HttpResponseBase:
        """One row of the tree in full: both sides' slots, statistics, reasons, stacks (docs/formats.md)."""
        part = parts.find(find_to_read(slug)[0], n)
        return unless_known(request, part.etag, lambda: Response(parts.node(part, row)), for_ever=True)


class PartVerdict(Resource):
    @extend_schema(operation_id="part_verdict_retrieve", responses={200: {"type": "object", "additionalProperties": True}})
    def get(self, request: Request, slug: str, n: int) -> HttpResponseBase:
        """The verdict document of one part."""
        part = parts.find(find_to_read(slug)[0], n)
        return unless_known(request, part.etag, lambda: send_json(part.verdict), for_ever=True)


class Export(Resource):
    @extend_schema(operation_id="exports_retrieve", responses={200: OpenApiTypes.BINARY, 202: {"type": "object"}})
    def get(self, request: Request, slug: str, name: str) -> HttpResponseBase:
        """A download by its file name; 409 ``not_ready`` before there is a verdict."""
        path, content_type = exports.find(find_to_read(slug)[0], name)
        try:
            return HttpResponse(path.read_bytes(), content_type=content_type, headers={"Cache-Control": "private, no-cache"})
        except FileNotFoundError:
            raise Refusal("not_ready", HTTPStatus.CONFLICT) from None


def send_gzip(path: Path) -> FileResponse:
    """A file that is stored compressed and sent as it is."""
    return FileResponse(path.open("rb"), content_type="application/octet-stream", headers={"Content-Encoding": "gzip"})


def send_json(path: Path) -> HttpResponse:
    return HttpResponse(path.read_bytes(), content_type="application/json")
