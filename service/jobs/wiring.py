"""Where the settings say that jobs are kept; the manager and its workers agree on it here."""

from __future__ import annotations

from sqlalchemy import Engine

from service.jobs.queue import JobQueue
from service.jobs.staging import StagingArea
from service.jobs.tables import sqlite_url
from service.settings import Settings


def database_url(settings: Settings) -> str:
    """SQLAlchemy URL of the job tables."""
    return settings.jobs_url or sqlite_url(settings.state_dir / "jobs.sqlite")


def staging_area(settings: Settings) -> StagingArea:
    """Where uploads are staged."""
    return StagingArea(settings.state_dir / "staging")


def job_queue(engine: Engine, settings: Settings) -> JobQueue:
    """The queue with the operator's lease and tries."""
    return JobQueue(
        engine, lease_seconds=settings.job_lease_seconds, max_tries=settings.job_max_tries
    )
