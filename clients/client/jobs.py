"""Backfill jobs as the service reports them, and the stream of their progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

JobState = Literal["queued", "running", "done", "failed", "cancelled"]

OVER: Final[frozenset[JobState]] = frozenset({"done", "failed", "cancelled"})
"""Final states of a job; only a failed job can be retried."""


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Number of shards of a job."""

    total: int
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class JobCounts:
    """The account of a job's examples.

    Attributes:
        examples: Items sent, including those that the reader rejected.
        stored: Examples written by this job.
        already_stored: Examples that the dataset already held.
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
        """Items accounted for; equals ``examples`` when the job is done."""
        return self.stored + self.already_stored + sum(self.dropped.values())


@dataclass(frozen=True, slots=True)
class Sample:
    """The random sample of examples that a forecast measured; ``parses`` are distinct texts."""

    examples: int
    parses: int
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected result of a backfill: ``to_store + already_stored + sum(dropped) == examples``.

    Attributes:
        examples: Items sent, including those that the reader rejected.
        already_stored: Examples that the dataset holds, and repetitions.
        dropped: Unusable items by reason, as far as is known without parsing.
        texts, distinct_texts: Texts of the examples to store; the same, each once.
        already_parsed: Distinct texts whose parse the store holds.
        sample: Basis of the estimates; ``None`` when nothing would be stored.
        workers: Number of processes for which the times hold.
        parse_seconds, parse_bytes: Time and disk for the new parses.
        store_seconds, store_bytes: Time for everything else, and disk for the rows.
    """

    dataset: str
    split: str
    lang: str
    parser: str
    tokenizer: str
    examples: int
    to_store: int
    already_stored: int
    dropped: Mapping[str, int]
    texts: int
    distinct_texts: int
    already_parsed: int
    sample: Sample | None
    workers: int
    parse_seconds: float
    store_seconds: float
    parse_bytes: int
    store_bytes: int
    warnings: tuple[str, ...] = ()

    @property
    def new_parses(self) -> int:
        return self.distinct_texts - self.already_parsed


@dataclass(frozen=True, slots=True)
class FailedShard:
    """A shard that failed at its last try, and its last error."""

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
    warnings: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.state in OVER


def decode_job(answer: Mapping[str, Any]) -> Job:
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
        warnings=tuple(answer.get("warnings", ())),
    )


def decode_forecast(answer: Mapping[str, Any]) -> Forecast:
    texts, estimate, sample = answer["texts"], answer["estimate"], answer["sample"]
    names = ("dataset", "split", "lang", "parser", "tokenizer")
    counts = ("examples", "to_store", "already_stored", "dropped")
    return Forecast(
        **{name: answer[name] for name in (*names, *counts)},
        texts=texts["total"],
        distinct_texts=texts["distinct"],
        already_parsed=texts["already_parsed"],
        sample=sample and Sample(sample["examples"], sample["parses"], sample["dropped"]),
        **{name: estimate[name] for name in ("workers", "parse_seconds", "store_seconds")},
        **{name: estimate[name] for name in ("parse_bytes", "store_bytes")},
        warnings=tuple(answer.get("warnings", ())),
    )


def _failed_shard(answer: Mapping[str, Any]) -> FailedShard:
    return FailedShard(**{key: answer[key] for key in ("number", "tries", "error_type", "message")})
