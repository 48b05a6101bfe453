"""Run an iterator ahead in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_END: Final = object()


class Prefetched(Generic[T]):
    """An iterator that prepares up to ``depth`` items ahead; errors arrive in their place.

    Args:
        source: The iterator; it is advanced from the thread only.
        depth: Items that wait, at most; one more is being made.
    """

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self._source = source
        self._queue: queue.Queue[object] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item = self._queue.get()
        if item is _END:
            self._queue.put(_END)
            raise StopIteration
        if isinstance(item, _Failure):
            self._queue.put(_END)
            raise item.error
        return item  # type: ignore[return-value]

    def close(self) -> None:
        """End the thread; what it prepared is dropped."""
        self._stopped.set()
        while self._thread.is_alive():
            self._drain()
            self._thread.join(0.01)

    def _run(self) -> None:
        try:
            for item in self._source:
                self._queue.put(item)
                if self._stopped.is_set():
                    return
        except BaseException as error:
            self._queue.put(_Failure(error))
        else:
            self._queue.put(_END)

    def _drain(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
