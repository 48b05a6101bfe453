"""Connection of a command to its service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from clients.client.client import Client

LOADING_SECONDS: Final = 300.0
"""Deadline of requests to a service in this process, which loads its model first."""

UrlOption = Annotated[
    str | None,
    typer.Option("--url", help="Address of a running service (or set PARSEBANK_URL)."),
]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Run without a service, on the store in this folder."),
]

EngineOption = Annotated[
    str | None,
    typer.Option(help="With --store: what runs the shards, `local` (this machine) or `dask`."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(help="Scheduler of the engine `dask`, as tcp://host:8786."),
]


def engine_settings(
    engine: str | None, scheduler: str | None, address: str | None
) -> dict[str, str]:
    """Given settings; a scheduler alone implies its engine."""
    given = {"engine": engine or (scheduler and "dask"), "dask_scheduler": scheduler}
    settings = {name: value for name, value in given.items() if value is not None}
    if address and settings:
        raise typer.BadParameter(
            f"the service at {address} was started with its own engine; leave out --engine and "
            "--scheduler, or work on a --store"
        )
    return settings


@contextmanager
def own_jobs(shard: str | None, address: str | None) -> Iterator[dict[str, str]]:
    """Keep the jobs of an array job's task in a temporary folder of its machine."""
    from tempfile import TemporaryDirectory

    if shard is None:
        yield {}
        return
    if address:
        raise typer.BadParameter(
            f"--shard runs without a service, and {address} is one; give the --store that all "
            "shards share"
        )
    with TemporaryDirectory(prefix="parsebank-") as folder:
        yield {"state_dir": folder, "jobs_url": f"sqlite:///{folder}/jobs.sqlite"}


def service_address(url: str | None, store: str | None) -> str | None:
    if url and store:
        raise typer.BadParameter("give --url or --store, not both")
    return url or (None if store else os.environ.get("PARSEBANK_URL"))


def connect(
    url: str | None,
    store: str | None,
    names: Mapping[str, Iterable[Any]] = MappingProxyType({}),
    *,
    ahead: str | None = None,
    **settings: Any,
) -> Client:
    """Client of the service at ``url``, or of one in this process on ``store``.

    Without either, the address is that in ``PARSEBANK_URL``; without that too, the service runs
    in this process on its default store, with the settings, after a check of the names:
    ``parsers`` (pairs of a name and a language), ``tokenizers``, ``policies``. Its first ``parser``
    or job ``worker`` may start ``ahead``, while it is imported. A running service gets the key in
    ``PARSEBANK_API_KEY``.
    """
    address = service_address(url, store)
    if address:
        from clients.client.calls import API_KEY
        from clients.client.client import Client

        return Client(address, api_key=os.environ.get(API_KEY))
    from clients.client.embedded import check_names

    # A command that gave up while its model loads would load it anew the next time.
    if "PARSEBANK_REQUEST_DEADLINE_SECONDS" not in os.environ:
        settings.setdefault("request_deadline_seconds", LOADING_SECONDS)
    check_names(names, store=store, **settings)
    from clients.client.client import Client

    return Client.embedded(store, ahead=ahead, **settings)


def one_parser(lang: str | None, parser: str | None, **further: str | None) -> dict[str, list[Any]]:
    """Names that `connect` checks; ``further`` is one of ``tokenizers`` or ``policies``."""
    named = {kind: [name] for kind, name in further.items() if name is not None}
    return {"parsers": [(parser, lang)], **named}
