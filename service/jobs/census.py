"""How many jobs and shards are in which state, for those who watch the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Engine, func, select

from service.jobs.database import transaction
from service.jobs.records import JobState
from service.jobs.tables import jobs, shards

_JOB_STATES: Final[tuple[JobState, ...]] = ("queued", "running", "done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Census:
    """Numbers at one moment.

    Attributes:
        jobs: By state; every state is there.
        shards_waiting: Shards of unfinished jobs that no worker has claimed.
        shards_running: Shards that a worker has claimed.
        shards_failed: Shards that were given up.
    """

    jobs: dict[JobState, int]
    shards_waiting: int
    shards_running: int
    shards_failed: int


def take_census(engine: Engine) -> Census:
    """Count; the shards that are done, by far the most, are not looked at.

    Raises:
        JobDatabaseError: The database is locked or does not answer.
    """
    by_state = select(jobs.c.state, func.count()).group_by(jobs.c.state)
    left = (
        select(shards.c.state, shards.c.owner.is_not(None), func.count())
        .join(jobs, jobs.c.id == shards.c.job)
        .where(shards.c.state.in_(("open", "failed")), jobs.c.state != "cancelled")
        .group_by(shards.c.state, shards.c.owner.is_not(None))
    )
    with transaction(engine) as connection:
        found: dict[str, int] = dict(map(tuple, connection.execute(by_state)))
        counts = {(state, bool(owned)): n for state, owned, n in connection.execute(left)}
    return Census(
        jobs={state: found.get(state, 0) for state in _JOB_STATES},
        shards_waiting=counts.get(("open", False), 0),
        shards_running=counts.get(("open", True), 0),
        shards_failed=counts.get(("failed", False), 0) + counts.get(("failed", True), 0),
    )
