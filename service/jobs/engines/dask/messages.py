"""The messages between the coordinator and a task on the cluster.

A task speaks through the scheduler's event log, in messages that msgpack can carry: plain JSON.
The coordinator answers by calling `service.jobs.engines.dask.answers.deliver` on the task's worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from service.jobs.records import Shard
from service.jobs.staging import StagedShard
from service.settings import Settings

What = Literal["begin", "sign", "watch", "announce", "done", "failed", "stopped"]
"""Asks for its shard; heartbeat; texts in flight; before commits; committed; failed; stopped."""

GIVEN = (
    "store",
    "models_dir",
    "device",
    "offline",
    "max_chars_per_text",
    "max_words_per_sentence",
)
"""Settings of the service that a task uses."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as it is submitted to the scheduler.

    Attributes:
        run: Unique name of this run of a shard.
        settings: The settings of `GIVEN`, as JSON.
        store_id: Id of the service's store.
        lease_seconds: Silence after which the task counts as dead.
        text_seconds: Longest step; a longer one ends the worker process.
        version: Release of Parsebank of the service.
    """

    run: str
    topic: str
    settings: str
    store_id: str
    lease_seconds: float
    text_seconds: float
    version: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """The answer to `begin`.

    Attributes:
        staged: The lines of the shard.
        fatal_keys, isolated_keys: See `service.jobs.shard.Signals`.
    """

    shard: Shard
    staged: StagedShard
    fatal_keys: frozenset[str]
    isolated_keys: frozenset[str]


Answer = Assignment | Literal["go", "stop"]
"""A shard; permission to go on; or the end of the run."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a task.

    Attributes:
        worker: Address of the task's worker.
        facts: Further content, by kind of message.
    """

    run: str
    what: What
    worker: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Message:
        """The inverse of `to_json`."""
        return cls(**content)


def settings_json(settings: Settings) -> str:
    """The part of the settings that tasks need; paths are absolute."""
    store = settings.store
    if settings.is_local_store:
        store = str(Path(store).expanduser().absolute())
    models = None if settings.models_dir is None else settings.models_dir.absolute()
    told = settings.model_copy(update={"store": store, "models_dir": models})
    return told.model_dump_json(include=set(GIVEN))


def own_version() -> str:
    """Version of the Parsebank in this process."""
    return version("parsebank")
