"""One shard of a backfill, for every engine: staged lines in, committed rows and counts out.

Exactly once. A shard makes up to three commits: new parses, drops, rows; and a fourth if
parses have been evicted or deleted meanwhile. Parses are content-addressed, so repeating them is
harmless; drops and rows carry the shard's transaction, so each lands once however often the shard
runs, also on two workers at a time. Another job with the same examples, perhaps of other job
tables, has other transactions: what it committed before is left out.

Counts are exact, too. Before its first commit a try announces the counts of its commits. A later
try that finds nothing left to parse knows that the commits had begun, and reports what was
announced; by its own count, its rows would be "already stored". A later try that still has parses
to make knows that nothing was committed, and announces its own counts.

A shard of an array job has a job in each of its repetitions, so its transaction is named after its
lines. Two repetitions at the same time commit one of each shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from featurestore import Drop, ExampleRow, ParseRecord, Transaction
from service.jobs.lines import Work, read_item, rejection_of, sort_lines
from service.jobs.records import Counts, Shard
from service.jobs.staging import StagedLine
from service.jobs.tools import Analyser, Tools
from service.parsers.base import Outcome
from service.tokenizers import LoadedTokenizer
from syntax.alignment import batch_features
from syntax.batches import SegmentFeatures
from syntax.errors import InputError, LabelError, ParsebankError, TextTooSlowError, WorkerDiedError
from syntax.examples import DatasetSpec, Example, Rejection, Segment
from syntax.fingerprint import fingerprint
from syntax.labels import Offsets, check_labels, is_local, token_offsets
from syntax.trees.parse import Parse

STEP_CHARACTERS: Final = 8_000
"""Text that an analyser parses in one step, unless a text alone is longer.

These are some 1,500 words, enough to fill its batches."""

FIRST_LINE: Final = 2
"""Line of the upload's first example, after the specification."""

ALIGNED_TEXTS: Final = 256
"""Texts that are tokenized and aligned in one go."""


class Signals(Protocol):
    """The connection of a running shard to the process that runs it."""

    @property
    def fatal_keys(self) -> frozenset[str]:
        """Keys of texts on which workers died; these fail without another try."""
        ...

    @property
    def slow_keys(self) -> frozenset[str]:
        """Those of the fatal keys on which a worker had computed for long."""
        ...

    @property
    def isolated_keys(self) -> frozenset[str]:
        """Keys of texts that were in flight when a worker died; each is parsed alone."""
        ...

    def beat(self) -> None:
        """Begin a step: some texts, or a commit; raises to end the run."""
        ...

    def watch(self, *keys: str, characters: int = 0) -> None:
        """Record the keys and length of the texts that are parsed next; no keys, when done."""
        ...

    def announce(self, plan: Counts) -> None:
        """Save the counts of the coming commits."""
        ...


@dataclass(slots=True)
class Analyses:
    """The parse or error of each key of a shard; ``known`` parses were there, ``new`` ones not."""

    known: Sequence[ParseRecord] = ()
    parses: dict[str, Parse] = field(default_factory=dict)
    errors: dict[str, ParsebankError] = field(default_factory=dict)
    new: list[ParseRecord] = field(default_factory=list)


def run_shard(shard: Shard, lines: Sequence[StagedLine], tools: Tools, signals: Signals) -> Counts:
    """Parse, align and store the examples of one shard; after a `StoreError`, run it again.

    The counts have every line: an example with a segment that cannot be used is dropped and counted
    under the error's ``error_type``.
    """
    request, store = shard.request, tools.store
    stored = store.features.existing(*request.part, [line.key for line in lines])
    found = sort_lines(
        (
            (line, read_item(line.body, request.dataset), line.key in stored, line.is_repeat)
            for line in lines
        ),
        tools.analyser.key,
    )
    signals.beat()
    analyses = _analyse([*found.works, *found.repeats], shard, tools, signals)
    drops = [_drop(shard, line, rejection) for line, rejection in found.rejected]
    works = _usable(found.works, analyses, drops, shard)
    repeats = _usable(found.repeats, analyses, drops, shard)
    features = _features(works, analyses.parses, tools.tokenizer, signals)
    rows = [_row(shard, work, analyses.parses, features) for work in works]
    # Another job may have stored some while these were parsed.
    held = store.features.existing(*request.part, [row.example_key for row in rows])
    rows = [row for row in rows if row.example_key not in held]
    with_parse = found.already_parsed + sum(
        key in analyses.parses for work in (*found.works, *found.repeats) for key in work.keys
    )
    counts = Counts(
        examples=len(lines),
        stored=len(rows),
        already_stored=found.already_stored + len(repeats) + len(held),
        dropped=dict(Counter(drop.reason for drop in drops)),
        parsed=len(analyses.new),
        reused=with_parse - len(analyses.new),
    )
    if shard.plan is not None and not analyses.new:
        counts = shard.plan
    signals.beat()
    signals.announce(counts)
    _commit(shard, lines, tools, analyses, drops, rows)
    return counts


def _analyse(
    works: Sequence[Work[StagedLine]], shard: Shard, tools: Tools, signals: Signals
) -> Analyses:
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
        analyses.errors[key] = (
            TextTooSlowError(
                "the parser computes for longer on this text than job_text_seconds allows; shorten "
                "its long runs without white space, or raise job_text_seconds"
            )
            if key in signals.slow_keys
            else WorkerDiedError(
                "two workers died on this text, or took longer for it than job_text_seconds allows"
            )
        )
    if missing:  # else the parser need not be loaded
        for key, outcome in _outcomes(missing, tools.analyser, signals):
            _note(analyses, shard, key, outcome)
    signals.watch()
    return analyses


def _outcomes(
    segments: Mapping[str, Segment], analyser: Analyser, signals: Signals
) -> Iterator[tuple[str, Outcome]]:
    """The parse or error of each segment; the signals know which are in flight.

    No text is in flight while the parser is loaded, as its failure is not a text's fault.
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
    """The keys in chunks for a bulk analyser; the isolated ones come first, each alone."""
    yield from ([key] for key in segments if key in isolated_keys)
    chunk: list[str] = []
    size = 0
    for key, segment in segments.items():
        if key in isolated_keys:
            continue
        if chunk and size + segment.characters > STEP_CHARACTERS:
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


def _usable(
    works: Sequence[Work[StagedLine]], analyses: Analyses, drops: list[Drop], shard: Shard
) -> list[Work[StagedLine]]:
    """The examples without an error; the others join the drops."""
    good: list[Work[StagedLine]] = []
    for work in works:
        errors = [analyses.errors[key] for key in work.keys if key in analyses.errors]
        error = errors[0] if errors else None
        if error is None:
            parses = [analyses.parses[key] for key in work.keys]
            error = label_error(shard.request.dataset, work.example, parses)
        if error is not None:
            drops.append(_drop(shard, work.line, rejection_of(work.example, error)))
        else:
            good.append(work)
    return good


def _features(
    works: Sequence[Work[StagedLine]],
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
    work: Work[StagedLine],
    parses: Mapping[str, Parse],
    features: Mapping[str, SegmentFeatures],
) -> ExampleRow:
    line = work.line
    return ExampleRow(
        # In an array job, the position in the whole upload.
        seq=line.line - FIRST_LINE if shard.request.shard else shard.first_seq + line.position,
        example_id=work.example.example_id,
        example_key=line.key,
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


def _commit(
    shard: Shard,
    lines: Sequence[StagedLine],
    tools: Tools,
    analyses: Analyses,
    drops: Sequence[Drop],
    rows: Sequence[ExampleRow],
) -> None:
    store, request = tools.store, shard.request
    name = f"{shard.job}/{shard.number}"
    if request.shard is not None:
        name = fingerprint([request.target, *(line.key for line in lines)])
    transaction = Transaction(name)
    missing = {*store.parses.missing([record.key for record in analyses.new])}
    store.parses.append([record for record in analyses.new if record.key in missing])
    if drops:
        store.drops.append_new(drops, transaction)
    if rows:
        written = store.features.append(tools.handle, rows, transaction)
        if request.shard and not written:
            # An earlier run committed this shard. If its rows were deleted since, they come again.
            store.features.append_new(tools.handle, rows)
        store.parses.keep([*analyses.known, *analyses.new])


def _drop(shard: Shard, line: StagedLine, rejection: Rejection) -> Drop:
    request, spec = shard.request, shard.request.dataset
    return Drop(
        dataset=spec.name,
        tokenizer=request.tokenizer_fingerprint,
        split=spec.split,
        lang=spec.lang,
        job=shard.job,
        example_id=rejection.example_id,
        example_key=line.key,
        reason=rejection.reason,
        message=rejection.message,
    )


_NONE: Final = np.empty((0, 2), np.int32)


def given_tokens(segment: Segment, parse: Parse) -> Offsets:
    """Start and end of a segment's tokens in its text, (T, 2), as the dataset has them.

    Running text has none. A parser may have cut the text otherwise.
    """
    if segment.tokens is not None:
        return token_offsets(segment.tokens)
    if segment.conllu is not None:
        return np.array([parse.token_start, parse.token_end], np.int32).T
    return _NONE


def label_error(spec: DatasetSpec, example: Example, parses: Sequence[Parse]) -> LabelError | None:
    """The fault of an example's tags and spans, if they do not fit the parsed segments."""
    if not any(map(is_local, spec.labels)):
        return None
    tokens = list(map(given_tokens, example.segments, parses))
    texts = [parse.text for parse in parses]
    try:
        check_labels(spec.labels, spec.fields, example.labels, texts, tokens)
    except LabelError as error:
        return error
    return None
