"""How a use case says no: a code and parameters for the browser to translate, a status for HTTP, an English sentence for everyone else."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from compare.engine.errors import MESSAGES


class Refusal(Exception):
    """``code`` is a key of ``compare.engine.errors.MESSAGES``; ``params`` are what its sentence and the browser's need."""

    def __init__(self, code: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, **params: Any) -> None:
        self.code = code
        self.status = status
        self.params = params
        super().__init__(sentence(code, params))


def sentence(code: str, params: dict[str, Any]) -> str:
    """What is wrong and what to do, in English, on one line."""
    what, hint = MESSAGES[code]
    return f"{what.format(**params)}. {hint.format(**params)}"


def problem(code: str, where: str = "", **params: Any) -> dict[str, Any]:
    """The ``error`` of a failed job: ``{code, params, message, where}``."""
    said = sentence(code, params)
    return {"code": code, "params": params, "message": f"{where}: {said}" if where else said, "where": where}
