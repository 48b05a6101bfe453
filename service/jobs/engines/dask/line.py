"""The line from a task on the cluster to the coordinator."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from service.jobs.engines.dask.messages import Answer, Message, Ticket, What

if TYPE_CHECKING:
    from distributed import Worker

_SIGNS_PER_LEASE: Final = 6

_LOOK_SECONDS: Final = 0.2
"""Between two looks whether a run that waits for an answer is still wanted."""


class UnwantedError(Exception):
    """The coordinator, the scheduler or this worker is ending, or the job was cancelled."""


class Line:
    """The line from a task to the coordinator.

    Args:
        ticket: Of the task.
        worker: That it runs on.
        box: Where answers arrive.

    Attributes:
        patience: The most seconds for which `ask` waits.
    """

    def __init__(self, ticket: Ticket, worker: Worker, box: SimpleQueue[Answer]) -> None:
        self._ticket = ticket
        self._worker = worker
        self._key = worker.get_current_task()
        self._box = box
        self.patience = ticket.lease_seconds
        self._pause = ticket.lease_seconds / _SIGNS_PER_LEASE

    def say(self, what: What, **facts: Any) -> None:
        """Tell something; nothing comes back."""
        message = Message(self._ticket.run, what, self._worker.address, facts)
        self._worker.log_event(self._ticket.topic, message.to_json())

    def ask(self, what: What, **facts: Any) -> Answer:
        """Tell something, and wait for the answer.

        Raises:
            UnwantedError: The answer is to stop, or none will come.
        """
        self.say(what, **facts)
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            try:
                return _unless_stop(self._box.get(timeout=_LOOK_SECONDS))
            except Empty:
                self._check_wanted()
        raise UnwantedError

    @contextmanager
    def signs(self) -> Iterator[None]:
        """Give signs of life while this lasts, from a thread of its own: steps may take long."""
        over = threading.Event()

        def give() -> None:
            self.say("sign")
            while not over.wait(self._pause):
                self.say("sign")

        threading.Thread(target=give, name="signs of life", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def check(self) -> None:
        """Make sure that the run is still wanted.

        Raises:
            UnwantedError: The run shall end.
        """
        self._check_wanted()
        if not self._box.empty():
            _unless_stop(self._box.get())

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
