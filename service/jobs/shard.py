"""One shard of a backfill, for every engine: staged lines in, committed rows and counts out.

Exactly once. A shard makes up to three commits: new parses, drops, rows; and a fourth if
parses have been evicted or deleted meanwhile. Parses are content-addressed, so repeating them is
harmless; drops and rows carry the shard's transaction, so each lands once however often the shard
runs, and any other worker that still runs it.

Counts are exact too. Before its first commit a try announces the counts it is about to bring
about. A later try that finds nothing left to parse knows that the commits had begun, and reports
what was announced rather than what it finds (its own rows, "already stored"). A later try that
still has parses to make knows that nothing was committed, and announces its own counts.

A shard of an array job has a job in each of its repetitions, so its transaction is named after its
lines. Two repetitions at the same time commit one of each shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from featurestore import Drop, ExampleRow, FeatureStore, ParseRecord, Transaction
from featurestore.records import DatasetHandle
from service.jobs.analysers import Analyser
from service.jobs.labels import given_tokens, label_error
from service.jobs.lines import read_item
from service.jobs.records import Counts, Shard
from service.jobs.staging import StagedLine
from service.jobs.steps import STEP_CHARACTERS
from service.parsers.base import Outcome
from service.tokenizers import LoadedTokenizer
from syntax.alignment import batch_features
from syntax.batches import SegmentFeatures
from syntax.errors import InputError, ParsebankError, WorkerDiedError
from syntax.examples import Example, Rejection, Segment
from syntax.fingerprint import fingerprint
from syntax.reasons import drop_reason
from syntax.trees.parse import Parse

KEPT_KEYS: Final = 1_024
"""Segments whose key is remembered within a shard."""

BULK_CHARACTERS: Final = STEP_CHARACTERS
"""Text that a bulk analyser is given at once, some 1,500 words: enough to fill its batches."""

FIRST_LINE: Final = 2
"""Number of the upload's first example; the specification stands before it."""

ALIGNED_TEXTS: Final = 256
"""Texts that are tokenized and aligned in one go."""


class Signals(Protocol):
    """The connection of a running shard to the process that runs it."""

    @property
    def fatal_keys(self) -> frozenset[str]:
        """Keys of texts on which workers died; they fail without another try."""
        ...

    @property
    def isolated_keys(self) -> frozenset[str]:
        """Keys of texts that were in flight when a worker died; each is parsed alone."""
        ...

    def beat(self) -> None:
        """Heartbeat before each text and commit; raises to end the run."""
        ...

    def watch(self, *keys: str, characters: int = 0) -> None:
        """Record the keys and length of the texts that are parsed next; no keys, when done."""
        ...

    def announce(self, plan: Counts) -> None:
        """Save the counts of the coming commits."""
        ...


@dataclass(frozen=True)
class Tools:
    """What a job's shards are run with.

    Attributes:
        store: Where parses are looked up and everything is committed.
        handle: Dataset and partition of the rows.
        analyser: Makes the parses that are missing.
        tokenizer: Makes the pieces.
    """

    store: FeatureStore
    handle: DatasetHandle
    analyser: Analyser
    tokenizer: LoadedTokenizer


@dataclass(frozen=True, slots=True)
class Work:
    """An example that needs a row, and the key of each segment's parse."""

    line: StagedLine
    example: Example
    keys: tuple[str, ...]


@dataclass(slots=True)
class Sorted:
    """The lines of a shard by what has to be done about them."""

    works: list[Work] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    already_stored: int = 0
    already_parsed: int = 0


@dataclass(slots=True)
class Analyses:
    """The outcome of each distinct parse key of a shard, and which parses were there or are new."""

    known: Sequence[ParseRecord] = ()
    parses: dict[str, Parse] = field(default_factory=dict)
    errors: dict[str, ParsebankError] = field(default_factory=dict)
    new: list[ParseRecord] = field(default_factory=list)


def run_shard(shard: Shard, lines: Sequence[StagedLine], tools: Tools, signals: Signals) -> Counts:
    """Parse, align and store the examples of one shard.

    Args:
        shard: Which shard it is, and what its job asks for.
        lines: Its staged lines.
        tools: Store, parser and tokenizer.
        signals: Called back on the way.

    Returns:
        The account of every line; an example with a segment that cannot be used is dropped and
        counted under the error's ``error_type``.

    Raises:
        StoreError: The store could not be read or written; running again is safe.
    """
    work = _sort(shard, lines, tools)
    signals.beat()
    analyses = _analyse(work.works, shard, tools, signals)
    rows = _rows(work, analyses, shard, tools, signals)
    counts = _counts(len(lines), work, rows, analyses)
    if shard.plan is not None and not analyses.new:
        counts = shard.plan
    signals.beat()
    signals.announce(counts)
    _commit(shard, lines, tools, analyses, work.drops, rows)
    return counts


def _sort(shard: Shard, lines: Sequence[StagedLine], tools: Tools) -> Sorted:
    work = Sorted()
    stored = _stored(shard, lines, tools.store)
    # Premises and passages come many times in a row.
    key = lru_cache(maxsize=KEPT_KEYS)(tools.analyser.key)
    for line in lines:
        item = read_item(line.body, shard.request.dataset)
        if isinstance(item, Rejection):
            work.drops.append(_drop(shard, line, item.example_id, item.reason, item.message))
        elif line.is_repeat or line.key in stored:
            work.already_stored += 1
            work.already_parsed += len(item.segments)
        else:
            _sort_example(work, shard, line, item, key)
    return work


def _stored(shard: Shard, lines: Sequence[StagedLine], store: FeatureStore) -> set[str]:
    request, spec = shard.request, shard.request.dataset
    return store.features.existing(
        spec.name,
        request.tokenizer_fingerprint,
        spec.split,
        spec.lang,
        [line.key for line in lines],
    )


def _sort_example(
    work: Sorted,
    shard: Shard,
    line: StagedLine,
    example: Example,
    key: Callable[[Segment], str],
) -> None:
    try:
        keys = tuple(map(key, example.segments))
    except InputError as error:
        work.drops.append(_drop_for(shard, line, example, error))
    else:
        work.works.append(Work(line, example, keys))


def _analyse(works: Sequence[Work], shard: Shard, tools: Tools, signals: Signals) -> Analyses:
    segments = {
        key: segment
        for work in works
        for key, segment in zip(work.keys, work.example.segments, strict=True)
    }
    known = tools.store.parses.get_many(list(segments))
    parses = {key: record.parse for key, record in known.items()}
    analyses = Analyses([*known.values()], parses)
    missing = {key: segment for key, segment in segments.items() if key not in known}
    for key in signals.fatal_keys & missing.keys():
        del missing[key]
        analyses.errors[key] = WorkerDiedError(
            "two workers died on this text, or took longer for it than job_text_seconds allows"
        )
    if missing:  # else the parser need not be loaded
        for key, outcome in _outcomes(missing, tools.analyser, signals):
            _note(analyses, shard, key, outcome)
    signals.watch()
    return analyses


def _outcomes(
    segments: Mapping[str, Segment], analyser: Analyser, signals: Signals
) -> Iterator[tuple[str, Outcome]]:
    """The parse or error of each segment; the signals always know which are in flight.

    None is while the parser is loaded, which is no text's fault.
    """
    if not analyser.bulk:
        outcomes = analyser.analyse(list(segments.values()))
        for key in segments:
            signals.beat()
            signals.watch(key, characters=segments[key].characters)
            yield key, next(outcomes)
        return
    for keys in _chunks(segments, signals.isolated_keys):
        signals.beat()
        outcomes = analyser.analyse([segments[key] for key in keys])
        signals.watch(*keys, characters=sum(segments[key].characters for key in keys))
        yield from zip(keys, list(outcomes), strict=True)


def _chunks(segments: Mapping[str, Segment], isolated_keys: Set[str]) -> Iterator[list[str]]:
    """The keys in chunks for a bulk analyser; the doubtful come first, each alone."""
    yield from ([key] for key in segments if key in isolated_keys)
    chunk: list[str] = []
    size = 0
    for key, segment in segments.items():
        if key in isolated_keys:
            continue
        if chunk and size + segment.characters > BULK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
        chunk.append(key)
        size += segment.characters
    if chunk:
        yield chunk


def _note(analyses: Analyses, shard: Shard, key: str, outcome: Outcome) -> None:
    if isinstance(outcome, InputError | WorkerDiedError):
        analyses.errors[key] = outcome
    elif isinstance(outcome, ParsebankError):
        raise outcome
    else:
        request = shard.request
        analyses.parses[key] = outcome
        analyses.new.append(
            ParseRecord(
                key, request.dataset.lang, request.parser_fingerprint, request.dataset.mode, outcome
            )
        )


def _rows(
    work: Sorted, analyses: Analyses, shard: Shard, tools: Tools, signals: Signals
) -> list[ExampleRow]:
    """A row for each example without an error; the others join the drops."""
    good: list[Work] = []
    for item in work.works:
        if error := _error_of(item, analyses, shard):
            work.drops.append(_drop_for(shard, item.line, item.example, error))
        else:
            good.append(item)
    features = _features(good, analyses.parses, tools.tokenizer, signals)
    return [_row(shard, item, analyses.parses, features) for item in good]


def _error_of(work: Work, analyses: Analyses, shard: Shard) -> ParsebankError | None:
    errors = [analyses.errors[key] for key in work.keys if key in analyses.errors]
    if errors:
        return errors[0]
    parses = [analyses.parses[key] for key in work.keys]
    return label_error(shard.request.dataset, work.example, parses)


def _features(
    works: Sequence[Work],
    parses: Mapping[str, Parse],
    tokenizer: LoadedTokenizer,
    signals: Signals,
) -> dict[str, SegmentFeatures]:
    keys = list(dict.fromkeys(key for work in works for key in work.keys))
    features: dict[str, SegmentFeatures] = {}
    for start in range(0, len(keys), ALIGNED_TEXTS):
        signals.beat()
        group = keys[start : start + ALIGNED_TEXTS]
        parsed = [parses[key] for key in group]
        pieces = tokenizer.encode_flat([parse.text for parse in parsed])
        features.update(zip(group, batch_features(parsed, *pieces), strict=True))
    return features


def _row(
    shard: Shard,
    work: Work,
    parses: Mapping[str, Parse],
    features: Mapping[str, SegmentFeatures],
) -> ExampleRow:
    return ExampleRow(
        seq=_place(shard, work.line),
        example_id=work.example.example_id,
        example_key=work.line.key,
        parser=shard.request.parser_fingerprint,
        texts=tuple(parses[key].text for key in work.keys),
        parse_keys=work.keys,
        segments=tuple(features[key] for key in work.keys),
        labels=work.example.labels,
        tokens=tuple(
            given_tokens(segment, parses[key])
            for segment, key in zip(work.example.segments, work.keys, strict=True)
        ),
    )


def _counts(lines: int, work: Sorted, rows: Sequence[ExampleRow], analyses: Analyses) -> Counts:
    usable = sum(key in analyses.parses for item in work.works for key in item.keys)
    return Counts(
        examples=lines,
        stored=len(rows),
        already_stored=work.already_stored,
        dropped=dict(Counter(drop.reason for drop in work.drops)),
        parsed=len(analyses.new),
        reused=work.already_parsed + usable - len(analyses.new),
    )


def _place(shard: Shard, line: StagedLine) -> int:
    """The line's position in training order; in an array job, that of the whole."""
    return line.line - FIRST_LINE if shard.request.shard else shard.first_seq + line.position


def _transaction(shard: Shard, lines: Sequence[StagedLine]) -> Transaction:
    request = shard.request
    if request.shard is None:
        return Transaction(f"{shard.job}/{shard.number}")
    return Transaction(fingerprint([request.target, *(line.key for line in lines)]))


def _commit(
    shard: Shard,
    lines: Sequence[StagedLine],
    tools: Tools,
    analyses: Analyses,
    drops: Sequence[Drop],
    rows: Sequence[ExampleRow],
) -> None:
    store, transaction = tools.store, _transaction(shard, lines)
    if analyses.new:
        store.parses.append(analyses.new)
    if drops:
        store.drops.append_new(drops, transaction)
    if rows:
        written = store.features.append(tools.handle, rows, transaction)
        if shard.request.shard and not written:
            # An earlier run committed this shard. If its rows were deleted since, they come again.
            store.features.append_new(tools.handle, rows)
        store.parses.keep([*analyses.known, *analyses.new])


def _drop_for(shard: Shard, line: StagedLine, example: Example, error: ParsebankError) -> Drop:
    return _drop(shard, line, example.example_id, drop_reason(error), error.message)


def _drop(shard: Shard, line: StagedLine, example_id: str, reason: str, message: str) -> Drop:
    request, spec = shard.request, shard.request.dataset
    return Drop(
        dataset=spec.name,
        tokenizer=request.tokenizer_fingerprint,
        split=spec.split,
        lang=spec.lang,
        job=shard.job,
        example_id=example_id,
        example_key=line.key,
        reason=reason,
        message=message,
    )
