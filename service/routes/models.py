"""The parsers: what they are, and loading and unloading them by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from service.parsers import ModelFile, find_parser, identify, list_models
from service.routes.answers import error_answers
from service.schemas import ErrorBody, ModelAnswer
from service.services import Services, UsesServices
from service.settings import Settings
from service.workers.memory import shared_bytes
from syntax.errors import ParsebankError, UnknownModelError, UnknownNameError, UnknownParserError

router = APIRouter(tags=["models"], responses=error_answers(503))


@router.get("/models")
async def models(services: UsesServices) -> list[ModelAnswer]:
    """List the parsers; a damaged one has a `problem`.

    The first call after a model's file changed reads the whole file, for its checksum.
    """
    settings, loaded = services.settings, _loaded(services)
    return await asyncio.to_thread(
        lambda: [_describe(settings, model, loaded) for model in list_models(settings)]
    )


@router.get("/models/{name:path}", responses={404: {"model": ErrorBody}})
async def model(name: str, services: UsesServices) -> ModelAnswer:
    """Show a parser; the name matches as `parser` does in a request."""
    return await _answer(services, name)


@router.post(
    "/models/{name:path}/load",
    responses={429: {"model": ErrorBody}, **error_answers(404, 501)},
)
async def load_model(name: str, services: UsesServices) -> ModelAnswer:
    """Load a parser now, so that the first text does not wait."""
    found = await asyncio.to_thread(_find, services.settings, name)
    identity = await asyncio.to_thread(identify, found)
    await services.pools.load(found, identity.fingerprint)
    return await _answer(services, name)


@router.post(
    "/models/{name:path}/unload",
    responses={404: {"model": ErrorBody}, 409: {"model": ErrorBody}},
)
async def unload_model(name: str, services: UsesServices) -> ModelAnswer:
    """Stop a parser's processes; the next text loads it again. 409 while it has texts to parse."""
    found = await asyncio.to_thread(_find, services.settings, name)
    await services.pools.unload(found.name)
    return await _answer(services, name)


async def _answer(services: Services, name: str) -> ModelAnswer:
    settings, loaded = services.settings, _loaded(services)
    return await asyncio.to_thread(lambda: _describe(settings, _find(settings, name), loaded))


def _loaded(services: Services) -> dict[str, list[int]]:
    """Processes of each loaded model, the one that holds it first, by its fingerprint."""
    return {pool.fingerprint: pool.pids for pool in services.pools.running()}


def _find(settings: Settings, name: str) -> ModelFile:
    try:
        return find_parser(settings, name)
    except UnknownParserError as error:
        raise UnknownModelError(error.message, **error.detail) from None


def _describe(settings: Settings, model: ModelFile, loaded: Mapping[str, list[int]]) -> ModelAnswer:
    fingerprint, sha256, problem = None, model.sha256, None
    try:
        identity = identify(model)
        fingerprint, sha256 = identity.fingerprint, identity.content["sha256"]
    except ParsebankError as error:
        problem = error.message
    pids = loaded.get(fingerprint or "")
    card = model.card
    return ModelAnswer(
        name=model.name,
        backend=model.backend,
        langs=list(model.langs),
        default_for=[lang for lang in model.langs if _is_default(settings, model, lang)],
        treebank=card.get("treebank"),
        version=card.get("version") or card.get("treebank_version"),
        licence=card.get("licence"),
        columns=_columns(card),
        size_bytes=_size(model),
        sha256=sha256,
        fingerprint=fingerprint,
        loaded=pids is not None,
        workers=0 if pids is None else max(len(pids) - 1, 0),
        memory_mb=None if pids is None else round(shared_bytes(pids) / 2**20, 1),
        problem=problem,
    )


def _columns(card: Mapping[str, Any]) -> list[str] | None:
    columns = card.get("columns")
    is_list = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    return columns if is_list else None


def _size(model: ModelFile) -> int:
    try:
        return model.size
    except OSError:  # a file is missing, as `problem` says
        return 0


def _is_default(settings: Settings, model: ModelFile, lang: str) -> bool:
    try:
        return find_parser(settings, lang=lang).name == model.name
    except UnknownNameError:
        return False
