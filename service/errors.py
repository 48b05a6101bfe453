"""The one table from errors to HTTP answers.

Every error answer has the body ``{"error_type", "message", "detail"}``: what came, what was
expected and what to do in ``message``, the facts for programs in ``detail``.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from syntax.errors import (
    AccessError,
    ConflictError,
    DeadlineError,
    InputError,
    MissingExtraError,
    ModelLoadError,
    OverloadedError,
    ParsebankError,
    RateLimitError,
    SpecError,
    StoreError,
    UnauthorizedError,
    UnknownDatasetError,
    UnknownJobError,
    UnknownKeyError,
    UnknownNameError,
    WorkError,
)

STATUS: Final[dict[type[ParsebankError], HTTPStatus]] = {
    InputError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownNameError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownDatasetError: HTTPStatus.NOT_FOUND,
    UnknownJobError: HTTPStatus.NOT_FOUND,
    UnknownKeyError: HTTPStatus.NOT_FOUND,
    UnauthorizedError: HTTPStatus.UNAUTHORIZED,
    RateLimitError: HTTPStatus.TOO_MANY_REQUESTS,
    AccessError: HTTPStatus.FORBIDDEN,
    ConflictError: HTTPStatus.CONFLICT,
    OverloadedError: HTTPStatus.TOO_MANY_REQUESTS,
    DeadlineError: HTTPStatus.GATEWAY_TIMEOUT,
    ModelLoadError: HTTPStatus.SERVICE_UNAVAILABLE,
    WorkError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
    ParsebankError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""Status by error class; a class without a line has that of its nearest base."""

_log = structlog.get_logger(__name__)


def status_of(error: ParsebankError) -> HTTPStatus:
    """HTTP status of an error.

    >>> status_of(SpecError("two texts came"))
    <HTTPStatus.UNPROCESSABLE_ENTITY: 422>
    """
    return next(STATUS[base] for base in type(error).__mro__ if base in STATUS)


def error_body(error: ParsebankError) -> dict[str, Any]:
    """The error as JSON."""
    return {"error_type": error.error_type, "message": error.message, "detail": error.detail}


def install_error_handlers(app: FastAPI) -> None:
    """Give every failure of ``app`` the same body."""
    app.add_exception_handler(ParsebankError, _named)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def error_response(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    """An answer with an error body; names that are no valid text come out escaped."""
    content = json.dumps(body, default=str).encode("ascii")
    return Response(content, status, headers, media_type="application/json")


async def _named(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's form
    if not isinstance(error, ParsebankError):
        raise error
    headers = {}
    if isinstance(error, OverloadedError | RateLimitError):
        headers["Retry-After"] = str(error.detail.get("retry_after", 1))
    status = status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("request failed", error_type=error.error_type, message=error.message)
    return error_response(status, error_body(error), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    faults = [
        {"where": ".".join(map(str, fault["loc"])), "problem": fault["msg"]}
        for fault in error.errors()
    ]
    listed = "; ".join(f"{fault['where']}: {fault['problem']}" for fault in faults)
    sent = request.headers.get("content-type", "nothing")
    hint = "" if "json" in sent else f". Content-Type says {sent}; send application/json"
    message = f"the request is not as /docs describes it: {listed}{hint}"
    refused = SpecError(message, errors=faults)
    return error_response(status_of(refused), error_body(refused))


async def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    name = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    message = f"{request.method} {request.url.path}: {error.detail}; /docs lists what there is"
    body = {"error_type": name, "message": message, "detail": {}}
    return error_response(error.status_code, body, dict(error.headers or {}))


async def _unexpected(request: Request, error: Exception) -> Response:  # noqa: ARG001 - as above
    message = (
        f"an unexpected {type(error).__name__} in the service; its log has the traceback. Please "
        "report it with the request that caused it"
    )
    return error_response(500, {"error_type": "internal", "message": message, "detail": {}})
