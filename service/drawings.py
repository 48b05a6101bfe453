"""Pictures beside other requests: few at a time, and in a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from syntax.errors import DeadlineError, OverloadedError

MOST_WAITING: Final = 8
"""Drawings that wait or are under way; 429 beyond. One takes up to a third of a second."""

T = TypeVar("T")


class Drawings:
    """Draws one picture after the other; belongs to one event loop.

    Drawing is Python and keeps the interpreter busy: in the threads that all requests share, some
    clients that draw would hold up everybody's parses.

    Args:
        seconds: Longest time from a call to its picture.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, "drawing")
        self._waiting = 0

    async def run(self, draw: Callable[[], T]) -> T:
        """The result of a call, in its turn."""
        if self._waiting >= MOST_WAITING:
            raise OverloadedError(
                f"{self._waiting} drawings wait already; try again in a second", retry_after=1
            )
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.get_running_loop().run_in_executor(self._thread, draw)
        except TimeoutError:
            raise DeadlineError(
                f"the sentence was not drawn within {self._seconds:g} s; ask for fewer pictures"
            ) from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Drop what waits."""
        self._thread.shutdown(wait=False, cancel_futures=True)
