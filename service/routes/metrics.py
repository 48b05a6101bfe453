"""``/metrics``, for Prometheus."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.metrics import Metrics

router = APIRouter(tags=["health"])

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics."}
}


@router.get("/metrics", response_class=Response, responses=_RESPONSES)
async def metrics(request: Request) -> Response:
    """Return counts and durations in Prometheus' text format."""
    source: Metrics = request.app.state.metrics
    return Response(await source.render(), media_type=CONTENT_TYPE_LATEST)
