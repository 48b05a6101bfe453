"""Liveness and readiness, for supervisors and load balancers."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from service.parsers import ParserIdentity, find_parser, identify
from service.schemas import ErrorBody, HealthAnswer
from service.services import UsesServices
from service.settings import Settings
from syntax.errors import ModelLoadError, UnknownNameError

router = APIRouter(prefix="/health", tags=["health"])


@router.get("/live")
async def live() -> HealthAnswer:
    """The event loop turns."""
    return HealthAnswer()


@router.get("/ready", responses={503: {"model": ErrorBody}})
async def ready(services: UsesServices) -> HealthAnswer:
    """The store can be read, and the default parser's file is sound.

    The model itself is loaded by the first request that needs it (half a second).
    """
    await asyncio.to_thread(services.store.parses.contains, ["0" * 32])
    identity = await asyncio.to_thread(_default_parser, services.settings)
    return HealthAnswer(checks={"store": services.store.uri, "parser": identity.name})


def _default_parser(settings: Settings) -> ParserIdentity:
    try:
        return identify(find_parser(settings))
    except UnknownNameError as error:
        raise ModelLoadError(f"the default language has no parser: {error.message}") from None
