"""``/api/models`` and ``/api/process``: the UDPipe REST API of LINDAT, for its clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from service.errors import error_headers, named_error, status_of
from service.lindat import LindatAnswer, lindat_models, process, read_fields, read_request
from service.lindat.request import INPUTS, OUTPUTS
from service.logs import get_logger
from service.routes.answers import kept_headers
from service.routes.streams import while_connected
from service.services import Services, UsesServices
from syntax.errors import ParsebankError, RequestEntityTooLargeError


class _PlainErrors(APIRoute):
    """A route whose errors are plain text, as these clients show them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def plainly(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException as error:
                return _refusal(error.status_code, error.detail, dict(error.headers or {}))
            except Exception as error:
                named = named_error(error)
                if named is None:
                    raise
                return _named(named)

        return plainly


GET_CHARACTERS: Final = 2_000
"""Longest data in a query: 350 words, which take 40 ms."""

_log = get_logger(__name__)

router = APIRouter(prefix="/api", tags=["lindat"], route_class=_PlainErrors)

_PARAMETERS: Final[dict[str, str]] = {
    "data": "The text, or sentences in the format that `input` names; UTF-8.",
    "model": "A model's name, how one begins, or a language code; by default the service's.",
    "tokenizer": "Tokenize the data. Options, separated by semicolons: `normalized_spaces`, "
    "`presegmented`, `ranges`.",
    "tagger": "Fill the columns from LEMMA to FEATS.",
    "parser": "Fill HEAD and DEPREL.",
    "input": f"Format of data that is not to be tokenized: {', '.join(INPUTS)}.",
    "output": f"Format of the result: {', '.join(OUTPUTS)}.",
}
_PLAIN: Final = {"content": {"text/plain": {"schema": {"type": "string"}}}}
_EITHER: Final = {
    "content": {
        **_PLAIN["content"],
        "application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}},
    }
}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The result, in the format that was asked for.",
        "headers": {
            "X-Billing-Input-NFC-Len": {
                "description": "Characters of all words of the result.",
                "schema": {"type": "integer"},
            }
        },
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["model", "acknowledgements", "result"],
                    "properties": {
                        "model": {"type": "string"},
                        "acknowledgements": {"type": "array", "items": {"type": "string"}},
                        "result": {"type": "string"},
                        "ignored": {"type": "array", "items": {"type": "string"}},
                    },
                }
            }
        },
    },
    400: {**_PLAIN, "description": "The request cannot be answered as it is."},
    413: {
        **_EITHER,
        "description": "The body is larger than `max_body_bytes`, or the data of a GET too long.",
    },
    429: {**_EITHER, "description": "Too many requests, or too much waiting; see `Retry-After`."},
    501: {**_PLAIN, "description": "The model needs an extra that is not installed."},
    503: {**_PLAIN, "description": "The model or the store is out of order."},
    504: {**_PLAIN, "description": "Not parsed within the deadline."},
}


def _form() -> dict[str, Any]:
    properties = {
        name: {"type": "string", "description": text} for name, text in _PARAMETERS.items()
    }
    return {"schema": {"type": "object", "properties": properties, "required": ["data"]}}


_GET: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": name == "data",
            "allowEmptyValue": name != "data",
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in _PARAMETERS.items()
    ]
}
_POST: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": _form(), "application/x-www-form-urlencoded": _form()},
    }
}


@router.get("/models", responses={503: _RESPONSES[503]})
async def lindat_list_models(services: UsesServices) -> dict[str, Any]:
    """List models by the names that UDPipe's clients use, and the default model."""
    return await asyncio.to_thread(lindat_models, services.settings)


@router.get("/process", response_model=None, responses=_RESPONSES, openapi_extra=_GET)
async def lindat_process_query(request: Request, services: UsesServices) -> Response:
    """Tokenize, tag and parse a short text as UDPipe's web service does; this stores nothing.

    A page of any site can have its visitors' browsers send a GET, and over plain HTTP they do not
    say whose page it was. So it costs no more than a short text, and leaves nothing behind.
    """
    return await _process(request, services, keep=False)


@router.post("/process", response_model=None, responses=_RESPONSES, openapi_extra=_POST)
async def lindat_process_body(request: Request, services: UsesServices) -> Response:
    """The same for texts of any length, with a form or files as the body; parses are kept."""
    return await _process(request, services, keep=True)


async def _process(request: Request, services: Services, keep: bool) -> Response:
    body = await request.body()
    content_type = request.headers.get("content-type", "")
    query: bytes = request.scope["query_string"]
    fields = await asyncio.to_thread(read_fields, query, content_type, body)
    if not keep:
        _check_short(fields.get("data", ""))
    asked = await asyncio.to_thread(read_request, fields)
    async with while_connected(request):
        answer = await process(services.pipeline, services.settings, asked, keep)
        headers = kept_headers(services.pipeline, keep)
        return await asyncio.to_thread(_response, answer, headers)


def _check_short(data: str) -> None:
    if len(data) > GET_CHARACTERS:
        raise RequestEntityTooLargeError(
            f"the data has {len(data)} characters; GET takes at most {GET_CHARACTERS}. Send the "
            "same parameters by POST, as a form",
            limit=GET_CHARACTERS,
        )


def _response(answer: LindatAnswer, kept: dict[str, str]) -> Response:
    content = json.dumps(answer.envelope, ensure_ascii=False, indent=1).encode()
    headers = {"X-Billing-Input-NFC-Len": str(answer.characters), **kept}
    return Response(content, headers=headers, media_type="application/json")


def _named(error: ParsebankError) -> Response:
    status = status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("request failed", error_type=error.error_type, message=error.message)
    # LINDAT answers 400 to all that the caller can mend.
    shown = HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    return _refusal(shown, error.message, error_headers(error))


def _refusal(status: int, message: str, headers: dict[str, str]) -> Response:
    content = f"{message}\n".encode("utf-8", "backslashreplace")
    return Response(content, status, headers, media_type="text/plain")
