"""``parsebank jobs``: look at backfill jobs and stop them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from clients.commands.backfill import exit_code
from clients.commands.connect import StoreOption, UrlOption, connect

if TYPE_CHECKING:
    from clients.client import Client

jobs = typer.Typer(help="Look at backfill jobs and stop them.", no_args_is_help=True)

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@jobs.command("list")
def list_jobs(url: UrlOption = None, store: StoreOption = None) -> None:
    """The newest jobs, newest first."""
    from rich.console import Console
    from rich.table import Table

    table = Table("job", "state", "dataset", "split", "lang", "accounted", "dropped", "created")
    with _client(url, store) as client:
        for job in client.jobs():
            counts = job.counts
            table.add_row(
                *(job.id, job.state, job.dataset, job.split, job.lang),
                f"{counts.accounted:,} of {counts.examples:,}",
                f"{sum(counts.dropped.values()):,}",
                job.created or "",
            )
    Console().print(table)


@jobs.command()
def show(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """The account of one job."""
    from clients.commands.progress import account

    with _client(url, store) as client:
        account(client.job(job))


@jobs.command()
def cancel(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """Stop a job; what it has stored stays."""
    from clients.commands.progress import account

    with _client(url, store) as client:
        account(client.cancel(job))


@jobs.command()
def watch(job: JobArgument, url: UrlOption = None, store: StoreOption = None) -> None:
    """Follow a job to its end; exits with 1 when it fails."""
    from clients.commands.progress import Watcher, account

    with _client(url, store, working=True) as client:
        found = client.job(job)
        with Watcher(f"{found.dataset} {found.split} {found.lang}") as watcher:
            last = watcher.watch(client, found)
    account(last)
    raise typer.Exit(exit_code(last))


def _client(url: str | None, store: str | None, *, working: bool = False) -> Client:
    """The running service, unless a store is named: jobs outlive the command that made them."""
    from clients.session import URL

    address = url or (None if store else os.environ.get("PARSEBANK_URL", URL))
    return connect(address, store, **({} if working else {"job_workers": 0}))
