"""The synchronous client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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


class Client:
    """A connection to the service. Safe for threads.

    Every method raises the named error (`syntax.errors`) of the service's response, and
    `ServiceUnreachableError` when no service answers. Overload and broken connections are retried
    with growing pauses, except by `backfill`, whose examples can be read only once.

    Args:
        base_url: Address of the service.
        api_key: API key, if the service needs one (`parsebank keys add NAME`).
        timeout: Seconds to wait for a connection, and for an answer.
        retries: Number and pauses of retries.
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
        service at a time.
        It logs warnings and errors; ``log_level="info"`` of the first such
        client of a process logs requests too.

        Args:
            store: Folder or ``s3://`` address of the store; the service's default when left out.
            **settings: Any other setting of the service, such as ``models_dir`` or ``workers``.

        Raises:
            MissingExtraError: The service is not installed.
            SpecError: A setting or its value is invalid.
        """
        from clients.client.embedded import BlockingTransport, load_app

        app = load_app(store=store, **settings)
        return cls(EMBEDDED_URL, transport=BlockingTransport(app))

    def parse(self, text: str | None = None, **options: Unpack[ParseOptions]) -> ParseResult:
        """Parse one text or many; a text that cannot be parsed fails alone.

        Args:
            text: One text; or give ``texts=[...]`` or ``tokens=[[...]]``.
            **options: See `ParseOptions`.
        """
        return self._do(calls.parse(text, **options))

    def parse_conllu(self, text: str | None = None, **options: Unpack[ParseOptions]) -> str:
        """As `parse`, but returns CoNLL-U."""
        return self._do(calls.parse_conllu(text, **options))

    def parse_iter(
        self, text: str | None = None, **options: Unpack[ParseOptions]
    ) -> Iterator[NumberedItem]:
        """As `parse`, but yields each text as soon as it is parsed, with its index.

        Args:
            text: One text; or give ``texts=[...]`` or ``tokens=[[...]]``.
            **options: See `ParseOptions`.

        Yields:
            Pairs of the text's 0-based index and its `ParsedItem` or `ItemError`, in any order.
        """
        call, reader, attempt = calls.parse_stream(text, **options), AnswerReader(), 0
        while True:
            attempt += 1
            try:
                yield from self._streamed_items(call, reader)
                return
            except (httpx.TransportError, OverloadedError, RateLimitError) as failure:
                pause = self._retries.pause(failure, attempt, replayable=not reader.began)
            time.sleep(pause)

    def features(
        self, examples: Sequence[ExampleLike], **options: Unpack[FeatureOptions]
    ) -> FeaturesResult:
        """What a trainer would see of texts, pairs, passages: the arrays of a stream's batch.

        Args:
            examples: Each a text, a sequence of segments, or an `Example`; one that cannot be
                used fails alone.
            **options: See `FeatureOptions` and `StoredOptions`.
        """
        return self._do(calls.features(examples, **options))

    def stored_features(
        self, key: str | Sequence[str], **options: Unpack[StoredOptions]
    ) -> FeaturesResult:
        """As `features`, for one example whose parses are stored.

        Args:
            key: Its key, or the parse keys of its segments.
            **options: See `StoredOptions`.
        """
        return self._do(calls.stored_features(key, **options))

    def stored_parse(self, key: str) -> ParseResult:
        """As `parse`, for one stored text, by the key of its parse."""
        return self._do(calls.stored_parse(key))

    def delete_parse(self, key: str, *, dry_run: bool = False) -> Deletion:
        """Delete a text from the store: its parse, and every example that uses the parse.

        The call is not repeated when the connection breaks; `stored_parse` then tells whether the
        parse is gone.

        Args:
            key: Key of the parse.
            dry_run: Only report what would be deleted.

        Raises:
            UnknownKeyError: The store has no parse under the key.
        """
        return self._do(calls.delete_parse(key, dry_run))

    def info(self) -> dict[str, Any]:
        """Release, models, defaults and limits of the service."""
        return self._do(calls.info())

    def models(self) -> list[dict[str, Any]]:
        """The parsers, with their languages and fingerprints."""
        return self._do(calls.models())

    def health(self) -> bool:
        """Whether the service is ready; raises an error if it is not."""
        return self._do(calls.health())

    def backfill(
        self,
        spec: DatasetSpec,
        examples: Iterable[Sent],
        **options: Unpack[BackfillOptions],
    ) -> Job:
        """Send a dataset split to be parsed, aligned and stored.

        The examples are streamed, so a split may be larger than memory. When this returns, the
        service has them on disk, and the job survives a restart. `wait` waits for its end.

        Args:
            spec: Specification of the split.
            examples: Its examples and the reader's rejections, in training order.
            options: See `BackfillOptions`.
        """
        return self._do(calls.backfill(spec, examples, **options))

    def forecast(
        self,
        spec: DatasetSpec,
        examples: Iterable[Sent],
        **options: Unpack[BackfillOptions],
    ) -> Forecast:
        """Forecast what `backfill` would do with the same arguments; nothing is kept.

        The service reads all examples and parses a sample of them.
        """
        return self._do(calls.forecast(spec, examples, **options))

    def datasets(self) -> list[dict[str, Any]]:
        """The datasets of the store, with the drops of each split."""
        return self._do(calls.datasets())

    def sql(self, query: str, limit: int = 100) -> Rows:
        """Query the store by SQL or by a graph pattern; takes a key with the role ``admin``.

        Args:
            query: One SELECT, or ``pattern { V [upos=VERB]; V -[obj]-> O }``; see
                docs/reference/store.md.
            limit: Most rows, at most 1,000.

        Raises:
            SpecError: The query is wrong, or takes too much memory.
        """
        return self._do(calls.sql(query, limit))

    def jobs(
        self,
        *,
        state: JobState | Sequence[JobState] | None = None,
        dataset: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """The newest jobs, newest first.

        Args:
            state: Only those in this state, or in one of these.
            dataset: Only those for this dataset.
            before: Id of the last job of the previous page.
            limit: Largest number of jobs; 100 when left out.
        """
        call = calls.jobs(state=state, dataset=dataset, before=before, limit=limit)
        return self._do(call)

    def job(self, job_id: str) -> Job:
        """One job."""
        return self._do(calls.job(job_id))

    def cancel(self, job_id: str) -> Job:
        """Stop a job; its stored examples stay."""
        return self._do(calls.cancel(job_id))

    def retry(self, job_id: str) -> Job:
        """Run the failed shards of a failed job again.

        Raises:
            ConflictError: The job has not failed.
            UploadGoneError: Its examples are no longer kept; send the backfill again.
        """
        return self._do(calls.retry(job_id))

    def wait(
        self,
        job_id: str,
        on_progress: Callable[[Job], Any] | None = None,
        on_outage: OnOutage | None = None,
    ) -> Job:
        """Wait until a job is over; calls ``on_progress`` at each change.

        Args:
            job_id: Id of the job.
            on_progress: Called with the job.
            on_outage: As `events`.

        Returns:
            The job in its final ``state``: ``done``, ``failed`` or ``cancelled``.
        """
        job: Job | None = None
        for job in self.events(job_id, on_outage):
            if on_progress is not None:
                on_progress(job)
        assert job is not None  # `events` yields at least one job
        return job

    def events(self, job_id: str, on_outage: OnOutage | None = None) -> Iterator[Job]:
        """Yield the job at each change, until it is over.

        During an outage, such as a restart of the service, the client waits for up to five
        minutes, unless the service has never answered this client.

        Args:
            job_id: Id of the job.
            on_outage: Called repeatedly during an outage, with the error and the seconds left.

        Raises:
            ServiceUnreachableError: The service did not answer, or did not come back.
        """
        job: Job | None = None
        outage = Outage(MAX_OUTAGE_SECONDS, on_outage)
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
                time.sleep(POLL_SECONDS)

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
