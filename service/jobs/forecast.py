"""Forecasts of backfills: every line is read, nothing is kept.

Lines are sorted as a shard sorts them (`service.jobs.lines`). Parser errors, time and disk are
measured on a sample of them (`service.jobs.measure`).
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Final

import numpy as np
from pydantic import BaseModel, Field

from service.jobs.lines import sort_lines
from service.jobs.measure import SampleAnswer, take_sample
from service.jobs.records import JobRequest
from service.jobs.tools import ToolCache
from service.jobs.uploads import ChangedExamples, ReadLine, Receiver, open_upload, read_groups

SAMPLE_LINES: Final = 1_000
"""Lines that are kept for the sample; as many of them are parsed as the time allows."""

SAMPLE_BYTES: Final = 8 * 2**20

_KEYS_AT_ONCE: Final = 100_000


class TextCounts(BaseModel):
    """Texts of the examples that would be stored: `distinct - already_parsed = new`."""

    total: int
    distinct: int
    already_parsed: int = Field(description="Distinct texts whose parse the store holds.")
    new: int = Field(description="Distinct texts that would be parsed.")


class Estimate(BaseModel):
    """What the sample lets expect of the whole."""

    workers: int = Field(description="Processes that the times are meant for: `job_workers`.")
    parse_seconds: float
    store_seconds: float = Field(description="Alignment, matrices and storage.")
    parse_bytes: int = Field(description="Disk for the new parses.")
    store_bytes: int = Field(description="Disk for the rows.")


class ForecastAnswer(BaseModel):
    """What a backfill would do: `to_store + already_stored + sum(dropped) = examples`."""

    dataset: str
    split: str
    lang: str
    parser: str
    tokenizer: str
    examples: int = Field(description="Examples and reader's rejections that came.")
    to_store: int = Field(description="Examples that would be stored, if the parser can read them.")
    already_stored: int = Field(description="Examples that the dataset holds, and repeated ones.")
    dropped: dict[str, int] = Field(
        description="Examples that cannot be used, by reason, as far as is known without parsing; "
        "those that an earlier backfill dropped included."
    )
    texts: TextCounts
    sample: SampleAnswer | None = Field(description="`null` when nothing would be stored.")
    estimate: Estimate
    warnings: list[str] = Field(
        description="What to think of before: another parser than the one that the dataset's "
        "examples in this language have, or ids that it has with other content."
    )


class Forecaster:
    """Counts the lines of one upload; memory is bounded by 16 bytes for each line and text.

    The sample has the lines with the smallest keys: keys are hashes, so that each distinct line is
    as likely.
    """

    def __init__(self, receiver: Receiver, request: JobRequest) -> None:
        self.sample: dict[str, bytes] = {}
        self._receiver, self._request = receiver, request
        self._analyser = ToolCache(receiver.settings, receiver.store).analyser(request)
        drops = receiver.store.drops.of(*request.part)
        self._drops = {drop.example_key: drop.reason for drop in drops}
        self._changed = ChangedExamples(receiver.store, request)
        self._examples = self._already_stored = 0
        self._dropped = Counter[str]()
        self._lines, self._texts = bytearray(), bytearray()

    def count(self, group: Sequence[ReadLine]) -> None:
        features, keys = self._receiver.store.features, [line.key for line in group]
        held = features.existing(*self._request.part, keys)
        self._changed.add(group, held)
        found = sort_lines(
            ((line, line.item, line.key in held, False) for line in group), self._analyser.key
        )
        self._examples += len(group)
        self._already_stored += found.already_stored
        self._dropped.update(rejection.reason for _, rejection in found.rejected)
        for work in found.works:
            key = work.line.key
            if key in self._drops:
                self._dropped[self._drops[key]] += 1
                continue
            self._lines += bytes.fromhex(key)
            self._texts += bytes.fromhex("".join(work.keys))
            self.sample[key] = work.line.body
        smallest, size = heapq.nsmallest(SAMPLE_LINES, self.sample), 0
        for at, key in enumerate(smallest):
            size += len(self.sample[key])
            if at and size > SAMPLE_BYTES:
                del smallest[at:]
                break
        self.sample = {key: self.sample[key] for key in smallest}

    def answer(self, sample: SampleAnswer | None) -> ForecastAnswer:
        """The counts of all lines, times the rates of the sample."""
        request, spec = self._changed.warned(self._request), self._request.dataset
        to_store = sum(map(len, _distinct(self._lines)))
        repeated = len(self._lines) // 16 - to_store
        distinct = already_parsed = 0
        for keys in _distinct(self._texts):
            distinct += len(keys)
            already_parsed += int(self._receiver.store.parses.contains(keys).sum())
        new, workers = distinct - already_parsed, max(1, self._receiver.settings.job_workers)
        return ForecastAnswer(
            dataset=spec.name,
            split=spec.split,
            lang=spec.lang,
            parser=request.parser,
            tokenizer=request.tokenizer,
            examples=self._examples,
            to_store=to_store,
            already_stored=self._already_stored + repeated,
            dropped=dict(self._dropped),
            texts=TextCounts(
                total=to_store * len(spec.fields),
                distinct=distinct,
                already_parsed=already_parsed,
                new=new,
            ),
            sample=sample,
            estimate=Estimate(
                workers=workers,
                parse_seconds=new * sample.seconds_per_parse / workers if sample else 0.0,
                store_seconds=to_store * sample.seconds_per_row / workers if sample else 0.0,
                parse_bytes=round(new * sample.bytes_per_parse) if sample else 0,
                store_bytes=round(to_store * sample.bytes_per_row) if sample else 0,
            ),
            warnings=list(request.warnings),
        )


def _distinct(keys: bytearray) -> Iterator[list[str]]:
    """The distinct keys of 16 bytes each, some at once; told apart by their first half."""
    _, first = np.unique(np.frombuffer(keys, np.uint64)[::2], return_index=True)
    for start in range(0, len(first), _KEYS_AT_ONCE):
        places = (16 * first[start : start + _KEYS_AT_ONCE]).tolist()
        yield [keys[at : at + 16].hex() for at in places]


async def forecast(
    receiver: Receiver, name: str, chunks: AsyncIterable[bytes], samplers: Executor
) -> ForecastAnswer:
    """Count the lines of a backfill upload, and measure a sample of them.

    ``samplers`` are threads that wait for the samples, which may take minutes.
    """
    async with open_upload(receiver, name, chunks) as (lines, request):
        counting = await asyncio.to_thread(Forecaster, receiver, request)
        async for group in read_groups(lines, request):
            await asyncio.to_thread(counting.count, group)
    sample, bodies = None, list(counting.sample.values())
    if bodies:
        sample = await asyncio.get_running_loop().run_in_executor(
            samplers, take_sample, receiver.settings, request, bodies
        )
    return await asyncio.to_thread(counting.answer, sample)
