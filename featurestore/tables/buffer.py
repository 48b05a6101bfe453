"""Group commit: many small writes share one commit, made by rows or by age."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, Generic, Protocol, TypeVar

import pyarrow as pa

from syntax.errors import StoreError

_LOG: Final = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 1.0
_FULL: Final = 40
"""Commits' worth of records that may wait, unless a buffer has a ``room`` of its own."""


class Keyed(Protocol):
    """A record with a key; of two with one key, the later is kept."""

    @property
    def key(self) -> str: ...


R = TypeVar("R", bound=Keyed)


class WriteBuffer(Generic[R]):
    """Collects records and commits them in groups from a background thread.

    A record can be read from the moment `put` returns, and survives the death of the process from
    the moment its commit returns; ``durable`` waits for that. A failed commit is reported to all
    who wait for it, and its records stay and are tried again.

    Args:
        rows: Records that make a commit due at once.
        seconds: Age of the oldest record that makes a commit due.
        weigh: Share of the ``room`` that a record takes; 1 by default.
        room: Limit of what may wait. `put` waits for room, `offer` refuses.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[R]], object],
        rows: int,
        seconds: float,
        kind: str = "parses",
        weigh: Callable[[R], int] = lambda _: 1,
        room: int | None = None,
    ) -> None:
        self._commit = commit
        self._rows = rows
        self._seconds = seconds
        self._kind = kind
        self._weigh = weigh
        self._room = _FULL * rows if room is None else room
        self._weight = 0
        self._waiting: dict[str, R] = {}
        self._leaving: dict[str, R] = {}
        self._next_round: Future[None] = Future()
        self._this_round: Future[None] = Future()
        self._due_at = 0.0
        self._not_before = 0.0
        self._urgent = False
        self._closed = False
        self._error: Exception | None = None
        self._lost: Exception | None = None
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    @property
    def failure(self) -> Exception | None:
        """Error of the last commit; ``None`` as soon as one has succeeded again."""
        return self._error

    def get_many(self, keys: Sequence[str]) -> dict[str, R]:
        with self._changed:
            if not self._waiting and not self._leaving:
                return {}
            buffered = {**self._leaving, **self._waiting}
        return {key: buffered[key] for key in keys if key in buffered}

    def put(self, record: R, durable: bool = False) -> None:
        with self._changed:
            # Hold the caller back while the buffer is full and commits go through.
            self._changed.wait_for(lambda: self._closed or not self._is_full() or self._error)
            if self._closed:
                raise StoreError("the store is closed; open it again to write")
            if self._is_full():
                raise StoreError(
                    f"{len(self._waiting)} {self._kind} wait to be written and commits fail: "
                    f"{self._error}"
                )
            round_ = self._add(record)
        if durable:
            round_.result()

    def offer(self, record: R) -> bool:
        """Buffer a record if there is room; ``True`` if it was taken. Never waits for a commit."""
        with self._changed:
            if self._closed or self._is_full():
                return False
            self._add(record)
            return True

    def flush(self) -> None:
        with self._changed:
            leaving = self._this_round if self._leaving else None
            waiting = self._next_round if self._waiting else None
            self._urgent = waiting is not None
            self._changed.notify_all()
        for round_ in (leaving, waiting):
            if round_ is not None:
                round_.result()

    def close(self) -> None:
        """Commit what is buffered and end the thread; a second call does nothing."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._closed = True
            self._changed.notify_all()
        if thread is None:
            return
        atexit.unregister(self.close)
        thread.join()
        if self._lost is not None:
            raise self._lost

    def _is_full(self) -> bool:
        return self._weight >= self._room

    def _add(self, record: R) -> Future[None]:
        if record.key in self._leaving:
            return self._this_round
        if not self._waiting:
            self._due_at = time.monotonic() + self._seconds
        if record.key not in self._waiting:
            self._weight += self._weigh(record)
        self._waiting[record.key] = record
        if self._thread is None:
            # Arrow imports pandas, where it is installed, at its first array; an exit is too late.
            pa.array([""])
            self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
            self._thread.start()
            # A daemon thread dies with the interpreter, so an ordinary exit has to flush.
            atexit.register(self.close)
        if len(self._waiting) in (1, self._rows):
            # Only these change when a commit is due; waking the thread costs more than the rest.
            self._changed.notify_all()
        return self._next_round

    def _run(self) -> None:
        while self._take():
            try:
                self._commit(list(self._leaving.values()))
            except Exception as error:
                self._fail(error)
            else:
                self._succeed()

    def _take(self) -> bool:
        with self._changed:
            while (wait := self._seconds_until_due()) != 0.0:
                if self._closed:
                    return False
                self._changed.wait(wait)
            self._leaving, self._waiting, self._weight = self._waiting, {}, 0
            self._this_round, self._next_round = self._next_round, Future()
            self._urgent = False
            return True

    def _seconds_until_due(self) -> float | None:
        if not self._waiting:
            return None
        if self._closed or self._urgent:
            return 0.0
        due_at = 0.0 if len(self._waiting) >= self._rows else self._due_at
        return max(0.0, max(due_at, self._not_before) - time.monotonic())

    def _succeed(self) -> None:
        with self._changed:
            self._leaving = {}
            failed, self._error = self._error is not None, None
            round_ = self._this_round
            self._changed.notify_all()
        if failed:
            _LOG.warning("%s are committed again", self._kind)
        round_.set_result(None)

    def _fail(self, error: Exception) -> None:
        """Take the records back, or give them up if the store closes; notify waiting callers."""
        with self._changed:
            if self._closed:
                self._lost = error
            else:
                self._waiting = {**self._leaving, **self._waiting}
                self._weight = sum(map(self._weigh, self._waiting.values()))
                self._not_before = time.monotonic() + _RETRY_SECONDS
            is_first = self._error is None
            count, self._leaving, self._error = len(self._leaving), {}, error
            round_ = self._this_round
            self._changed.notify_all()
        # It is tried again every second: say it once, and when a commit has succeeded again.
        tell = _LOG.warning if is_first else _LOG.debug
        tell("a group commit of %d %s failed: %s", count, self._kind, error)
        round_.set_exception(error)
