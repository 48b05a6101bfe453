"""``parsebank jobs``: shows, stops and retries backfill jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args

import typer

from clients.client.jobs import JobState
from clients.commands.connect import StoreOption, UrlOption, connect
from syntax.commands.tables import AsJson, print_json, print_table

if TYPE_CHECKING:
    from clients.client.client import Client

jobs = typer.Typer(help="List, show, watch, cancel and retry backfill jobs.", no_args_is_help=True)


_STORE: Final = "./parsebank-data"

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@jobs.command("list")
def list_jobs(
    state: Annotated[
        list[str] | None,
        typer.Option(help=f"Only jobs in these states, of {', '.join(get_args(JobState))}."),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only jobs for this dataset.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most jobs to list.")] = 100,
    before: Annotated[
        str | None,
        typer.Option(help="List jobs older than this one (the last one of the previous page)."),
    ] = None,
    url: UrlOption = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    states = _states(state) or None
    with _client(url, store) as client:
        found = list(client.jobs(state=states, dataset=dataset, before=before, limit=limit))
    if as_json:
        return print_json([asdict(job) for job in found])
    columns = ("job", "state", "dataset", "split", "lang", "accounted", "examples", "dropped")
    rows = [
        (
            *(job.id, job.state, job.dataset, job.split, job.lang),
            *(job.counts.accounted, job.counts.examples, sum(job.counts.dropped.values())),
            job.created,
        )
        for job in found
    ]
    return print_table((*columns, "created"), rows)


def _states(given: list[str] | None) -> list[JobState]:
    from syntax.lists import listed
    from syntax.registry import unknown_name

    for name in (states := listed(given)):
        if name not in get_args(JobState):
            raise unknown_name("state of jobs", name, get_args(JobState))
    return cast("list[JobState]", list(states))


@jobs.command()
def show(
    job: JobArgument, url: UrlOption = None, store: StoreOption = None, as_json: AsJson = False
) -> None:
    """Show one job."""
    from clients.commands.reports import account

    with _client(url, store) as client:
        account(client.job(job), as_json=as_json)


@jobs.command()
def cancel(
    job: JobArgument, url: UrlOption = None, store: StoreOption = None, as_json: AsJson = False
) -> None:
    """Cancel a job and keep what it has stored."""
    from clients.commands.reports import account

    with _client(url, store) as client:
        account(client.cancel(job), as_json=as_json)


@jobs.command()
def retry(
    job: JobArgument, url: UrlOption = None, store: StoreOption = None, as_json: AsJson = False
) -> None:
    """Run the failed shards of a job again; `watch` follows them."""
    from clients.commands.reports import account

    with _client(url, store) as client:
        account(client.retry(job), as_json=as_json)


@jobs.command()
def watch(
    job: JobArgument, url: UrlOption = None, store: StoreOption = None, as_json: AsJson = False
) -> None:
    """Follow a job until it ends; exits with 1 if it fails."""
    from clients.commands.plan import Outcome
    from clients.commands.progress import Watcher
    from clients.commands.reports import account

    with _client(url, store, working=True) as client:
        found = client.job(job)
        with Watcher() as watcher:
            last = watcher.watch(client, found, f"{found.dataset} {found.split} {found.lang}")
    account(last, as_json=as_json)
    raise typer.Exit(Outcome(jobs=[last]).exit_code())


@contextmanager
def _client(url: str | None, store: str | None, *, working: bool = False) -> Iterator[Client]:
    """The store or service that is named, else the running service, else a `backfill`'s store."""
    from clients.client.calls import URL
    from clients.client.failures import ServiceUnreachableError
    from syntax.errors import SpecError

    if store and "://" not in store and not Path(store).expanduser().is_dir():
        raise SpecError(f"there is no store {store}; name the one that the backfill wrote to")
    address = url or (None if store else os.environ.get("PARSEBANK_URL"))
    default = Path(os.environ.get("PARSEBANK_STORE", _STORE))
    if not (address or store or (default.is_dir() and not _is_listening(URL))):
        address = URL
    settings: dict[str, Any] = {} if working else {"job_workers": 0}
    try:
        with connect(address, store, **settings) as client:
            yield client
    except ServiceUnreachableError as error:
        if url:
            raise
        raise ServiceUnreachableError(
            f"{error.message}. A `parsebank backfill` without --url keeps its jobs in its store: "
            f"look there with --store ({_STORE}, unless you named another)"
        ) from error


def _is_listening(url: str) -> bool:
    import socket
    from urllib.parse import urlsplit

    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname, place.port), timeout=1).close()
    except OSError:
        return False
    return True
