"""Requests, answers and events of the job routes.

Events are server-sent (WHATWG HTML, section 9.2). Each is the whole job, so none needs to be kept
for those who lost their connection: an event's id is the fingerprint of what it says, and who has
it already is sent the next.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.jobs.records import Counts, FailedShard, Job, JobState
from syntax.errors import SpecError
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


FORMS: Mapping[Mode, str] = {
    "raw": "text",
    "sentence": "text",
    "pretokenized": "tokens",
    "retokenize": "tokens",
    "tokens_mwt": "tokens",
    "gold": "conllu",
}
"""The form of a segment that each mode reads."""


def check_spec(spec: BackfillSpec, name: str) -> None:
    """Check a specification's fields against each other, and the dataset's name."""
    labels = [label.name for label in spec.labels]
    if spec.name not in (None, name):
        raise SpecError(
            f"the spec names the dataset {spec.name!r}, the path {name!r}; name one", line=1
        )
    for kind, names in (("field", spec.fields), ("label", labels)):
        if len(set(names)) < len(names):
            raise SpecError(f"line 1: two {kind}s have one name: {', '.join(names)}", line=1)
    if spec.mode == "gold" and spec.long_sentences != "refuse":
        raise SpecError("line 1: mode 'gold' takes sentences as they are; it splits none", line=1)
    for label in spec.labels:
        _check_names(label)
        _check_field(label, spec)


def _check_names(label: LabelColumn) -> None:
    fits = label.kind == "spans" or bool(label.names) == (label.kind in ("class", "tags"))
    if not fits or len(set(label.names)) < len(label.names):
        raise SpecError(
            f"line 1: label {label.name!r} of kind {label.kind!r} has the names {label.names}; "
            "class and tags need their closed list, without repeats, spans may have one, the other "
            "kinds take none",
            line=1,
        )


def _check_field(label: LabelColumn, spec: BackfillSpec) -> None:
    local = label.kind in ("tags", "spans")
    if label.field is not None and not (local and label.field in spec.fields):
        raise SpecError(
            f"line 1: label {label.name!r} of kind {label.kind!r} has the field {label.field!r}; "
            f"tags and spans may have one of {', '.join(spec.fields)}, the other kinds take none",
            line=1,
        )
    if label.kind == "tags" and FORMS[spec.mode] == "text":
        raise SpecError(
            f"line 1: label {label.name!r} has a tag for each token, and mode {spec.mode!r} reads "
            "running text; send tokens, with mode 'pretokenized', 'retokenize' or "
            "'tokens_mwt'",
            line=1,
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
        "the dataset's examples in this language have, or ids that it has with other content."
    )

    @classmethod
    def of(cls, job: Job) -> Self:
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


RECONNECT: Final = "retry: 2000\n\n"
"""Time, in milliseconds, before a browser asks again."""

ALIVE: Final = ": alive\n\n"
"""A comment, which clients pass over."""


async def events(changes: AsyncIterator[Job | None], last_id: str | None) -> AsyncIterator[str]:
    """The events of a job until it has ended, or its changes are no longer followed.

    ``last_id`` is that of the event that the follower has already.
    """
    yield RECONNECT
    job: Job | None = None
    async for change in changes:
        job = change or job
        if change is None:
            yield ALIVE
        elif event_id(change) != last_id:
            yield _event("progress", change)
    if job is not None and not job.is_active:
        yield _event("end", job)


def event_id(job: Job) -> str:
    return blake2b(_data(job).encode(), digest_size=8).hexdigest()


def _event(name: str, job: Job) -> str:
    return f"event: {name}\nid: {event_id(job)}\ndata: {_data(job)}\n\n"


def _data(job: Job) -> str:
    return JobDetailAnswer.of(job).model_dump_json()
