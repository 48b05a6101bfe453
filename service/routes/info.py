"""What there is: ``/info`` and ``/models``."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Final, get_args

from fastapi import APIRouter

from service.parsers import ModelFile, ParseMode, find_parser, identify, list_models
from service.pipeline.records import MatrixName
from service.schemas import InfoAnswer, ModelAnswer
from service.services import Services, UsesServices
from service.settings import Settings
from service.tokenizers import bundled_tokenizers
from syntax.errors import ParsebankError, UnknownNameError
from syntax.subwords import POLICIES

router = APIRouter(tags=["info"])

_LIMITS: Final = (
    *("max_body_bytes", "max_items", "max_chars_per_text", "max_words_per_sentence"),
    *("max_matrix_pieces", "max_matrix_cells", "max_queued_words", "request_deadline_seconds"),
)


@router.get("/info")
async def info(services: UsesServices) -> InfoAnswer:
    """Version, defaults and limits."""
    settings = services.settings
    return InfoAnswer(
        version=version("parsebank"),
        lang=settings.lang,
        parser=_default_parser(settings),
        tokenizer=settings.tokenizer,
        tokenizers=list(bundled_tokenizers()),
        modes=list(get_args(ParseMode)),
        policies=list(POLICIES),
        matrices=list(get_args(MatrixName)),
        formats=["json", "conllu"],
        limits={name: getattr(settings, name) for name in _LIMITS},
    )


@router.get("/models")
async def models(services: UsesServices) -> list[ModelAnswer]:
    """Every parser that may be asked for; a damaged one says what its problem is."""
    return await asyncio.to_thread(_describe_all, services)


def _describe_all(services: Services) -> list[ModelAnswer]:
    loaded = {pool.fingerprint for pool in services.pools.running()}
    return [_describe(model, loaded) for model in list_models(services.settings)]


def _describe(model: ModelFile, loaded: set[str]) -> ModelAnswer:
    fingerprint, problem = None, None
    try:
        fingerprint = identify(model).fingerprint
    except ParsebankError as error:
        problem = error.message
    return ModelAnswer(
        name=model.name,
        langs=list(model.langs),
        fingerprint=fingerprint,
        size_bytes=model.size,
        loaded=fingerprint in loaded,
        treebank=model.card.get("treebank"),
        licence=model.card.get("licence"),
        sha256=model.sha256,
        problem=problem,
    )


def _default_parser(settings: Settings) -> str | None:
    try:
        return find_parser(settings).name
    except UnknownNameError:
        return None
