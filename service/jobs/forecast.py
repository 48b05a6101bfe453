"""What a backfill would do, without doing it: every line is read, nothing is kept.

Lines are sorted as a shard sorts them (`service.jobs.lines`), up to what only the parser can say.
What that, the time and the disk come to is measured on a sample of them (`service.jobs.measure`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from featurestore.records import key_bytes
from featurestore.tables.index import keys_of
from service.jobs.lines import sort_lines
from service.jobs.measure import Sample, take_sample
from service.jobs.records import JobRequest
from service.jobs.tools import Analyser, Toolbox
from service.jobs.uploads import (
    ChangedExamples,
    Lines,
    ReadLine,
    Receiver,
    open_upload,
    read_groups,
    stored_keys,
)

SAMPLE_LINES: Final = 1_000
"""Lines that are kept for the sample; as many of them are parsed as the time allows."""

SAMPLE_BYTES: Final = 8 * 2**20


@dataclass
class Forecast:
    """What a backfill would come to.

    Attributes:
        request: The parser, tokenizer and dataset that it would use.
        examples: Lines, rejected ones included.
        already_stored: Lines whose rows the dataset holds, and repeated lines.
        dropped: Lines that cannot be used, by reason, as far as is known without a parser: those
            that an earlier backfill dropped included.
        texts: Texts of the lines that would be stored.
        distinct_texts: The same, each once.
        already_parsed: Distinct texts whose parse is in the store.
        sample: What was measured; none where nothing is to be stored.
        workers: Processes that the time is meant for.
    """

    request: JobRequest
    workers: int
    examples: int = 0
    already_stored: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    texts: int = 0
    distinct_texts: int = 0
    already_parsed: int = 0
    sample: Sample | None = None

    @property
    def to_store(self) -> int:
        """Lines that would become rows, unless the parser fails on them."""
        return self.examples - self.already_stored - sum(self.dropped.values())

    @property
    def new_parses(self) -> int:
        """Texts that would be parsed."""
        return self.distinct_texts - self.already_parsed

    @property
    def parse_seconds(self) -> float:
        """Time that the new parses would take."""
        return self.new_parses * self.sample.seconds_per_parse / self.workers if self.sample else 0

    @property
    def store_seconds(self) -> float:
        """Time for everything else that workers do: alignment, matrices, commits."""
        return self.to_store * self.sample.seconds_per_row / self.workers if self.sample else 0

    @property
    def parse_bytes(self) -> int:
        """Disk that the new parses would take."""
        return round(self.new_parses * self.sample.bytes_per_parse) if self.sample else 0

    @property
    def store_bytes(self) -> int:
        """Disk that the rows would take."""
        return round(self.to_store * self.sample.bytes_per_row) if self.sample else 0


class Forecaster:
    """Counts the lines of one upload.

    Memory is bounded by 8 bytes for each distinct line and text, and the sample.
    """

    def __init__(self, receiver: Receiver, request: JobRequest, analyser: Analyser) -> None:
        settings = receiver.settings
        self.found = Forecast(request, max(1, settings.job_workers))
        self.sample = Reservoir()
        self._store = receiver.store
        self._analyser = analyser
        spec = request.dataset
        part = (spec.name, request.tokenizer_fingerprint, spec.split, spec.lang)
        self._drops = {drop.example_key: drop.reason for drop in self._store.drops.of(*part)}
        self._changed = ChangedExamples(self._store, request)
        self._seen_lines, self._seen_texts = Seen(), Seen()

    def count(self, group: Sequence[ReadLine]) -> None:
        """Take in some lines."""
        held = stored_keys(self._store, self.found.request, group)
        self._changed.add(group, held)
        is_new = self._seen_lines.add([line.key for line in group])
        lines = (
            (line, line.item, line.key in held, not first)
            for line, first in zip(group, is_new.tolist(), strict=True)
        )
        found = sort_lines(lines, self._analyser.key)
        known = [
            self._drops[work.line.key]
            for work in (*found.works, *found.repeats)
            if work.line.key in self._drops
        ]
        repeats, works = (
            [work for work in sorted_works if work.line.key not in self._drops]
            for sorted_works in (found.repeats, found.works)
        )
        self.found.examples += len(group)
        self.found.already_stored += found.already_stored + len(repeats)
        self.found.dropped.update(known)
        self.found.dropped.update(rejection.reason for _, rejection in found.rejected)
        for work in works:
            self.sample.offer(work.line.body)
        self._count_texts([key for work in works for key in work.keys])

    def done(self) -> Forecast:
        """What was found in all lines."""
        self.found.request = self._changed.warned(self.found.request)
        return self.found

    def _count_texts(self, keys: Sequence[str]) -> None:
        is_new = self._seen_texts.add(keys)
        distinct = [key for key, first in zip(keys, is_new.tolist(), strict=True) if first]
        self.found.texts += len(keys)
        self.found.distinct_texts += len(distinct)
        if distinct:
            self.found.already_parsed += int(self._store.parses.contains(distinct).sum())


class Reservoir:
    """A sample of lines in which every line that was offered is as likely (reservoir sampling).

    Args:
        size: Lines, at most.
        seed: Of the draw.
    """

    def __init__(self, size: int = SAMPLE_LINES, seed: int = 0) -> None:
        self.lines: list[bytes] = []
        self._size = size
        self._draw = Random(seed)
        self._offered = self._bytes = 0

    def offer(self, line: bytes) -> None:
        """Keep a line, perhaps in the place of another."""
        self._offered += 1
        if len(self.lines) < self._size and self._bytes < SAMPLE_BYTES:
            self.lines.append(line)
            self._bytes += len(line)
            return
        place = self._draw.randrange(self._offered)
        if place < len(self.lines):
            self._bytes += len(line) - len(self.lines[place])
            self.lines[place] = line


class Seen:
    """Which keys came before, in 8 bytes each.

    Of a thousand forecasts of 100 million texts each, one or so counts one text too few.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def add(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Take in keys; which of them had not come before. *Shape:* (N,)."""
        halves = np.ascontiguousarray(keys_of(key_bytes(list(keys)))[:, 0])
        values, first = np.unique(halves, return_index=True)
        is_known = np.zeros(len(values), np.bool_)
        for run in self._runs:
            place = np.searchsorted(run, values)
            is_known |= run[np.minimum(place, len(run) - 1)] == values
        is_new = np.zeros(len(halves), np.bool_)
        is_new[first[~is_known]] = True
        self._take(values[~is_known])
        return is_new

    def _take(self, values: NDArray[np.uint64]) -> None:
        """Keep few sorted runs, each longer than the next."""
        if len(values):
            self._runs.append(values)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")


async def forecast(
    receiver: Receiver, name: str, chunks: AsyncIterable[bytes], samplers: Executor
) -> Forecast:
    """Count the lines of a backfill upload, and measure a sample of them.

    Args:
        receiver: What would receive the upload.
        name: Dataset in the path.
        chunks: The body, cut anywhere.
        samplers: Threads that wait for the samples, which may take minutes.
    """
    async with open_upload(receiver, name, chunks) as (lines, request):
        counting = await asyncio.to_thread(_forecaster, receiver, request)
        await _count(lines, counting)
    if counting.sample.lines:
        settings, found = receiver.settings, counting.found
        found.sample = await asyncio.get_running_loop().run_in_executor(
            samplers, take_sample, settings, request, counting.sample.lines
        )
    return counting.done()


def _forecaster(receiver: Receiver, request: JobRequest) -> Forecaster:
    toolbox = Toolbox(receiver.settings, receiver.store)
    return Forecaster(receiver, request, toolbox.analyser(request))


async def _count(lines: Lines, counting: Forecaster) -> None:
    async for group in read_groups(lines, counting.found.request):
        await asyncio.to_thread(counting.count, group)
