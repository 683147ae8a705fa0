"""Read-only addresses of a comparison. Its own slug lets its holder change and delete it; a share link only lets one look, and ends."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from compare.models import Comparison, ShareLink


def share(comparison: Comparison, days: int | None) -> ShareLink:
    """A new link, for ``days`` days or (None) until it is taken back."""
    return ShareLink.objects.create(comparison=comparison, expires_at=timezone.now() + timedelta(days=days) if days else None)


def revoke(comparison: Comparison, link_id: str) -> bool:
    """Take a link back; False when the comparison has no such link that still opens."""
    return bool(ShareLink.objects.filter(_open(), pk=link_id, comparison=comparison).update(revoked_at=timezone.now()))


def links(comparison: Comparison) -> list[ShareLink]:
    """The links that still open."""
    return list(ShareLink.objects.filter(_open(), comparison=comparison))


def find(slug: str) -> tuple[Comparison, ShareLink | None] | None:
    """The comparison that a slug opens, with the share link where it is one. None says nothing about why: unknown, expired, taken back."""
    comparison = Comparison.objects.with_sides().filter(pk=slug).first()
    if comparison:
        return comparison, None
    link = ShareLink.objects.filter(_open(), pk=slug).first()
    shared = link and Comparison.objects.with_sides().filter(pk=link.comparison_id).first()
    return (shared, link) if shared else None


def _open() -> Q:
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now()))
