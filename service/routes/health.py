"""Liveness and readiness, for supervisors and load balancers."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.readiness import Readiness, without_reasons
from service.schemas import ErrorBody, HealthAnswer
from service.security.middleware import Authenticator
from syntax.errors import NotReadyError

router = APIRouter(prefix="/health", tags=["health"])

_ALIVE: Final = HealthAnswer().model_dump_json().encode()


@router.head("/live", include_in_schema=False)
@router.get("/live", response_model=HealthAnswer)
async def live() -> Response:
    """Answer while the event loop runs, under any load."""
    return Response(_ALIVE, media_type="application/json")


@router.head("/ready", include_in_schema=False)
@router.get("/ready", responses={503: {"model": ErrorBody}})
async def ready(request: Request) -> HealthAnswer:
    """Check whether a parse would succeed.

    The store can be read, the disk written to, the job tables answer, and the default parser has
    just parsed a word; the first call loads it. A verdict stands for a second. 503 names what is
    out of order. What was found in each check is only told to callers with a key; without keys,
    to those on this machine.
    """
    readiness: Readiness = request.app.state.readiness
    authenticator: Authenticator = request.app.state.authenticator
    if authenticator.trusts(request.scope):
        return HealthAnswer(checks=await readiness.check())
    try:
        await readiness.check()
    except NotReadyError as error:
        raise without_reasons(error) from None
    return HealthAnswer()
