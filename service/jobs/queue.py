"""Shards, claimed with leases: the worker's side of the job tables.

A claim is one UPDATE whose sub-select picks the oldest shard that is free. Claims take turns
(`service.jobs.database`), so that each sees what the one before took; they skip a row that its
last owner holds just then. A worker that dies simply lets its lease run out.

`JobQueue` is the tables; `Claims` are those of one process, which outlast an outage of the
database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    Update,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from service.jobs.database import (
    BUSY_SECONDS,
    JobDatabaseError,
    database_time,
    jobs,
    shards,
    taking_turns,
    transaction,
)
from service.jobs.records import ACTIVE, Counts, JobRequest, Shard, error_json
from service.logs import get_logger
from service.settings import Settings
from syntax.errors import WorkerDiedError, WorkError

DATABASE_SECONDS: Final = 0.5
"""Seconds between two attempts to reach the job database."""

RENEWAL_SECONDS: Final = 2.0
"""Longest time between two renewals of a lease; a renewal also notices a cancelled job."""

Clock = Callable[[Connection], float]
"""Seconds since the epoch, as a transaction sees them."""

_LOG = get_logger("parsebank.jobs")


class LeaseLostError(WorkError):
    """The shard is no longer this worker's: its job was cancelled or its lease ran out."""


class JobQueue:
    """Claims shards, renews their leases, and settles them.

    A shard whose lease was not renewed for ``lease_seconds`` may be claimed again; after
    ``max_tries`` claims it counts as failed. The clock is by default the database's, so that the
    hosts of several replicas need not agree.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        lease_seconds: float,
        max_tries: int,
        clock: Clock = database_time,
    ) -> None:
        self._engine = engine
        self.lease_seconds = lease_seconds
        self._max_tries = max_tries
        self._clock = clock

    @classmethod
    def of(cls, engine: Engine, settings: Settings) -> JobQueue:
        return cls(
            engine, lease_seconds=settings.job_lease_seconds, max_tries=settings.job_max_tries
        )

    def claim(self, owner: str) -> Shard | None:
        """Claim the oldest free shard; ``None`` when there is none."""
        if not self.free(limit=1):  # the idle ask often, and need not queue up for the answer
            return None
        with transaction(self._engine) as connection:
            taking_turns(connection)
            now = self._clock(connection)
            row = connection.execute(self._claim(owner, now)).mappings().one_or_none()
            return None if row is None else _claimed(connection, row, now)

    def _claim(self, owner: str, now: float) -> ReturningUpdate[Any]:
        job = (
            select(jobs.c.id)
            .where(_may_run(now), exists().where(shards.c.job == jobs.c.id, self._is_free(now)))
            .order_by(jobs.c.created, jobs.c.id)
            .limit(1)
        )
        oldest = (
            select(shards.c.id)
            .where(shards.c.job == job.scalar_subquery(), self._is_free(now))
            .order_by(shards.c.lease_until, shards.c.number)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        return (
            update(shards)
            .where(shards.c.id == oldest.scalar_subquery())
            .values(owner=owner, lease_until=now + self.lease_seconds, tries=shards.c.tries + 1)
            .returning(shards)
        )

    def free(self, limit: int) -> int:
        """Count the shards that could be claimed now, up to ``limit``."""
        with transaction(self._engine) as connection:
            now = self._clock(connection)
            some = (
                select(shards.c.id)
                .join(jobs, jobs.c.id == shards.c.job)
                .where(_may_run(now), self._is_free(now))
                .limit(limit)
            )
            return len(connection.execute(some).all())

    def renew(self, claimed: Sequence[Shard]) -> set[tuple[int, int]]:
        """Extend the leases of shards that one owner has claimed.

        Gives `Shard.claim` of those that are still its own, and whose job was not cancelled.
        """
        active = exists().where(jobs.c.id == shards.c.job, jobs.c.state.in_(ACTIVE))
        kept: set[tuple[int, int]] = set()
        with transaction(self._engine) as connection:
            lease = self._clock(connection) + self.lease_seconds
            for start in range(0, len(claimed), _AT_ONCE):
                some = claimed[start : start + _AT_ONCE]
                renewed = (
                    update(shards)
                    .where(
                        shards.c.id.in_([shard.id for shard in some]),
                        shards.c.owner == some[0].owner,
                        shards.c.state == "open",
                        active,
                    )
                    .values(lease_until=lease)
                    .returning(shards.c.id, shards.c.tries)
                )
                kept.update((row.id, row.tries) for row in connection.execute(renewed))
        return kept

    def save_plan(self, shard: Shard, plan: Counts) -> None:
        """Record a shard's coming commits; `LeaseLostError` if it is no longer its owner's."""
        with transaction(self._engine) as connection:
            _change(connection, _owned(shard).values(plan=plan.to_json()), shard)

    def complete(self, shard: Shard, counts: Counts) -> None:
        """Settle a shard whose rows are committed, and its job after the last one.

        Raises `LeaseLostError` if it is no longer its owner's; another will settle it.
        """
        done = _owned(shard).values(state="done", counts=counts.to_json(), error=None)
        with transaction(self._engine) as connection:
            _change(connection, done, shard)
            _settle(connection, shard.job, self._clock(connection), counts=counts)

    def release(self, shard: Shard, error: BaseException | None = None, delay: float = 0.0) -> None:
        """Give a shard back, to be tried again after ``delay`` seconds.

        Without an error the try does not count; with one, the last try fails the shard. A shard
        that is no longer its owner's is left alone.
        """
        if error is not None and shard.tries >= self._max_tries:
            self.fail(shard, error)
            return
        with transaction(self._engine) as connection:
            free = _owned(shard).values(
                owner=None,
                lease_until=self._clock(connection) + delay,
                tries=shard.tries if error is not None else shard.tries - 1,
                error=None if error is None else error_json(error),
            )
            connection.execute(free)

    def fail(self, shard: Shard, error: BaseException) -> None:
        """Settle a shard that cannot be done; the others of its job go on."""
        content = error_json(error, shard=shard.number)
        with transaction(self._engine) as connection:
            if connection.execute(_owned(shard).values(_failure(content))).rowcount:
                _settle(connection, shard.job, self._clock(connection), error=content)

    def fail_exhausted(self) -> int:
        """Fail the shards whose last permitted try ran out of its lease, and count them."""
        with transaction(self._engine) as connection:
            now = self._clock(connection)
            rows = connection.execute(self._lost(now)).all()
            for row in rows:
                last = f"; last: {row.error['message']}" if row.error else ""
                error = WorkerDiedError(
                    f"{row.tries} workers in turn died or stopped answering on shard "
                    f"{row.number}{last}"
                )
                content = error_json(error, shard=row.number)
                connection.execute(
                    update(shards).where(shards.c.id == row.id).values(_failure(content))
                )
                _settle(connection, row.job, now, error=content)
        return len(rows)

    def overdue_owners(self) -> set[str]:
        """Owners of shards whose lease ran out: dead, stopped, or cut off from the database."""
        with transaction(self._engine) as connection:
            query = _OWNERS.where(shards.c.lease_until <= self._clock(connection))
            return set(connection.execute(query).scalars())

    def owners(self) -> set[str]:
        with transaction(self._engine) as connection:
            return set(connection.execute(_OWNERS).scalars())

    def end_leases(self, owner: str, cause: str | None = None) -> None:
        """End the leases of a dead worker, so that others can claim its shards at once.

        The cause is for the error of a shard whose last try this was.
        """
        end = update(shards).where(_CLAIMED, shards.c.owner == owner).values(lease_until=0.0)
        if cause is not None:
            end = end.values(error=error_json(WorkerDiedError(cause)))
        with transaction(self._engine) as connection:
            connection.execute(end)

    def release_all(self, owner: str) -> None:
        """Give back the shards of a worker that its service has ended; the tries do not count."""
        back = {"owner": None, "lease_until": 0.0, "tries": shards.c.tries - 1}
        with transaction(self._engine) as connection:
            claimed = update(shards).where(_CLAIMED, shards.c.owner == owner)
            connection.execute(claimed.values(back))

    def _lost(self, now: float) -> Select[Any]:
        # By job, so that two replicas at it wait for each other's jobs in one order.
        return (
            select(shards.c.id, shards.c.job, shards.c.number, shards.c.tries, shards.c.error)
            .where(_CLAIMED, shards.c.lease_until <= now, shards.c.tries >= self._max_tries)
            .order_by(shards.c.job, shards.c.number)
            .with_for_update(skip_locked=True)
        )

    def _is_free(self, now: float) -> ColumnElement[bool]:
        return and_(
            shards.c.state == "open",
            shards.c.lease_until <= now,
            shards.c.tries < self._max_tries,
        )


_AT_ONCE: Final = 500
"""Shards named in one statement."""

_CLAIMED: Final = and_(shards.c.state == "open", shards.c.owner.is_not(None))
"""A shard is some worker's, dead or alive."""

_OWNERS: Final = select(shards.c.owner).distinct().where(_CLAIMED)


def _may_run(now: float) -> ColumnElement[bool]:
    """The condition that it is a job's turn.

    Two jobs that bring one example at the same time would store it twice, so jobs for one partition
    take turns: a job waits for the earlier ones, and for every worker that still writes for another
    one, such as a cancelled one. Jobs of one source take turns as well, so that no text is parsed
    twice. A job waits only for earlier jobs, and for workers, whose leases end; so no two jobs wait
    for each other.
    """
    other, shard = jobs.alias("other"), shards.alias("other_shard")
    writing = exists().where(
        shard.c.job == other.c.id,
        shard.c.state == "open",
        shard.c.owner.is_not(None),
        shard.c.lease_until > now,
    )
    earlier = or_(
        other.c.created < jobs.c.created,
        and_(other.c.created == jobs.c.created, other.c.id < jobs.c.id),
    )
    ahead = and_(earlier, other.c.state.in_(ACTIVE))
    same_rows = exists().where(
        other.c.target == jobs.c.target, other.c.id != jobs.c.id, or_(ahead, writing)
    )
    same_texts = exists().where(other.c.source == jobs.c.source, ahead)
    return and_(jobs.c.state.in_(ACTIVE), ~same_rows, ~same_texts)


def _owned(shard: Shard) -> Update:
    return update(shards).where(
        shards.c.id == shard.id,
        shards.c.tries == shard.tries,
        shards.c.owner == shard.owner,
        shards.c.state == "open",
    )


def _change(connection: Connection, change: Update, shard: Shard) -> None:
    if connection.execute(change).rowcount == 0:
        raise _lease_lost(shard)


def _lease_lost(shard: Shard) -> LeaseLostError:
    return LeaseLostError(
        f"shard {shard.number} of job {shard.job} was cancelled or taken over; leave it to its new "
        "owner",
        job=shard.job,
    )


def _claimed(connection: Connection, row: RowMapping, now: float) -> Shard:
    started = (
        update(jobs)
        .where(jobs.c.id == row["job"])
        .values(
            state=case((jobs.c.state == "queued", "running"), else_=jobs.c.state),
            started=func.coalesce(jobs.c.started, now),
        )
        .returning(jobs.c.request, jobs.c.first_seq)
    )
    request, first_seq = connection.execute(started).one()
    plan = row["plan"]
    return Shard(
        id=row["id"],
        owner=row["owner"],
        job=row["job"],
        number=row["number"],
        tries=row["tries"],
        first_seq=first_seq,
        request=JobRequest.from_json(request),
        plan=None if plan is None else Counts(**plan),
    )


def _failure(content: dict[str, Any]) -> dict[str, Any]:
    return {"state": "failed", "owner": None, "error": content}


def _settle(
    connection: Connection,
    job: str,
    now: float,
    *,
    counts: Counts | None = None,
    error: dict[str, Any] | None = None,
) -> None:
    """Add one finished shard to its job, and finish the job with its last shard."""
    # The row lock makes two last shards, finishing at once, count one after the other.
    row = (
        connection.execute(select(jobs).where(jobs.c.id == job).with_for_update()).mappings().one()
    )
    done = row["shards_done"] + (error is None)
    failed = row["shards_failed"] + (error is not None)
    merged = Counts(**row["counts"]) + (counts or Counts())
    values: dict[str, Any] = {
        "shards_done": done,
        "shards_failed": failed,
        "counts": merged.to_json(),
        "error": row["error"] or error,
    }
    if done + failed == row["shards"] and row["state"] in ACTIVE:
        values |= {"state": "failed" if failed else "done", "finished": now}
    connection.execute(update(jobs).where(jobs.c.id == job).values(values))


@dataclass(slots=True)
class _Lease:
    shard: Shard
    until: float
    is_lost: bool = False


class Claims:
    """The shards that one process has claimed; a context manager.

    A thread renews their leases, so that a lease lasts however long the process loads, parses or
    commits; `service.jobs.worker` limits that time. `save_plan` and `complete` wait for the
    database for ``max_wait`` seconds at most.
    """

    def __init__(self, owner: str, queue: JobQueue, stop: threading.Event) -> None:
        self.lease_seconds = queue.lease_seconds
        self.max_wait = queue.lease_seconds + DATABASE_SECONDS + BUSY_SECONDS
        self._owner = owner
        self._queue = queue
        self._stop = stop
        self._held: dict[tuple[int, int], _Lease] = {}

    def __enter__(self) -> Self:
        self._over = threading.Event()
        threading.Thread(target=self._renew, args=(self._over,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def claim(self) -> Shard | None:
        """Claim the oldest free shard; ``None`` if there is none or the database does not answer.

        Its lease is renewed until it is settled here.
        """
        try:
            shard = self._queue.claim(self._owner)
        except JobDatabaseError as error:
            _LOG.warning("job database away", reason=error.message)
            self._stop.wait(DATABASE_SECONDS)
            return None
        if shard is not None:
            self._held[shard.claim] = _Lease(shard, time.monotonic() + self.lease_seconds)
        return shard

    def is_lost(self, shard: Shard) -> bool:
        """True if the job was cancelled, or the shard was claimed again."""
        return self._held[shard.claim].is_lost

    def check(self, shard: Shard) -> None:
        """Check that this process still holds a shard.

        Raises `LeaseLostError` if the job was cancelled or another worker has the shard,
        `JobDatabaseError` if the database did not answer until the lease ended.
        """
        lease = self._held[shard.claim]
        is_due = lease.is_lost or time.monotonic() > lease.until
        if is_due and shard.claim not in self._queue.renew([shard]):
            raise _lease_lost(shard)

    def save_plan(self, shard: Shard, plan: Counts) -> None:
        """Do as `JobQueue.save_plan`, and wait for the database for as long as a lease lasts."""
        self._retry(lambda: self._queue.save_plan(shard, plan))

    def complete(self, shard: Shard, counts: Counts) -> None:
        """Settle a shard whose rows are committed, and wait as `save_plan` does."""
        self._retry(lambda: self._queue.complete(shard, counts))

    def fail(self, shard: Shard, error: BaseException) -> None:
        with suppress(JobDatabaseError):  # then its lease expires
            self._queue.fail(shard, error)

    def release(self, shard: Shard, error: BaseException | None = None, delay: float = 0.0) -> None:
        with suppress(JobDatabaseError):  # then its lease expires
            self._queue.release(shard, error, delay)

    def drop(self, shard: Shard) -> None:
        del self._held[shard.claim]

    def _retry(self, action: Callable[[], None]) -> None:
        deadline = time.monotonic() + self.lease_seconds
        while True:
            try:
                return action()
            except JobDatabaseError:
                if self._stop.wait(DATABASE_SECONDS) or time.monotonic() > deadline:
                    raise

    def _renew(self, over: threading.Event) -> None:
        while not over.wait(min(RENEWAL_SECONDS, self.lease_seconds / 4)):
            leases = list(self._held.values())
            if not leases:
                continue
            end = time.monotonic() + self.lease_seconds
            try:
                kept = self._queue.renew([lease.shard for lease in leases])
            except JobDatabaseError as error:
                _LOG.warning("job database away", reason=error.message)
                continue
            except Exception:  # logged and tried again: a lease must not expire unnoticed
                _LOG.exception("cannot renew leases")
                continue
            for lease in leases:
                lease.is_lost = lease.shard.claim not in kept
                lease.until = end
