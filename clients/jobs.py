"""Backfill jobs as the service reports them, and the stream of their progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

JobState = Literal["queued", "running", "done", "failed", "cancelled"]

OVER: Final[frozenset[JobState]] = frozenset({"done", "failed", "cancelled"})
"""States that a job does not leave by itself; a failed one may be tried again."""


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """How far a job is, in the pieces of work that it was cut into."""

    total: int
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class JobCounts:
    """What became of a job's examples.

    Attributes:
        examples: Items sent, those that the reader rejected included.
        stored: Examples written by this job.
        already_stored: Examples that the dataset held before.
        dropped: Unusable items by reason (an ``error_type``).
        parses_done, parses_reused: Texts parsed by this job, and texts found in the cache.
    """

    examples: int = 0
    stored: int = 0
    already_stored: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    parses_done: int = 0
    parses_reused: int = 0

    @property
    def accounted(self) -> int:
        """Items whose fate is known; equals ``examples`` when the job is done."""
        return self.stored + self.already_stored + sum(self.dropped.values())


@dataclass(frozen=True, slots=True)
class FailedShard:
    """A piece of work that was given up after some tries, and the name of its last error."""

    number: int
    tries: int
    error_type: str
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    """One backfill. Times are as the service writes them (ISO 8601, UTC).

    A job out of a list has no ``failed_shards``; ``shards.failed`` counts them.
    """

    id: str
    dataset: str
    tokenizer: str
    split: str
    lang: str
    parser: str
    state: JobState
    shards: ShardCounts
    counts: JobCounts
    created: str | None = None
    started: str | None = None
    finished: str | None = None
    error: Mapping[str, Any] | None = None
    failed_shards: tuple[FailedShard, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the job will not change any more."""
        return self.state in OVER


def decode_job(answer: Mapping[str, Any]) -> Job:
    """The job that an answer or a progress event describes."""
    counts = answer["counts"]
    parses = counts["parses"]
    return Job(
        id=answer["id"],
        dataset=answer["dataset"],
        tokenizer=answer["tokenizer"],
        split=answer["split"],
        lang=answer["lang"],
        parser=answer["parser"],
        state=answer["state"],
        shards=ShardCounts(**{key: answer["shards"][key] for key in ("total", "done", "failed")}),
        counts=JobCounts(
            examples=counts["examples"],
            stored=counts["stored"],
            already_stored=counts["already_stored"],
            dropped=dict(counts["dropped"]),
            parses_done=parses["done"],
            parses_reused=parses["reused"],
        ),
        created=answer.get("created"),
        started=answer.get("started"),
        finished=answer.get("finished"),
        error=answer.get("error"),
        failed_shards=tuple(map(_failed_shard, answer.get("failed_shards", ()))),
    )


def _failed_shard(answer: Mapping[str, Any]) -> FailedShard:
    return FailedShard(**{key: answer[key] for key in ("number", "tries", "error_type", "message")})
