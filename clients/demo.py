"""The demo: parse, backfill and train in a few minutes, then the same again on stored parses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from clients.benchmarks import SAMPLE, TEXT
from clients.client.client import Client
from clients.client.jobs import Job
from clients.client.results import ParseResult
from clients.client.retries import Retries
from clients.processes import failed, finish, free_port, parsebank, running, wait_until
from syntax.errors import ParsebankError, WorkError
from syntax.examples import Example
from syntax.strict_json import parse_json

T = TypeVar("T")

LANG: Final = "en"
SPLITS: Final = ("train", "dev")
START_SECONDS: Final = 60.0

Stage = Literal["parse", "backfill", "training"]


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the demo; speeds are examples a second."""

    parsed: ParseResult
    jobs: tuple[Job, ...]
    training: dict[str, Any]
    speed: dict[Stage, float]

    @property
    def examples(self) -> int:
        return sum(job.counts.examples for job in self.jobs)

    @property
    def parses_done(self) -> int:
        fresh = sum(not item.cached for item in self.parsed.parsed())
        return fresh + sum(job.counts.parses_done for job in self.jobs)

    @property
    def parses_reused(self) -> int:
        cached = sum(item.cached for item in self.parsed.parsed())
        return cached + sum(job.counts.parses_reused for job in self.jobs)

    @property
    def dropped(self) -> dict[str, int]:
        return dict(sum((Counter(job.counts.dropped) for job in self.jobs), Counter()))


@contextmanager
def serving(store: Path, log: Path) -> Iterator[Client]:
    """Start a service on a free loopback port, with a client."""
    port = str(free_port())
    command = parsebank("serve", "--host", "127.0.0.1", "--port", port, "--store", str(store))
    with (
        running(command, log) as process,
        Client(f"http://127.0.0.1:{port}", retries=Retries(attempts=1)) as client,
    ):
        wait_until(lambda: _is_ready(client), process, log, START_SECONDS)
        try:
            yield client
        except ParsebankError as error:
            if process.poll() is not None:
                raise failed(command, log, "ended early") from error
            raise


def sample_texts() -> list[str]:
    folder = SAMPLE.bundled
    items = TEXT.read(folder, "demo", LANG)
    return [item.segments[0].text or "" for item in items if isinstance(item, Example)]


def play(
    client: Client,
    store: Path,
    output: Path,
    tell: Callable[[str], Any],
    show: Callable[[ParseResult], Any],
) -> Round:
    texts = sample_texts()
    tell(f"parsing {len(texts)} sentences")
    parsed, parse_seconds = _timed(lambda: client.parse(texts=texts, lang=LANG))
    show(parsed)
    tell("backfilling the sample benchmark")
    jobs, backfill_seconds = _timed(lambda: tuple(_backfill(client, split) for split in SPLITS))
    tell("training a tiny syntax-augmented encoder on it")
    command = parsebank("train", "sample", "--store", str(store), "--output", str(output))
    finish(command, output.with_suffix(".log"))
    training: dict[str, Any] = parse_json((output / "result.json").read_text("utf-8"))
    speed: dict[Stage, float] = {
        "parse": len(texts) / parse_seconds,
        "backfill": sum(job.counts.examples for job in jobs) / backfill_seconds,
        "training": training["examples_per_second"],
    }
    return Round(parsed, jobs, training, speed)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def _backfill(client: Client, split: str) -> Job:
    job = client.backfill(SAMPLE.spec(split, LANG), SAMPLE.read(None, split, LANG))
    last = client.wait(job.id)
    if last.state != "done":
        raise WorkError(f"the backfill of the {split} split {last.state}: {last.error}")
    return last


def _is_ready(client: Client) -> bool:
    try:
        return client.health()
    except WorkError:
        return False
