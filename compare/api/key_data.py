"""Key data of a comparison of RL runs: at a glance, one key's tables, one table's values."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api.base import Resource, unless_known
from compare.api.comparisons import find_to_read
from compare.api.parts import send_json
from compare.services import key_data
from compare.services.refusals import Refusal

LARGEST = 2**53


class Window(serializers.Serializer[Any]):
    """Which values of a table are wanted."""

    row = serializers.IntegerField(min_value=0, max_value=LARGEST, required=False, default=0, help_text="the line of the table")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """``from`` is a word of Python's, so that it cannot be a member."""
        start = serializers.IntegerField(min_value=0, max_value=LARGEST, required=False, default=0, help_text="the first value in it")
        return {**super().get_fields(), "from": start}


class Overview(Resource):
    @extend_schema(operation_id="key_data_list", responses={200: {"type": "object", "additionalProperties": True}})
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """Every key with its state, and every step, rank and micro-step of it (docs/formats.md)."""
        files = key_data.find(find_to_read(slug)[0])
        return unless_known(request, files.etag, lambda: send_json(files.overview))


class Loop(Resource):
    @extend_schema(operation_id="loop_retrieve", responses={200: {"type": "object", "additionalProperties": True}})
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """What the run verdict will say of key data and configurations, while the parts are still being compared (docs/formats.md)."""
        files = key_data.find_loop(find_to_read(slug)[0])
        if not files.loop.is_file():
            raise Refusal("no_key_data", HTTPStatus.CONFLICT)
        return unless_known(request, files.etag, lambda: send_json(files.loop))


class Key(Resource):
    @extend_schema(operation_id="key_data_retrieve", responses={200: {"type": "object", "additionalProperties": True}})
    def get(self, request: Request, slug: str, n: int) -> HttpResponseBase:
        """The tables of one key with the numbers of each (docs/formats.md)."""
        files = key_data.find(find_to_read(slug)[0])
        path = files.tables(n)
        return unless_known(request, files.etag, lambda: send_json(path))


class Table(Resource):
    @extend_schema(
        operation_id="key_data_table_retrieve", parameters=[Window], responses={200: {"type": "object", "additionalProperties": True}}
    )
    def get(self, request: Request, slug: str, n: int, t: int) -> HttpResponseBase:
        """One table with the values of both sides (docs/formats.md)."""
        files = key_data.find(find_to_read(slug)[0])
        window = Window(data=request.query_params)
        window.is_valid(raise_exception=True)
        asked = window.validated_data
        return unless_known(request, files.etag, lambda: Response(files.table(n, t, asked["row"], asked["from"])))
