"""Comparisons: two runs each, and what became of them."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import orjson
from django.db.models import Q
from django.http import Http404, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api import senders
from compare.api.base import Resource, page, unless_known
from compare.api.runs import INVENTORY, SEARCH, NameAndTags, inventory_of
from compare.models import Comparison, Loop, Part, Run, ShareLink
from compare.services import comparisons, key_data, naming, parts, recovery, retention, sharing

NUMBER = re.compile(r"\d{1,9}(:\d{1,9})?")
STAGE = re.compile(r"[^:]{1,100}(:[^:]{1,100})?")


class Chosen(serializers.Field[Any, Any, Any, Any]):
    """One choice for both sides, or ``left:right``; a bare number will do."""

    def __init__(self, pattern: re.Pattern[str], **options: Any) -> None:
        super().__init__(**options)
        self.pattern = pattern

    def to_internal_value(self, data: Any) -> str:
        text = str(data) if isinstance(data, (str, int)) and not isinstance(data, bool) else ""
        if not self.pattern.fullmatch(text) or "\0" in text:
            raise serializers.ValidationError("one choice, or left:right")
        return text

    def to_representation(self, value: Any) -> Any:
        return value


class Options(serializers.Serializer[Any]):
    """The command line's options by their long names; ``baseline`` is a run id, ``mapping`` the text of a mapping file."""

    step = extend_schema_field(OpenApiTypes.STR)(Chosen)(NUMBER, required=False, allow_null=True)
    rank = extend_schema_field(OpenApiTypes.STR)(Chosen)(NUMBER, required=False, allow_null=True)
    stage = extend_schema_field(OpenApiTypes.STR)(Chosen)(STAGE, required=False, allow_null=True)
    exact = serializers.BooleanField(required=False)
    baseline = serializers.CharField(max_length=32, required=False, allow_null=True)
    mapping = serializers.CharField(max_length=1_000_000, required=False, allow_null=True, trim_whitespace=False)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name: ["there is no such option"] for name in unknown})
        return dict(super().to_internal_value(data))


class NewComparison(serializers.Serializer[Any]):
    """Two run ids, in any state but failed."""

    left = serializers.CharField(max_length=32)
    right = serializers.CharField(max_length=32)
    options = Options(required=False)
    name = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    previous = serializers.CharField(max_length=32, required=False, allow_null=True, default=None)


class SideName(serializers.ModelSerializer[Run]):
    """A run in a list."""

    class Meta:
        model = Run
        fields = ("name", "role")
        read_only_fields = fields


class Side(serializers.ModelSerializer[Run]):
    """A run as its comparison shows it. Its id is left out for who came by a read-only link."""

    id = serializers.SerializerMethodField()
    progress = serializers.DictField(read_only=True)
    error = serializers.DictField(read_only=True, allow_null=True)
    inventory = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = ("id", "name", "role", "state", "progress", "error", "inventory")
        read_only_fields = fields

    @extend_schema_field(INVENTORY)
    def get_inventory(self, run: Run) -> orjson.Fragment | None:
        return inventory_of(run)

    def get_id(self, run: Run) -> str | None:
        return None if self.context.get("link") else run.pk


class Headline(serializers.Serializer[Any]):
    """The verdict in a sentence."""

    en = serializers.CharField(source="headline_en")
    zh = serializers.CharField(source="headline_zh")


class ComparisonBase(serializers.ModelSerializer[Comparison]):
    """What a list and a page both show of a comparison."""

    url = serializers.SerializerMethodField()
    tags = serializers.ListField(child=serializers.CharField(), read_only=True)
    progress = serializers.DictField(read_only=True)
    error = serializers.DictField(read_only=True, allow_null=True)
    headline = serializers.SerializerMethodField()

    class Meta:
        model = Comparison
        fields = (
            "id",
            "url",
            "name",
            "tags",
            "state",
            "progress",
            "error",
            "verdict",
            "headline",
            "first_module",
            "left",
            "right",
            "example",
            "created_at",
            "updated_at",
            "finished_at",
        )
        read_only_fields = fields

    def get_url(self, comparison: Comparison) -> str:
        return f"/c/{comparison.pk}"

    @extend_schema_field(Headline(allow_null=True))
    def get_headline(self, comparison: Comparison) -> dict[str, str] | None:
        return {"en": comparison.headline_en, "zh": comparison.headline_zh} if comparison.verdict else None


class ComparisonRow(ComparisonBase):
    """A comparison in a list: ``verdict`` is the verdict's one word, null while there is none."""

    left = SideName(read_only=True)
    right = SideName(read_only=True)
    verdict = serializers.SerializerMethodField()

    def get_verdict(self, comparison: Comparison) -> str | None:
        return comparison.verdict or None


class PartState(serializers.Serializer[Any]):
    """One part while the comparison runs and after: its verdict document is there as soon as it is ``done``."""

    n = serializers.IntegerField()
    stage = serializers.CharField(allow_null=True)
    step = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(Part.State.choices)
    verdict = serializers.CharField(allow_null=True)
    error = serializers.DictField(allow_null=True)


class LoopState(serializers.Serializer[Any]):
    """Key data and configurations of several parts: they can be read as soon as they are ``done``, before the parts are."""

    state = serializers.ChoiceField(Loop.State.choices)
    error = serializers.DictField(allow_null=True)


class ComparisonSerializer(ComparisonBase):
    """A comparison: ``verdict`` is the verdict document as soon as it is known, which may be before ``done``."""

    id = serializers.SerializerMethodField()
    left = Side(read_only=True)
    right = Side(read_only=True)
    options = serializers.DictField(read_only=True)
    verdict = serializers.SerializerMethodField()
    parts = serializers.SerializerMethodField()
    loop = serializers.SerializerMethodField()
    previous = serializers.SerializerMethodField()
    read_only = serializers.SerializerMethodField()  # type: ignore[assignment]

    class Meta:
        model = Comparison
        fields = (*ComparisonBase.Meta.fields, "options", "parts", "loop", "cancel_requested_at", "previous", "read_only")
        read_only_fields = fields

    @property
    def link(self) -> ShareLink | None:
        """The read-only link that its reader came by."""
        return self.context.get("link")

    def get_id(self, comparison: Comparison) -> str:
        return self.link.pk if self.link else comparison.pk

    def get_url(self, comparison: Comparison) -> str:
        return f"/c/{self.get_id(comparison)}"

    @extend_schema_field({"type": "string", "nullable": True})
    def get_previous(self, comparison: Comparison) -> str | None:
        """The comparison it was begun from; not for who came by a read-only link, whom that address would let further in."""
        return None if self.link else comparison.previous_id

    def get_read_only(self, comparison: Comparison) -> bool:
        return self.link is not None

    @extend_schema_field(PartState(many=True))
    def get_parts(self, comparison: Comparison) -> list[dict[str, Any]]:
        return parts.states(comparison)

    @extend_schema_field(LoopState(allow_null=True))
    def get_loop(self, comparison: Comparison) -> dict[str, Any] | None:
        return key_data.state(comparison)

    @extend_schema_field({"type": "object", "additionalProperties": True, "nullable": True})
    def get_verdict(self, comparison: Comparison) -> Any:
        content = comparisons.verdict_document(comparison)
        return None if content is None else orjson.Fragment(content)


class Comparisons(Resource):
    """All comparisons, and new ones."""

    permission_classes = (senders.MaySend,)

    @extend_schema(
        operation_id="comparisons_list",
        parameters=[*SEARCH, OpenApiParameter("run", str, description="The id of a run: only comparisons that use it.")],
        responses=ComparisonRow(many=True),
    )
    def get(self, request: Request) -> Response:
        """The newest comparisons; closed to other machines without the start-up key."""
        rows = Comparison.objects.with_sides()
        if run := request.query_params.get("run", "").replace("\0", ""):
            rows = rows.filter(comparisons.uses(run))
        if search := request.query_params.get("search", "").replace("\0", ""):
            words = ("name", "tags", "headline_en", "headline_zh", "first_module", "left__name", "right__name")
            rows = rows.filter(Q(*((f"{word}__icontains", search) for word in words), _connector=Q.OR))
        return page(self, request, rows, ComparisonRow)

    @extend_schema(operation_id="comparisons_create", request=NewComparison, responses={201: ComparisonSerializer})
    def post(self, request: Request) -> Response:
        """Compare two runs. Runs that are still being read are waited for."""
        wanted = self.valid(NewComparison)
        previous = find(wanted["previous"]) if wanted["previous"] else None
        comparison = comparisons.create(wanted["left"], wanted["right"], wanted.get("options", {}), wanted["name"], previous=previous)
        headers = {"Location": f"/api/v1/comparisons/{comparison.pk}/"}
        return Response(ComparisonSerializer(comparison).data, status=HTTPStatus.CREATED, headers=headers)


class OneComparison(Resource):
    """One comparison."""

    @extend_schema(operation_id="comparisons_retrieve", responses=ComparisonSerializer)
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """State, progress, verdict; cheap to ask again with ``If-None-Match``. A share link's slug opens it too, read only."""
        comparison, link = find_to_read(slug)
        retention.opened(comparison)
        recovery.look_at(comparison)
        touched = [row.updated_at.timestamp() for row in (comparison, *comparisons.runs_of(comparison))]
        etag = '"' + "-".join(f"{moment:.6f}" for moment in touched) + '"'
        return unless_known(request, etag, lambda: Response(ComparisonSerializer(comparison, context={"link": link}).data))

    @extend_schema(operation_id="comparisons_update", request=NameAndTags, responses=ComparisonSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change name or tags."""
        comparison = find(slug)
        naming.change(comparison, **self.valid(NameAndTags))
        return Response(ComparisonSerializer(comparison).data)

    @extend_schema(operation_id="comparisons_destroy", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Remove a comparison with its files. Its runs stay."""
        comparisons.delete(find(slug))
        return Response(status=HTTPStatus.NO_CONTENT)


class Cancel(Resource):
    @extend_schema(operation_id="comparisons_cancel", request=None, responses=ComparisonSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Stop: at once while queued, within seconds while running."""
        return Response(ComparisonSerializer(comparisons.cancel(find(slug))).data)


class Retry(Resource):
    @extend_schema(operation_id="comparisons_retry", request=None, responses=ComparisonSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Queue a failed, cancelled or interrupted comparison again, or one with failed parts: parts that are done are not repeated."""
        return Response(ComparisonSerializer(comparisons.retry(find(slug))).data)


class RetryPart(Resource):
    @extend_schema(operation_id="parts_retry", request=None, responses=ComparisonSerializer)
    def post(self, request: Request, slug: str, n: int) -> Response:
        """Compare one failed part again, now or while the others are going on. The verdict over the parts is made anew afterwards."""
        return Response(ComparisonSerializer(comparisons.retry_part(find(slug), n)).data)


def find(slug: str) -> Comparison:
    """The comparison by its own slug: who changes something needs that one."""
    comparison = Comparison.objects.with_sides().filter(pk=slug).first()
    if comparison is None:
        raise Http404
    return comparison


def find_to_read(slug: str) -> tuple[Comparison, ShareLink | None]:
    """The comparison by its own slug or a share link's."""
    found = sharing.find(slug)
    if found is None:
        raise Http404
    return found
