"""The channel from a task on the cluster to the coordinator."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from service.jobs.engines.dask.messages import Answer, Message, TaskSpec, What

if TYPE_CHECKING:
    from distributed import Worker

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
