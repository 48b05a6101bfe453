"""The app factory: everything is built here, and nothing at import."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

import structlog
from fastapi import FastAPI

from service.errors import install_error_handlers
from service.limits import BodyLimit
from service.logs import configure_logging
from service.metrics import install_metrics
from service.routes import datasets, health, info, jobs, parse
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
        configure_logging(chosen.log_level)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running_services(chosen) as services:
            app.state.services = services
            yield
            del app.state.services

    app = FastAPI(
        title="Parsebank",
        version=version("parsebank"),
        description=_DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.add_middleware(BodyLimit, max_bytes=chosen.max_body_bytes)
    install_error_handlers(app)
    for routes in (parse, jobs, datasets, info, health):
        app.include_router(routes.router)
    install_metrics(app)
    return app
