"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar, Unpack

import httpx

from clients.client import calls
from clients.client.calls import (
    EMBEDDED_URL,
    POLL_SECONDS,
    TIMEOUT,
    URL,
    Call,
    ParseOptions,
    key_headers,
    quiet_httpx,
)
from clients.client.features import ExampleLike, FeatureOptions, FeaturesResult, StoredOptions
from clients.client.jobs import Forecast, Job, JobState
from clients.client.results import Deletion, ParseResult, Rows
from clients.client.retries import MAX_OUTAGE_SECONDS, OnOutage, Outage, Retries
from clients.client.staging import BackfillOptions, Sent
from clients.client.streams import AnswerReader, JobEvents, NumberedItem, is_event_stream
from syntax.drawing.page import plain
from syntax.errors import OverloadedError, ParsebankError, RateLimitError, without_passwords
from syntax.examples import DatasetSpec

T = TypeVar("T")


class AsyncClient:
    """The asynchronous `Client`; see its methods for their arguments.

    >>> async def words() -> list[str]:
    ...     async with AsyncClient("http://127.0.0.1:8000") as client:
    ...         result = await client.parse("Birds sing.", lang="en")
    ...     return result.parsed()[0].parse.form
    """

    def __init__(
        self,
        base_url: str = URL,
        *,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        quiet_httpx()
        self._retries = retries or Retries()
        # An app in this process cannot stream a response, so jobs are polled.
        self._streams = transport is None
        self._is_answered = False
        self._http = httpx.AsyncClient(
            base_url=base_url, headers=key_headers(api_key), timeout=timeout, transport=transport
        )

    def __repr__(self) -> str:
        return plain("AsyncClient", {"url": without_passwords(str(self._http.base_url))})

    @classmethod
    def embedded(cls, store: str | None = None, **settings: Any) -> AsyncClient:
        """See `Client.embedded`."""
        from clients.client.embedded import EmbeddedTransport, load_app

        app = load_app(store=store, **settings)
        return cls(EMBEDDED_URL, transport=EmbeddedTransport(app))

    async def parse(self, text: str | None = None, **options: Unpack[ParseOptions]) -> ParseResult:
        """See `Client.parse`."""
        return await self._do(calls.parse(text, **options))

    async def parse_conllu(self, text: str | None = None, **options: Unpack[ParseOptions]) -> str:
        """See `Client.parse_conllu`."""
        return await self._do(calls.parse_conllu(text, **options))

    async def parse_iter(
        self, text: str | None = None, **options: Unpack[ParseOptions]
    ) -> AsyncIterator[NumberedItem]:
        """See `Client.parse_iter`."""
        call, reader, attempt = calls.parse_stream(text, **options), AnswerReader(), 0
        while True:
            attempt += 1
            try:
                async for item in self._streamed_items(call, reader):
                    yield item
                return
            except (httpx.TransportError, OverloadedError, RateLimitError) as failure:
                pause = self._retries.pause(failure, attempt, replayable=not reader.began)
            await asyncio.sleep(pause)

    async def features(
        self, examples: Sequence[ExampleLike], **options: Unpack[FeatureOptions]
    ) -> FeaturesResult:
        """See `Client.features`."""
        return await self._do(calls.features(examples, **options))

    async def stored_features(
        self, key: str | Sequence[str], **options: Unpack[StoredOptions]
    ) -> FeaturesResult:
        """See `Client.stored_features`."""
        return await self._do(calls.stored_features(key, **options))

    async def stored_parse(self, key: str) -> ParseResult:
        """See `Client.stored_parse`."""
        return await self._do(calls.stored_parse(key))

    async def delete_parse(self, key: str, *, dry_run: bool = False) -> Deletion:
        """See `Client.delete_parse`."""
        return await self._do(calls.delete_parse(key, dry_run))

    async def info(self) -> dict[str, Any]:
        """See `Client.info`."""
        return await self._do(calls.info())

    async def models(self) -> list[dict[str, Any]]:
        """See `Client.models`."""
        return await self._do(calls.models())

    async def health(self) -> bool:
        """See `Client.health`."""
        return await self._do(calls.health())

    async def backfill(
        self,
        spec: DatasetSpec,
        examples: Iterable[Sent],
        **options: Unpack[BackfillOptions],
    ) -> Job:
        """See `Client.backfill`."""
        return await self._do(calls.backfill(spec, examples, **options))

    async def forecast(
        self,
        spec: DatasetSpec,
        examples: Iterable[Sent],
        **options: Unpack[BackfillOptions],
    ) -> Forecast:
        """See `Client.forecast`."""
        return await self._do(calls.forecast(spec, examples, **options))

    async def datasets(self) -> list[dict[str, Any]]:
        """See `Client.datasets`."""
        return await self._do(calls.datasets())

    async def sql(self, query: str, limit: int = 100) -> Rows:
        """See `Client.sql`."""
        return await self._do(calls.sql(query, limit))

    async def jobs(
        self,
        *,
        state: JobState | Sequence[JobState] | None = None,
        dataset: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """See `Client.jobs`."""
        call = calls.jobs(state=state, dataset=dataset, before=before, limit=limit)
        return await self._do(call)

    async def job(self, job_id: str) -> Job:
        """See `Client.job`."""
        return await self._do(calls.job(job_id))

    async def cancel(self, job_id: str) -> Job:
        """See `Client.cancel`."""
        return await self._do(calls.cancel(job_id))

    async def retry(self, job_id: str) -> Job:
        """See `Client.retry`."""
        return await self._do(calls.retry(job_id))

    async def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], Any] | None = None,
        on_outage: OnOutage | None = None,
    ) -> Job:
        """See `Client.wait`."""
        job: Job | None = None
        async for job in self.events(job_id, on_outage):
            if on_progress is not None:
                on_progress(job)
        assert job is not None  # `events` yields at least one job
        return job

    async def events(self, job_id: str, on_outage: OnOutage | None = None) -> AsyncIterator[Job]:
        """See `Client.events`."""
        job: Job | None = None
        outage = Outage(MAX_OUTAGE_SECONDS, on_outage)
        if self._streams:
            async for latest in self._streamed(job_id):
                if latest != job:
                    yield latest
                job = latest
        while job is None or not job.is_over:
            try:
                latest = await self.job(job_id)
            except ParsebankError as failure:
                if job is None and not self._is_answered:
                    raise
                await asyncio.sleep(outage.pause(failure))
                continue
            outage.end()
            if latest != job:
                yield latest
            job = latest
            if not job.is_over:
                await asyncio.sleep(POLL_SECONDS)

    async def _do(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._once(call)
            except (httpx.TransportError, OverloadedError, RateLimitError) as failure:
                pause = self._retries.pause(failure, attempt, replayable=call.replayable)
            await asyncio.sleep(pause)

    async def _once(self, call: Call[T]) -> T:
        sent = call.request()
        if call.upload is not None:
            sent["content"] = call.upload.chunks()
        try:
            response = await self._http.request(**sent)
        finally:
            call.raise_upload_failure()
        answer = call.answer(response.status_code, response.headers, response.content)
        self._is_answered = True
        return answer

    async def _streamed(self, job_id: str) -> AsyncIterator[Job]:
        decoder = JobEvents()
        # If the stream breaks, `events` continues by polling.
        with suppress(httpx.TransportError):
            async with self._http.stream("GET", calls.events_path(job_id)) as response:
                if not is_event_stream(response):
                    return
                async for chunk in response.aiter_bytes():
                    for job in decoder.feed_jobs(chunk):
                        yield job

    async def _streamed_items(
        self, call: Call[None], reader: AnswerReader
    ) -> AsyncIterator[NumberedItem]:
        async with self._http.stream(**call.request()) as response:
            if response.is_error:
                call.answer(response.status_code, response.headers, await response.aread())
            async for chunk in response.aiter_bytes():
                for item in reader.feed(chunk):
                    yield item
        reader.close()

    async def aclose(self) -> None:
        """Close the connections and shut down an embedded service."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
