"""Requests and answers of the job routes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.jobs.records import Counts, FailedShard, Job, JobState
from syntax.examples import DatasetSpec, LabelKind, LabelSpec, LongSentences, Mode

Name = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", min_length=1, max_length=100)
]
"""A name that becomes a folder or a partition: letters, digits, dot, underscore, hyphen."""


class LabelColumn(BaseModel):
    """A label column of the dataset."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    kind: LabelKind
    names: list[str] = Field(
        default_factory=list,
        description="For kinds `class` and `tags` the closed list, in id order; for `spans` too, "
        "where they are named. The other kinds take none.",
    )
    field: Name | None = Field(
        default=None,
        description="For kinds `tags` and `spans` the field that they are about; by default the "
        "first.",
    )


class BackfillSpec(BaseModel):
    """The first line of a backfill upload: `{"spec": {...}}`."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = Field(
        default=None, description="Dataset; may be left out, and must equal the one in the path."
    )
    split: Name
    lang: Name
    fields: list[Name] = Field(
        min_length=1, description="Name of each segment, such as premise and hypothesis."
    )
    labels: list[LabelColumn] = Field(default_factory=list)
    mode: Mode = Field(
        default="raw",
        description="How segments are read: `raw` text, one `sentence`, `pretokenized` tokens, "
        "tokens to `retokenize`, tokens whose multiword ones are split (`tokens_mwt`), or CoNLL-U "
        "with `gold` trees.",
    )
    long_sentences: LongSentences = Field(
        default="refuse",
        description="What becomes of a sentence of more than `max_words_per_sentence` words: with "
        "`refuse` its example is dropped, with `split` it is cut there. Not with `gold`.",
    )
    parser: str | None = Field(
        default=None,
        description="Parser, or one for each language as `en:NAME,fr:NAME`; by default the one for "
        "the language. Not with `gold`.",
    )
    tokenizer: str | None = Field(
        default=None, description="Name or path of a tokenizer; by default the service's own."
    )
    source: str = ""
    licence: str = ""
    matrices: bool = Field(
        default=True, description="Also store distance, depth and ancestor matrices."
    )
    shard: str | None = Field(
        default=None,
        pattern=r"^[1-9][0-9]*/[1-9][0-9]*$",
        description="`K/N`, if N uploads share the examples of a split. A blank line keeps the "
        "place of an example of another upload.",
    )

    def dataset(self, name: str) -> DatasetSpec:
        """The dataset split that the upload describes."""
        return DatasetSpec(
            name=name,
            split=self.split,
            lang=self.lang,
            fields=tuple(self.fields),
            labels=tuple(LabelSpec(x.name, x.kind, tuple(x.names), x.field) for x in self.labels),
            mode=self.mode,
            source=self.source,
            licence=self.licence,
        )


class ShardCounts(BaseModel):
    """Progress in shards."""

    total: int
    done: int
    failed: int


class ParseCounts(BaseModel):
    """Segments whose parse was made by the job, and those that had one already."""

    done: int
    reused: int


class JobCounts(BaseModel):
    """`stored + already_stored + sum(dropped) = examples` once a job is done."""

    examples: int = Field(description="Examples and reader's rejections that were uploaded.")
    stored: int
    already_stored: int = Field(description="Examples that the dataset held already.")
    dropped: dict[str, int] = Field(description="Examples that could not be used, by reason.")
    parses: ParseCounts

    @classmethod
    def of(cls, counts: Counts) -> JobCounts:
        """The answer's form of an account."""
        return cls(
            examples=counts.examples,
            stored=counts.stored,
            already_stored=counts.already_stored,
            dropped=dict(counts.dropped),
            parses=ParseCounts(done=counts.parsed, reused=counts.reused),
        )


class JobAnswer(BaseModel):
    """A backfill job as it stands."""

    id: str
    dataset: str
    split: str
    lang: str
    mode: Mode
    long_sentences: LongSentences
    parser: str
    parser_fingerprint: str
    tokenizer: str
    tokenizer_fingerprint: str
    state: JobState
    shards: ShardCounts
    counts: JobCounts
    created: datetime
    started: datetime | None
    finished: datetime | None
    error: dict[str, Any] | None = Field(
        description="The first failed shard's `error_type`, `message` and `shard`."
    )
    warnings: list[str] = Field(
        description="What to think of, as known at submission: another parser than the one that "
        "the dataset's examples in this language have."
    )

    @classmethod
    def of(cls, job: Job) -> Self:
        """The answer's form of a job."""
        return cls(**cls._content(job))

    @classmethod
    def _content(cls, job: Job) -> dict[str, Any]:
        request, dataset = job.request, job.request.dataset
        return {
            "id": job.id,
            "dataset": dataset.name,
            "split": dataset.split,
            "lang": dataset.lang,
            "mode": dataset.mode,
            "long_sentences": request.long_sentences,
            "parser": request.parser,
            "parser_fingerprint": request.parser_fingerprint,
            "tokenizer": request.tokenizer,
            "tokenizer_fingerprint": request.tokenizer_fingerprint,
            "state": job.state,
            "shards": ShardCounts(total=job.shards, done=job.shards_done, failed=job.shards_failed),
            "counts": JobCounts.of(job.counts),
            "created": _time(job.created),
            "started": None if job.started is None else _time(job.started),
            "finished": None if job.finished is None else _time(job.finished),
            "error": None if job.error is None else dict(job.error),
            "warnings": list(request.warnings),
        }


class FailedShardAnswer(BaseModel):
    """A shard that was given up, with its last error."""

    number: int
    tries: int
    error_type: str
    message: str

    @classmethod
    def of(cls, shard: FailedShard) -> FailedShardAnswer:
        """The answer's form of a failed shard."""
        return cls(
            number=shard.number,
            tries=shard.tries,
            error_type=shard.error["error_type"],
            message=shard.error["message"],
        )


class JobDetailAnswer(JobAnswer):
    """A backfill job with its failed shards."""

    failed_shards: list[FailedShardAnswer] = Field(
        description="Those that failed, by number; at most the first hundred."
    )

    @classmethod
    def _content(cls, job: Job) -> dict[str, Any]:
        failed = [FailedShardAnswer.of(shard) for shard in job.failures]
        return {**super()._content(job), "failed_shards": failed}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
