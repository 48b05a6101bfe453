"""A job apart from where it is kept: request, shard, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from syntax.errors import ParsebankError
from syntax.examples import DatasetSpec, LongSentences
from syntax.fingerprint import MAX_WORDS, Fingerprint, fingerprint

JobState = Literal["queued", "running", "done", "failed", "cancelled"]

ACTIVE: tuple[JobState, ...] = ("queued", "running")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A backfill as it was asked for, with every name resolved at submission.

    Attributes:
        parser, tokenizer: Names to load them by.
        parser_fingerprint, tokenizer_fingerprint: Meaning of these names at submission.
        matrices: Store the matrices beside the vectors.
        max_words: Longest sentence; ``long_sentences`` says what becomes of a longer one.
        warnings: Warnings to the client at submission.
        shard: `K/N` if the upload is one shard of an array job.
    """

    dataset: DatasetSpec
    parser: str
    parser_fingerprint: Fingerprint
    tokenizer: str
    tokenizer_fingerprint: Fingerprint
    matrices: bool = True
    long_sentences: LongSentences = "refuse"
    max_words: int = MAX_WORDS
    warnings: tuple[str, ...] = ()
    shard: str | None = None

    @property
    def part(self) -> tuple[str, Fingerprint, str, str]:
        """The partition that the job writes to: dataset, tokenizer, split, language."""
        spec = self.dataset
        return spec.name, self.tokenizer_fingerprint, spec.split, spec.lang

    @property
    def target(self) -> Fingerprint:
        """Fingerprint of the partition; jobs with the same one run in turn."""
        return fingerprint([*self.part])

    @property
    def source(self) -> Fingerprint:
        """The texts and how they are parsed: what the tokenizers of one split have in common.

        Jobs with the same one run in turn, so that the first one's parses serve the others.
        """
        spec = self.dataset
        parsed = (spec.mode, self.parser_fingerprint, *self._split)
        return fingerprint([spec.name, spec.split, spec.lang, *parsed])

    @property
    def item_identity(self) -> tuple[str, ...]:
        """All that the keys of the job's items depend on, apart from the item itself."""
        identity = (self.dataset.mode, self.parser_fingerprint, self.tokenizer_fingerprint)
        return (*identity, *self._split)

    @property
    def _split(self) -> tuple[str, ...]:
        """The options that decide where sentences are split."""
        if self.long_sentences == "refuse":
            return ()
        limit = () if self.max_words == MAX_WORDS else (str(self.max_words),)
        return (self.long_sentences, *limit)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> JobRequest:
        return _REQUESTS.validate_python(content)


_REQUESTS: Final = TypeAdapter(JobRequest)


@dataclass(frozen=True, slots=True)
class Counts:
    """Account of examples: ``stored + already_stored + sum(dropped) == examples``.

    Attributes:
        examples: Examples and rejections that came.
        stored: Rows written.
        already_stored: Examples that the dataset held already; they are not written again.
        dropped: Examples that could not be used, by reason.
        parsed: Segments whose parse was made now.
        reused: Segments whose parse was there already, or came twice.
    """

    examples: int = 0
    stored: int = 0
    already_stored: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    parsed: int = 0
    reused: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            examples=self.examples + other.examples,
            stored=self.stored + other.stored,
            already_stored=self.already_stored + other.already_stored,
            dropped=dict(Counter(self.dropped) + Counter(other.dropped)),
            parsed=self.parsed + other.parsed,
            reused=self.reused + other.reused,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Shard:
    """A claimed shard: all that `run_shard` needs to know.

    Attributes:
        id: Row of the shard.
        job, number: The shard's job, and its number there.
        tries: Claims of the shard, this one included.
        first_seq: Position of the job's first example in the training order.
        plan: Counts that an earlier try announced before its commits (see `run_shard`).
        owner: Name of the process that has claimed it.
    """

    id: int
    job: str
    number: int
    tries: int
    first_seq: int
    request: JobRequest
    plan: Counts | None = None
    owner: str = ""

    @property
    def claim(self) -> tuple[int, int]:
        """Row and try: an owner whose lease ran out may claim the same shard once more."""
        return self.id, self.tries


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The jobs of a list: those in one of the states (any if empty), and of the dataset.

    The list goes on after the job whose id is ``before``, and has ``limit`` jobs at most.
    """

    states: tuple[JobState, ...] = ()
    dataset: str | None = None
    before: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class FailedShard:
    """A shard that was given up: how often it was tried, and its last error."""

    number: int
    tries: int
    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands; times are seconds since the epoch.

    ``failures`` are its first failed shards, where one job is shown; a list of jobs has none.
    """

    id: str
    state: JobState
    request: JobRequest
    shards: int
    shards_done: int
    shards_failed: int
    counts: Counts
    created: float
    started: float | None = None
    finished: float | None = None
    error: Mapping[str, Any] | None = None
    failures: tuple[FailedShard, ...] = ()

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


def error_json(error: BaseException, **where: Any) -> dict[str, Any]:
    """An error for a row or an answer; errors that are not ours keep their class name."""
    if isinstance(error, ParsebankError):
        return {"error_type": error.error_type, "message": error.message, **where}
    return {"error_type": type(error).__name__, "message": str(error), **where}
