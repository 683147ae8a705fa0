"""What is inside a finished comparison: the tree on the wire, one node in full, verdict documents, downloads."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.http import FileResponse, HttpResponse, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api.base import Resource, unless_known
from compare.api.comparisons import find_to_read
from compare.services import exports, parts, recovery
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


class ExportState(serializers.Serializer[Any]):
    """A file that is being made."""

    state = serializers.ChoiceField(choices=("queued", "making"))
    progress = serializers.DictField()


class Export(Resource):
    @extend_schema(
        operation_id="exports_retrieve",
        parameters=[OpenApiParameter("lang", str, description="language of a report", enum=exports.LANGUAGES)],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, 202: ExportState},
    )
    def get(self, request: Request, slug: str, name: str) -> HttpResponseBase:
        """A download by its file name. 202 while a worker makes it, 409 ``not_ready`` before there is a verdict."""
        found = exports.find(find_to_read(slug)[0], name, request.query_params.get("lang", "en"))
        if not isinstance(found, exports.File):
            export = recovery.look_at_export(found)
            return Response({"state": export.state, "progress": export.progress}, status=HTTPStatus.ACCEPTED)
        try:
            file = found.path.open("rb")
        except FileNotFoundError:
            raise Refusal("not_ready", HTTPStatus.CONFLICT) from None
        response = FileResponse(file, as_attachment=found.made, filename=found.kept_as, content_type=found.content_type)
        response.headers["Cache-Control"] = "private, no-cache"
        return response


def send_gzip(path: Path) -> FileResponse:
    """A file that is stored compressed and sent as it is."""
    return FileResponse(path.open("rb"), content_type="application/octet-stream", headers={"Content-Encoding": "gzip"})


def send_json(path: Path) -> HttpResponse:
    return HttpResponse(path.read_bytes(), content_type="application/json")
