"""The app factory: everything is built here, and nothing at import."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette_compress import CompressMiddleware, add_compress_type, remove_compress_type

from service.errors import install_error_handlers
from service.logs import configure_embedded_logging
from service.metrics import Metrics, RequestMetrics
from service.middleware.access_log import AccessLog
from service.middleware.admission import AdmissionMiddleware
from service.middleware.body import BodyMiddleware
from service.page import router as page
from service.readiness import Readiness
from service.render.negotiate import MEDIA_TYPES
from service.routes import (
    datasets,
    docs,
    draw,
    examples,
    features,
    health,
    info,
    jobs,
    lindat,
    models,
    parse,
    parses,
    sql,
)
from service.routes.answers import NOT_KEPT, error_answers
from service.security.middleware import Authenticator, CheckMiddleware
from service.security.origins import OriginCheck
from service.security.rates import RATE_HEADERS
from service.services import running_services
from service.settings import Settings, checked_settings

_DESCRIPTION: Final = """Texts in, Universal Dependencies out: aligned to wordpieces, with
distances, depths and ancestors, and kept. Parse once, train many."""


def create_app(settings: Settings | None = None, **fields: Any) -> FastAPI:
    """Build the service from settings, or from the environment and single settings.

    The app opens the store and resumes jobs when it starts, not here. While it runs,
    ``app.state.services`` holds the `service.services.Services`.
    """
    chosen = checked_settings(fields) if settings is None else settings
    configure_embedded_logging(chosen.log_level, chosen.log_format)

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
        docs_url=None,
        redoc_url=None,
        # A redirect would repeat the query, with its text, over plain HTTP behind a proxy.
        redirect_slashes=False,
    )
    install_error_handlers(app)
    for routes in (
        *(parse, parses, draw, features, lindat, jobs, datasets, examples, sql),
        *(info, models, health, docs),
    ):
        app.include_router(routes.router)
    app.include_router(page)
    docs.describe_security(app, required=chosen.keys_file is not None)
    _wrap(app, chosen)
    return app


def _wrap(app: FastAPI, settings: Settings) -> None:
    """Add the middleware; the last one added sees a request first."""
    # Server-sent events are short, and wanted at once; a stream of NDJSON is flushed at each piece.
    remove_compress_type("text/event-stream")
    add_compress_type(MEDIA_TYPES["ndjson"], streaming=True)
    add_compress_type(MEDIA_TYPES["conllu"])
    add_compress_type(MEDIA_TYPES["arrow"])
    app.add_middleware(CompressMiddleware, minimum_size=1_024, brotli=False, zstd_level=3)
    cached = parse.router.routes[0]
    app.add_middleware(BodyMiddleware, max_bytes=settings.max_body_bytes, route=cached)
    app.state.authenticator = Authenticator(settings)
    app.add_middleware(CheckMiddleware, check=app.state.authenticator.check)
    if settings.cors_origins:
        # Outside authentication: browsers send no key with a preflight, and must read refusals.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["ETag", "Retry-After", "X-Request-ID", NOT_KEPT, *RATE_HEADERS],
            max_age=600,
        )
    app.add_middleware(CheckMiddleware, check=OriginCheck(settings).check)
    requests = RequestMetrics()
    app.add_middleware(AdmissionMiddleware)
    app.add_middleware(AccessLog, counts=requests)
    app.state.metrics = Metrics(app, requests)
