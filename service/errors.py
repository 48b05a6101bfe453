"""The table from errors to HTTP answers, which have ``error_type``, ``message`` and ``detail``."""

from __future__ import annotations

import errno
import json
import os
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from service.logs import get_logger
from syntax.errors import (
    AccessError,
    ConflictError,
    DeadlineError,
    DiskError,
    InputError,
    MissingExtraError,
    ModelLoadError,
    NotReadyError,
    OverloadedError,
    ParsebankError,
    RateLimitError,
    RequestEntityTooLargeError,
    SpecError,
    StoreError,
    UnauthorizedError,
    UnknownDatasetError,
    UnknownJobError,
    UnknownKeyError,
    UnknownModelError,
    UnknownNameError,
    UnsupportedMediaTypeError,
    WorkError,
)

STATUS: Final[dict[type[ParsebankError], HTTPStatus]] = {
    InputError: HTTPStatus.UNPROCESSABLE_ENTITY,
    RequestEntityTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    UnsupportedMediaTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    UnknownNameError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownDatasetError: HTTPStatus.NOT_FOUND,
    UnknownJobError: HTTPStatus.NOT_FOUND,
    UnknownKeyError: HTTPStatus.NOT_FOUND,
    UnknownModelError: HTTPStatus.NOT_FOUND,
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
"""Status by class; a class without a line has that of its nearest base."""

_ADVICE: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room there"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "let the service's user write there"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit on open files"),
}

CLIENT_LEFT: Final = 499
"""Status, as in nginx, of a request whose caller left; only logs and metrics show it."""

_log = get_logger(__name__)


def status_of(error: ParsebankError) -> HTTPStatus:
    """HTTP status of an error.

    >>> status_of(SpecError("two texts came"))
    <HTTPStatus.UNPROCESSABLE_ENTITY: 422>
    """
    return next(STATUS[base] for base in type(error).__mro__ if base in STATUS)


def error_body(error: ParsebankError) -> dict[str, Any]:
    return {"error_type": error.error_type, "message": error.message, "detail": error.detail}


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ParsebankError, _named)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(OSError, _system)
    app.add_exception_handler(RecursionError, _system)
    app.add_exception_handler(ClientDisconnect, _left)


def named_error(error: Exception) -> ParsebankError | None:
    """An error as a caller may see it; ``None`` for a bug of ours.

    System errors of our files are logged with the file, and answered without it.
    """
    if isinstance(error, ParsebankError):
        return error
    if isinstance(error, RecursionError):
        return SpecError("what came is nested too deeply; send it with fewer levels")
    if not isinstance(error, OSError) or isinstance(error, ConnectionError | TimeoutError):
        return None
    if error.errno is None or error.errno not in errno.errorcode:  # a library's own
        return None
    _log.error("a file cannot be used", path=error.filename, exc_info=error)
    advice = _ADVICE.get(error.errno, "look into its log, which names the file")
    return DiskError(
        f"the service cannot use a file of its own ({os.strerror(error.errno)}); {advice}, and "
        "send the request again",
        fault=errno.errorcode[error.errno],
    )


def error_response(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    """Answer in ASCII, with lone surrogates escaped."""
    content = json.dumps(body, default=str).encode("ascii")
    return Response(content, status, headers, media_type="application/json")


def error_answer(error: ParsebankError) -> Response:
    return error_response(status_of(error), error_body(error), error_headers(error))


def unexpected_answer(error: Exception) -> Response:
    return error_response(500, unexpected_body(error))


def unexpected_body(error: Exception) -> dict[str, Any]:
    message = (
        f"an unexpected {type(error).__name__} in the service; its log has the traceback. Please "
        "report it with the request that caused it"
    )
    return {"error_type": "internal", "message": message, "detail": {}}


def error_headers(error: ParsebankError) -> dict[str, str]:
    if isinstance(error, OverloadedError | RateLimitError):
        return {"Retry-After": str(error.detail.get("retry_after", 1))}
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": "Bearer"}
    return {}


async def _named(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's form
    if not isinstance(error, ParsebankError):
        raise error
    # What is not ready is asked every second; `service.readiness` logs when that changes.
    is_ours = status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR
    if is_ours and not isinstance(error, NotReadyError):
        _log.error("request failed", error_type=error.error_type, message=error.message)
    return error_answer(error)


async def _system(request: Request, error: Exception) -> Response:
    named = named_error(error)
    if named is None:
        raise error
    return await _named(request, named)


async def _left(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's form
    return Response(status_code=CLIENT_LEFT)


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    faults = [
        {"where": ".".join(map(str, fault["loc"])), "problem": fault["msg"]}
        for fault in error.errors()
    ]
    listed = "; ".join(f"{fault['where']}: {fault['problem']}" for fault in faults)
    sent = request.headers.get("content-type", "nothing")
    is_json = "json" in sent or request.method == "GET"
    hint = "" if is_json else f". Content-Type says {sent}; send application/json"
    message = f"the request is not as /docs describes it: {listed}{hint}"
    refused = SpecError(message, errors=faults)
    return error_response(status_of(refused), error_body(refused))


async def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if isinstance(error.__cause__, ParsebankError):
        # FastAPI wraps what is raised while it reads the body.
        return await _named(request, error.__cause__)
    if error.status_code == HTTPStatus.BAD_REQUEST and error.__cause__ is not None:
        # So does it with a body that is not UTF-8, or nested too deeply.
        return await _named(request, SpecError(f"the body is no JSON: {error.__cause__}"))
    name = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    message = f"{request.method} {request.url.path}: {error.detail}; /docs lists what there is"
    body = {"error_type": name, "message": message, "detail": {}}
    return error_response(error.status_code, body, dict(error.headers or {}))
