"""The accounts of ended jobs, kept in the store beside what they built."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from featurestore import FeatureStore
from service.jobs.ledger import JobLedger
from service.jobs.records import Job
from syntax.fingerprint import fingerprint

LATE_SECONDS: Final = 60.0
"""A job's end is seen when it is committed, which may be later than the time that it bears."""

KIND: Final = "report"
"""The kind of a report among what the store describes."""


class ReportWriter:
    """Writes a report for each job that has ended, once, however often it is asked.

    Threads take turns, so that the requested reports exist when the call returns.

    Args:
        store: Where datasets and reports are.
        ledger: Knows the jobs.
    """

    def __init__(self, store: FeatureStore, ledger: JobLedger) -> None:
        self._store = store
        self._ledger = ledger
        self._since = 0.0
        self._written: set[str] = set()
        self._lock = threading.Lock()

    def write(self) -> None:
        """Write what is missing.

        Raises:
            JobDatabaseError: The jobs cannot be read now.
            StoreError: A report cannot be written now.
        """
        with self._lock:
            self._write()

    def _write(self) -> None:
        jobs = {_key(job): job for job in self._ledger.ended(self._since - LATE_SECONDS)}
        if jobs.keys() <= self._written:  # the last one always is, until another ends
            return
        known = self._store.fingerprints.all(KIND)
        for key, job in jobs.items():
            if key not in known:
                self._store.describe(key, KIND, report_of(job, self._version(job)))
            self._since = max(self._since, job.finished or 0.0)
        self._written = set(jobs)

    def _version(self, job: Job) -> int | None:
        """Version of the dataset now, which has all that the job wrote."""
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
