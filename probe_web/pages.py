"""The page: the built front end's index for every one of its routes, and plain sentences where there is none."""

from __future__ import annotations

import re
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed, JsonResponse
from django.template.loader import render_to_string

# The routes that the front end knows (frontend/src/App.tsx). Anything else gets the same index, which says so, under status 404.
ROUTES = re.compile(r"^/([cr]/[\w-]+/?)?$")


def page(request: HttpRequest) -> HttpResponseBase:
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    index = settings.FRONT_END_DIR / "index.html"
    try:
        content = index.read_bytes()
    except FileNotFoundError:
        return plain(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "The page is not built yet",
            "页面尚未构建",
            "The server runs, but the front end was not built in this checkout. Stop the server and start it with ./run, which builds it.",
            "服务已启动,但此目录中的前端尚未构建。请停止服务,改用 ./run 启动,它会自动构建。",
        )
    known = ROUTES.match(request.path) is not None
    response = HttpResponse(content, status=HTTPStatus.OK if known else HTTPStatus.NOT_FOUND)
    # The index names hashed files: it must be asked for anew, they need not.
    response["Cache-Control"] = "no-cache"
    if request.path != "/":
        response["X-Robots-Tag"] = "noindex"  # a slug is a secret
    return response


def plain(status: HTTPStatus, title: str, title_zh: str, text: str, text_zh: str) -> HttpResponse:
    """A page without the front end, in both languages."""
    context = {"title": title, "title_zh": title_zh, "text": text, "text_zh": text_zh}
    return HttpResponse(render_to_string("probe_web/plain.html", context), status=status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponseBase:
    if request.path.startswith("/api/"):
        body = {"code": "not_found", "params": {}, "message": "There is nothing at this address."}
        return JsonResponse(body, status=HTTPStatus.NOT_FOUND)
    return plain(HTTPStatus.NOT_FOUND, "There is nothing here", "这里什么也没有", "Check the address.", "请检查地址。")


def server_error(request: HttpRequest) -> HttpResponseBase:
    if request.path.startswith("/api/"):
        body = {"code": "internal", "params": {}, "message": "The server failed at this request. Its log says where."}
        return JsonResponse(body, status=HTTPStatus.INTERNAL_SERVER_ERROR)
    return plain(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The server failed at this request",
        "服务处理该请求时出错",
        "Its log says where (logs/web.log in the data folder).",
        "详情见数据目录中的 logs/web.log。",
    )
