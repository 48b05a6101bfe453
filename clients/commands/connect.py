"""Which service a command talks to."""

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
    """Settings of a service in this process: those that were given.

    A scheduler alone says which engine is meant.
    """
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
    """Settings of a service in this process whose jobs no other process sees.

    The tasks of an array job have the store in common and nothing else: their jobs are in a
    temporary folder of their own machine.
    """
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
    """Address of the service that is meant, ``None`` for one in this process."""
    if url and store:
        raise typer.BadParameter("give --url or --store, not both")
    return url or (None if store else os.environ.get("PARSEBANK_URL"))


def connect(
    url: str | None,
    store: str | None,
    names: Mapping[str, Iterable[Any]] = MappingProxyType({}),
    **settings: Any,
) -> Client:
    """A client of the service at ``url``, or of one in this process on ``store``.

    Without either, the address is that in ``PARSEBANK_URL``; without that too, the service runs
    in this process on its own default store.

    A running service is shown the key in ``PARSEBANK_API_KEY`` (or ``--api-key``), if there is one.

    Args:
        url: Address of a running service.
        store: Folder of a store.
        names: What requests will name, which a service in this process checks before it starts:
            ``parsers`` (pairs of a name and a language), ``tokenizers``, ``policies``.
        **settings: Further settings, for a service in this process.
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

    return Client.embedded(store, **settings)


def one_parser(lang: str | None, parser: str | None, **further: str | None) -> dict[str, list[Any]]:
    """What `connect` checks of a request with one parser; options that were not given are none.

    Args:
        lang: Its language.
        parser: Its name.
        **further: One of ``tokenizers`` or of ``policies``.
    """
    named = {kind: [name] for kind, name in further.items() if name is not None}
    return {"parsers": [(parser, lang)], **named}
