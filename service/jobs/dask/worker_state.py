"""State that a worker process of the cluster keeps between tasks: store, parsers, tokenizers."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from typing import Any, Final

from service.jobs.dask.channel import TaskSpec, own_version, read_store_id
from service.jobs.tools import Toolbox, load_kernels, shard_store
from service.settings import Settings, read_settings
from syntax.errors import SpecError
from syntax.strict_json import parse_json

_OWN_CHOICE: Final = ("store", "models_dir", "device")
"""Settings that the environment of a worker may override."""


def toolbox_for(spec: TaskSpec) -> Toolbox:
    """The tools of this process, created for its first task.

    Raises:
        SpecError: Another release of Parsebank is installed here, or the store is another one.
        StoreError: The store cannot be read.
    """
    if spec.version != own_version():
        raise SpecError(
            f"{socket.gethostname()} has parsebank {own_version()}, the service {spec.version}; "
            "install the same release everywhere"
        )
    return _toolbox(spec.settings, spec.store_id)


@lru_cache(maxsize=1)
def _toolbox(content: str, store_id: str) -> Toolbox:
    # Other programs' tasks share the process: set only what is needed and not yet set.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    settings = worker_settings(parse_json(content))
    _check_store(settings, store_id)
    load_kernels()
    return Toolbox(settings, shard_store(settings.store))


def worker_settings(told: dict[str, Any]) -> Settings:
    """Settings on this machine: the service's, unless the environment overrides them."""
    set_here = {name for name in _OWN_CHOICE if f"PARSEBANK_{name.upper()}" in os.environ}
    return read_settings(**{name: told[name] for name in told.keys() - set_here})


def _check_store(settings: Settings, store_id: str) -> None:
    """Refuse another store at the same path: rows written there would be lost."""
    found = read_store_id(settings.store)
    if found != store_id:
        raise SpecError(
            f"{socket.gethostname()} does not see the service's store at {settings.store} "
            f"({'nothing is there' if found is None else 'another store is there'}): mount the "
            "shared folder there, set PARSEBANK_STORE on the worker, or use s3://"
        )
