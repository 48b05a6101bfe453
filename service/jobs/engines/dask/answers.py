"""The coordinator's answers to the runs in this worker process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

from service.jobs.engines.dask.messages import Answer

_QUEUES: Final[dict[str, SimpleQueue[Answer]]] = {}


def deliver(run: str, answer: Answer) -> bool:
    """Deliver an answer to a run; returns whether the run is here. Called by the coordinator."""
    answers = _QUEUES.get(run)
    if answers is not None:
        answers.put(answer)
    return answers is not None


@contextmanager
def answer_queue(run: str) -> Iterator[SimpleQueue[Answer]]:
    """The queue of the answers to a run."""
    answers = _QUEUES[run] = SimpleQueue()
    try:
        yield answers
    finally:
        del _QUEUES[run]
