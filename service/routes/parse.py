"""``POST /parse``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.pipeline.plan import Plan
from service.pipeline.response_cache import CachedResponse, Origin, response_key
from service.render import Rendered, Representation
from service.render.ndjson import stream_ndjson
from service.render.negotiate import FORMATS, MEDIA_TYPES, choose_encoding, named_format, negotiate
from service.render.streaming import ClosingStream
from service.routes.answers import error_answers
from service.routes.disconnect import while_connected
from service.schemas import ErrorBody, ParseAnswer, ParseRequest
from service.services import Services, services_of

router = APIRouter(tags=["parse"])

_TEXT: Final = {"schema": {"type": "string"}}
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": ParseAnswer,
        "content": {
            MEDIA_TYPES["conllu"]: _TEXT,
            MEDIA_TYPES["ndjson"]: _TEXT,
            MEDIA_TYPES["arrow"]: _BINARY,
        },
        "headers": {
            "ETag": {
                "description": "If every text was answered; for NDJSON, if all were stored.",
                "schema": {"type": "string"},
            }
        },
        "description": "One item per text, in order; a text that could not be used is an item "
        "with `error`. As CoNLL-U: a document per text, and for a failed one a comment "
        "`# error = ...` at the head. As NDJSON: a line per text as it finishes, with its "
        "`index`, and a last line with `done` or `error`. As an Arrow IPC stream: a row per text.",
    },
    304: {"description": "`If-None-Match` has the tag of the answer, and every text is stored."},
    406: {"model": ErrorBody, "description": "`Accept` admits none of the formats."},
    **error_answers(408, 413, 501),
    422: {
        "model": ErrorBody,
        "description": "The request contradicts itself, or names a parser, "
        "language, tokenizer or policy that there is not.",
    },
    429: {"model": ErrorBody, "description": "Too much is waiting; see `Retry-After`."},
    503: {"model": ErrorBody, "description": "The model or the store is out of order."},
    504: {"model": ErrorBody, "description": "The model was not loaded within the deadline."},
}


# FastAPI takes longer to read these four than the rest of a cached answer, so they are described
# here and read by hand.
_PARAMETERS: Final[list[dict[str, Any]]] = [
    {
        "name": "format",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "enum": list(FORMATS)},
        "description": "Overrides `Accept`.",
    },
    {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "Tags of answers at hand; 304 if one is that of this answer.",
    },
]


@router.post(
    "/parse",
    response_model=None,
    responses=_RESPONSES,
    openapi_extra={"parameters": _PARAMETERS},
)
async def parse(request: Request, body: ParseRequest) -> Response:
    """Parse texts and align them with a tokenizer's pieces.

    Parses are kept: the same text, parser, language and mode are never parsed twice. Each text
    fails alone.
    """
    services = services_of(request)
    shape = Representation(
        negotiate(_header(request, "accept"), named_format(request.query_params.get("format"))),
        choose_encoding(_header(request, "accept-encoding")),
    )
    held = _header(request, "if-none-match")
    wanted = body.to_features(services.settings.max_items)
    generation = services.responses.generation
    async with while_connected(request):
        outcome: Rendered | Plan = await services.pipeline.answer(
            replace(wanted, packed=True) if shape.format == "arrow" else wanted,
            shape.render,
            lambda plan: shape.unchanged(plan, held) or _left_to_stream(plan, shape),
        )
        if isinstance(outcome, Plan):
            return await _streamed(services, outcome, shape)
    if outcome.is_stored and outcome.status == 200:
        _keep_ready(services, await request.body(), shape, outcome, generation)
    return Response(outcome.content, outcome.status, outcome.headers)


def _header(request: Request, name: str) -> str:
    """A header that is a list; several of one name make one list."""
    return ",".join(request.headers.getlist(name))


def _left_to_stream(plan: Plan, shape: Representation) -> Plan | None:
    """A request whose texts are to be sent one by one, as they are parsed."""
    return plan if shape.format == "ndjson" and plan.missing else None


async def _streamed(services: Services, plan: Plan, shape: Representation) -> Response:
    lines = stream_ndjson(services.pipeline, plan)
    # Until the first lines are there, a failure has a status of its own.
    first = await anext(lines)
    return ClosingStream(first, lines, shape.headers())


def _keep_ready(
    services: Services, body: bytes, shape: Representation, rendered: Rendered, generation: int
) -> None:
    """Keep an answer for the next request with the same body."""
    raw = tuple((name.lower().encode(), value.encode()) for name, value in rendered.kept_headers())
    texts, origin = len(rendered.plan.keys), Origin.of(rendered.plan)
    answer = CachedResponse(rendered.content, raw, rendered.etag, texts, origin)
    services.responses.put(response_key(body, shape.format, shape.encoding), answer, generation)
