"""The service's side of the job tables: submit, list, show, count, cancel and retry jobs.

The accounts of ended jobs are also kept in the store, beside what they built.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    and_,
    func,
    insert,
    null,
    or_,
    select,
    update,
)

from featurestore import FeatureStore
from service.jobs.database import database_time, jobs, shards, taking_turns, transaction
from service.jobs.queue import Clock
from service.jobs.records import ACTIVE, Counts, FailedShard, Job, JobFilter, JobRequest, JobState
from service.settings import Settings
from syntax.errors import ConflictError, UnknownJobError
from syntax.fingerprint import fingerprint

_DAY_SECONDS: Final = 24 * 60 * 60

_NOTHING: Final = Counts()

SHOWN_FAILURES: Final = 100
"""Failed shards that are shown with a job."""

_JOB_STATES: Final[tuple[JobState, ...]] = ("queued", "running", "done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobTotals:
    """Numbers of jobs by state, and of the shards of all jobs that were not cancelled.

    Shards that no worker has claimed are waiting; those that were given up have failed.
    """

    jobs: dict[JobState, int]
    shards_waiting: int
    shards_running: int
    shards_failed: int


class JobLedger:
    """The service's side of the job tables.

    A failed job may be tried again for ``retry_seconds`` after its end.
    """

    def __init__(
        self, engine: Engine, *, retry_seconds: float = 0.0, clock: Clock = database_time
    ) -> None:
        self._engine = engine
        self._retry_seconds = retry_seconds
        self._clock = clock

    @classmethod
    def of(cls, engine: Engine, settings: Settings) -> JobLedger:
        return cls(engine, retry_seconds=settings.job_retry_days * _DAY_SECONDS)

    def add(
        self,
        job_id: str,
        request: JobRequest,
        *,
        examples: int,
        shard_count: int,
        stored: Counts = _NOTHING,
    ) -> Job:
        """Accept a job whose shards are staged; it is durable when this returns.

        One without shards is done: the dataset held all its examples, as ``stored`` says.
        """
        with transaction(self._engine) as connection:
            taking_turns(connection)
            now = self._clock(connection)
            over = None if shard_count else now
            connection.execute(
                insert(jobs).values(
                    id=job_id,
                    state="queued" if shard_count else "done",
                    target=request.target,
                    source=request.source,
                    request=request.to_json(),
                    examples=examples,
                    first_seq=_next_seq(connection, request.target),
                    shards=shard_count,
                    counts=stored.to_json(),
                    created=now,
                    started=over,
                    finished=over,
                )
            )
            rows = [{"job": job_id, "number": n, "state": "open"} for n in range(shard_count)]
            if rows:
                connection.execute(insert(shards), rows)
            return _one(connection, job_id)

    def get(self, job_id: str) -> Job:
        """One job, with its first failed shards; `UnknownJobError` if there is none."""
        with transaction(self._engine) as connection:
            return _one(connection, job_id)

    def list(self, wanted: JobFilter) -> list[Job]:
        """Jobs, newest first; `UnknownJobError` if there is none after which the list goes on."""
        with transaction(self._engine) as connection:
            query = (
                select(jobs)
                .where(*_conditions(connection, wanted))
                .order_by(jobs.c.created.desc(), jobs.c.id)
                .limit(wanted.limit)
            )
            return [_job(row) for row in connection.execute(query).mappings()]

    def ended(self, since: float) -> Sequence[tuple[Job, bool]]:
        """Jobs that are over and ended at this time or later, the earliest first.

        Each comes with whether its counts may still change: a worker ends its shard of a cancelled
        job.
        """
        over = and_(jobs.c.finished >= since, jobs.c.state.not_in(ACTIVE))
        with transaction(self._engine) as connection:
            # In one statement: no shard may end between reading the counts and its owner.
            is_open = jobs.c.id.in_(_at_work(self._clock(connection))).label("is_open")
            query = select(jobs, is_open).where(over).order_by(jobs.c.finished)
            found = connection.execute(query).mappings()
            return [(_job(row), bool(row["is_open"])) for row in found]

    def cancel(self, job_id: str) -> Job:
        """Stop a job: no further shard starts, and workers drop the running ones.

        Rows that are committed stay. A job that has ended already is left as it is.
        """
        with transaction(self._engine) as connection:
            taking_turns(connection)
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id, jobs.c.state.in_(ACTIVE))
                .values(state="cancelled", finished=self._clock(connection))
            )
            return _one(connection, job_id)

    def retry(self, job_id: str) -> Job:
        """Let the failed shards of a failed job be run again, as often as at first."""
        with transaction(self._engine) as connection:
            taking_turns(connection)
            check_failed(_one(connection, job_id, lock=True))
            # Not with the old plan: meanwhile other jobs may have stored the same examples.
            connection.execute(
                update(shards)
                .where(shards.c.job == job_id, shards.c.state == "failed")
                .values(state="open", tries=0, lease_until=0.0, error=null(), plan=null())
            )
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id)
                .values(state="running", shards_failed=0, finished=None, error=null())
            )
            return _one(connection, job_id)

    def needing_input(self, lang: str | None = None) -> set[str]:
        """Ids of the jobs whose staged shards may still be read, of any language or of one."""
        with transaction(self._engine) as connection:
            now = self._clock(connection)
            kept = and_(jobs.c.state == "failed", jobs.c.finished > now - self._retry_seconds)
            needed = (
                select(jobs.c.id).where(or_(jobs.c.state.in_(ACTIVE), kept)).union(_at_work(now))
            )
            found = select(jobs.c.id).where(jobs.c.id.in_(needed))
            if lang is not None:
                found = found.where(jobs.c.request["dataset"]["lang"].as_string() == lang)
            return set(connection.execute(found).scalars())

    def totals(self) -> JobTotals:
        """Number of jobs and shards by state, without the shards that are done, by far the most."""
        by_state = select(jobs.c.state, func.count()).group_by(jobs.c.state)
        left = (
            select(shards.c.state, shards.c.owner.is_not(None), func.count())
            .join(jobs, jobs.c.id == shards.c.job)
            .where(shards.c.state.in_(("open", "failed")), jobs.c.state != "cancelled")
            .group_by(shards.c.state, shards.c.owner.is_not(None))
        )
        with transaction(self._engine) as connection:
            found: dict[str, int] = dict(map(tuple, connection.execute(by_state)))
            counts = {(state, bool(owned)): n for state, owned, n in connection.execute(left)}
        return JobTotals(
            jobs={state: found.get(state, 0) for state in _JOB_STATES},
            shards_waiting=counts.get(("open", False), 0),
            shards_running=counts.get(("open", True), 0),
            shards_failed=counts.get(("failed", False), 0) + counts.get(("failed", True), 0),
        )


def check_failed(job: Job) -> None:
    """Raise `ConflictError` if a job goes on, is done, or was cancelled."""
    if job.state != "failed":
        raise ConflictError(
            f"job {job.id} is {job.state}; only a failed job has shards to be run again. Send the "
            "backfill again to store what a cancelled one left out",
            job=job.id,
            state=job.state,
        )


def _at_work(now: float) -> Select[tuple[str]]:
    return select(shards.c.job).where(
        shards.c.state == "open", shards.c.owner.is_not(None), shards.c.lease_until > now
    )


def _next_seq(connection: Connection, target: str) -> int:
    """Place of the next job's examples in the training order of their partition."""
    end = func.max(jobs.c.first_seq + jobs.c.examples)
    query = select(func.coalesce(end, 0)).where(jobs.c.target == target)
    return int(connection.execute(query).scalar_one())


def _conditions(connection: Connection, wanted: JobFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.states:
        yield jobs.c.state.in_(wanted.states)
    if wanted.dataset is not None:
        yield jobs.c.request[("dataset", "name")].as_string() == wanted.dataset
    if wanted.before is not None:
        last = _one(connection, wanted.before)
        created = jobs.c.created
        yield or_(created < last.created, and_(created == last.created, jobs.c.id > last.id))


def _one(connection: Connection, job_id: str, *, lock: bool = False) -> Job:
    query = select(jobs).where(jobs.c.id == job_id)
    locked = query.with_for_update() if lock else query
    # PostgreSQL takes no NUL, and no id has one.
    is_id = job_id.isascii() and job_id.isalnum()
    row = connection.execute(locked).mappings().one_or_none() if is_id else None
    if row is None:
        raise UnknownJobError(
            f"no job {job_id!r}; GET /jobs lists the jobs that this service knows", job=job_id
        )
    return _job(row, _failures(connection, job_id) if row["shards_failed"] else ())


def _failures(connection: Connection, job_id: str) -> tuple[FailedShard, ...]:
    query = (
        select(shards.c.number, shards.c.tries, shards.c.error)
        .where(shards.c.job == job_id, shards.c.state == "failed")
        .order_by(shards.c.number)
        .limit(SHOWN_FAILURES)
    )
    return tuple(FailedShard(*row) for row in connection.execute(query))


def _job(row: RowMapping, failures: tuple[FailedShard, ...] = ()) -> Job:
    counts: dict[str, Any] = {**row["counts"], "examples": row["examples"]}
    names = ("id", "state", "shards", "shards_done", "shards_failed")
    times = ("created", "started", "finished", "error")
    return Job(
        **{name: row[name] for name in (*names, *times)},
        request=JobRequest.from_json(row["request"]),
        counts=Counts(**counts),
        failures=failures,
    )


LATE_SECONDS: Final = 60.0
"""Most seconds between the time that a job's end bears and its commit."""

KIND: Final = "report"
"""The kind of a report among what the store describes."""


class ReportWriter:
    """Writes one report for each job that has ended, however often it is asked.

    A cancelled job has its report once none of its shards is a worker's: until then, rows may come.
    Threads take turns, so that the requested reports exist when the call returns.
    """

    def __init__(self, store: FeatureStore, ledger: JobLedger) -> None:
        self._store = store
        self._ledger = ledger
        self._since = 0.0
        self._written: set[str] = set()
        self._lock = threading.Lock()

    def write(self) -> None:
        """Write what is missing; after a `StoreError` the next call tries again."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        ended = self._ledger.ended(self._since - LATE_SECONDS)
        jobs = {_key(job): job for job, is_open in ended if not is_open}
        if jobs.keys() <= self._written:  # the last one always is, until another ends
            return
        known = self._store.fingerprints.all(KIND)
        for key, job in jobs.items():
            if key not in known:
                self._store.describe(key, KIND, report_of(job, self._version(job)))
        times = [(job.finished or 0.0, is_open) for job, is_open in ended]
        self._since = next((time for time, is_open in times if is_open), times[-1][0])
        self._written = set(jobs)

    def _version(self, job: Job) -> int | None:
        """Newest version of the dataset, which has all that the job wrote."""
        name, tokenizer = job.request.dataset.name, job.request.tokenizer_fingerprint
        card = self._store.features.card_of(name, tokenizer)
        return None if card is None else self._store.features.version_of(card)


def _key(job: Job) -> str:
    return fingerprint([KIND, job.id, job.finished])


def report_of(job: Job, version: int | None) -> dict[str, Any]:
    """The account of every example of a job, as plain JSON."""
    request, spec = job.request, job.request.dataset
    return {
        "job": job.id,
        "state": job.state,
        "dataset": spec.name,
        "split": spec.split,
        "lang": spec.lang,
        "mode": spec.mode,
        "tokenizer": request.tokenizer_fingerprint,
        "parser": request.parser_fingerprint,
        "version": version,
        **({"shard": request.shard} if request.shard else {}),
        **job.counts.to_json(),
        **dict(_times(job)),
    }


def _times(job: Job) -> Iterator[tuple[str, str]]:
    for name in ("created", "started", "finished"):
        seconds = getattr(job, name)
        if seconds is not None:
            yield name, datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
