"""The services behind the routes; the app's lifespan starts and stops them."""

from __future__ import annotations

import asyncio
import errno
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from fastapi import Depends, Request

from featurestore import FeatureStore, open_store
from featurestore.tables.root import MARKER
from service.jobs.manager import JobManager
from service.logs import get_logger
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.assembly import FeatureAssembler
from service.pipeline.pipeline import FeaturePipeline
from service.pipeline.response_cache import ResponseCache
from service.render.pictures import Drawings
from service.settings import Settings
from service.sql import SqlProcesses
from service.timing import Stages
from service.workers.pools import WorkerPools
from syntax.errors import ForbiddenError, StoreError

FOLLOW_SECONDS: Final = 2.0
"""Seconds between two checks for deletions of other processes."""

_log = get_logger(__name__)


@dataclass(frozen=True)
class Services:
    """The service without HTTP.

    Attributes:
        pools, adhoc: Parser processes and dataset of the interactive routes.
        assembler: Answers `/features`.
        stopping: Set when the service stops: endless streams end, and it is no longer ready.
    """

    settings: Settings
    store: FeatureStore
    pools: WorkerPools
    pipeline: FeaturePipeline
    assembler: FeatureAssembler
    adhoc: AdhocDataset
    responses: ResponseCache
    jobs: JobManager
    queries: SqlProcesses
    drawings: Drawings
    stages: Stages = field(default_factory=Stages)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def running_services(settings: Settings) -> AsyncIterator[Services]:
    """Open the store, start the jobs; parsers start when they are first needed."""
    with (
        settings_in_force(settings) as settings,
        open_store(
            settings.store,
            buffer_seconds=settings.commit_seconds,
            refresh_seconds=settings.refresh_seconds,
        ) as store,
    ):
        stages = Stages()
        pools = WorkerPools(settings, stages)
        adhoc = AdhocDataset(store, settings.commit_seconds)
        pipeline = FeaturePipeline(settings, store, pools, adhoc, stages)
        responses = ResponseCache(settings, store, pipeline.parsers, pipeline.tokenizers)
        assembler = FeatureAssembler(settings, store, pipeline, adhoc)
        drawings = Drawings(settings.request_deadline_seconds)
        jobs = JobManager(settings, store, pipeline.tokenizers.cache)
        await jobs.start()
        seconds = max(FOLLOW_SECONDS, settings.refresh_seconds)
        following = asyncio.create_task(_follow_deletions(store, responses, adhoc, seconds))
        try:
            yield Services(
                settings,
                store,
                pools,
                pipeline,
                assembler,
                adhoc,
                responses,
                jobs,
                SqlProcesses(settings.store),
                drawings,
                stages,
            )
        finally:
            following.cancel()
            drawings.close()
            # If stopping one fails, the others are still stopped.
            async with AsyncExitStack() as stack:
                stack.push_async_callback(asyncio.to_thread, adhoc.close)
                stack.push_async_callback(jobs.stop)
                await pools.drain(settings.shutdown_seconds)


@contextmanager
def settings_in_force(settings: Settings) -> Iterator[Settings]:
    """Settings; a read-only service has no jobs, and its job tables are in a temporary folder."""
    if settings.read_only:
        _log.info("read-only: parses are answered and not kept", store=settings.store)
    elif not _may_write(settings):
        _log.warning(
            "the store cannot be written: the service is read-only, and keeps nothing. Let its "
            "user write there, or say read_only (PARSEBANK_READ_ONLY=true)",
            store=settings.store,
        )
    else:
        yield settings
        return
    with tempfile.TemporaryDirectory(prefix="parsebank-") as folder:
        forced = {"read_only": True, "state_dir": Path(folder), "jobs_url": None}
        yield settings.model_copy(update={**forced, "job_workers": 0, "engine": "local"})


def _may_write(settings: Settings) -> bool:
    """False if the store is a folder that can only be read."""
    folder = Path(settings.store)
    if not settings.is_local_store or not (folder / MARKER).exists():
        return True
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError as error:
        return error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM)


def check_keeps(services: Services) -> None:
    if services.settings.read_only:
        raise ForbiddenError(
            "this service is read-only: it keeps and deletes nothing, and has no jobs; use one "
            "that may write to the store"
        )


async def _follow_deletions(
    store: FeatureStore, responses: ResponseCache, adhoc: AdhocDataset, seconds: float
) -> None:
    seen = store.parses.generation
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(store.parses.refresh)
        except StoreError:
            pass  # the readiness check reports it
        except Exception:  # logged and tried again: deletions must be followed
            _log.exception("cannot look for what was deleted")
        if store.parses.generation != seen:
            seen = store.parses.generation
            responses.forget()
            adhoc.forget()


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _services(request: Request) -> Services:
    # A plain function would be called in a thread.
    return services_of(request)


UsesServices = Annotated[Services, Depends(_services)]
