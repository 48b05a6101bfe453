"""What the coordinator and a task on the cluster tell each other.

A task speaks through the scheduler's event log, in messages that msgpack can carry: plain JSON.
The coordinator answers by calling `service.jobs.engines.dask.inbox.deliver` on the task's worker.
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
"""Asks for its shard; lives; has texts in hand; is about to commit; has committed; has not."""

GIVEN = (
    "store",
    "models_dir",
    "device",
    "offline",
    "max_chars_per_text",
    "max_words_per_sentence",
)
"""Settings of the service that a task goes by."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """All that a task carries through the scheduler.

    Attributes:
        run: Name of this run of a shard; no other has it.
        topic: Where its messages go.
        settings: Those of `GIVEN`, as JSON.
        store_id: What the store's beacon says.
        lease_seconds: Without a sign of life for so long, it counts as dead.
        text_seconds: A step that takes longer ends the worker process.
        version: Of the service's Parsebank.
    """

    run: str
    topic: str
    settings: str
    store_id: str
    lease_seconds: float
    text_seconds: float
    version: str


@dataclass(frozen=True, slots=True)
class Order:
    """The answer to `begin`.

    Attributes:
        shard: Which shard to run.
        staged: Its lines.
        suspects, doubtful: See `service.jobs.shard.Signals`.
    """

    shard: Shard
    staged: StagedShard
    suspects: frozenset[str]
    doubtful: frozenset[str]


Answer = Order | Literal["go", "stop"]
"""A shard; leave to go on; or the end of the run."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a task says.

    Attributes:
        run: Which run.
        what: See `What`.
        worker: Address of its worker.
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
