"""The synchronous client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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


def _blocking(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    @calls.as_method(make)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(make(*args, **kwargs))

    return method


class Client:
    """A connection to the service. Safe for threads.

    Every method raises the named error (`syntax.errors`) of the service's response, and
    `ServiceUnreachableError` when no service answers. Overload and broken connections are retried
    with growing pauses, except by `backfill`, whose examples can be read only once.

    Args:
        api_key: API key, if the service needs one (`parsebank keys add NAME`).
        timeout: Seconds to wait for a connection, and for an answer.
        transport: Transport of ``httpx``; a socket when left out.

    >>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     result = client.parse("Birds sing.", lang="en")
    ...     print(result.parsed()[0].sentences[0].tree.heads)
    (2, 0, 2)
    """

    def __init__(
        self,
        base_url: str = URL,
        *,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        quiet_httpx()
        self._retries = retries or Retries()
        # An app in this process cannot stream a response, so jobs are polled.
        self._streams = transport is None
        self._is_answered = False
        self._http = httpx.Client(
            base_url=base_url, headers=key_headers(api_key), timeout=timeout, transport=transport
        )

    def __repr__(self) -> str:
        return plain("Client", {"url": without_passwords(str(self._http.base_url))})

    @classmethod
    def embedded(cls, store: str | None = None, **settings: Any) -> Client:
        """A client with its own service in this process: no server, the same answers.

        The service starts with the first call and ends with `close`. A store folder serves one
        service at a time. It logs warnings and errors; ``log_level="info"`` of the first such
        client of a process logs requests too.

        Args:
            store: Folder or ``s3://`` address of the store; the service's default when left out.
            **settings: Any other setting of the service, such as ``models_dir`` or ``workers``.
        """
        from clients.client.embedded import BlockingTransport, load_app

        app = load_app(store=store, **settings)
        return cls(EMBEDDED_URL, transport=BlockingTransport(app))

    parse = _blocking(calls.parse)
    parse_conllu = _blocking(calls.parse_conllu)

    def parse_iter(
        self, text: str | None = None, **options: Unpack[ParseOptions]
    ) -> Iterator[NumberedItem]:
        """Yield each text of `parse` as soon as it is parsed, with its 0-based index."""
        call, reader, attempt = calls.parse_stream(text, **options), AnswerReader(), 0
        while True:
            attempt += 1
            try:
                yield from self._streamed_items(call, reader)
                return
            except (httpx.TransportError, OverloadedError, RateLimitError) as failure:
                pause = self._retries.pause(failure, attempt, replayable=not reader.began)
            time.sleep(pause)

    features = _blocking(calls.features)
    stored_features = _blocking(calls.stored_features)
    stored_parse = _blocking(calls.stored_parse)
    delete_parse = _blocking(calls.delete_parse)
    info = _blocking(calls.info)
    models = _blocking(calls.models)
    health = _blocking(calls.health)
    backfill = _blocking(calls.backfill)
    forecast = _blocking(calls.forecast)
    datasets = _blocking(calls.datasets)
    sql = _blocking(calls.sql)
    jobs = _blocking(calls.jobs)
    job = _blocking(calls.job)
    cancel = _blocking(calls.cancel)
    retry = _blocking(calls.retry)

    def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], Any] | None = None,
        on_outage: OnOutage | None = None,
    ) -> Job:
        """Wait until a job is over; calls ``on_progress`` at each change."""
        job: Job | None = None
        for job in self.events(job_id, on_outage):
            if on_progress is not None:
                on_progress(job)
        assert job is not None  # `events` yields at least one job
        return job

    def events(self, job_id: str, on_outage: OnOutage | None = None) -> Iterator[Job]:
        """Yield the job at each change, until it is over.

        During an outage, such as a restart of the service, the client waits for up to five
        minutes, unless the service has never answered this client. Meanwhile ``on_outage`` is
        called repeatedly, with the error and the seconds left.

        Raises:
            ServiceUnreachableError: The service did not answer, or did not come back.
        """
        job: Job | None = None
        outage, pauses = Outage(MAX_OUTAGE_SECONDS, on_outage), poll_pauses()
        if self._streams:
            for latest in self._streamed(job_id):
                if latest != job:
                    yield latest
                job = latest
        while job is None or not job.is_over:
            try:
                latest = self.job(job_id)
            except ParsebankError as failure:
                if job is None and not self._is_answered:
                    raise
                time.sleep(outage.pause(failure))
                continue
            outage.end()
            if latest != job:
                yield latest
            job = latest
            if not job.is_over:
                time.sleep(next(pauses))

    def close(self) -> None:
        """Close the connections and shut down an embedded service."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._once(call)
            except (httpx.TransportError, OverloadedError, RateLimitError) as failure:
                pause = self._retries.pause(failure, attempt, replayable=call.replayable)
            time.sleep(pause)

    def _once(self, call: Call[T]) -> T:
        try:
            response = self._http.request(**call.request())
        finally:
            call.raise_upload_failure()
        answer = call.answer(response.status_code, response.headers, response.content)
        self._is_answered = True
        return answer

    def _streamed(self, job_id: str) -> Iterator[Job]:
        decoder = JobEvents()
        # If the stream breaks, `events` continues by polling.
        with (
            suppress(httpx.TransportError),
            self._http.stream("GET", calls.events_path(job_id)) as response,
        ):
            if not is_event_stream(response):
                return
            for chunk in response.iter_bytes():
                yield from decoder.feed_jobs(chunk)

    def _streamed_items(self, call: Call[None], reader: AnswerReader) -> Iterator[NumberedItem]:
        with self._http.stream(**call.request()) as response:
            if response.is_error:
                call.answer(response.status_code, response.headers, response.read())
            for chunk in response.iter_bytes():
                yield from reader.feed(chunk)
        reader.close()
