"""The messages between the coordinator and a task on the cluster, and their way.

A task speaks through the scheduler's event log, in messages that msgpack can carry: plain JSON.
The coordinator answers by calling `deliver` on the task's worker.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Literal

from featurestore.tables.location import Location
from service.jobs.records import Shard
from service.jobs.staging import StagedShard
from service.settings import Settings

if TYPE_CHECKING:
    from distributed import Worker

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


_NAME: Final = "beacon"


def ensure_store_id(store: str) -> str:
    """The id of a store; a new one is written if it has none.

    Raises:
        StoreError: The store can be neither read nor written.
    """
    found = read_store_id(store)
    if found is None:
        Location.of(store).write(_NAME, secrets.token_hex(16).encode())
        found = read_store_id(store)  # if two processes write one, the later write wins for both
        assert found is not None
    return found


def read_store_id(store: str) -> str | None:
    """The id of a store; ``None`` if it has none.

    Raises:
        StoreError: The store cannot be read.
    """
    content = Location.of(store).read(_NAME)
    return None if content is None else content.decode()


_QUEUES: Final[dict[str, SimpleQueue[Answer]]] = {}


def deliver(run: str, answer: Answer) -> bool:
    """Deliver an answer to a run; returns whether the run is here. Called by the coordinator."""
    answers = _QUEUES.get(run)
    if answers is not None:
        answers.put(answer)
    return answers is not None


@contextmanager
def answer_queue(run: str) -> Iterator[SimpleQueue[Answer]]:
    """The queue of the answers to a run."""
    answers = _QUEUES[run] = SimpleQueue()
    try:
        yield answers
    finally:
        del _QUEUES[run]


_HEARTBEATS_PER_LEASE: Final = 6

_LOOK_SECONDS: Final = 0.2
"""Seconds between two checks whether a waiting run is still wanted."""


class UnwantedError(Exception):
    """The coordinator, the scheduler or this worker is ending, or the job was cancelled."""


class TaskChannel:
    """The channel from a task to the coordinator.

    Args:
        spec: The task.
        worker: The dask worker.
        answers: Queue of the coordinator's answers.

    Attributes:
        max_wait: Most seconds that `ask` waits.
    """

    def __init__(self, spec: TaskSpec, worker: Worker, answers: SimpleQueue[Answer]) -> None:
        self._spec = spec
        self._worker = worker
        self._key = worker.get_current_task()
        self._answers = answers
        self.max_wait = spec.lease_seconds
        self._pause = spec.lease_seconds / _HEARTBEATS_PER_LEASE

    def say(self, what: What, **facts: Any) -> None:
        """Send a message without an answer."""
        message = Message(self._spec.run, what, self._worker.address, facts)
        self._worker.log_event(self._spec.topic, message.to_json())

    def ask(self, what: What, **facts: Any) -> Answer:
        """Send a message, and wait for the answer.

        Raises:
            UnwantedError: The answer is to stop, or none will come.
        """
        self.say(what, **facts)
        deadline = time.monotonic() + self.max_wait
        while time.monotonic() < deadline:
            try:
                return _unless_stop(self._answers.get(timeout=_LOOK_SECONDS))
            except Empty:
                self._check_wanted()
        raise UnwantedError

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Send heartbeats from a thread while the block runs, because steps may take long."""
        over = threading.Event()

        def send() -> None:
            self.say("sign")
            while not over.wait(self._pause):
                self.say("sign")

        threading.Thread(target=send, name="heartbeat", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def check(self) -> None:
        """Check that the run is still wanted.

        Raises:
            UnwantedError: The run must stop.
        """
        self._check_wanted()
        if not self._answers.empty():
            _unless_stop(self._answers.get())

    def _check_wanted(self) -> None:
        # A task whose client went away, or cancelled it, is told so by its worker's records only.
        state = self._worker.state.tasks.get(self._key)
        running = self._worker.status.name in ("running", "paused")
        if not running or state is None or state.state != "executing":
            raise UnwantedError


def _unless_stop(answer: Answer) -> Answer:
    if answer == "stop":
        raise UnwantedError
    return answer
