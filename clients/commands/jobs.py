"""``parsebank jobs``: look at backfill jobs, stop them, and try them again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clients.commands.connect import StoreOption, UrlOption, connect

if TYPE_CHECKING:
    from clients.client import Client
    from clients.jobs import JobState

jobs = typer.Typer(
    help="Look at backfill jobs, stop them, and try them again.", no_args_is_help=True
)


class State(StrEnum):
    """States of a job."""

    queued = "queued"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"


JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@jobs.command("list")
def list_jobs(
    state: Annotated[
        list[State] | None, typer.Option(help="Only jobs in this state; may come repeatedly.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only jobs for this dataset.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    before: Annotated[
        str | None, typer.Option(help="Go on after this job, the last one of a page.")
    ] = None,
    url: UrlOption = None,
    store: StoreOption = None,
) -> None:
    """Jobs, newest first."""
    from rich.console import Console
    from rich.table import Column, Table

    figures = ("state", "dataset", "split", "lang", "accounted", "dropped", "created")
    columns = (Column(figure, overflow="fold") for figure in figures)
    table = Table(Column("job", no_wrap=True, overflow="ignore", min_width=16), *columns)
    with _client(url, store) as client:
        states = cast("list[JobState]", [one.value for one in state or ()])
        for job in client.jobs(state=states or None, dataset=dataset, before=before, limit=limit):
            counts = job.counts
            table.add_row(
                *(job.id, job.state, job.dataset, job.split, job.lang),
                f"{counts.accounted:,} of {counts.examples:,}",
                f"{sum(counts.dropped.values()):,}",
                job.created or "",
            )
    Console(markup=False, emoji=False).print(table)


@jobs.command()
def show(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """The account of one job."""
    from clients.commands.reports import account

    with _client(url, store) as client:
        account(client.job(job))


@jobs.command()
def cancel(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """Stop a job; what it has stored stays."""
    from clients.commands.reports import account

    with _client(url, store) as client:
        account(client.cancel(job))


@jobs.command()
def retry(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """Run the failed shards of a failed job again; `watch` follows it."""
    from clients.commands.reports import account

    with _client(url, store) as client:
        account(client.retry(job))


@jobs.command()
def watch(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """Follow a job to its end; exits with 1 when it fails."""
    from clients.commands.plan import Outcome
    from clients.commands.progress import Watcher
    from clients.commands.reports import account

    with _client(url, store, working=True) as client:
        found = client.job(job)
        with Watcher() as watcher:
            last = watcher.watch(client, found, f"{found.dataset} {found.split} {found.lang}")
    account(last)
    raise typer.Exit(Outcome(jobs=[last]).exit_code())


@contextmanager
def _client(url: str | None, store: str | None, *, working: bool = False) -> Iterator[Client]:
    """The running service, unless a store is named: jobs outlive the command that made them.

    Raises:
        SpecError: There is no such store.
        ServiceUnreachableError: No service answers.
    """
    from clients.failures import ServiceUnreachableError
    from clients.session import URL
    from syntax.errors import SpecError

    if store and "://" not in store and not Path(store).expanduser().is_dir():
        raise SpecError(f"there is no store {store}; name the one that the backfill wrote to")
    address = url or (None if store else os.environ.get("PARSEBANK_URL", URL))
    try:
        with connect(address, store, **({} if working else {"job_workers": 0})) as client:
            yield client
    except ServiceUnreachableError as error:
        if url:
            raise
        raise ServiceUnreachableError(
            f"{error.message}. A `parsebank backfill` without --url keeps its jobs in its store: "
            "look there with --store (./parsebank-data, unless you named another)"
        ) from error
