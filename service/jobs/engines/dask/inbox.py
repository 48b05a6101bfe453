"""What the coordinator has answered to the runs in this worker process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

from service.jobs.engines.dask.messages import Answer

_BOXES: Final[dict[str, SimpleQueue[Answer]]] = {}


def deliver(run: str, answer: Answer) -> bool:
    """Hand an answer to a run; whether it is here. The coordinator calls this on the worker."""
    box = _BOXES.get(run)
    if box is not None:
        box.put(answer)
    return box is not None


@contextmanager
def inbox(run: str) -> Iterator[SimpleQueue[Answer]]:
    """Where the answers to a run arrive, while this lasts."""
    box = _BOXES[run] = SimpleQueue()
    try:
        yield box
    finally:
        del _BOXES[run]
