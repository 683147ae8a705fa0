"""Read-only links to a comparison."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api.base import Resource
from compare.api.comparisons import find
from compare.models import ShareLink
from compare.services import sharing


class ShareLinkSerializer(serializers.ModelSerializer[ShareLink]):
    url = serializers.SerializerMethodField()

    class Meta:
        model = ShareLink
        fields = ("id", "url", "expires_at", "created_at")
        read_only_fields = fields

    def get_url(self, link: ShareLink) -> str:
        return f"/c/{link.pk}"


class NewShareLink(serializers.Serializer[Any]):
    """How long it opens; without ``days`` until it is taken back."""

    days = serializers.IntegerField(min_value=1, max_value=3650, required=False, allow_null=True, default=None)


class ShareLinks(Resource):
    @extend_schema(operation_id="share_links_list", responses=ShareLinkSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The links that still open."""
        return Response(ShareLinkSerializer(sharing.links(find(slug)), many=True).data)

    @extend_schema(operation_id="share_links_create", request=NewShareLink, responses={201: ShareLinkSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """A new read-only link."""
        link = sharing.share(find(slug), self.valid(NewShareLink)["days"])
        return Response(ShareLinkSerializer(link).data, status=HTTPStatus.CREATED)


class OneShareLink(Resource):
    @extend_schema(operation_id="share_links_revoke", responses={204: None})
    def delete(self, request: Request, slug: str, link: str) -> Response:
        """Take a link back."""
        if not sharing.revoke(find(slug), link):
            raise Http404
        return Response(status=HTTPStatus.NO_CONTENT)
