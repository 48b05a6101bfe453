"""``POST /parse``."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response

from service.render import render_conllu, render_json
from service.schemas import ErrorBody, ParseAnswer, ParseRequest
from service.services import UsesServices

router = APIRouter(tags=["parse"])

CONLLU_TYPE: Final = "text/x-conllu; charset=utf-8"
Format = Literal["json", "conllu"]

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": ParseAnswer,
        "content": {"text/x-conllu": {"schema": {"type": "string"}}},
        "description": "One item per text, in order; a text that could not be used is an item "
        "with `error`. As CoNLL-U: a document per text, and for a failed one a comment "
        "`# error = ...` at the head.",
    },
    413: {"model": ErrorBody, "description": "The body is larger than `max_body_bytes`."},
    422: {
        "model": ErrorBody,
        "description": "The request contradicts itself, or names a parser, "
        "language, tokenizer or policy that there is not.",
    },
    429: {"model": ErrorBody, "description": "Too much is waiting; see `Retry-After`."},
    503: {"model": ErrorBody, "description": "The model or the store is out of order."},
    504: {"model": ErrorBody, "description": "The model was not loaded within the deadline."},
}


@router.post("/parse", response_model=None, responses=_RESPONSES)
async def parse(
    body: ParseRequest,
    services: UsesServices,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    format: Annotated[  # noqa: A002 - the query parameter's name
        Format | None, Query(description="Overrides `Accept`.")
    ] = None,
) -> Response:
    """Parse texts, and align them to a tokenizer's pieces.

    Parses are kept: the same text, parser, language and mode are never parsed twice. Each text
    fails alone.
    """
    answer = await services.pipeline.run(body.to_features(services.settings.max_items))
    if (format or _format_of(accept)) == "conllu":
        return Response(render_conllu(answer), media_type=CONLLU_TYPE)
    return Response(render_json(answer), media_type="application/json")


def _format_of(accept: str) -> Format:
    """JSON unless CoNLL-U is asked for by name; a weight (``;q=``) is not looked at."""
    return "conllu" if "conllu" in accept.lower() else "json"
