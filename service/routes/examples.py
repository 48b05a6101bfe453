"""``GET /datasets/{name}/examples``: the examples of a split, page by page."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from featurestore import FeatureStore
from service.jobs.schemas import Name
from service.routes.answers import error_answers
from service.services import UsesServices

router = APIRouter(tags=["datasets"], responses=error_answers(404, 422, 503))


class StoredExampleAnswer(BaseModel):
    """One example."""

    number: int = Field(description="Its place in the order of the split, from 0.")
    example_id: str
    lang: str
    parser: str = Field(description="Name of the parser, or its fingerprint; empty for none.")
    texts: list[str] = Field(description="One for each field.")
    labels: dict[str, Any] = Field(description="By column; spans have offsets in code points.")
    pieces: list[int] = Field(description="Wordpieces of each text, without special tokens.")
    parse_keys: list[str] = Field(
        description="Of each text: `GET /parses/{key}` has its tree, and `GET /features/{key}`, "
        "with all of them joined by commas, what a trainer sees."
    )


class StoredExamplesAnswer(BaseModel):
    """Some examples of a split."""

    dataset: str
    tokenizer: str
    version: int
    split: str
    fields: list[str]
    total: int = Field(description="Examples of the split in the chosen languages.")
    examples: list[StoredExampleAnswer]


@router.get("/datasets/{name}/examples")
async def list_examples(
    name: Name,
    services: UsesServices,
    split: Annotated[
        Name | None, Query(description="Needed where the dataset has several.")
    ] = None,
    lang: Annotated[Name | None, Query(description="Only this language.")] = None,
    tokenizer: Annotated[
        str | None, Query(description="Name or fingerprint; needed where there are several.")
    ] = None,
    parser: Annotated[
        str | None,
        Query(description="Name or fingerprint; needed where several parsed one language."),
    ] = None,
    start: Annotated[int, Query(ge=0, description="Number of the first example.")] = 0,
    limit: Annotated[int, Query(ge=1, le=100, description="Examples, at most.")] = 20,
) -> StoredExamplesAnswer:
    """List examples in the order of their split.

    Those of the dataset `adhoc`, which are texts that `/parse` was asked for, take the role
    `admin`.
    """
    chosen = {"split": split, "lang": lang, "tokenizer": tokenizer, "parser": parser}
    return await asyncio.to_thread(_examples, services.store, name, chosen, start, limit)


def _examples(
    store: FeatureStore, name: str, chosen: dict[str, str | None], start: int, limit: int
) -> StoredExamplesAnswer:
    data = store.dataset(name, **chosen)
    numbers = np.arange(min(start, len(data)), min(start + limit, len(data)))
    labels = [label.name for label in data.card.labels]
    columns = ("example_id", "parser", "texts", "parse_keys", "segment_lengths", *labels)
    rows = data.columns(columns, numbers).to_pylist()
    parsers = {key: content.get("name", key) for key, content in data.parsers.items()}
    return StoredExamplesAnswer(
        dataset=data.name,
        tokenizer=data.card.tokenizer,
        version=data.version,
        split=data.spec.split,
        fields=list(data.card.fields),
        total=len(data),
        examples=[
            StoredExampleAnswer(
                number=number,
                example_id=row["example_id"],
                lang=data.rows.parts[data.rows.part[number]][1],
                parser=parsers.get(row["parser"], row["parser"] or ""),
                texts=row["texts"],
                labels={label: row[label] for label in labels},
                pieces=row["segment_lengths"],
                parse_keys=row["parse_keys"],
            )
            for number, row in zip(numbers.tolist(), rows, strict=True)
        ],
    )
