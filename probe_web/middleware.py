"""What is checked of every request before a view sees it: which host it names, which page sent it, and whether it may see the lists.

The server has no accounts in local mode. Any web page that the reader has open could otherwise post to it, or read it through a host name
that its owner points at 127.0.0.1. Refusals have the API's shape: `{"code", "params", "message"}`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.request import split_domain_port

from compare.services.refusals import sentence
from probe_web import access

Handler = Callable[[HttpRequest], HttpResponse]

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# The lists give every slug away.
LISTS = re.compile(r"^/api/v1/(runs|comparisons)/?$")


def refused(code: str, status: HTTPStatus, **params: str) -> JsonResponse:
    return JsonResponse({"code": code, "params": params, "message": sentence(code, params)}, status=status)


def names_this_server(host: str) -> bool:
    """Is `host` (no port) a name under which this server is meant to be reached?

    Bare addresses cannot be pointed elsewhere by somebody's name server, so they are no danger: loopback always, others where the server
    listens beyond loopback. Names must be known.
    """
    host = host.rstrip(".").lower()
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        known = {"localhost", urlsplit(settings.PUBLIC_URL).hostname, *settings.HOST_NAMES, *settings.ALLOWED_HOSTS}
        return host in known - {"*"}
    return address.is_loopback or not settings.LOOPBACK_ONLY or host.strip("[]") == urlsplit(settings.PUBLIC_URL).hostname


class HostCheck:
    """Refuses a Host header that names another server (DNS rebinding)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        sent = request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", "")
        host, _port = split_domain_port(sent)
        if not host or not names_this_server(host):
            return refused("host_not_served", HTTPStatus.BAD_REQUEST, host=sent[:100])
        return self.get_response(request)


class OriginCheck:
    """Refuses unsafe requests that a page of another origin sent. A client that is no browser sends no Origin and needs no token."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in SAFE_METHODS:
            return self.get_response(request)
        origin = request.headers.get("Origin")
        own = {f"{request.scheme}://{request.get_host()}", settings.PUBLIC_URL}
        foreign = request.headers.get("Sec-Fetch-Site") == "cross-site" or (origin is not None and origin not in own)
        if foreign and origin not in settings.TRUSTED_ORIGINS:
            return refused("foreign_origin", HTTPStatus.FORBIDDEN, origin=(origin or "")[:200])
        return self.get_response(request)


class ListsGate:
    """Keeps the lists for this machine and for those who were given the start-up key, which `/?key=…` turns into a cookie."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/" and "key" in request.GET and settings.LISTS_KEY:
            return self.take_key(request)
        if request.method in SAFE_METHODS and LISTS.match(request.path) and not access.lists_are_open(request):
            return refused("lists_closed", HTTPStatus.FORBIDDEN)
        return self.get_response(request)

    @staticmethod
    def take_key(request: HttpRequest) -> HttpResponse:
        # The key leaves the address bar, and with it the history and what is copied from it.
        response = HttpResponseRedirect("/")
        response["Cache-Control"] = "no-store"
        if access.key_fits(request.GET["key"]):
            response.set_cookie(
                access.COOKIE,
                access.cookie_value(),
                max_age=access.COOKIE_SECONDS,
                httponly=True,
                secure=settings.PUBLIC_URL_IS_HTTPS,
                samesite="Lax",
            )
        return response
