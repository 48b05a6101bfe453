"""Iterators that run ahead in a thread."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from syntax.errors import StoreError

if TYPE_CHECKING:
    from featurestore.stream.window import Window, WindowReader

T = TypeVar("T")

_END: Final = object()


class Prefetched(Generic[T]):
    """An iterator that prepares up to ``depth`` items ahead; errors arrive in their place.

    Its thread ends with it: the thread holds no reference to it, and so does not keep it. Only the
    thread advances the source. One item more than ``depth`` is being made.
    """

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self._queue: queue.Queue[object] = queue.Queue(depth)
        ended = threading.Event()
        self._end = weakref.finalize(self, _end, self._queue, ended)
        self._thread = threading.Thread(
            target=_run, args=(source, self._queue, ended), name="prefetch", daemon=True
        )
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
        """End the thread and wait for it; what it prepared is dropped."""
        self._end()
        self._thread.join()


def _run(source: Iterator[T], waiting: queue.Queue[object], ended: threading.Event) -> None:
    try:
        for item in source:
            waiting.put(item)
            if ended.is_set():
                return
    except BaseException as error:
        waiting.put(_Failure(error))
    else:
        waiting.put(_END)


def _end(waiting: queue.Queue[object], ended: threading.Event) -> None:
    """Release a thread that waits for room, now or later, so that it can end."""
    ended.set()
    with suppress(queue.Empty):
        while True:
            waiting.get_nowait()


def windows_ahead(
    reads: Iterator[tuple[T, NDArray[np.int64]]], reader: WindowReader
) -> Iterator[tuple[T, Window]]:
    """Examples read together, while a thread fetches the next files; its errors come at reading."""
    ended = threading.Event()
    upcoming = next(reads, None)
    try:
        while upcoming is not None:
            (item, examples), upcoming = upcoming, next(reads, None)
            window = reader.read(examples)
            if upcoming is not None:
                ahead = (reader, upcoming[1], ended)
                # No daemon: one that is in a library's code when the program ends takes it down.
                threading.Thread(target=_fetch, args=ahead, name="fetch ahead").start()
            yield item, window
            del window  # before the next one is read
    finally:
        ended.set()


def _fetch(reader: WindowReader, examples: NDArray[np.int64], ended: threading.Event) -> None:
    main = threading.main_thread()
    with suppress(StoreError):
        reader.fetch(examples, lambda: main.is_alive() and not ended.is_set())


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
