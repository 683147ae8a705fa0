"""Uploads that resume: tus 1.0 (creation, HEAD, PATCH, termination, expiration). ``docs/adr/0003-resumable-uploads.md`` says why."""

from __future__ import annotations

import base64
import re
import time
from contextlib import suppress
from email.utils import format_datetime
from http import HTTPStatus
from io import BytesIO
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compare.api import senders
from compare.api.base import Resource
from compare.api.parsers import OffsetStream
from compare.models import Upload
from compare.services import uploads
from compare.services.refusals import Refusal

TUS = "1.0.0"
LARGEST_DRAINED, LONGEST_DRAIN = 64 * 1024**2, 5.0
SHA256 = re.compile(r"[0-9a-f]{64}")
RESUMABLE = OpenApiParameter("Tus-Resumable", str, OpenApiParameter.HEADER, required=True, enum=[TUS])


class UploadSerializer(serializers.ModelSerializer[Upload]):
    """How far an upload is; ``sha256`` is there when it is complete."""

    offset = serializers.SerializerMethodField()

    class Meta:
        model = Upload
        fields = ("id", "name", "length", "offset", "sha256", "expires_at")
        read_only_fields = fields

    def get_offset(self, upload: Upload) -> int:
        return uploads.offset(upload)


class TusResource(Resource):
    """What every tus request and answer has in common."""

    parser_classes = (OffsetStream,)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # tus: clients behind a proxy that knows only GET and POST say the method in a header.
        spoken = request.headers.get("X-HTTP-Method-Override", "").upper()
        if request.method == "POST" and spoken in {"PATCH", "DELETE"}:
            request.method = spoken
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in {"OPTIONS", "GET"} and request.headers.get("Tus-Resumable") != TUS:
            raise Refusal("tus_version", HTTPStatus.PRECONDITION_FAILED, version=TUS)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response.headers["Tus-Resumable"] = TUS
        response.headers["Cache-Control"] = "no-store"
        if request.method == "PATCH" and response.status_code >= HTTPStatus.BAD_REQUEST:
            drain(request)
        if response.status_code == HTTPStatus.PRECONDITION_FAILED:
            response.headers["Tus-Version"] = TUS
        return response

    @extend_schema(operation_id="uploads_options", request=None, responses={204: None})
    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]
        """What this server can do."""
        ability = {"Tus-Version": TUS, "Tus-Extension": "creation,termination,expiration", "Tus-Max-Size": str(settings.UPLOAD_MAX_BYTES)}
        return Response(status=HTTPStatus.NO_CONTENT, headers=ability)


class Uploads(TusResource):
    """Where uploads begin."""

    permission_classes = (senders.MaySend,)

    @extend_schema(
        operation_id="uploads_create",
        parameters=[
            RESUMABLE,
            OpenApiParameter("Upload-Length", int, OpenApiParameter.HEADER, required=True, description="Bytes of the whole file."),
            OpenApiParameter(
                "Upload-Metadata",
                str,
                OpenApiParameter.HEADER,
                description="`filename <base64>`: its relative path. `sha256 <base64 of the hex digest>`: other bytes are not kept, and "
                "for a known sender (this machine, a token, the key) it is complete at once when the content is here already.",
            ),
        ],
        request=None,
        responses={201: UploadSerializer},
    )
    def post(self, request: Request) -> Response:
        """Begin an upload; its address is in ``Location``. One that is complete at once stands at its length."""
        length = request.headers.get("Upload-Length", "")
        if not (length.isascii() and length.isdigit()) or len(length) > 18:
            raise Refusal("upload_length_required")
        about = metadata(request.headers.get("Upload-Metadata", ""))
        name, declared = about.get("filename") or about.get("name") or "upload", about.get("sha256", "").lower()
        if declared and not SHA256.fullmatch(declared):
            raise Refusal("upload_metadata_malformed")
        here = uploads.of_content(name, int(length), declared) if declared and senders.is_known(request) else None
        upload = here or uploads.create(name, int(length), declared)
        headers = {"Location": reverse("upload", args=[upload.pk]), **standing(upload)}
        return Response(UploadSerializer(upload).data, status=HTTPStatus.CREATED, headers=headers)


class OneUpload(TusResource):
    """One upload on its way."""

    permission_classes = (senders.MaySend,)

    @extend_schema(operation_id="uploads_retrieve", responses={200: UploadSerializer})
    def get(self, request: Request, slug: str) -> Response:
        """How far it is, as JSON."""
        return Response(UploadSerializer(find(slug)).data)

    @extend_schema(operation_id="uploads_head", parameters=[RESUMABLE], responses={200: None})
    def head(self, request: Request, slug: str) -> Response:
        """How far it is, as tus asks it: ``Upload-Offset``."""
        upload = find(slug)
        return Response(headers={**standing(upload), "Upload-Length": str(upload.length)})

    @extend_schema(
        operation_id="uploads_append",
        parameters=[RESUMABLE, OpenApiParameter("Upload-Offset", int, OpenApiParameter.HEADER, required=True)],
        request={"application/offset+octet-stream": OpenApiTypes.BINARY},
        responses={204: None},
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Append the body at ``Upload-Offset``, which must be where the upload stands."""
        upload = find(slug)
        offset = request.headers.get("Upload-Offset", "")
        if not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
            raise Refusal("offset_required")
        size = request.META.get("CONTENT_LENGTH") or ""
        if not size.isdigit():
            raise Refusal("content_length_required", HTTPStatus.LENGTH_REQUIRED)
        stream: Any = request.data if int(size) else BytesIO()  # DRF has no stream for an empty body
        now_at = uploads.append(upload, int(offset), stream, int(size))
        return Response(status=HTTPStatus.NO_CONTENT, headers={**standing(upload), "Upload-Offset": str(now_at)})

    @extend_schema(operation_id="uploads_destroy", parameters=[RESUMABLE], responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Forget the upload and what arrived of it."""
        uploads.terminate(find(slug))
        return Response(status=HTTPStatus.NO_CONTENT)


def drain(request: Request) -> None:
    """Read what is left of the body of a refused request. To a client that is still sending, a server that closes looks like a network that
    broke, and it would never see why. Bounded in bytes and time."""
    left, until = LARGEST_DRAINED, time.monotonic() + LONGEST_DRAIN
    with suppress(OSError):
        while left > 0 and time.monotonic() < until and (block := request._request.read(uploads.BLOCK)):
            left -= len(block)


def find(slug: str) -> Upload:
    upload = Upload.objects.filter(pk=slug).first()
    if upload is None:
        raise Http404
    return upload


def standing(upload: Upload) -> dict[str, str]:
    return {"Upload-Offset": str(uploads.offset(upload)), "Upload-Expires": format_datetime(upload.expires_at, usegmt=True)}


def metadata(header: str) -> dict[str, str]:
    """``Upload-Metadata``: pairs of a key and a base64 value (UTF-8), separated by commas; a key may stand alone."""
    found = {}
    try:
        for pair in filter(None, (part.strip() for part in header.split(","))):
            key, _, value = pair.partition(" ")
            found[key] = base64.b64decode(value.strip(), validate=True).decode()
    except ValueError as error:  # no base64, no UTF-8, or not even ASCII
        raise Refusal("upload_metadata_malformed") from error
    return found
