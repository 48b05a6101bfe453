"""``POST /features`` and ``GET /features/{key}``: what a trainer would see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response

from service.pipeline.assembled import AssemblyAnswer
from service.render.features import features_arrow, features_json, features_ndjson
from service.render.negotiate import MEDIA_TYPES, negotiate
from service.routes.answers import (
    CACHE_CONTROL,
    entity_tag,
    error_answers,
    kept_headers,
    not_modified,
)
from service.routes.feature_schemas import FeatureFormat as Format
from service.routes.feature_schemas import FeatureQuery, FeaturesAnswer, FeaturesRequest
from service.routes.streams import while_connected
from service.schemas import ErrorBody
from service.services import UsesServices
from syntax.errors import SpecError

router = APIRouter(tags=["features"])

OFFERED: Final[tuple[Format, ...]] = ("json", "ndjson", "arrow")

_ANSWER: Final[dict[str, Any]] = {
    "model": FeaturesAnswer,
    "content": {
        MEDIA_TYPES["ndjson"]: {"schema": {"type": "string"}},
        MEDIA_TYPES["arrow"]: {"schema": {"type": "string", "format": "binary"}},
    },
    "description": "One entry per example, in order; one that could not be used is an entry with "
    "`error`. NDJSON: a line with all but `examples`, a line per example, and one with `done`. "
    "Arrow: a row per example, matrices packed as in the store.",
}
_NO_FORMAT: Final = {"model": ErrorBody, "description": "`Accept` admits none of the formats."}
_WAIT: Final = {"model": ErrorBody, "description": "Too much is waiting; see `Retry-After`."}
_POSTED: Final[dict[int | str, dict[str, Any]]] = {
    200: _ANSWER,
    406: _NO_FORMAT,
    429: _WAIT,
    **error_answers(408, 413, 422, 501, 503, 504),
}
_GOT: Final[dict[int | str, dict[str, Any]]] = {
    200: {**_ANSWER, "headers": {"ETag": {"schema": {"type": "string"}}}},
    304: {"description": "`If-None-Match` has the tag of the answer."},
    406: _NO_FORMAT,
    **error_answers(404, 422, 503),
}

AskedFormat = Annotated[Format | None, Query(description="Overrides `Accept`.")]
Accept = Annotated[str, Header(include_in_schema=False)]


@router.post("/features", response_model=None, responses=_POSTED)
async def features(
    request: Request,
    body: FeaturesRequest,
    services: UsesServices,
    accept: Accept = "",
    format: AskedFormat = None,  # noqa: A002 - the query parameter's name
) -> Response:
    """Parse segments and assemble them as a stream does for a trainer.

    The arrays are those of `FeatureDataset.stream` for the same segments and options. Parses are
    kept, and each example is appended to the dataset `adhoc`. Each example fails alone.
    """
    shape = _shape(accept, format)
    async with while_connected(request):
        answer = await services.assembler.run(body.to_assembly(services.settings.max_items))
        headers = kept_headers(services.pipeline, body.store)
        return await asyncio.to_thread(_render, answer, shape, headers)


@router.get("/features/{key}", response_model=None, responses=_GOT)
async def stored_features(
    key: Annotated[
        str,
        Path(
            description="Parse key; those of several segments are joined by commas.",
            pattern="^[0-9a-f]{32}(,[0-9a-f]{32})*$",
        ),
    ],
    query: Annotated[FeatureQuery, Query()],
    services: UsesServices,
    accept: Accept = "",
    if_none_match: Annotated[
        str, Header(description="Tags of answers at hand; 304 if one is that of this answer.")
    ] = "",
) -> Response:
    """Assemble stored parses; this parses and stores nothing."""
    shape = _shape(accept, query.format)
    keys, spec = key.split(","), query.spec()
    most = services.settings.max_items
    if len(keys) > most:
        raise SpecError(f"{len(keys)} keys came; at most {most} are answered at once", limit=most)
    await services.assembler.check(keys)
    tokenizer = await services.assembler.tokenizer(query.tokenizer)
    named = {"name": tokenizer.name, "fingerprint": tokenizer.fingerprint}
    made = {"keys": keys, "tokenizer": named, "spec": asdict(spec), "format": shape}
    # A tokenizer's name may come to mean another one, so that a cache has to ask each time.
    headers = {"ETag": entity_tag(made), "Cache-Control": CACHE_CONTROL, "Vary": "Accept"}
    if unchanged := not_modified(if_none_match, headers):
        return unchanged
    answer = await services.assembler.stored(keys, tokenizer, spec)
    return await asyncio.to_thread(_render, answer, shape, headers)


def _shape(accept: str, asked: Format | None) -> Format:
    return cast(Format, negotiate(accept, asked, OFFERED))


def _render(
    answer: AssemblyAnswer, shape: Format, headers: dict[str, str] | None = None
) -> Response:
    content = _RENDERERS[shape](answer)
    return Response(content, headers=headers, media_type=MEDIA_TYPES[shape])


_RENDERERS: Final[dict[Format, Callable[[AssemblyAnswer], bytes]]] = {
    "json": features_json,
    "ndjson": features_ndjson,
    "arrow": features_arrow,
}
