"""Tokens: shown once, kept as sums, ended by name or by time."""

from __future__ import annotations

import hashlib
import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from compare.models import ApiToken
from compare.services import tokens


def said(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("token", *words, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue()


def test_what_is_kept_is_the_sum_and_never_the_token():
    token = tokens.issue("host")
    row = ApiToken.objects.get()
    assert row.sha256 == hashlib.sha256(token.encode()).hexdigest()
    assert token not in str(ApiToken.objects.values().get())
    assert len(token.removeprefix(tokens.PREFIX)) >= 43, "256 bits"
    assert tokens.issue("other") != token


def test_it_fits_until_it_is_revoked():
    token = tokens.issue("host")
    assert tokens.fits(token)
    assert tokens.revoke("host")
    assert not tokens.fits(token)
    assert not tokens.revoke("host")


def test_it_fits_until_it_expires():
    token = tokens.issue("host", 2)
    assert tokens.fits(token)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not tokens.fits(token)
    assert tokens.state(ApiToken.objects.get()) == "expired"


def test_a_name_is_free_again_once_its_token_ended():
    tokens.issue("host")
    with pytest.raises(tokens.NameTaken):
        tokens.issue("host")
    tokens.revoke("host")
    assert tokens.fits(tokens.issue("host"))


@pytest.mark.parametrize("nonsense", ["", "probe_", "x" * 10_000, "' OR 1=1 --", "令牌", "\ud800"])
def test_nonsense_fits_nothing(nonsense):
    tokens.issue("host")
    assert not tokens.fits(nonsense)


def test_use_is_noted_to_the_minute():
    token = tokens.issue("host")
    tokens.fits(token)
    first = ApiToken.objects.get().last_used_at
    tokens.fits(token)
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    tokens.fits(token)
    assert ApiToken.objects.get().last_used_at >= first


def test_the_command_shows_a_token_once_lists_and_revokes():
    token, hint = said("host", "--expires", "30")
    assert tokens.fits(token)
    assert "cannot be shown again" in hint
    listed, _ = said("--list")
    assert listed.startswith("host: in force, made ")
    assert "ends " in listed
    assert token not in listed
    assert said("--revoke", "host")[0] == "host is revoked."
    assert said("--list")[0].startswith("host: revoked")


@pytest.mark.parametrize("words", [("--revoke", "nobody"), ("a\nb",), (" ",), ("x", "--expires", "-1"), ("x", "--list"), ()])
def test_the_command_refuses_what_cannot_be_meant(words):
    with pytest.raises(CommandError):
        said(*words)
    assert not ApiToken.objects.exists()
