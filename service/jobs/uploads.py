"""From the body of a request to a staged job: streamed, checked, durable."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from dataclasses import dataclass

from featurestore import FeatureStore
from service.jobs.database import JobDatabaseError
from service.jobs.lines import item_key, numbered_lines, read_item, read_spec
from service.jobs.records import JobRequest
from service.jobs.schemas import BackfillSpec
from service.jobs.staging import StagingArea, Upload
from service.jobs.tools import dataset_handle, parser_identity
from service.parsers import find_parser
from service.settings import Settings
from service.tokenizers import lasting_name, load_tokenizer
from syntax.errors import ExampleError, SpecError
from syntax.examples import Example

Lines = AsyncGenerator[tuple[int, bytes], None]


@dataclass(frozen=True, slots=True)
class StagedJob:
    """A job whose shards lie on the disk, not yet accepted."""

    id: str
    request: JobRequest
    examples: int
    shards: int


@dataclass(frozen=True)
class Receiver:
    """Stages uploads and hands them over.

    Attributes:
        settings: Limits, models and tokenizers.
        store: Its datasets must agree with what an upload says of theirs.
        staging: Where shards are staged.
        accept: Makes a job known; its staged files are durable when it is called.
    """

    settings: Settings
    store: FeatureStore
    staging: StagingArea
    accept: Callable[[StagedJob], Awaitable[None]]

    async def receive(self, name: str, chunks: AsyncIterable[bytes]) -> str:
        """Stage a backfill upload and hand it over; its job's id.

        Nothing is kept unless all of it is good. The parser, the tokenizer and the dataset are
        looked up before the second line is read.

        Args:
            name: Dataset in the path.
            chunks: The body, cut anywhere.

        Raises:
            SpecError: The body is empty, its first line is no specification or contradicts the
                dataset as it is, or no example follows.
            UnknownNameError: No such parser, language or tokenizer.
            ExampleError: A line is not an example; the message has its number.
        """
        lines = numbered_lines(chunks, self.settings.job_max_line_bytes)
        try:
            spec = await _first_line(lines, name)
            request = await asyncio.to_thread(self.resolve, spec, name)
            upload = await asyncio.to_thread(
                self.staging.begin, _new_id(), self.settings.job_shard_segments
            )
            try:
                staged = await _stage(lines, request, upload)
            except BaseException:
                upload.discard()
                raise
            # A client that leaves now must not leave half of this: a job without its shards.
            await asyncio.shield(asyncio.create_task(self._hand_over(staged, upload)))
            return staged.id
        finally:
            await lines.aclose()

    def resolve(self, spec: BackfillSpec, name: str) -> JobRequest:
        """The job that a specification asks for, with its parser and tokenizer identified.

        Raises:
            UnknownNameError: No such parser, language or tokenizer.
            SpecError: A parser was named for gold trees, or the dataset has other fields or
                labels.
        """
        tokenizer = load_tokenizer(
            lasting_name(spec.tokenizer or self.settings.tokenizer),
            self.settings.hub_timeout_seconds,
        )
        parser = _parser_name(spec, self.settings)
        request = JobRequest(
            dataset=spec.dataset(name),
            parser=parser,
            parser_fingerprint=parser_identity(self.settings, spec.mode, parser).fingerprint,
            tokenizer=tokenizer.name,
            tokenizer_fingerprint=tokenizer.fingerprint,
            matrices=spec.matrices,
            long_sentences=spec.long_sentences,
        )
        self.store.features.check(dataset_handle(request, tokenizer))
        return request

    async def _hand_over(self, staged: StagedJob, upload: Upload) -> None:
        try:
            await self.accept(staged)
        except JobDatabaseError:
            # The job may be known all the same, its acceptance lost on the way back. If it is
            # not, the next sweep finds the folder.
            upload.close()
            raise
        except BaseException:
            upload.discard()
            raise
        upload.close()


def _parser_name(spec: BackfillSpec, settings: Settings) -> str:
    if spec.mode != "gold":
        return find_parser(settings, spec.parser, spec.lang).name
    if spec.parser not in (None, "gold"):
        raise SpecError(
            f"mode 'gold' takes its trees from the CoNLL-U; leave out the parser {spec.parser!r}"
        )
    return "gold"


async def _first_line(lines: Lines, name: str) -> BackfillSpec:
    async for _, line in lines:
        return read_spec(line, name)
    raise SpecError('the body is empty; expected {"spec": {...}} and one line per example')


async def _stage(lines: Lines, request: JobRequest, upload: Upload) -> StagedJob:
    identity = request.item_identity
    async for number, line in lines:
        if upload.is_full:  # written only now, so that the last one is left to `finish`
            await asyncio.to_thread(upload.write_shard)
        try:
            item = read_item(line, request.dataset)
        except ExampleError as error:
            raise ExampleError(f"line {number}: {error.message}", line=number) from None
        segments = len(item.segments) if isinstance(item, Example) else 0
        upload.add(number, item_key(item, *identity), line.decode("utf-8"), segments)
    if not upload.lines:
        raise SpecError("no examples followed the specification; send at least one line")
    await asyncio.to_thread(upload.finish)
    return StagedJob(upload.name, request, upload.lines, upload.shards)


def _new_id() -> str:
    return secrets.token_hex(8)
