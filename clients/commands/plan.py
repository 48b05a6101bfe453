"""What a backfill command sends, part by part, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from httpx import ConnectError

from clients.client.retries import PATIENCE_SECONDS, Outage
from clients.expand import expanded, expanded_spec
from syntax.errors import InputError, ParsebankError, SpecError, UnknownNameError
from syntax.examples import Example
from syntax.lists import ParserChoice

if TYPE_CHECKING:
    from clients.benchmarks import Benchmark, Item
    from clients.client.client import Client
    from clients.client.jobs import Forecast, Job
    from clients.commands.progress import Watcher


@dataclass(frozen=True, slots=True)
class Task:
    """One split in one language, for one tokenizer; none is the service's own."""

    split: str
    lang: str
    tokenizer: str | None

    def __str__(self) -> str:
        tokenizer = Path(self.tokenizer).name if self.tokenizer else ""
        return " ".join(filter(None, (self.split, self.lang, tokenizer)))


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that could not be sent, and its error."""

    task: Task
    error_type: str
    message: str


@dataclass(slots=True)
class Outcome:
    """What became of every task: a job, or a forecast of one, or a failure.

    Attributes:
        unlabelled: Examples without some label, by part.
    """

    jobs: list[Job] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    unlabelled: dict[str, int] = field(default_factory=dict)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 when all jobs are done, nothing failed and each part has an example that can be used.

        When strict, nothing may be dropped.
        """
        undone = any(job.state != "done" for job in self.jobs) or bool(self.unusable)
        dropped = any(job.counts.dropped for job in self.jobs)
        dropped |= any(forecast.dropped for forecast in self.forecasts)
        return int(undone or bool(self.failures) or (strict and dropped))

    @property
    def unusable(self) -> list[str]:
        """The parts all of whose examples were, or would be, dropped."""
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
        """Plain JSON."""
        return {
            "jobs": [asdict(job) for job in self.jobs],
            "forecasts": [asdict(each) for each in self.forecasts],
            "unlabelled": self.unlabelled,
            "failures": [
                {**asdict(each.task), "error_type": each.error_type, "message": each.message}
                for each in self.failures
            ],
        }


@dataclass(frozen=True)
class Plan:
    """What to send.

    Attributes:
        reader: Reads the parts.
        path: Where they are.
        parts: Split and language of each.
        tokenizers: What each part is aligned with; the parses of the first serve the others.
        name: Dataset; else the reader's name.
        mode: How segments are read; else the reader's usual one.
        limit: Only so many items of each part.
        expand_words: Whether to send the words of multiword tokens in their place.
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
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, client: Client, watcher: Watcher) -> Outcome:
        """Send everything, and wait for the jobs; they run while later parts are sent."""
        outcome = Outcome()
        jobs = list(self._each(client, client.backfill, watcher, outcome))
        for number, job in enumerate(jobs, 1):
            title = f"{job.dataset} {job.split} {job.lang}{_of(number, len(jobs))}"
            outcome.jobs.append(watcher.watch(client, job, title))
        return outcome

    def forecast(self, client: Client, watcher: Watcher) -> Outcome:
        """Ask what each task would come to.

        Raises:
            SpecError: Multiword tokens are to be expanded, for which everything must be parsed.
        """
        if self.expand_words:
            raise SpecError(
                "--expand-words parses every text to find its words, which --dry-run leaves alone; "
                "give one of them"
            )
        outcome = Outcome()
        outcome.forecasts.extend(self._each(client, client.forecast, watcher, outcome))
        return outcome

    def _each(self, client: Client, call: Any, watcher: Watcher, outcome: Outcome) -> Iterator[Any]:
        """The answers; a task that fails costs the others nothing, unless it is the only one."""
        tasks = [Task(*part, tokenizer) for part in self.parts for tokenizer in self.tokenizers]
        for number, task in enumerate(tasks, 1):
            place = _of(number, len(tasks))
            send = partial(self._sent, client, call, task, watcher, place, outcome)
            try:
                yield _insisted(send, watcher, is_first=number == 1)
            except (InputError, UnknownNameError, OSError) as error:
                if len(tasks) == 1:
                    raise
                outcome.failures.append(_failure(task, error))

    def _sent(
        self,
        client: Client,
        call: Any,
        task: Task,
        watcher: Watcher,
        place: str,
        outcome: Outcome,
    ) -> Any:
        spec = self.reader.spec(
            task.split, task.lang, path=self.path, name=self.name, mode=self.mode
        )
        part = self.reader.part(self.path, task.split, task.lang)
        # A forecast of no examples has the warnings before anything is read or parsed.
        ahead = client.forecast(spec, (), tokenizer=task.tokenizer, **self.options)
        for warning in ahead.warnings:
            watcher.warn(warning)
        title = f"{spec.name} {task.split} {task.lang}"
        items = _noting(self.reader.items(part, self.reader.mode(self.mode)), outcome, title)
        sent = watcher.sending(items, self.limit, f"{spec.name} {task}{place}")
        options = {"tokenizer": task.tokenizer, **self.options}
        if not self.expand_words:
            return call(spec, sent, **options)
        parser = ParserChoice.read(options.get("parser")).of(task.lang)
        long_sentences = options.get("long_sentences")
        words = expanded(client, spec, sent, parser=parser, long_sentences=long_sentences)
        return call(expanded_spec(spec), words, **options)


def _insisted(send: Callable[[], Any], watcher: Watcher, *, is_first: bool) -> Any:
    """Send, and again from the start when the service went away: what it has is skipped.

    A service that was never there is not waited for.
    """
    outage = Outage(PATIENCE_SECONDS, watcher.show_outage)
    while True:
        try:
            return send()
        except ParsebankError as failure:
            if is_first and isinstance(failure.__cause__, ConnectError):
                raise
            pause = outage.pause(failure)
        is_first = False
        time.sleep(pause)


def _noting(items: Iterable[Item], outcome: Outcome, part: str) -> Iterator[Item]:
    """The items of a part; how many lack a label is noted."""
    unlabelled = 0
    for item in items:
        if isinstance(item, Example) and None in item.labels.values():
            unlabelled += 1
            outcome.unlabelled[part] = unlabelled
        yield item


def _failure(task: Task, error: Exception) -> Failure:
    name = error.error_type if isinstance(error, ParsebankError) else type(error).__name__
    return Failure(task, name, str(error))


def _of(number: int, total: int) -> str:
    return f" ({number}/{total})" if total > 1 else ""
