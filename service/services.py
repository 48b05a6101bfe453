"""What the routes work with: built and stopped by the app's lifespan."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from featurestore import FeatureStore, open_store
from service.jobs import JobManager
from service.pipeline import FeaturePipeline
from service.settings import Settings
from service.workers.pools import WorkerPools


@dataclass(frozen=True)
class Services:
    """The service without HTTP.

    Attributes:
        settings: What the operator set.
        store: Parses and features.
        pools: Parser processes of the interactive routes.
        pipeline: From texts to features.
        jobs: Backfill jobs.
    """

    settings: Settings
    store: FeatureStore
    pools: WorkerPools
    pipeline: FeaturePipeline
    jobs: JobManager


@asynccontextmanager
async def running_services(settings: Settings) -> AsyncIterator[Services]:
    """Open the store, start the jobs; parsers start when they are first needed."""
    with open_store(
        settings.store,
        buffer_seconds=settings.commit_seconds,
        refresh_seconds=settings.refresh_seconds,
    ) as store:
        pools = WorkerPools(settings)
        jobs = JobManager(settings, store)
        await jobs.start()
        try:
            yield Services(settings, store, pools, FeaturePipeline(settings, store, pools), jobs)
        finally:
            await jobs.stop()
            await pools.stop()


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


UsesServices = Annotated[Services, Depends(_services)]
"""Parameter type of routes that need them."""
