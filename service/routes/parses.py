"""``GET /parses/{key}`` and ``DELETE /parses/{key}``."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from featurestore import FeatureStore
from featurestore.maintenance.delete import Deleted, delete_parses, texts_of, unknown_parses
from service.pipeline.records import FeatureAnswer, ItemFeatures, MadeBy
from service.render import RENDERERS
from service.render.negotiate import CONTENT_TYPES, MEDIA_TYPES, Format, negotiate
from service.routes.answers import CACHE_CONTROL, entity_tag, error_answers, not_modified
from service.schemas import ErrorBody, ParseAnswer
from service.services import Services, UsesServices, check_keeps
from syntax.errors import UnknownKeyError

router = APIRouter(tags=["parses"], responses=error_answers(404, 422, 503))

Key = Annotated[str, Path(description="Key of a parse.", pattern="^[0-9a-f]{32}$")]

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": ParseAnswer,
        "content": {
            MEDIA_TYPES["conllu"]: {"schema": {"type": "string"}},
            MEDIA_TYPES["ndjson"]: {"schema": {"type": "string"}},
            MEDIA_TYPES["arrow"]: {"schema": {"type": "string", "format": "binary"}},
        },
        "headers": {"ETag": {"schema": {"type": "string"}}},
        "description": "As `POST /parse` answers it, with one item.",
    },
    304: {"description": "`If-None-Match` has the tag of the answer."},
    406: {"model": ErrorBody, "description": "`Accept` admits none of the formats."},
}


class DeletedPart(BaseModel):
    """Examples of one split and language that use the parse."""

    dataset: str
    tokenizer: str
    split: str
    lang: str
    examples: int


class DeletionAnswer(BaseModel):
    """What was deleted, and what still holds the text."""

    dry_run: bool = Field(description="Nothing was deleted; this is what would be.")
    keys: list[str] = Field(description="Keys of the parses that went.")
    examples: int = Field(description="Examples of all datasets that went with them.")
    datasets: list[DeletedPart]
    pins: list[str] = Field(
        description="Pins of dataset versions that hold the text: `parsebank store vacuum` keeps "
        "it on disk until they are forgotten."
    )
    same_text: list[str] = Field(
        description="Keys of other parses of the same text (another parser, mode or language), "
        "which stay."
    )
    jobs: list[str] = Field(
        description="Jobs that go on or can be retried, and whose uploads hold the text: they "
        "may store it again."
    )


@router.get("/parses/{key}", response_model=None, responses=_RESPONSES)
async def stored_parse(
    key: Key,
    services: UsesServices,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    format: Annotated[  # noqa: A002 - the query parameter's name
        Format | None, Query(description="Overrides `Accept`.")
    ] = None,
    if_none_match: Annotated[
        str, Header(description="Tags of answers at hand; 304 if one is that of this answer.")
    ] = "",
) -> Response:
    """Return the stored parse of a key; this parses nothing."""
    shape = negotiate(accept, format)
    answer = await asyncio.to_thread(_shown, services.store, key)
    made_by = [answer.parser.name, answer.parser.fingerprint]
    tag = entity_tag({"parse": key, "parser": made_by, "format": shape})
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL, "Vary": "Accept"}
    if unchanged := not_modified(if_none_match, headers):
        return unchanged
    content = await asyncio.to_thread(RENDERERS[shape], answer)
    return Response(content, headers={**headers, "Content-Type": CONTENT_TYPES[shape]})


@router.delete("/parses/{key}")
async def delete_parse(
    key: Key,
    services: UsesServices,
    dry_run: Annotated[bool, Query(description="Only say what would be deleted.")] = False,
) -> DeletionAnswer:
    """Delete a text from the store: its parse, and every example that uses the parse.

    From then on no answer has it. Older versions of the tables keep it on disk until
    `parsebank store vacuum` deletes their files, and pinned ones for as long as they are pinned.
    """
    check_keeps(services)
    # What can fail comes first: a deletion that is done must be answered.
    jobs = await services.jobs.run(_jobs_holding, services, key)
    try:
        deleted = await asyncio.to_thread(_delete, services, key, dry_run)
    finally:
        if not dry_run:
            services.responses.forget()
    return DeletionAnswer.model_validate({**deleted.to_json(), "jobs": jobs})


def _shown(store: FeatureStore, key: str) -> FeatureAnswer:
    record = store.parses.get_many([key]).get(key)
    if record is None:
        store.parses.refresh()
        record = store.parses.get_many([key]).get(key)
    if record is None:
        raise unknown_parses([key])
    try:
        name = store.resolve(record.parser).get("name", record.parser)
    except UnknownKeyError:
        name = record.parser
    item = ItemFeatures(key, cached=True, parse=record.parse)
    return FeatureAnswer(MadeBy(name, record.parser), record.lang, None, [item])


def _jobs_holding(services: Services, key: str) -> list[str]:
    text, lang = texts_of(services.store, [key])[key]
    return services.jobs.holding(text, lang)


def _delete(services: Services, key: str, dry_run: bool) -> Deleted:
    if dry_run:
        services.adhoc.flush()  # waiting rows would be deleted too
        return delete_parses(services.store, [key], dry_run)
    with services.adhoc.paused():
        return delete_parses(services.store, [key])
