"""Tokens let a script on another machine send dumps where the server asks for one (``docs/adr/0007-who-may-send.md``).

A token is 256 random bits, shown once. What is kept is its sha256: nobody can guess 256 bits, so the slow, salted sums that protect
passwords would only make every request slow, and a plain sum can be looked up.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from compare.models import ApiToken

PREFIX = "probe_"  # so that people and scanners for leaked secrets know one when they see it
USED_TO_THE = timedelta(minutes=1)


class NameTaken(Exception):
    """A token of that name is still in force."""


def issue(name: str, days: float | None = None) -> str:
    """A new token, for ``days`` days or (None) until it is revoked. It cannot be shown again. Raises NameTaken."""
    if ApiToken.objects.filter(_in_force(), name=name).exists():
        raise NameTaken(name)
    token = PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(name=name, sha256=_sum(token), expires_at=timezone.now() + timedelta(days=days) if days else None)
    return token


def revoke(name: str) -> bool:
    """Take the token of that name back; False when none is in force."""
    return bool(ApiToken.objects.filter(_in_force(), name=name).update(revoked_at=timezone.now()))


def everyone() -> QuerySet[ApiToken]:
    """All tokens that ever were, the newest first."""
    return ApiToken.objects.all()


def fits(token: str) -> bool:
    """Is this a token that is in force? Notes, to the minute, that it was used."""
    known = ApiToken.objects.filter(_in_force(), sha256=_sum(token))
    now = timezone.now()
    known.filter(Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USED_TO_THE)).update(last_used_at=now)
    return known.exists()


def state(token: ApiToken) -> str:
    """in force, revoked or expired."""
    if token.revoked_at:
        return "revoked"
    return "expired" if token.expires_at and token.expires_at <= timezone.now() else "in force"


def _in_force() -> Q:
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now()))


def _sum(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
