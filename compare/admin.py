"""The operator's view of the rows. Everything is made by the product itself, so nothing is added or edited here."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from compare.models import Comparison, Loop, Part, Run, ShareLink, Upload


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("name", "role", "state", "size", "attempt", "created_at")
    list_filter = ("state", "role")
    search_fields = ("id", "name")


@admin.register(Comparison)
class ComparisonAdmin(ReadOnly):
    list_display = ("name", "state", "verdict", "first_module", "attempt", "created_at")
    list_filter = ("state", "verdict")
    search_fields = ("id", "name", "first_module")


@admin.register(Part)
class PartAdmin(ReadOnly):
    list_display = ("comparison", "n", "stage", "step", "state", "verdict", "worker", "attempt")
    list_filter = ("state", "verdict")
    search_fields = ("comparison__id", "worker")


@admin.register(Loop)
class LoopAdmin(ReadOnly):
    list_display = ("comparison", "state", "worker", "attempt")
    list_filter = ("state",)
    search_fields = ("comparison__id", "worker")


@admin.register(Upload)
class UploadAdmin(ReadOnly):
    list_display = ("name", "length", "created_at", "expires_at")


@admin.register(ShareLink)
class ShareLinkAdmin(ReadOnly):
    list_display = ("id", "comparison", "created_at", "expires_at", "revoked_at")
