"""Jobs as people see them: submitted, listed, shown, cancelled."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, func, insert, select, update

from service.jobs.records import ACTIVE, Counts, Job, JobRequest
from service.jobs.tables import jobs, shards
from syntax.errors import UnknownJobError


class JobLedger:
    """The service's side of the job tables.

    Args:
        engine: From `open_database`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, job_id: str, request: JobRequest, *, examples: int, shard_count: int) -> Job:
        """Accept a job whose shards are staged; it is durable when this returns."""
        with self._engine.begin() as connection:
            connection.execute(
                insert(jobs).values(
                    id=job_id,
                    state="queued",
                    target=request.target,
                    request=request.to_json(),
                    examples=examples,
                    first_seq=_next_seq(connection, request.target),
                    shards=shard_count,
                    counts=Counts().to_json(),
                    created=time.time(),
                )
            )
            rows = [{"job": job_id, "number": n, "state": "open"} for n in range(shard_count)]
            connection.execute(insert(shards), rows)
            return _one(connection, job_id)

    def get(self, job_id: str) -> Job:
        """One job.

        Raises:
            UnknownJobError: There is none of this id.
        """
        with self._engine.begin() as connection:
            return _one(connection, job_id)

    def list(self, limit: int = 100) -> list[Job]:
        """The newest jobs, newest first."""
        query = select(jobs).order_by(jobs.c.created.desc(), jobs.c.id).limit(limit)
        with self._engine.begin() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def cancel(self, job_id: str) -> Job:
        """Stop a job: no further shard starts, and the workers drop those in hand.

        Rows that are committed stay. A job that has ended already is left as it is.

        Raises:
            UnknownJobError: There is none of this id.
        """
        stop = (
            update(jobs)
            .where(jobs.c.id == job_id, jobs.c.state.in_(ACTIVE))
            .values(state="cancelled", finished=time.time())
        )
        with self._engine.begin() as connection:
            connection.execute(stop)
            return _one(connection, job_id)

    def needing_input(self) -> set[str]:
        """Jobs whose staged shards may still be read."""
        running = select(shards.c.job).where(
            shards.c.state == "open",
            shards.c.owner.is_not(None),
            shards.c.lease_until > time.time(),
        )
        active = select(jobs.c.id).where(jobs.c.state.in_(ACTIVE))
        with self._engine.begin() as connection:
            return set(connection.execute(active.union(running)).scalars())


def _next_seq(connection: Connection, target: str) -> int:
    """Where the next job's examples begin in the training order of their partition."""
    end = func.max(jobs.c.first_seq + jobs.c.examples)
    query = select(func.coalesce(end, 0)).where(jobs.c.target == target)
    return int(connection.execute(query).scalar_one())


def _one(connection: Connection, job_id: str) -> Job:
    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().one_or_none()
    if row is None:
        raise UnknownJobError(
            f"no job {job_id!r}; GET /jobs lists the jobs that this service knows", job=job_id
        )
    return _job(row)


def _job(row: RowMapping) -> Job:
    counts: dict[str, Any] = {**row["counts"], "examples": row["examples"]}
    names = ("id", "state", "shards", "shards_done", "shards_failed")
    times = ("created", "started", "finished", "error")
    return Job(
        **{name: row[name] for name in (*names, *times)},
        request=JobRequest.from_json(row["request"]),
        counts=Counts.from_json(counts),
    )
