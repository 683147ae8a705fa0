"""Every error as ``{"code", "params", "message"}`` with the right status; the browser translates codes. No traceback leaves the server."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from compare.services import space, storage
from compare.services.refusals import Refusal

NO_ROOM = 1024**2  # bytes

log = logging.getLogger(__name__)


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """What DRF asks for every exception that a view lets go."""
    refusal = as_refusal(error)
    headers = {}
    if refusal is None:
        reference = secrets.token_hex(4)
        log.error("internal error %s at %s", reference, context["request"].path, exc_info=error)
        refusal = Refusal("internal", HTTPStatus.INTERNAL_SERVER_ERROR, reference=reference)
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    if refusal.code == "throttled":
        headers["Retry-After"] = str(refusal.params["wait"])
    if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "5"
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    set_rollback()
    return Response(body(refusal), status=refusal.status, headers=headers)


def body(refusal: Refusal) -> dict[str, Any]:
    return {"code": refusal.code, "params": refusal.params, "message": str(refusal)}


def as_refusal(error: Exception) -> Refusal | None:
    """An error of DRF, Django or the disk in our words; None for one that is a fault of ours."""
    match error:
        case Refusal():
            return error
        case exceptions.ValidationError():
            return Refusal("invalid", fields=", ".join(_fields(error.detail)) or "request", details=error.detail)
        case exceptions.ParseError():
            return Refusal("malformed", detail=str(error.detail))
        case exceptions.NotFound() | Http404():
            return Refusal("not_found", HTTPStatus.NOT_FOUND)
        case exceptions.MethodNotAllowed():
            return Refusal("method_not_allowed", HTTPStatus.METHOD_NOT_ALLOWED, method=_between_quotes(str(error.detail)))
        case exceptions.UnsupportedMediaType():
            return Refusal("unsupported_media_type", HTTPStatus.UNSUPPORTED_MEDIA_TYPE, media_type=_between_quotes(str(error.detail)))
        case exceptions.NotAcceptable():
            return Refusal("not_acceptable", HTTPStatus.NOT_ACCEPTABLE)
        case exceptions.Throttled():
            return Refusal("throttled", HTTPStatus.TOO_MANY_REQUESTS, wait=int(getattr(error, "wait", None) or 1))  # DRF rounded it up
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Refusal("not_authenticated", HTTPStatus.UNAUTHORIZED)
        case exceptions.PermissionDenied() | PermissionDenied():
            return Refusal("forbidden", HTTPStatus.FORBIDDEN)
        case TooManyFilesSent() | TooManyFieldsSent():
            return Refusal("too_many_files", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit=settings.UPLOAD_MAX_FILES)
        case RequestDataTooBig():
            return Refusal("request_too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        case SuspiciousOperation():
            return Refusal("malformed", detail=type(error).__name__)
        case OSError() if error.errno in storage.DISK_FULL:
            return space.disk_full()
        case OperationalError() | InterfaceError():
            # On a full disk SQLite speaks of I/O errors and of files that it cannot open as well.
            if "disk is full" in str(error) or storage.free_bytes() < NO_ROOM:
                return space.disk_full()
            log.error("the database does not answer", exc_info=error)
            return Refusal("unavailable", HTTPStatus.SERVICE_UNAVAILABLE)
    return None


def _fields(detail: Any, prefix: str = "") -> list[str]:
    """The names of the fields that a validation error speaks of: ``options.step``."""
    if not isinstance(detail, dict):
        return []
    found = []
    for name, inner in detail.items():
        if name == "non_field_errors":
            continue
        found += _fields(inner, f"{prefix}{name}.") or [f"{prefix}{name}"]
    return found


def _between_quotes(text: str) -> str:
    """DRF keeps the method and the media type only inside its sentence."""
    return text.split('"')[1] if text.count('"') > 1 else text
