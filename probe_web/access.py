"""Who is asking: this machine, or somebody else who may see the lists.

A slug is a secret that its owner hands out, so one run or one comparison is open to whoever holds its address. The lists would give every
slug away, and so are for the machine that the server runs on, and for those who were given the start-up key.
"""

from __future__ import annotations

import ipaddress
import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest

COOKIE = "probe_web_lists"
COOKIE_SECONDS = 30 * 24 * 3600


def is_loopback(address: str) -> bool:
    """True for 127.0.0.0/8, ::1 and their IPv4-mapped forms; False for anything that is no address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def is_local(request: HttpRequest) -> bool:
    """True when the request was made on this machine. One that a proxy passed on says nothing about where it began: False."""
    passed_on = any(name in request.META for name in ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP"))
    address = request.META.get("REMOTE_ADDR", "")
    # gunicorn gives no address for a unix socket: only a proxy speaks to it that way.
    return not passed_on and is_loopback(address)


def key_fits(key: str) -> bool:
    return bool(settings.LISTS_KEY) and secrets.compare_digest(key.encode(), settings.LISTS_KEY.encode())


def _salt() -> str:
    return f"{COOKIE}:{settings.LISTS_KEY}"


def cookie_value() -> str:
    """What a browser that showed the key gets. It is signed with the key: a new key closes the lists again."""
    return signing.dumps("open", salt=_salt())


def lists_are_open(request: HttpRequest) -> bool:
    """May this request see the lists of runs and comparisons?"""
    if is_local(request):
        return True
    header = request.headers.get("Authorization", "")
    if header.startswith("Key ") and key_fits(header.removeprefix("Key ").strip()):
        return True
    if not settings.LISTS_KEY:
        return False
    try:
        return bool(signing.loads(request.COOKIES.get(COOKIE, ""), salt=_salt(), max_age=COOKIE_SECONDS) == "open")
    except signing.BadSignature:
        return False
