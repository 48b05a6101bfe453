"""The app factory: everything is built here, and nothing at import."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

import structlog
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from service.errors import install_error_handlers
from service.logs import configure_logging
from service.metrics import Metrics, RequestCounts
from service.middleware.compression import add_compression
from service.middleware.limits import BodyLimit
from service.middleware.requests import Observer
from service.middleware.shortcut import Shortcut
from service.middleware.turnstile import Turnstile
from service.readiness import Readiness
from service.routes import (
    datasets,
    features,
    health,
    info,
    jobs,
    lindat,
    metrics,
    models,
    parse,
    parses,
)
from service.routes.answers import error_answers
from service.security.describe import describe_security
from service.security.middleware import Gate, Gatekeeper
from service.security.origins import OriginCheck
from service.security.rates import RATE_HEADERS
from service.services import running_services
from service.settings import Settings

_DESCRIPTION: Final = """Texts in, Universal Dependencies out: aligned to wordpieces, with
distances, depths and ancestors, and kept. Parse once, train many."""


def create_app(settings: Settings | None = None, **fields: Any) -> FastAPI:
    """Build the service.

    Args:
        settings: Settings; by default they are read from the environment.
        **fields: Instead, single settings over those of the environment.

    The store is opened and jobs are taken up when the app starts, not here.
    ``app.state.services`` holds the `service.services.Services` while it runs.
    """
    chosen = Settings(**fields) if settings is None else settings
    if not structlog.is_configured():
        # structlog's default is standard output, which belongs to the program that embeds us.
        configure_logging(chosen.log_level, chosen.log_format)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running_services(chosen) as services:
            app.state.services = services
            app.state.readiness = Readiness(services)
            yield
            del app.state.services, app.state.readiness

    app = FastAPI(
        title="Parsebank",
        version=version("parsebank"),
        description=_DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        responses=error_answers(422),
    )
    install_error_handlers(app)
    for routes in (parse, parses, features, lindat, jobs, datasets, info, models, health, metrics):
        app.include_router(routes.router)
    describe_security(app, required=chosen.keys_file is not None)
    _wrap(app, chosen)
    return app


def _wrap(app: FastAPI, settings: Settings) -> None:
    """Put the middleware around the routes; what is added last sees a request first."""
    add_compression(app)
    app.add_middleware(Shortcut, route=parse.router.routes[0])
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.state.gatekeeper = Gatekeeper(settings)
    app.add_middleware(Gate, keeper=app.state.gatekeeper)
    if settings.cors_origins:
        # Outside the gate: a browser sends no key with its preflight, and may read a refusal.
        app.add_middleware(CORSMiddleware, **_cross_origin(settings.cors_origins))
    app.add_middleware(OriginCheck, settings=settings)
    requests = RequestCounts()
    app.add_middleware(Turnstile)
    app.add_middleware(Observer, counts=requests)
    app.state.metrics = Metrics(app, requests)


def _cross_origin(origins: list[str]) -> dict[str, Any]:
    return {
        "allow_origins": origins,
        "allow_methods": ["GET", "POST", "DELETE"],
        "allow_headers": ["*"],
        "expose_headers": ["ETag", "Retry-After", "X-Request-ID", *RATE_HEADERS],
        "max_age": 600,
    }
