"""The way from the body of a request to a staged job: streamed, checked, durable."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Sequence,
    Set,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from featurestore import FeatureStore
from featurestore.dataset.parsers import called, dataset_parsers
from service.jobs.database import JobDatabaseError
from service.jobs.lines import Item, item_key, numbered_lines, read_item, read_spec
from service.jobs.records import Counts, JobRequest
from service.jobs.schemas import BackfillSpec
from service.jobs.staging import StagingArea, Upload
from service.jobs.tools import dataset_handle, parser_identity
from service.parsers import find_parser, identify
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from syntax.errors import ExampleError, ModelLoadError, SpecError, UnknownNameError
from syntax.examples import Example
from syntax.lists import ParserChoice

Lines = AsyncGenerator[tuple[int, bytes], None]

GROUP_LINES: Final = 2_000
"""Lines that are looked up in the dataset at once: asking it costs milliseconds."""

GROUP_BYTES: Final = 4 * 2**20

_NAMED: Final = 3
"""Changed examples that a warning names."""


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line of an upload that has been read: its number, key and bytes, and what it says."""

    number: int
    key: str
    body: bytes
    item: Item

    @property
    def segments(self) -> int:
        return len(self.item.segments) if isinstance(self.item, Example) else 0


@dataclass(frozen=True, slots=True)
class StagedJob:
    """A job whose shards lie on the disk, not yet accepted.

    ``stored`` counts the examples that the dataset held already; they are in no shard.
    """

    id: str
    request: JobRequest
    examples: int
    shards: int
    stored: Counts


@dataclass(frozen=True)
class Receiver:
    """Stages uploads and hands them over.

    Its tokenizers are those that may be named; the datasets of the store must agree with an upload.
    ``expect`` hears of an upload's tokenizer before the rest of it is read. ``accept`` makes a job
    known; its staged files are durable when it is called.
    """

    settings: Settings
    tokenizers: TokenizerCache
    store: FeatureStore
    staging: StagingArea
    expect: Callable[[str], None]
    accept: Callable[[StagedJob], Awaitable[None]]

    async def receive(self, name: str, chunks: AsyncIterable[bytes]) -> str:
        """Stage a backfill upload and hand it over; gives its job's id.

        Nothing is kept unless all of it is good. The parser, the tokenizer and the dataset are
        looked up before the second line is read. The error of a line has its number.
        """
        async with open_upload(self, name, chunks) as (lines, request):
            upload = await asyncio.to_thread(
                self.staging.begin, secrets.token_hex(8), self.settings.job_shard_segments
            )
            try:
                staged = await self._stage(lines, request, upload)
            except BaseException:
                upload.discard()
                raise
            # A client that leaves now must not leave a job without its shards.
            await asyncio.shield(asyncio.create_task(self._hand_over(staged, upload)))
            return staged.id

    def tokenizer_of(self, spec: BackfillSpec) -> str:
        """Name of a backfill's tokenizer for other processes, if it may be named."""
        return self.tokenizers.lasting_name(spec.tokenizer or self.settings.tokenizer)

    def resolve(self, spec: BackfillSpec, name: str) -> JobRequest:
        tokenizer = self.tokenizers.get(spec.tokenizer or self.settings.tokenizer)
        parser = _parser_name(spec, self.settings)
        request = JobRequest(
            dataset=spec.dataset(name),
            parser=parser,
            parser_fingerprint=parser_identity(self.settings, spec.mode, parser).fingerprint,
            tokenizer=tokenizer.lasting_name,
            tokenizer_fingerprint=tokenizer.fingerprint,
            matrices=spec.matrices,
            long_sentences=spec.long_sentences,
            max_words=self.settings.max_words_per_sentence,
            shard=spec.shard,
        )
        self.store.features.check(dataset_handle(request, tokenizer))
        return replace(request, warnings=self._warnings(request))

    def _warnings(self, request: JobRequest) -> tuple[str, ...]:
        """Warnings of a parser that the dataset's examples in this language do not have."""
        spec, ours = request.dataset, request.parser_fingerprint
        used = dataset_parsers(self.store, spec.name, spec.lang)
        if not used or ours in used:
            return ()
        known = self.store.fingerprints.all("parser")
        names = (known.get(one, {}).get("name") for one in used)
        kept = next((name for name in names if name and self._has(name, used)), None)
        way_back = f"; to go on as before, give `parser={spec.lang}:{kept}`" if kept else ""
        return (
            f"the {spec.lang} of dataset {spec.name!r} was parsed by {called(used, known)}, and "
            f"this backfill has it parsed by {request.parser} ({ours[:12]}): whoever reads it has "
            f"to choose one then{way_back}",
        )

    def _has(self, parser: str, used: Sequence[str]) -> bool:
        """The service has a parser under this name, and it is one of those."""
        try:
            return identify(find_parser(self.settings, parser)).fingerprint in used
        except (UnknownNameError, ModelLoadError):
            return False

    async def _stage(self, lines: Lines, request: JobRequest, upload: Upload) -> StagedJob:
        examples, stored = 0, Counts()
        changed = ChangedExamples(self.store, request)
        before: Item | None = None
        async for group in read_groups(lines, request):
            keys = [line.key for line in group]
            held = await asyncio.to_thread(self.store.features.existing, *request.part, keys)
            await asyncio.to_thread(changed.add, group, held)
            if request.shard:
                # Staged whole: repetitions of the upload are cut alike then, and have the same
                # transactions (`service.jobs.shard`).
                held = set()
            for line in group:
                if line.key in held:
                    stored += Counts(already_stored=1, reused=line.segments)
                    continue
                joined = _share_a_text(line.item, before)
                if upload.is_full(joined):  # written only now: the last one is left to `finish`
                    await asyncio.to_thread(upload.write_shard)
                body = line.body.decode("utf-8")
                upload.add(line.number, line.key, body, line.segments, joined)
                before = line.item
            examples += len(group)
        if not examples and request.shard is None:  # some shards have none
            raise SpecError("no examples followed the specification; send at least one line")
        await asyncio.to_thread(upload.finish)
        request = changed.warned(request)
        return StagedJob(upload.name, request, examples, upload.shards, stored)

    async def _hand_over(self, staged: StagedJob, upload: Upload) -> None:
        try:
            await self.accept(staged)
        except JobDatabaseError:
            # The job may be known all the same, and only the answer lost. If it is not, the next
            # sweep finds the folder.
            upload.close()
            raise
        except BaseException:
            upload.discard()
            raise
        upload.close()


def _parser_name(spec: BackfillSpec, settings: Settings) -> str:
    parser = ParserChoice.read(spec.parser).of(spec.lang)
    if spec.mode != "gold":
        return find_parser(settings, parser, spec.lang).name
    if parser not in (None, "gold"):
        raise SpecError(
            f"mode 'gold' takes its trees from the CoNLL-U; leave out the parser {parser!r}"
        )
    return "gold"


@asynccontextmanager
async def open_upload(
    receiver: Receiver, name: str, chunks: AsyncIterable[bytes]
) -> AsyncIterator[tuple[Lines, JobRequest]]:
    """The lines of an upload after the first, and the job that the first asks for."""
    lines = numbered_lines(chunks, receiver.settings.job_max_line_bytes)
    try:
        spec = await _first_line(lines, name)
        receiver.expect(await asyncio.to_thread(receiver.tokenizer_of, spec))
        yield lines, await asyncio.to_thread(receiver.resolve, spec, name)
    finally:
        await lines.aclose()


async def _first_line(lines: Lines, name: str) -> BackfillSpec:
    async for _, line in lines:
        return read_spec(line, name)
    raise SpecError('the body is empty; expected {"spec": {...}} and one line per example')


async def read_groups(lines: Lines, request: JobRequest) -> AsyncIterator[list[ReadLine]]:
    """The lines of an upload, read and keyed, in groups that fit into memory."""
    identity = request.item_identity
    group: list[ReadLine] = []
    size = 0
    async for number, line in lines:
        try:
            item = read_item(line, request.dataset)
        except ExampleError as error:
            raise ExampleError(f"line {number}: {error.message}", line=number) from None
        group.append(ReadLine(number, item_key(item, *identity), line, item))
        size += len(line)
        if len(group) >= GROUP_LINES or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class ChangedExamples:
    """Counts the examples of an upload whose id the dataset has with another content.

    The dataset gets them beside those that it has. Its ids are read once, when the first new
    example comes, and kept in 8 bytes each.
    """

    def __init__(self, store: FeatureStore, request: JobRequest) -> None:
        self.count = 0
        self._first: list[str] = []
        self._store, self._request = store, request

    def add(self, group: Sequence[ReadLine], held: Set[str]) -> None:
        """Take in some lines; the dataset has those as they are whose keys are ``held``."""
        new = [
            line.item.example_id
            for line in group
            if line.key not in held and isinstance(line.item, Example)
        ]
        if not new or not len(self._known):
            return
        hashes = _hashes(new)
        place = np.searchsorted(self._known, hashes).clip(max=len(self._known) - 1)
        changed = np.flatnonzero(self._known[place] == hashes)
        self.count += len(changed)
        self._first = [*self._first, *(new[at] for at in changed[:_NAMED])][:_NAMED]

    def warned(self, request: JobRequest) -> JobRequest:
        if not self.count:
            return request
        spec = request.dataset
        warning = (
            f"{self.count} examples, such as {', '.join(self._first)}, have ids that {spec.split}/"
            f"{spec.lang} of dataset {spec.name!r} has with another text, label or option: it has "
            "both from now on, and readers get both. For the new content alone, use a new name; "
            "`parsebank store inspect --changed` lists such ids"
        )
        return replace(request, warnings=(*request.warnings, warning))

    @cached_property
    def _known(self) -> NDArray[np.int64]:
        """Sorted hashes of the ids that the dataset has."""
        request = self._request
        ids = self._store.features.example_ids(*request.part, request.parser_fingerprint)
        return np.unique(np.concatenate([_hashes([]), *map(_hashes, ids)]))


def _hashes(names: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, names), np.int64, len(names))


def _share_a_text(item: Item, before: Item | None) -> bool:
    if not (isinstance(item, Example) and isinstance(before, Example)):
        return False
    return not set(item.segments).isdisjoint(before.segments)
