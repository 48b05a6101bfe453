"""The task that runs one shard on a worker of the cluster, and what that worker keeps.

A task brings its shard along. Its messages go through the scheduler's event log, as plain JSON.
Some ask, and wait until the coordinator calls `acknowledge` on the worker. A task that must not go
on is cancelled, and finds that in its worker's records, as it does when the coordinator is gone.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, Self

from featurestore.tables.location import Location
from service.jobs.records import Counts, Shard, error_json
from service.jobs.shard import run_shard
from service.jobs.staging import StagedShard
from service.jobs.tools import ToolCache, load_kernels, shard_store
from service.jobs.worker import StepTimer, is_permanent
from service.settings import Settings, read_settings
from syntax.errors import SpecError
from syntax.strict_json import parse_json

_TOLD: Final = {
    "store",
    "models_dir",
    "device",
    "offline",
    "max_chars_per_text",
    "max_words_per_sentence",
}
"""Settings of the service that a task uses."""

_OWN_CHOICE: Final = ("store", "models_dir", "device")
"""Settings that the environment of a worker may override."""

_STORE_ID: Final = "store-id"
"""File of a store's id, which tells a shared store from another folder with the same path."""


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """Common facts of the tasks of one coordinator.

    Attributes:
        topic: Topic of their messages.
        settings: The service's settings that they use, as JSON; paths are absolute.
        store_id: Id of the service's store.
        lease_seconds: Silence after which a task counts as dead.
        text_seconds: Longest step; a longer one ends the worker process.
        version: Release of Parsebank of the service.
    """

    topic: str
    settings: str
    store_id: str
    lease_seconds: float
    text_seconds: float
    version: str

    @classmethod
    def of(cls, settings: Settings, topic: str) -> ServiceFacts:
        store = settings.store
        if settings.is_local_store:
            store = str(Path(store).expanduser().absolute())
        models = None if settings.models_dir is None else settings.models_dir.absolute()
        told = settings.model_copy(update={"store": store, "models_dir": models})
        return cls(
            topic=topic,
            settings=told.model_dump_json(include=_TOLD),
            store_id=ensure_store_id(settings.store),
            lease_seconds=settings.job_lease_seconds,
            text_seconds=settings.job_text_seconds,
            version=version("parsebank"),
        )


def ensure_store_id(store: str) -> str:
    """The id of a store; a new one is written if it has none."""
    found = _read_store_id(store)
    if found is None:
        Location.of(store).write(_STORE_ID, secrets.token_hex(16).encode())
        found = _read_store_id(store)  # if two processes write one, the later write wins for both
        assert found is not None
    return found


def _read_store_id(store: str) -> str | None:
    content = Location.of(store).read(_STORE_ID)
    return None if content is None else content.decode()


What = Literal["begin", "alive", "watch", "announce", "over"]
"""Asks to begin; heartbeat; texts in flight; asks to commit; has ended, with the outcome."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a task.

    Attributes:
        run: Key of the task.
        worker: Address of its worker.
        asks: The task waits until it is acknowledged.
        facts: Of `watch`, the ``keys``; of `announce`, the ``plan``; of `over`, the ``counts``, or
            the ``error`` and whether it is ``permanent``, or nothing if the task was stopped.
    """

    run: str
    what: What
    worker: str
    asks: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Input of a task; the keys are those of `service.jobs.shard.Signals`."""

    shard: Shard
    staged: StagedShard
    fatal_keys: frozenset[str]
    isolated_keys: frozenset[str]


_HEARTBEATS_PER_LEASE: Final = 6

_LOOK_SECONDS: Final = 0.2
"""Seconds between two checks whether a waiting task is still wanted."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Parsing holds the interpreter's lock, so several shards in one process are slower."""

_ACKNOWLEDGED: Final[dict[str, threading.Semaphore]] = {}


def acknowledge(run: str) -> None:
    """Let a task that asked go on. The coordinator calls it on the task's worker."""
    if run in _ACKNOWLEDGED:
        _ACKNOWLEDGED[run].release()


class UnwantedError(Exception):
    """The coordinator, the scheduler or this worker is ending, or the task was cancelled."""


def run_task(facts: ServiceFacts, assignment: Assignment) -> None:
    """Run a shard, and say how it ended.

    The outcome is a message, not the task's result: Dask would run the task again if the worker
    died before the result was fetched.
    """
    with (
        _ONE_AT_A_TIME,
        StepTimer(facts.text_seconds) as timer,
        TaskSignals(facts, assignment, timer) as signals,
    ):
        signals.say("over", **_outcome(facts, assignment, signals))


def _outcome(facts: ServiceFacts, assignment: Assignment, signals: TaskSignals) -> dict[str, Any]:
    shard = assignment.shard
    try:
        signals.ask("begin")
        tools = tools_for(facts).tools(shard.request)
        counts = run_shard(shard, assignment.staged.lines(), tools, signals)
    except UnwantedError:
        return {}
    except Exception as error:  # recorded with the shard, which fails with it at the last try
        return {"error": error_json(error), "permanent": is_permanent(error)}
    return {"counts": counts.to_json()}


class TaskSignals:
    """The `Signals` of a shard on the cluster; a context manager that sends heartbeats.

    The timer ends the process if a step hangs; its nanny restarts it.
    """

    def __init__(self, facts: ServiceFacts, assignment: Assignment, timer: StepTimer) -> None:
        from distributed import get_worker

        self.fatal_keys = assignment.fatal_keys
        self.isolated_keys = assignment.isolated_keys
        self.slow_keys: frozenset[str] = frozenset()  # a cluster's tasks leave no marks
        self._is_first_try = assignment.shard.tries == 1
        self._facts = facts
        self._timer = timer
        self._worker = get_worker()
        self._run = str(self._worker.get_current_task())
        self._acknowledged = threading.Semaphore(0)
        self._over = threading.Event()

    def __enter__(self) -> Self:
        _ACKNOWLEDGED[self._run] = self._acknowledged
        # In a thread, because steps may take long.
        threading.Thread(target=self._send_heartbeats, name="heartbeats", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        del _ACKNOWLEDGED[self._run]

    def say(self, what: What, *, asks: bool = False, **facts: Any) -> None:
        message = Message(self._run, what, self._worker.address, asks, facts)
        self._worker.log_event(self._facts.topic, asdict(message))

    def ask(self, what: What, **facts: Any) -> None:
        """Send a message, and wait until it is acknowledged.

        Raises `UnwantedError` if the task was cancelled, or no answer came for a lease.
        """
        wait = self._facts.lease_seconds
        self._timer.restart(waiting=wait)
        self.say(what, asks=True, **facts)
        deadline = time.monotonic() + wait
        while not self._acknowledged.acquire(timeout=_LOOK_SECONDS):
            self._check_wanted()
            if time.monotonic() > deadline:
                raise UnwantedError
        self._timer.restart()

    def beat(self) -> None:
        self._timer.restart()
        self._check_wanted()

    def watch(self, *keys: str, characters: int = 0) -> None:
        """Record the texts in flight.

        After a death on the shard, the record is confirmed before the texts are parsed; in the
        first try, the message is sent without waiting.
        """
        if self._is_first_try or not keys:
            self.say("watch", keys=keys)
        else:
            self.ask("watch", keys=keys)
        self._timer.restart(characters)

    def announce(self, plan: Counts) -> None:
        self.ask("announce", plan=plan.to_json())

    def _check_wanted(self) -> None:
        state = self._worker.state.tasks.get(self._run)
        is_open = self._worker.status.name in ("running", "paused")
        if not is_open or state is None or state.state != "executing":
            raise UnwantedError

    def _send_heartbeats(self) -> None:
        while not self._over.wait(self._facts.lease_seconds / _HEARTBEATS_PER_LEASE):
            self.say("alive")


def tools_for(facts: ServiceFacts) -> ToolCache:
    """The tools of this process, created for its first task.

    Refuses another release of Parsebank than the service's, and another store.
    """
    ours = version("parsebank")
    if facts.version != ours:
        raise SpecError(
            f"{socket.gethostname()} has parsebank {ours}, the service {facts.version}; "
            "install the same release everywhere"
        )
    return _tools(facts.settings, facts.store_id)


@lru_cache(maxsize=1)
def _tools(content: str, store_id: str) -> ToolCache:
    # Other programs' tasks share the process: set only what is needed and not yet set.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    settings = worker_settings(parse_json(content))
    found = _read_store_id(settings.store)
    if found != store_id:  # rows that are written there would be lost
        raise SpecError(
            f"{socket.gethostname()} does not see the service's store at {settings.store} "
            f"({'nothing is there' if found is None else 'another store is there'}): mount the "
            "shared folder there, set PARSEBANK_STORE on the worker, or use s3://"
        )
    load_kernels()
    return ToolCache(settings, shard_store(settings.store))


def worker_settings(told: dict[str, Any]) -> Settings:
    """Settings on this machine: the service's, unless the environment overrides them."""
    set_here = {name for name in _OWN_CHOICE if f"PARSEBANK_{name.upper()}" in os.environ}
    return read_settings(**{name: told[name] for name in told.keys() - set_here})
