"""Which service a command talks to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from clients.client import Client

UrlOption = Annotated[
    str | None,
    typer.Option("--url", help="Address of a running service (or set PARSEBANK_URL)."),
]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Work in this process, on the store in this folder."),
]


def connect(url: str | None, store: str | None, **settings: Any) -> Client:
    """A client of the service at ``url``, or of one in this process on ``store``.

    Without either, the address is that in ``PARSEBANK_URL``; without that too, the service runs
    in this process on its own default store.

    A running service is shown the key in ``PARSEBANK_API_KEY`` (or ``--api-key``), if there is one.

    Args:
        url: Address of a running service.
        store: Folder of a store.
        **settings: Further settings, for a service in this process.

    Raises:
        BadParameter: Both were given.
    """
    from clients.client import Client
    from clients.session import API_KEY

    if url and store:
        raise typer.BadParameter("give --url or --store, not both")
    address = url or (None if store else os.environ.get("PARSEBANK_URL"))
    if address:
        return Client(address, api_key=os.environ.get(API_KEY))
    # Of a service in this process, the user wants answers and warnings only.
    level = os.environ.get("PARSEBANK_LOG_LEVEL", "warning")
    return Client.embedded(store, log_level=level, **settings)
