"""Every address the server answers to. The page has routes of its own; the server gives it the same index for each of them."""

from __future__ import annotations

from django.urls import include, path, re_path

from compare.api.push import push_client
from probe_web import health, pages

urlpatterns = [
    path("api/v1/", include("compare.api.urls")),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("push.py", push_client),
    re_path(r"^(?!api/|static/)", pages.page),
]
handler404 = "probe_web.pages.not_found"
handler500 = "probe_web.pages.server_error"
