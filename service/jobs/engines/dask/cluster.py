"""The connection to a scheduler: tasks go out, news of them come in."""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self

from service.jobs.engines.dask.inbox import deliver
from service.jobs.engines.dask.messages import Answer, Message, Ticket
from service.jobs.engines.dask.task import run_task

if TYPE_CHECKING:
    from distributed import Future

CONNECT_SECONDS: Final = 10.0
"""How long a scheduler may take to answer."""

_POSTMEN: Final = 4
"""Answers that are under way at once: a worker that is gone must not keep others waiting."""


class ClusterLostError(Exception):
    """The scheduler does not answer, or is another one than before; its tasks are gone."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has ended for the scheduler.

    Attributes:
        run: Which run.
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
        self._postmen = ThreadPoolExecutor(_POSTMEN, thread_name_prefix="answers")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._postmen.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close(timeout=CONNECT_SECONDS)

    def check(self) -> None:
        """Make sure that the connection stands.

        Raises:
            ClusterLostError: It does not.
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

    def submit(self, ticket: Ticket) -> Future[None]:
        """Queue a task; whoever drops the result withdraws the task."""
        with self._answering():
            future: Future[None] = self._client.submit(
                run_task, ticket, key=f"parsebank-{ticket.run}", pure=False
            )
        future.add_done_callback(lambda ended: self._news.put(_ended(ticket.run, ended)))
        return future

    def answer(self, worker: str, run: str, answer: Answer) -> None:
        """Send an answer to a run; one that does not arrive is missed by its worker."""
        self._postmen.submit(
            self._client.run, deliver, run, answer, workers=[worker], on_error="ignore"
        )

    def restart(self, worker: str) -> None:
        """End a worker that is stuck; its nanny starts it again, and its tasks go elsewhere."""
        self._postmen.submit(
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
