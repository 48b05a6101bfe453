"""Datasets of the store, over HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from featurestore import DatasetInfo, FeatureStore
from service.routes.answers import error_answers
from service.services import UsesServices

router = APIRouter(tags=["datasets"], responses=error_answers(503))


class TokenizerName(BaseModel):
    """A tokenizer."""

    name: str
    fingerprint: str


class PartAnswer(BaseModel):
    """One split in one language."""

    split: str
    lang: str
    rows: int
    dropped: dict[str, int] = Field(
        description="Examples that could not be used, and are not stored, by reason."
    )


class DatasetAnswer(BaseModel):
    """One dataset under one tokenizer, at its newest version."""

    name: str
    tokenizer: TokenizerName
    version: int = Field(description="Version of the table; a training run pins it.")
    fields: list[str]
    labels: list[str]
    parts: list[PartAnswer]


@router.get("/datasets")
async def list_datasets(services: UsesServices) -> list[DatasetAnswer]:
    """List datasets with their splits, languages, sizes, version and drops."""
    store = services.store
    return await asyncio.to_thread(lambda: [_answer(info, store) for info in store.datasets()])


def _answer(info: DatasetInfo, store: FeatureStore) -> DatasetAnswer:
    content: dict[str, Any] = info.to_json()
    drops = _drops(info, store)
    for part in content["parts"]:
        part["dropped"] = drops.pop((part["split"], part["lang"]), {})
    for (split, lang), dropped in sorted(drops.items()):
        content["parts"].append({"split": split, "lang": lang, "rows": 0, "dropped": dropped})
    return DatasetAnswer.model_validate(content)


def _drops(info: DatasetInfo, store: FeatureStore) -> dict[tuple[str, str], dict[str, int]]:
    """Examples that are missing, by partition and reason.

    A drop that several backfills met counts once. The keys of a partition with drops are read once
    per process; later calls look at its log.
    """
    tokenizer = info.tokenizer_fingerprint
    found: dict[tuple[str, str], dict[str, str]] = {}
    for drop in store.drops.of(info.name, tokenizer):
        found.setdefault((drop.split, drop.lang), {})[drop.example_key] = drop.reason
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for part, reasons in found.items():
        keys = [key for key in reasons if key]  # a reader's rejection may have none
        for key in store.features.existing(info.name, tokenizer, *part, keys):
            del reasons[key]  # another backfill has stored it since
        counts[part] = dict(Counter(reasons.values()))
    return counts
