"""``POST /sql``: read-only SQL over the store."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from service.routes.answers import error_answers
from service.routes.streams import while_connected
from service.services import UsesServices
from service.sql import SqlQuery

router = APIRouter(tags=["store"], responses=error_answers(408, 413, 422, 503, 504))


class SqlRequest(BaseModel):
    """A query."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(min_length=1, max_length=20_000)] = Field(
        description="One SELECT in DuckDB's SQL over the views `parses`, `sentences`, `words`, "
        "`examples`, `segments`, `drops` and `fingerprints`; or a graph pattern in a part of "
        "Grew's syntax, such as `pattern { V [upos=VERB]; V -[obj]-> O; O << V }`.",
        examples=["select upos, count(*) as words from words group by upos order by words desc"],
    )
    limit: int = Field(default=100, ge=1, le=1000, description="Rows of the answer, at most.")


class SqlColumn(BaseModel):
    """A column of the answer."""

    name: str
    type: str = Field(description="DuckDB's type, such as `VARCHAR`.")


class SqlAnswer(BaseModel):
    """Rows of a query."""

    columns: list[SqlColumn]
    rows: list[list[Any]] = Field(
        description="Values in the order of the columns; bytes are shown by their number, and what "
        "JSON has no form for as text."
    )
    truncated: bool = Field(
        description="There are more rows: beyond `limit`, or beyond 4 MB of JSON."
    )


@router.post("/sql")
async def sql(request: Request, body: SqlRequest, services: UsesServices) -> SqlAnswer:
    """Query the store; nothing is written, and no other file is read.

    One query runs at a time, in a process of its own, with 1 GB of memory and until
    `request_deadline_seconds`; `parsebank store sql` has no such limits.
    """
    seconds = services.settings.request_deadline_seconds
    async with while_connected(request):
        answer = await services.queries.run(SqlQuery(body.query, body.limit, seconds))
    return SqlAnswer.model_validate(answer)
