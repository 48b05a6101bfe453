"""What a worker process of the cluster keeps from task to task: store, parsers, tokenizers."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from typing import Any, Final

from service.jobs.engines.dask.beacon import read_beacon
from service.jobs.engines.dask.messages import Ticket, own_version
from service.jobs.tools import Toolbox, load_kernels, shard_store
from service.settings import Settings, read_settings
from syntax.errors import SpecError
from syntax.strict_json import parse_json

_OWN_CHOICE: Final = ("store", "models_dir", "device")
"""Settings that a worker's environment may give, where its machine differs from the service's."""


def toolbox_for(ticket: Ticket) -> Toolbox:
    """The tools of this process; they are made for its first task.

    Raises:
        SpecError: Another release of Parsebank is installed here, or the store is another one.
        StoreError: The store cannot be read.
    """
    if ticket.version != own_version():
        raise SpecError(
            f"{socket.gethostname()} has parsebank {own_version()}, the service {ticket.version}; "
            "install the same release everywhere"
        )
    return _toolbox(ticket.settings, ticket.store_id)


@lru_cache(maxsize=1)
def _toolbox(content: str, store_id: str) -> Toolbox:
    # Tasks of others share the process: no more than what is needed, and nothing that is set.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    settings = worker_settings(parse_json(content))
    _check_store(settings, store_id)
    load_kernels()
    return Toolbox(settings, shard_store(settings.store))


def worker_settings(told: dict[str, Any]) -> Settings:
    """Settings of this machine: what the service told, unless the environment here differs."""
    set_here = {name for name in _OWN_CHOICE if f"PARSEBANK_{name.upper()}" in os.environ}
    return read_settings(**{name: told[name] for name in told.keys() - set_here})


def _check_store(settings: Settings, store_id: str) -> None:
    """Refuse a folder of the same name that is not the service's: its rows would be lost."""
    found = read_beacon(settings.store)
    if found != store_id:
        raise SpecError(
            f"{socket.gethostname()} does not see the service's store at {settings.store} "
            f"({'nothing is there' if found is None else 'another store is there'}): mount the "
            "shared folder there, set PARSEBANK_STORE on the worker, or use s3://"
        )
