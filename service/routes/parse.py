"""``POST /parse``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.middleware.body import ORIGIN
from service.pipeline.response_cache import Origin
from service.render import RENDERERS
from service.render.ndjson import stream_ndjson
from service.render.negotiate import CONTENT_TYPES, FORMATS, MEDIA_TYPES, negotiate
from service.routes.answers import CACHE_CONTROL, error_answers, kept_headers
from service.routes.streams import ClosingStream, while_connected
from service.schemas import ErrorBody, ParseAnswer, ParseRequest
from service.services import services_of
from syntax.errors import SpecError

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
        "description": "One item per text, in order; a text that could not be used is an item "
        "with `error`. As CoNLL-U: a document per text, and for a failed one a comment "
        "`# error = ...` at the head. As NDJSON: a line per text as it finishes, with its "
        "`index`, and a last line with `done` or `error`. As an Arrow IPC stream: a row per text.",
    },
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


# FastAPI takes longer to read this than the rest of a short answer, so it is described here and
# read by hand.
_PARAMETERS: Final[list[dict[str, Any]]] = [
    {
        "name": "format",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "enum": list(FORMATS)},
        "description": "Overrides `Accept`.",
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
    # Several headers of one name make one list.
    accept = ",".join(request.headers.getlist("accept"))
    asked = request.query_params.get("format")
    if asked is not None and asked not in FORMATS:
        raise SpecError(f"format is {asked!r}; it can be {', '.join(FORMATS)}", format=asked)
    shape = negotiate(accept, asked)
    headers = {
        "Content-Type": CONTENT_TYPES[shape],
        "Cache-Control": CACHE_CONTROL,
        "Vary": "Accept",
    }
    wanted = body.to_features(services.settings.max_items)
    if shape == "arrow":
        wanted = replace(wanted, packed=True)
    async with while_connected(request):
        plan = await services.pipeline.plan(wanted)
        headers |= kept_headers(services.pipeline, plan.request.store and bool(plan.missing))
        if shape == "ndjson" and plan.missing:
            lines = stream_ndjson(services.pipeline, plan)
            # Until the first lines are there, a failure has a status of its own.
            return ClosingStream(await anext(lines), lines, headers)
        answer, content = await services.pipeline.answer(plan, RENDERERS[shape])
    if answer.is_stored:
        setattr(request.state, ORIGIN, Origin.of(plan))
    return Response(content, headers=headers)
