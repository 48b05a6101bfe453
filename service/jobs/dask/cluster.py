"""The connection to a scheduler: it submits tasks and passes on what is heard of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self

from service.jobs.dask.task import Assignment, Message, ServiceFacts, acknowledge, run_task
from service.jobs.worker import RunInterruptedError, TaskError
from service.settings import Settings
from syntax.errors import WorkerDiedError

if TYPE_CHECKING:
    from distributed import Future

CONNECT_SECONDS: Final = 10.0

PER_WORKER: Final = 2
"""Shards for each worker: one runs, one waits."""

AT_LEAST: Final = 4
"""Fewest shards on the cluster: waiting tasks make an adaptive cluster grow."""


class ClusterLostError(RunInterruptedError):
    """The scheduler does not answer, or is another one than before; its tasks are gone."""


News = Message | Exception
"""A message of a task, or why there will be no further one."""


class Cluster:
    """A scheduler and its workers; a context manager, at whose end the tasks are withdrawn.

    ``facts`` tell each task of the service. A `ClusterLostError` means that the scheduler does not
    answer.
    """

    def __init__(self, settings: Settings) -> None:
        from distributed import Client

        self._address = settings.dask_scheduler
        self.facts = ServiceFacts.of(settings, topic=f"parsebank-{secrets.token_hex(8)}")
        self._inboxes: dict[str, SimpleQueue[News]] = {}
        with self._answering():
            self._client: Any = Client(
                self._address, timeout=CONNECT_SECONDS, set_as_default=False, name="parsebank"
            )
        self._client.subscribe_topic(self.facts.topic, self._hear)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, TimeoutError):
            self._client.close(timeout=CONNECT_SECONDS)

    def room(self) -> int:
        """Number of shards that may be on the cluster now; raises `ClusterLostError`."""
        with self._answering():
            if self._client.status != "running":
                raise ConnectionError(self._client.status)
            threads = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=CONNECT_SECONDS
            )
        return max(AT_LEAST, PER_WORKER * len(threads))

    @contextmanager
    def task(
        self, assignment: Assignment, inbox: SimpleQueue[News]
    ) -> Iterator[Callable[[], None]]:
        """A task that runs a shard, from now until the end of the block.

        The inbox gets its messages. The block's value is a function that cancels it at its next
        step.
        """
        run = f"parsebank-{secrets.token_hex(16)}"
        self._inboxes[run] = inbox
        with self._answering():
            future = self._client.submit(run_task, self.facts, assignment, key=run, pure=False)
        del assignment  # the cluster has its lines now
        future.add_done_callback(lambda ended: inbox.put(_end_of(ended)))
        try:
            yield future.release
        finally:
            future.release()
            del self._inboxes[run]

    def acknowledge(self, message: Message) -> None:
        """Let the task that sent a message go on; if this does not arrive, it stops."""
        self._send(self._client.run, acknowledge, message.run, workers=[message.worker])

    def restart(self, worker: str) -> None:
        """Restart a stuck worker; the scheduler moves its tasks to other workers."""
        self._send(self._client.restart_workers, [worker], CONNECT_SECONDS)

    def _send(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Make a call without waiting for it: a worker that hangs never answers."""

        async def send() -> None:
            with suppress(Exception):  # a dead worker is found by its silence
                await call(*arguments, **options)

        self._client.loop.add_callback(send)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        message = Message(**event[1])
        inbox = self._inboxes.get(message.run)
        if inbox is not None:  # otherwise the task was cancelled
            inbox.put(message)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ClusterLostError(
                f"the scheduler {self._address} does not answer ({error or type(error).__name__})"
            ) from error


def _end_of(future: Future[None]) -> Exception:
    """A task's end as the scheduler knows it, which counts if the task did not say so itself."""
    status = str(future.status)
    if status in ("cancelled", "lost"):
        return ClusterLostError("the scheduler was started anew, or has lost the tasks")
    error = future.exception() if status == "error" else None
    if error is None or type(error).__name__ == "KilledWorker":
        return WorkerDiedError("the worker died")
    hint = "; is parsebank installed on every worker?" if isinstance(error, ImportError) else ""
    reason = f"the task could not be run ({type(error).__name__}: {error}){hint}"
    return TaskError("worker", reason)
