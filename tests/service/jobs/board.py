"""Job tables with a clock that tests turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection, Engine

from service.jobs.ledger import JobLedger
from service.jobs.queue import JobQueue
from service.jobs.records import Counts, JobRequest, Shard
from syntax.errors import StoreBusyError
from syntax.examples import DatasetSpec, LabelSpec
from syntax.fingerprint import fingerprint

REQUEST = JobRequest(
    dataset=DatasetSpec(
        name="pairs",
        split="dev",
        lang="en",
        fields=("first", "second"),
        labels=(LabelSpec("label", "class", ("yes", "no")),),
    ),
    parser="udpipe/english-ewt",
    parser_fingerprint=fingerprint("parser"),
    tokenizer="parsebank-wordpiece-en",
    tokenizer_fingerprint=fingerprint("tokenizer"),
)
OTHER = replace(REQUEST, dataset=replace(REQUEST.dataset, lang="de"))


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self, connection: Connection) -> float:
        return self.now


@dataclass
class Board:
    ledger: JobLedger
    queue: JobQueue
    clock: Clock
    engine: Engine

    def add(self, job: str, shards: int = 3, request: JobRequest = REQUEST) -> None:
        self.ledger.add(job, request, examples=10 * shards, shard_count=shards)

    def claim(self, owner: str = "w") -> Shard:
        """Claim a shard that must be there."""
        shard = self.queue.claim(owner)
        assert shard is not None
        return shard

    def fail(self, job: str, count: int) -> None:
        """Fail the next shards of a job, each with an error of its own."""
        for _ in range(count):
            shard = self.claim()
            assert shard.job == job
            self.queue.fail(shard, StoreBusyError(f"full {shard.number}"))

    def complete(self, counts: Counts) -> list[int]:
        """Do every shard there is; their numbers."""
        numbers = []
        while (shard := self.queue.claim("w")) is not None:
            numbers.append(shard.number)
            self.queue.complete(shard, counts)
        return numbers
