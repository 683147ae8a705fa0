"""The API's own description, and the answer to addresses that it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer, OpenApiYamlRenderer2
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from compare.api import errors
from compare.api.base import Resource


class Schema(SpectacularAPIView):
    """OpenAPI 3, as JSON unless YAML is asked for."""

    renderer_classes = [  # noqa: RUF012 - typed as a plain list by the base class
        OpenApiJsonRenderer2,
        OpenApiJsonRenderer,
        OpenApiYamlRenderer,
        OpenApiYamlRenderer2,
    ]

    def get_exception_handler(self) -> Callable[..., Response]:
        return errors.handle


@extend_schema(exclude=True)
class Unknown(Resource):
    """404 in the API's own shape, whatever the method."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise Http404
