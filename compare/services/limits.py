"""How much is too much, and how long is too long. What an installation may want otherwise is a setting; the rest is a constant here."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

# Declared bytes of all uploads that are still arriving.
ARRIVING_BYTES = 1024**4

# A cancelled comparison that has not stopped by itself after this long is killed.
HARD_CANCEL = timedelta(seconds=5)

# How often a run is read before it is given up, where its worker dies each time: it may be the dump that kills.
RUN_ATTEMPTS = 2

# How often a piece of a comparison is tried, or its pieces are reduced, before it is given up, where the worker dies each time.
PIECE_TRIES = 3

# How many messages of one comparison's parts wait on the broker at the same time. Enough that no worker waits for the next one, few enough
# that two large comparisons take turns.
PARTS_AHEAD = 32

# Parts of a comparison of so many at most go before those of larger ones.
PARTS_OF_A_SMALL_COMPARISON = 16

# Files that no row owns are left alone this long: they may belong to a request that is still going on.
SWEEP_AGE = timedelta(hours=24)


def idle_upload() -> timedelta:
    """After this long without a byte, or without a run that takes it, an upload is reaped."""
    return timedelta(hours=settings.UPLOAD_IDLE_HOURS)


def stale() -> timedelta:
    """A worker that has said nothing for this long is dead."""
    return timedelta(seconds=settings.INTERRUPTED_AFTER_SECONDS)


def unclaimed() -> timedelta:
    """A queued row that nobody claimed for this long is sent again."""
    return timedelta(seconds=settings.RESEND_AFTER_SECONDS)
