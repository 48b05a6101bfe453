"""Plan of a backfill command: the parts to send, and the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from httpx import ConnectError

from clients.client.retries import MAX_OUTAGE_SECONDS, Outage
from clients.cut import CUT, cut_items
from clients.expand import expanded, expanded_spec
from syntax.errors import (
    InputError,
    MissingExtraError,
    ModelLoadError,
    ParsebankError,
    SpecError,
    UnknownNameError,
)
from syntax.examples import Example, Rejection
from syntax.lists import ParserChoice

if TYPE_CHECKING:
    from clients.benchmarks import Benchmark
    from clients.client.client import Client
    from clients.client.jobs import Forecast, Job
    from clients.client.staging import Sent
    from clients.commands.progress import Watcher
    from clients.shards import Shard


_FAULTS_OF_ONE: Final = (
    InputError,
    UnknownNameError,
    ModelLoadError,
    MissingExtraError,
    OSError,
)
"""Errors of one part, its language or its parser, which leave the other parts unaffected."""


@dataclass(frozen=True, slots=True)
class PlannedBackfill:
    """One split in one language, for one tokenizer; ``None`` is the service's default."""

    split: str
    lang: str
    tokenizer: str | None

    def __str__(self) -> str:
        tokenizer = Path(self.tokenizer).name if self.tokenizer else ""
        return " ".join(filter(None, (self.split, self.lang, tokenizer)))


@dataclass(frozen=True, slots=True)
class Failure:
    """A planned backfill that could not be sent, and its error."""

    planned: PlannedBackfill
    error_type: str
    message: str


@dataclass(slots=True)
class Outcome:
    """Jobs, forecasts and failures of the planned backfills.

    Attributes:
        unlabelled: Number of examples that lack a label, by part.
        rejected: The first message of each reason for which the reader rejected records, by part.
        cut: Number of examples that were cut to `max_pieces`, by part.
    """

    jobs: list[Job] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    unlabelled: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, dict[str, str]] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 when all is done and each part is usable (strict: and nothing dropped)."""
        undone = any(job.state != "done" for job in self.jobs) or bool(self.unusable)
        dropped = any(job.counts.dropped for job in self.jobs)
        dropped |= any(forecast.dropped for forecast in self.forecasts)
        return int(undone or bool(self.failures) or (strict and dropped))

    @property
    def unusable(self) -> list[str]:
        counts: list[tuple[Job | Forecast, int, Mapping[str, int]]] = [
            *((job, job.counts.examples, job.counts.dropped) for job in self.jobs),
            *((each, each.examples, each.dropped) for each in self.forecasts),
        ]
        return [
            f"{part.dataset} {part.split} {part.lang}"
            for part, examples, dropped in counts
            if examples and sum(dropped.values()) == examples
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "jobs": [asdict(job) for job in self.jobs],
            "forecasts": [asdict(each) for each in self.forecasts],
            "unlabelled": self.unlabelled,
            "rejected": self.rejected,
            "cut": self.cut,
            "failures": [
                {**asdict(each.planned), "error_type": each.error_type, "message": each.message}
                for each in self.failures
            ],
        }


@dataclass(frozen=True)
class BackfillPlan:
    """The backfills of one command.

    Attributes:
        tokenizers: Tokenizers for each part; all of them share the parses.
        name: Name of the dataset; the reader's name when left out.
        limit: Largest number of items of each part.
        expand_words: Multiword tokens are replaced by their words.
        keep_tokens: With ``expand_words``: multiword tokens stay before their words.
        max_pieces: Most pieces of a sequence, to which tokens are cut before they are parsed.
        shard: The shard of each part that is sent; everything when left out.
        options: Keywords of `Client.backfill`.
    """

    reader: Benchmark
    path: Path | None
    parts: list[tuple[str, str]]
    tokenizers: tuple[str | None, ...] = (None,)
    name: str | None = None
    mode: str | None = None
    limit: int | None = None
    expand_words: bool = False
    keep_tokens: bool = False
    max_pieces: int | None = None
    shard: Shard | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse a wrong mode, or a plan without a readable part, without a service."""
        self.reader.mode(self.mode)
        failures = []
        for split, lang in self.parts:
            try:
                self.reader.check_part(split, lang, self.path)
            except _FAULTS_OF_ONE as error:
                failures.append(error)
        if failures and len(failures) == len(self.parts):
            raise failures[0]

    @property
    def names(self) -> dict[str, list[Any]]:
        """Names for `clients.commands.connect.connect`."""
        choice = ParserChoice.read(self.options.get("parser"))
        langs = dict.fromkeys(lang for _, lang in self.parts)
        parsed = self.reader.mode(self.mode) != "gold"
        return {
            "parsers": [(choice.of(lang), lang) for lang in langs] if parsed else [],
            "tokenizers": [name for name in self.tokenizers if name is not None],
        }

    def run(self, client: Client, watcher: Watcher) -> Outcome:
        """Send everything, and wait for the jobs; they run while later parts are sent."""
        outcome = Outcome()
        jobs = list(self._each(client, client.backfill, watcher, outcome))
        for number, job in enumerate(jobs, 1):
            title = f"{job.dataset} {job.split} {job.lang}{_of(number, len(jobs))}"
            outcome.jobs.append(watcher.watch(client, job, title))
        return outcome

    def forecast(self, client: Client, watcher: Watcher) -> Outcome:
        if self.expand_words:
            raise SpecError(
                "--expand-words parses every text to find its words, which --dry-run leaves alone; "
                "give one of them"
            )
        outcome = Outcome()
        outcome.forecasts.extend(self._each(client, client.forecast, watcher, outcome))
        return outcome

    def _each(self, client: Client, call: Any, watcher: Watcher, outcome: Outcome) -> Iterator[Any]:
        """Answers; a failure does not stop the other backfills, unless it is the only one."""
        backfills = [
            PlannedBackfill(*part, tokenizer)
            for part in self.parts
            for tokenizer in self.tokenizers
        ]
        for number, planned in enumerate(backfills, 1):
            place = _of(number, len(backfills))
            send = partial(self._sent, client, call, planned, watcher, place, outcome)
            try:
                yield _insisted(send, watcher, is_first=number == 1)
            except _FAULTS_OF_ONE as error:
                if len(backfills) == 1:
                    raise
                name = (
                    error.error_type if isinstance(error, ParsebankError) else type(error).__name__
                )
                outcome.failures.append(Failure(planned, name, str(error)))

    def _sent(
        self,
        client: Client,
        call: Any,
        planned: PlannedBackfill,
        watcher: Watcher,
        place: str,
        outcome: Outcome,
    ) -> Any:
        spec = self.reader.spec(
            planned.split, planned.lang, path=self.path, name=self.name, mode=self.mode
        )
        part = self.reader.part(self.path, planned.split, planned.lang)
        # A forecast of no examples returns the warnings before anything is read or parsed.
        ahead = client.forecast(spec, (), tokenizer=planned.tokenizer, **self.options)
        for warning in ahead.warnings:
            watcher.warn(warning)
        title = f"{spec.name} {planned.split} {planned.lang}"
        items = self.reader.items(part, self.reader.mode(self.mode))
        read = watcher.sending(items, self.limit, f"{spec.name} {planned}{place}")
        sent = _noting(self.shard.of(read) if self.shard else read, outcome, title)
        options = {"tokenizer": planned.tokenizer, **self.options}
        if self.shard:
            options["shard"] = str(self.shard)
        if self.expand_words:
            parser = ParserChoice.read(options.get("parser")).of(planned.lang)
            long_sentences = options.get("long_sentences")
            sent = expanded(
                client,
                spec,
                sent,
                keep_tokens=self.keep_tokens,
                parser=parser,
                long_sentences=long_sentences,
            )
            spec = expanded_spec(spec)
        if self.max_pieces is not None:
            tokenizer = Path(planned.tokenizer or "")
            short = cut_items(spec, sent, tokenizer, self.max_pieces)
            sent = _noting_cuts(short, outcome, title)
        answer = call(spec, sent, **options)
        for warning in answer.warnings:
            watcher.warn(warning)
        return answer


def _insisted(send: Callable[[], Any], watcher: Watcher, *, is_first: bool) -> Any:
    """Send again after an outage, unless the service has never answered; it skips stored items."""
    outage = Outage(MAX_OUTAGE_SECONDS, watcher.show_outage)
    while True:
        try:
            return send()
        except ParsebankError as failure:
            if is_first and isinstance(failure.__cause__, ConnectError):
                raise
            pause = outage.pause(failure)
        is_first = False
        time.sleep(pause)


def _noting(items: Iterable[Sent], outcome: Outcome, part: str) -> Iterator[Sent]:
    unlabelled = 0
    for item in items:
        if isinstance(item, Rejection):
            outcome.rejected.setdefault(part, {}).setdefault(item.reason, item.message)
        if isinstance(item, Example) and None in item.labels.values():
            unlabelled += 1
            outcome.unlabelled[part] = unlabelled
        yield item


def _noting_cuts(items: Iterable[Sent], outcome: Outcome, part: str) -> Iterator[Sent]:
    count = 0
    for item in items:
        if isinstance(item, Example) and CUT in item.repairs:
            count += 1
            outcome.cut[part] = count
        yield item


def _of(number: int, total: int) -> str:
    return f" ({number}/{total})" if total > 1 else ""
