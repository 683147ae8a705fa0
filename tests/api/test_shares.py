"""Read-only links: they open, they end, and they let nobody change anything."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from compare.models import ShareLink
from compare.services import comparisons
from tests.rooms import uploaded_run


@pytest.fixture
def comparison():
    return comparisons.create(uploaded_run(b"left").pk, uploaded_run(b"right").pk, {})


@pytest.fixture
def link(api, comparison) -> str:
    response = api.post(f"/api/v1/comparisons/{comparison.pk}/shares/", {}, format="json")
    assert response.status_code == 201
    assert response.json()["url"] == f"/c/{response.json()['id']}"
    return response.json()["id"]


def test_a_link_shows_the_comparison_and_gives_away_neither_its_slug_nor_its_runs(api, comparison, link):
    response = api.get(f"/api/v1/comparisons/{link}/")
    body = response.json()
    assert (body["id"], body["url"], body["read_only"]) == (link, f"/c/{link}", True)
    assert (body["left"]["id"], body["right"]["id"]) == (None, None)
    for secret in (comparison.pk, comparison.left_id, comparison.right_id):
        assert secret not in response.content.decode()


def test_a_link_changes_nothing(api, link):
    url = f"/api/v1/comparisons/{link}/"
    assert api.patch(url, {"name": "mine"}, format="json").status_code == 404
    assert api.delete(url).status_code == 404
    for inner in ("cancel/", "retry/", "parts/0/retry/", "shares/"):
        assert api.post(url + inner).status_code == 404


def test_a_link_that_was_taken_back_is_404(api, comparison, link):
    assert [row["id"] for row in api.get(f"/api/v1/comparisons/{comparison.pk}/shares/").json()] == [link]
    assert api.delete(f"/api/v1/comparisons/{comparison.pk}/shares/{link}/").status_code == 204
    assert api.get(f"/api/v1/comparisons/{link}/").status_code == 404
    assert api.get(f"/api/v1/comparisons/{comparison.pk}/shares/").json() == []
    assert api.delete(f"/api/v1/comparisons/{comparison.pk}/shares/{link}/").status_code == 404


def test_a_link_ends_by_itself(api, comparison):
    body = api.post(f"/api/v1/comparisons/{comparison.pk}/shares/", {"days": 7}, format="json").json()
    assert api.get(f"/api/v1/comparisons/{body['id']}/").status_code == 200
    ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert api.get(f"/api/v1/comparisons/{body['id']}/").status_code == 404


@pytest.mark.parametrize("days", [0, -1, 10_000, "x"])
def test_a_time_that_makes_no_sense_is_refused(api, comparison, days):
    assert api.post(f"/api/v1/comparisons/{comparison.pk}/shares/", {"days": days}, format="json").status_code == 400


def test_another_comparisons_link_cannot_be_taken_back(api, link):
    other = comparisons.create(uploaded_run(b"a").pk, uploaded_run(b"b").pk, {})
    assert api.delete(f"/api/v1/comparisons/{other.pk}/shares/{link}/").status_code == 404
