"""A backfill's progress on the terminal, and its final account."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from clients.benchmarks import Item
from clients.client import Client
from clients.jobs import Job, JobCounts


class Watcher:
    """A progress bar that follows a backfill from the first example read to the last stored."""

    def __init__(self, title: str) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}"),
            console=Console(stderr=True),
        )
        self._title = title
        self._task = self._bar.add_task(f"{title}: sending", total=None, rate="", detail="")
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the bar was made."""
        return time.perf_counter() - self._started

    def sending(self, items: Iterable[Item], limit: int | None = None) -> Iterator[Item]:
        """The items as they are read and sent, counted."""
        for item in islice(items, limit):
            yield item
            self._bar.advance(self._task)

    def watch(self, client: Client, job: Job) -> Job:
        """Follow a job to its end."""
        self._bar.reset(self._task, description=self._title)
        try:
            return client.wait(job.id, self.show)
        except KeyboardInterrupt:
            self._bar.console.print(
                f"Stopped watching. A running service goes on (`parsebank jobs watch {job.id}`); "
                "one in this process goes on when the same command is given again."
            )
            raise

    def show(self, job: Job) -> None:
        """Redraw for the state that a job is in now."""
        counts = job.counts
        self._bar.update(
            self._task,
            total=counts.examples,
            completed=counts.accounted,
            rate=f"{counts.accounted / max(self.seconds, 1e-9):,.0f}/s",
            detail=f"{job.state}, {_reuse(counts)}, {sum(counts.dropped.values())} dropped",
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


def account(job: Job, seconds: float | None = None) -> None:
    """Print what became of every example of a job."""
    console = Console()
    console.print(account_table(job, seconds))
    for failure in failures(job):
        console.print(failure, markup=False, soft_wrap=True)


def failures(job: Job) -> list[str]:
    """What went wrong, a line each: the failed shards, or the job's first error."""
    if job.failed_shards:
        return [
            f"shard {shard.number}, tried {shard.tries} times: {shard.error_type}: {shard.message}"
            for shard in job.failed_shards
        ]
    error = job.error
    return [] if error is None else [f"{error.get('error_type')}: {error.get('message')}"]


def account_table(job: Job, seconds: float | None = None) -> Table:
    """The account of a job, one line a figure."""
    counts = job.counts
    table = Table("", "", title=f"job {job.id}: {job.state}", show_header=False)
    rows = {
        "dataset": f"{job.dataset} {job.split} {job.lang}, {job.tokenizer}",
        "parser": job.parser,
        "examples": f"{counts.examples:,}",
        "stored": f"{counts.stored:,}",
        "already stored": f"{counts.already_stored:,}",
        "parses done": f"{counts.parses_done:,}",
        "parses reused": f"{counts.parses_reused:,}",
        **{f"dropped: {reason}": f"{n:,}" for reason, n in sorted(counts.dropped.items())},
    }
    if seconds is not None:
        rows["time"] = f"{seconds:.1f} s, {counts.examples / max(seconds, 1e-9):,.0f} examples/s"
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _reuse(counts: JobCounts) -> str:
    parses = counts.parses_done + counts.parses_reused
    return f"{counts.parses_reused / parses:.0%} reused" if parses else "0% reused"
