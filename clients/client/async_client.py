"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from clients.client import calls
from clients.client.calls import (
    EMBEDDED_URL,
    TIMEOUT,
    URL,
    Call,
    ParseOptions,
    key_headers,
    poll_pauses,
    quiet_httpx,
)
from clients.client.jobs import Job
from clients.client.retries import MAX_OUTAGE_SECONDS, OnOutage, Outage, Retries
from clients.client.streams import AnswerReader, JobEvents, NumberedItem, is_event_stream
from syntax.drawing.page import plain
from syntax.errors import OverloadedError, ParsebankError, RateLimitError, without_passwords

P = ParamSpec("P")
T = TypeVar("T")


def _awaitable(
    make: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @calls.as_method(make)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._do(make(*args, **kwargs))

    return method


class AsyncClient:
    """Asynchronous `Client`; see its methods for their arguments.

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
        from clients.client.embedded import EmbeddedTransport, load_app

        app = load_app(store=store, **settings)
        return cls(EMBEDDED_URL, transport=EmbeddedTransport(app))

    parse = _awaitable(calls.parse)
    parse_conllu = _awaitable(calls.parse_conllu)

    async def parse_iter(
        self, text: str | None = None, **options: Unpack[ParseOptions]
    ) -> AsyncIterator[NumberedItem]:
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

    features = _awaitable(calls.features)
    stored_features = _awaitable(calls.stored_features)
    stored_parse = _awaitable(calls.stored_parse)
    delete_parse = _awaitable(calls.delete_parse)
    info = _awaitable(calls.info)
    models = _awaitable(calls.models)
    health = _awaitable(calls.health)
    backfill = _awaitable(calls.backfill)
    forecast = _awaitable(calls.forecast)
    datasets = _awaitable(calls.datasets)
    sql = _awaitable(calls.sql)
    jobs = _awaitable(calls.jobs)
    job = _awaitable(calls.job)
    cancel = _awaitable(calls.cancel)
    retry = _awaitable(calls.retry)

    async def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], Any] | None = None,
        on_outage: OnOutage | None = None,
    ) -> Job:
        job: Job | None = None
        async for job in self.events(job_id, on_outage):
            if on_progress is not None:
                on_progress(job)
        assert job is not None  # `events` yields at least one job
        return job

    async def events(self, job_id: str, on_outage: OnOutage | None = None) -> AsyncIterator[Job]:
        job: Job | None = None
        outage, pauses = Outage(MAX_OUTAGE_SECONDS, on_outage), poll_pauses()
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
                await asyncio.sleep(next(pauses))

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
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
