"""A backfill's progress on the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from clients.benchmarks import Item
from clients.client.client import Client
from clients.client.jobs import Job, JobCounts
from clients.spelling import spelled
from syntax.errors import ParsebankError

_STOPPED: Final = (
    "Stopped. What is stored stays: give the same command again to go on. A running service "
    "meanwhile finishes the jobs that it was sent in full (`parsebank jobs list`)."
)


class Watcher:
    """A progress bar that follows backfills from the first example read to the last stored."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=Console(stderr=True, markup=False, emoji=False),
        )
        self._task = self._bar.add_task("", total=None, rate="", detail="")
        self._warnings: set[str] = set()
        self._away = False
        self._started = self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def sending(
        self, items: Iterable[Item], limit: int | None = None, title: str = ""
    ) -> Iterator[Item]:
        self._begin(f"{title}: sending")
        for item in islice(items, limit):
            yield item
            self._bar.advance(self._task)

    def watch(self, client: Client, job: Job, title: str) -> Job:
        self._begin(title)
        return client.wait(job.id, self.show, self.show_outage)

    def show_outage(self, failure: ParsebankError, seconds: float) -> None:
        if not self._away:
            self._bar.console.print(
                f"{failure.message}. Waiting up to {seconds:.0f} s for it to come back: the job "
                "goes on then.",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        self._away = True
        self._bar.update(self._task, rate="", detail=f"no service; {seconds:.0f} s left")

    def show(self, job: Job) -> None:
        self._away = False
        counts = job.counts
        self._bar.update(
            self._task,
            total=counts.examples,
            completed=counts.accounted,
            rate=f"{counts.accounted / max(time.perf_counter() - self._began, 1e-9):,.0f}/s",
            detail=f"{job.state}, {_reuse(counts)}, {sum(counts.dropped.values())} dropped",
        )

    def warn(self, warning: str) -> None:
        if warning not in self._warnings:
            self._warnings.add(warning)
            text = f"Warning: {spelled(warning)}"
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _begin(self, title: str) -> None:
        self._began = time.perf_counter()
        self._bar.reset(self._task, description=title, rate="", detail="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.stop()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._bar.console.print(_STOPPED, markup=False, highlight=False, soft_wrap=True)


def _reuse(counts: JobCounts) -> str:
    parses = counts.parses_done + counts.parses_reused
    return f"{counts.parses_reused / parses:.0%} reused" if parses else "0% reused"
