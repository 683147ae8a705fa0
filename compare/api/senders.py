"""Who may send dumps and ask for comparisons (``docs/adr/0007-who-may-send.md``)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from compare.services import tokens
from compare.services.refusals import Refusal
from probe_web import access


def is_known(request: Request) -> bool:
    """Is the sender on this machine, or does it show the start-up key, the key's cookie, or a token?"""
    return access.lists_are_open(request._request) or bool(bearer(request) and tokens.fits(bearer(request)))


def bearer(request: Request) -> str:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


class MaySend(BasePermission):
    """Adding to what the server holds: open to everyone in local mode; where UPLOAD_REQUIRES_TOKEN is set, to known senders."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method not in {"POST", "PATCH"} or not settings.UPLOAD_REQUIRES_TOKEN or is_known(request):
            return True
        raise Refusal("token_invalid" if bearer(request) else "token_required", HTTPStatus.UNAUTHORIZED)
