"""What the routes work with: built and stopped by the app's lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

import structlog
from fastapi import Depends, Request

from featurestore import FeatureStore, open_store
from service.jobs import JobManager
from service.pipeline import AdhocDataset, FeatureAssembler, FeaturePipeline
from service.pipeline.ready import ReadyAnswers
from service.settings import Settings
from service.timing import Stages
from service.workers.pools import WorkerPools
from syntax.errors import StoreError

FOLLOW_SECONDS: Final = 2.0
"""Between two looks for what other processes deleted, or `refresh_seconds` if that is longer."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Services:
    """The service without HTTP.

    Attributes:
        settings: What the operator set.
        store: Parses and features.
        pools: Parser processes of the interactive routes.
        pipeline: From texts to features.
        assembler: From segments to what a trainer would see.
        adhoc: The dataset of what was asked for.
        ready: Whole answers, for requests that come again.
        jobs: Backfill jobs.
        stages: How long the stages of requests take.
        stopping: Set when the service has been told to stop: streams without an end of their own
            end, and the service is no longer ready.
    """

    settings: Settings
    store: FeatureStore
    pools: WorkerPools
    pipeline: FeaturePipeline
    assembler: FeatureAssembler
    adhoc: AdhocDataset
    ready: ReadyAnswers
    jobs: JobManager
    stages: Stages = field(default_factory=Stages)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def running_services(settings: Settings) -> AsyncIterator[Services]:
    """Open the store, start the jobs; parsers start when they are first needed."""
    with open_store(
        settings.store,
        buffer_seconds=settings.commit_seconds,
        refresh_seconds=settings.refresh_seconds,
    ) as store:
        stages = Stages()
        pools = WorkerPools(settings, stages)
        adhoc = AdhocDataset(store, settings.commit_seconds)
        pipeline = FeaturePipeline(settings, store, pools, adhoc, stages)
        ready = ReadyAnswers(settings, pipeline.parsers, pipeline.tokenizers)
        assembler = FeatureAssembler(settings, store, pipeline, adhoc)
        jobs = JobManager(settings, store, pipeline.tokenizers.cache)
        await jobs.start()
        seconds = max(FOLLOW_SECONDS, settings.refresh_seconds)
        following = asyncio.create_task(_follow_deletions(store, ready, adhoc, seconds))
        try:
            yield Services(settings, store, pools, pipeline, assembler, adhoc, ready, jobs, stages)
        finally:
            following.cancel()
            # Whatever fails, the next is stopped all the same.
            async with AsyncExitStack() as stack:
                stack.push_async_callback(asyncio.to_thread, adhoc.close)
                stack.push_async_callback(jobs.stop)
                await pools.drain(settings.shutdown_seconds)


async def _follow_deletions(
    store: FeatureStore, ready: ReadyAnswers, adhoc: AdhocDataset, seconds: float
) -> None:
    """Forget what other processes delete from the store."""
    seen = store.parses.generation
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(store.parses.refresh)
        except StoreError:
            pass  # readiness tells
        except Exception:  # logged, and tried again: deleted texts must not stay in silence
            _log.exception("cannot look for what was deleted")
        if store.parses.generation != seen:
            seen = store.parses.generation
            ready.forget()
            adhoc.forget()


def services_of(request: Request) -> Services:
    """The services of the app that a request came to."""
    services: Services = request.app.state.services
    return services


async def _services(request: Request) -> Services:
    # A plain function would be called in a thread.
    return services_of(request)


UsesServices = Annotated[Services, Depends(_services)]
"""Parameter type of routes that need them."""
