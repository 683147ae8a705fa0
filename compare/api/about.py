"""What this server is, for a page or a client that has just arrived."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compare import __version__
from compare.api import senders
from compare.api.base import Resource
from compare.services import examples
from probe_web import access


class Limits(serializers.Serializer[Any]):
    upload_bytes = serializers.IntegerField(help_text="Largest single file.")
    run_files = serializers.IntegerField(help_text="Most files in one run.")


class AboutSerializer(serializers.Serializer[Any]):
    """``example`` is the slug of the example comparison, ``examples`` those of all of them by name."""

    version = serializers.CharField()
    local_mode = serializers.BooleanField(help_text="No accounts: who reaches the server may use it.")
    may_send = serializers.BooleanField(help_text="Whether you may send dumps: false where a token or the key is asked of you.")
    public_url = serializers.CharField(help_text="The address that links carry.")
    loopback_only = serializers.BooleanField(help_text="Links open on the server's own machine only.")
    share_command = serializers.CharField(
        allow_null=True, help_text="How to start this server again so that others reach it; told to its own machine only."
    )
    limits = Limits()
    example = serializers.CharField(allow_null=True)
    examples = serializers.DictField(child=serializers.CharField())


class About(Resource):
    @extend_schema(operation_id="about_retrieve", responses=AboutSerializer)
    def get(self, request: Request) -> Response:
        """Version, address, limits, examples."""
        loaded = examples.loaded()
        answer = {
            "version": __version__,
            "local_mode": not settings.UPLOAD_REQUIRES_TOKEN,
            "may_send": not settings.UPLOAD_REQUIRES_TOKEN or senders.is_known(request),
            "public_url": settings.PUBLIC_URL,
            "loopback_only": settings.LOOPBACK_ONLY,
            "share_command": settings.SHARE_COMMAND if settings.LOOPBACK_ONLY and access.is_local(request._request) else None,
            "limits": {"upload_bytes": settings.UPLOAD_MAX_BYTES, "run_files": settings.UPLOAD_MAX_FILES},
            "example": loaded.get(examples.FIRST),
            "examples": loaded,
        }
        return Response(AboutSerializer(answer).data)
