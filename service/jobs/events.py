"""A job's progress as server-sent events (WHATWG HTML, section 9.2).

Each event is the whole job, so none needs to be kept for those who lost their connection: an
event's id is the fingerprint of what it says, and a follower who has it already is sent the next.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import blake2b
from typing import Final

from service.jobs.records import Job
from service.jobs.schemas import JobDetailAnswer

RECONNECT: Final = "retry: 2000\n\n"
"""How long a browser is to wait, in milliseconds, before it asks again."""

ALIVE: Final = ": alive\n\n"
"""A comment, which clients pass over."""


async def events(changes: AsyncIterator[Job | None], last_id: str | None) -> AsyncIterator[str]:
    """The events of a job until it has ended, or its changes are no longer followed.

    Args:
        changes: From `JobManager.follow`.
        last_id: Id of the event that the follower has already.
    """
    yield RECONNECT
    job: Job | None = None
    async for change in changes:
        job = change or job
        if change is None:
            yield ALIVE
        elif event_id(change) != last_id:
            yield _event("progress", change)
    if job is not None and not job.is_active:
        yield _event("end", job)


def event_id(job: Job) -> str:
    """Id of the event that tells a job as it stands."""
    return blake2b(_data(job).encode(), digest_size=8).hexdigest()


def _event(name: str, job: Job) -> str:
    return f"event: {name}\nid: {event_id(job)}\ndata: {_data(job)}\n\n"


def _data(job: Job) -> str:
    return JobDetailAnswer.of(job).model_dump_json()
