"""Runs: one upload each."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from django.db.models import Q
from django.http import Http404, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api import senders
from compare.api.base import Resource, page, unless_known
from compare.api.parsers import ArrivedFile, StreamedFiles
from compare.api.render import dumps
from compare.models import Run
from compare.services import naming, recovery, runs
from compare.services.refusals import Refusal

SEARCH = [OpenApiParameter("search", str), OpenApiParameter("cursor", str, description="`next` of the page before.")]


class NameAndTags(serializers.Serializer[Any]):
    """What a reader may change of a comparison."""

    name = serializers.CharField(max_length=200, required=False)
    tags = serializers.ListField(child=serializers.CharField(max_length=50), max_length=20, required=False)


class ChangedRun(NameAndTags):
    """What a reader may change of a run. The role decides which side is called what, not what is compared."""

    role = serializers.ChoiceField(Run.Role.choices, required=False)


INVENTORY = {"type": "object", "additionalProperties": {}, "nullable": True}


def inventory_of(run: Run) -> orjson.Fragment | None:
    """What a run holds, once it was read."""
    return _inventory(run.pk) if run.state == Run.State.READY else None


@lru_cache(maxsize=8)
def _inventory(run_id: str) -> orjson.Fragment:
    """Written once for all who ask again and again how far a comparison is: a run that is ready does not change."""
    return orjson.Fragment(dumps(Run.objects.values_list("inventory", flat=True).get(pk=run_id)))


class RunSerializer(serializers.ModelSerializer[Run]):
    """One run. ``inventory`` is there when it is ready, ``error`` ({code, params, message, where}) when it could not be read."""

    url = serializers.SerializerMethodField()
    progress = serializers.DictField(read_only=True)
    error = serializers.DictField(read_only=True, allow_null=True)
    inventory = serializers.SerializerMethodField()
    tags = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Run
        fields = (
            "id",
            "url",
            "name",
            "role",
            "tags",
            "state",
            "progress",
            "error",
            "inventory",
            "size",
            "sha256",
            "created_at",
            "updated_at",
            "finished_at",
        )
        read_only_fields = fields

    def get_url(self, run: Run) -> str:
        return f"/r/{run.pk}"

    @extend_schema_field(INVENTORY)
    def get_inventory(self, run: Run) -> orjson.Fragment | None:
        return inventory_of(run)


class AboutRun(serializers.Serializer[Any]):
    """What a sender may say about a run."""

    name = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    role = serializers.ChoiceField(Run.Role.choices, required=False, default=Run.Role.AUTO)


class NewRun(AboutRun):
    """A run of finished uploads."""

    uploads = serializers.ListField(child=serializers.CharField(max_length=32), allow_empty=False)


class NewRunOfFiles(AboutRun):
    """A run of the files in the request itself; ``paths`` gives each file's relative path, in the same order."""

    files = serializers.ListField(child=serializers.FileField(allow_empty_file=True))
    paths = serializers.ListField(child=serializers.CharField(), required=False)


class Runs(Resource):
    """All runs, and new ones."""

    permission_classes = (senders.MaySend,)
    parser_classes = (JSONParser, StreamedFiles)

    @extend_schema(operation_id="runs_list", parameters=SEARCH, responses=RunSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The newest runs; closed to other machines without the start-up key."""
        search = request.query_params.get("search", "").replace("\0", "")
        rows = Run.objects.defer("inventory")
        if search:
            rows = rows.filter(Q(name__icontains=search) | Q(tags__icontains=search))
        return page(self, request, rows, RunSerializer)

    @extend_schema(
        operation_id="runs_create",
        request={"application/json": NewRun, "multipart/form-data": NewRunOfFiles},
        responses={201: RunSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a run of finished uploads (JSON) or of the files in the request (multipart)."""
        if request.content_type.startswith("multipart/"):
            run = self.of_files(request)
        else:
            wanted = self.valid(NewRun)
            run = runs.create_from_uploads(wanted["uploads"], wanted["name"], wanted["role"])
        return Response(RunSerializer(run).data, status=HTTPStatus.CREATED, headers={"Location": f"/api/v1/runs/{run.pk}/"})

    def of_files(self, request: Request) -> Run:
        received: list[ArrivedFile] = [file for _, files in request.FILES.lists() for file in files]
        try:
            about, files = self.valid(AboutRun), request.FILES.getlist("files")
            paths = request.POST.getlist("paths") or [file.name for file in files]
            if len(paths) != len(files):
                raise Refusal("paths_mismatch", files=len(files), paths=len(paths))
            arrived = [runs.Arrived(path, file.path, file.sha256, file.size) for path, file in zip(paths, files, strict=True)]
            return runs.create_from_files(arrived, about["name"], about["role"])
        finally:
            for file in received:
                file.path.unlink(missing_ok=True)


class OneRun(Resource):
    """One run."""

    @extend_schema(operation_id="runs_retrieve", responses=RunSerializer)
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """State, progress and inventory; cheap to ask again with ``If-None-Match``."""
        run = recovery.look_at_run(find(slug))
        return unless_known(request, f'"{run.updated_at.timestamp():.6f}"', lambda: Response(RunSerializer(run).data))

    @extend_schema(operation_id="runs_update", request=ChangedRun, responses=RunSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change name, tags or role."""
        run = find(slug)
        naming.change(run, **self.valid(ChangedRun))
        return Response(RunSerializer(run).data)

    @extend_schema(operation_id="runs_destroy", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Remove a run with its files; 409 ``run_in_use`` while a comparison uses it."""
        runs.delete(find(slug))
        return Response(status=HTTPStatus.NO_CONTENT)


def find(slug: str) -> Run:
    run = Run.objects.defer("inventory").filter(pk=slug).first()
    if run is None:
        raise Http404
    return run
