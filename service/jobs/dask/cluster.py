"""The connection to a scheduler: it submits tasks and receives their messages."""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self

from service.jobs.dask.channel import Answer, Message, TaskSpec, deliver
from service.jobs.dask.task import run_task

if TYPE_CHECKING:
    from distributed import Future

CONNECT_SECONDS: Final = 10.0
"""How long a scheduler may take to answer."""

_SENDERS: Final = 4
"""Answers sent in parallel, so that a dead worker does not delay the others."""


class ClusterLostError(Exception):
    """The scheduler does not answer, or is another one than before; its tasks are gone."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has ended for the scheduler.

    Attributes:
        status: ``finished``, ``error``, ``cancelled`` or ``lost``.
        error: Of a task with the status ``error``.
    """

    run: str
    status: str
    error: BaseException | None = None


News = Message | Ended


class Cluster:
    """A scheduler and its workers; a context manager, at whose end the tasks are withdrawn.

    Args:
        address: Of the scheduler, such as ``tcp://host:8786``.
        news: Where news of tasks are put.

    Raises:
        ClusterLostError: The scheduler does not answer.
    """

    def __init__(self, address: str, news: SimpleQueue[News]) -> None:
        from distributed import Client

        self.topic = f"parsebank-{secrets.token_hex(8)}"
        self._address = address
        self._news = news
        with self._answering():
            self._client: Any = Client(
                address, timeout=CONNECT_SECONDS, set_as_default=False, name="parsebank"
            )
        self._client.subscribe_topic(self.topic, self._hear)
        self._senders = ThreadPoolExecutor(_SENDERS, thread_name_prefix="answers")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._senders.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close(timeout=CONNECT_SECONDS)

    def check(self) -> None:
        """Check the connection.

        Raises:
            ClusterLostError: The scheduler is gone.
        """
        if self._client.status != "running":
            raise ClusterLostError(f"the scheduler {self._address} is gone")

    def workers(self) -> int:
        """Number of worker processes now.

        Raises:
            ClusterLostError: The scheduler does not answer.
        """
        with self._answering():
            threads = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=CONNECT_SECONDS
            )
        return len(threads)

    def submit(self, spec: TaskSpec) -> Future[None]:
        """Queue a task; dropping the returned future cancels it."""
        with self._answering():
            future: Future[None] = self._client.submit(
                run_task, spec, key=f"parsebank-{spec.run}", pure=False
            )
        future.add_done_callback(lambda ended: self._news.put(_ended(spec.run, ended)))
        return future

    def answer(self, worker: str, run: str, answer: Answer) -> None:
        """Send an answer to a run. If it does not arrive, the run times out and stops."""
        self._senders.submit(
            self._client.run, deliver, run, answer, workers=[worker], on_error="ignore"
        )

    def restart(self, worker: str) -> None:
        """Restart a stuck worker; the scheduler moves its tasks to other workers."""
        self._senders.submit(
            self._client.restart_workers, [worker], CONNECT_SECONDS, raise_for_error=False
        )

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        self._news.put(Message.from_json(event[1]))

    @contextlib.contextmanager
    def _answering(self) -> Any:
        try:
            yield
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ClusterLostError(
                f"the scheduler {self._address} does not answer ({error or type(error).__name__})"
            ) from error


def _ended(run: str, future: Future[None]) -> Ended:
    status = str(future.status)
    return Ended(run, status, future.exception() if status == "error" else None)
