"""Liveness and readiness for supervisors and load balancers, and metrics for Prometheus."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.metrics import Metrics
from service.readiness import Readiness, without_reasons
from service.schemas import ErrorBody, HealthAnswer
from service.security.middleware import Authenticator
from syntax.errors import NotReadyError

router = APIRouter(tags=["health"])

_ALIVE: Final = HealthAnswer().model_dump_json().encode()
_METRICS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics."}
}


@router.head("/health/live", include_in_schema=False)
@router.get("/health/live", response_model=HealthAnswer)
async def live() -> Response:
    """Answer while the event loop runs, under any load."""
    return Response(_ALIVE, media_type="application/json")


@router.head("/health/ready", include_in_schema=False)
@router.get("/health/ready", responses={503: {"model": ErrorBody}})
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


@router.get("/metrics", response_class=Response, responses=_METRICS)
async def metrics(request: Request) -> Response:
    """Return counts and durations in Prometheus' text format."""
    source: Metrics = request.app.state.metrics
    return Response(await source.render(), media_type=CONTENT_TYPE_LATEST)
