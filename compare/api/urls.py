"""Every address below /api/v1/."""

from __future__ import annotations

from django.urls import path, re_path

from compare.api import about, comparisons, key_data, parts, runs, schema, shares, uploads

COMPARISON = "comparisons/<slug:slug>/"

urlpatterns = [
    path("about/", about.About.as_view()),
    path("schema/", schema.Schema.as_view(), name="schema"),
    # tus clients build addresses by hand: with or without the last slash.
    re_path(r"^uploads/?$", uploads.Uploads.as_view(), name="uploads"),
    re_path(r"^uploads/(?P<slug>[-\w]+)/?$", uploads.OneUpload.as_view()),
    path("uploads/<slug:slug>/", uploads.OneUpload.as_view(), name="upload"),
    path("runs/", runs.Runs.as_view()),
    path("runs/<slug:slug>/", runs.OneRun.as_view()),
    path("comparisons/", comparisons.Comparisons.as_view()),
    path(COMPARISON, comparisons.OneComparison.as_view()),
    path(COMPARISON + "cancel/", comparisons.Cancel.as_view()),
    path(COMPARISON + "retry/", comparisons.Retry.as_view()),
    path(COMPARISON + "shares/", shares.ShareLinks.as_view()),
    path(COMPARISON + "shares/<slug:link>/", shares.OneShareLink.as_view()),
    path(COMPARISON + "loop/", key_data.Loop.as_view()),
    path(COMPARISON + "key-data/", key_data.Overview.as_view()),
    path(COMPARISON + "key-data/<int:n>/", key_data.Key.as_view()),
    path(COMPARISON + "key-data/<int:n>/tables/<int:t>/", key_data.Table.as_view()),
    path(COMPARISON + "tree/", parts.Tree.as_view()),
    path(COMPARISON + "nodes/<int:row>/", parts.Node.as_view()),
    path(COMPARISON + "parts/<int:n>/verdict.json", parts.PartVerdict.as_view()),
    path(COMPARISON + "parts/<int:n>/retry/", comparisons.RetryPart.as_view()),
    path(COMPARISON + "parts/<int:n>/tree/", parts.Tree.as_view()),
    path(COMPARISON + "parts/<int:n>/nodes/<int:row>/", parts.Node.as_view()),
    re_path(r"^comparisons/(?P<slug>[-\w]+)/(?P<name>[\w-]+\.\w+)$", parts.Export.as_view()),
    re_path(r"", schema.Unknown.as_view()),
]
