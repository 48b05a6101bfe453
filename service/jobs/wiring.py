"""Where the settings say that jobs are kept; the manager and its workers agree on it here."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Engine

from service.jobs.database import sqlite_url
from service.jobs.ledger import JobLedger
from service.jobs.queue import JobQueue
from service.jobs.staging import StagingArea
from service.settings import Settings

_DAY_SECONDS: Final = 24 * 60 * 60


def database_url(settings: Settings) -> str:
    """SQLAlchemy URL of the job tables."""
    return settings.jobs_url or sqlite_url(settings.state_dir / "jobs.sqlite")


def job_ledger(engine: Engine, settings: Settings) -> JobLedger:
    """The ledger that keeps failed jobs for as long as the operator wants."""
    return JobLedger(engine, retry_seconds=settings.job_retry_days * _DAY_SECONDS)


def staging_area(settings: Settings) -> StagingArea:
    """Where uploads are staged."""
    return StagingArea(settings.state_dir / "staging")


def job_queue(engine: Engine, settings: Settings) -> JobQueue:
    """The queue with the operator's lease and tries."""
    return JobQueue(
        engine, lease_seconds=settings.job_lease_seconds, max_tries=settings.job_max_tries
    )
