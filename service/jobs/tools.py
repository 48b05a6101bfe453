"""The tools of a job's shards: analyser, tokenizer and dataset, loaded once per process.

An analyser makes the parse of a segment with a parser, or from its gold trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Protocol

import numpy as np

from featurestore import FeatureStore, open_store
from featurestore.records import DatasetHandle
from featurestore.tables.encode.blobs import many_matrix_blobs
from service.jobs.records import JobRequest
from service.parsers import (
    BACKENDS,
    Limits,
    ParseInput,
    Parser,
    ParserIdentity,
    find_parser,
    identify,
    load_parser,
)
from service.parsers.base import Outcome
from service.pipeline.inputs import check_input, parse_key
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from service.tokenizers import LoadedTokenizer
from syntax.alignment import batch_features
from syntax.errors import ParsebankError, SentenceTooLongError, SpecError
from syntax.examples import LongSentences, ParseMode, Segment
from syntax.fingerprint import Fingerprint, fingerprint
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.parse import Parse

GOLD: Final = ParserIdentity("gold", (), {"backend": "gold", "version": 1})
"""The identity of gold trees, in place of a parser."""


class Analyser(Protocol):
    """Analyses the segments of one job."""

    @property
    def bulk(self) -> bool:
        """Segments are analysed faster together than one by one."""
        ...

    def key(self, segment: Segment) -> str:
        """Key of the segment's parse, 32 hexadecimal digits; `InputError` if it has none."""
        ...

    def analyse(self, segments: Sequence[Segment]) -> Iterator[Outcome]:
        """The parse, or the error, of each segment that has a key; in order.

        The call loads the model if needed. Unless the analyser is `bulk`, a segment is parsed only
        when its outcome is requested.
        """
        ...


class TextAnalyser:
    """Parses texts and tokens; ``load`` loads the parser when the first parse is missing."""

    bulk = True

    def __init__(
        self,
        identity: ParserIdentity,
        load: Callable[[], Parser],
        lang: str,
        mode: ParseMode,
        limits: Limits,
        *,
        long_sentences: LongSentences = "refuse",
    ) -> None:
        self._identity = identity
        self._load = load
        self._lang = lang
        self._mode = mode
        self._limits = limits
        self._long_sentences: LongSentences = long_sentences

    def key(self, segment: Segment) -> str:
        item = self._input(segment)
        check_input(item, self._limits)
        return parse_key(self._identity, self._lang, item, self._limits)

    def analyse(self, segments: Sequence[Segment]) -> Iterator[Outcome]:
        return self._parser.parse_many([*map(self._input, segments)], self._limits)

    @cached_property
    def _parser(self) -> Parser:
        return self._load()

    def _input(self, segment: Segment) -> ParseInput:
        return ParseInput(self._mode, segment.text, segment.tokens, self._long_sentences)


class GoldAnalyser:
    """Reads the trees of CoNLL-U segments."""

    bulk = False

    def __init__(self, lang: str, limits: Limits) -> None:
        self._lang = lang
        self._limits = limits

    def key(self, segment: Segment) -> str:
        check_input(ParseInput("raw", segment.conllu), self._limits)
        return fingerprint([GOLD.fingerprint, self._lang, "gold", segment.conllu])

    def analyse(self, segments: Sequence[Segment]) -> Iterator[Outcome]:
        for segment in segments:
            try:
                yield self._parse(segment)
            except ParsebankError as error:
                yield error

    def _parse(self, segment: Segment) -> Parse:
        sentences = list(parse_conllu(segment.conllu or ""))
        longest = max((len(sentence.words) for sentence in sentences), default=0)
        if longest > self._limits.max_words_per_sentence:
            raise SentenceTooLongError(
                f"a sentence has {longest} words; at most {self._limits.max_words_per_sentence} "
                "are accepted",
                words=longest,
                limit=self._limits.max_words_per_sentence,
            )
        return parse_from_sentences(sentences)


def check_same(kind: str, expected: Fingerprint, found: ParserIdentity | LoadedTokenizer) -> None:
    """Raise `SpecError` if a parser or tokenizer has changed since the job was accepted."""
    if found.fingerprint != expected:
        raise SpecError(
            f"the {kind} {found.name!r} is {found.fingerprint} now and was {expected} when the job "
            "was accepted; send the backfill again to use the new one",
            expected=expected,
            found=found.fingerprint,
        )


@dataclass(frozen=True)
class Tools:
    """The tools of one job's shards; ``handle`` is the dataset and partition of the rows."""

    store: FeatureStore
    handle: DatasetHandle
    analyser: Analyser
    tokenizer: LoadedTokenizer


KEPT = 2
"""Parsers that a worker keeps: those of the current and the previous job."""


class ToolCache:
    """Makes the `Tools` of each job, and keeps what it has loaded."""

    def __init__(self, settings: Settings, store: FeatureStore) -> None:
        self._settings = settings
        self._store = store
        self._tokenizers = TokenizerCache(settings, anywhere=True)
        self._parser = lru_cache(maxsize=KEPT)(self._load_parser)
        self._described: set[Fingerprint] = set()

    def load_tokenizer(self, name: str) -> None:
        """Load a tokenizer of a coming job, which tells its error."""
        with suppress(ParsebankError):
            self._tokenizers.get(name)

    def tools(self, request: JobRequest) -> Tools:
        """The tools for one job; its fingerprints are described in the store."""
        identity = self._identity(request)
        tokenizer = self._tokenizers.get(request.tokenizer)
        check_same("tokenizer", request.tokenizer_fingerprint, tokenizer)
        contents = {
            identity.fingerprint: ("parser", identity.description),
            tokenizer.fingerprint: ("tokenizer", {"name": tokenizer.name, **tokenizer.content}),
        }
        for key, (kind, content) in contents.items():
            if key not in self._described:
                self._store.describe(key, kind, content)
                self._described.add(key)
        return Tools(
            store=self._store,
            handle=dataset_handle(request, tokenizer),
            analyser=self.analyser(request),
            tokenizer=tokenizer,
        )

    def _identity(self, request: JobRequest) -> ParserIdentity:
        identity = parser_identity(self._settings, request.dataset.mode, request.parser)
        check_same("parser", request.parser_fingerprint, identity)
        return identity

    def analyser(self, request: JobRequest) -> Analyser:
        """The analyser of one job's segments; it loads the parser at the first parse."""
        identity, spec = self._identity(request), request.dataset
        limits = Limits(self._settings.max_chars_per_text, request.max_words)
        if spec.mode == "gold":
            return GoldAnalyser(spec.lang, limits)
        return TextAnalyser(
            identity,
            lambda: self._parser(request.parser, request.parser_fingerprint),
            spec.lang,
            spec.mode,
            limits,
            long_sentences=request.long_sentences,
        )

    def makes_cycles(self, request: JobRequest) -> bool:
        """A job's parser makes reference cycles."""
        if request.dataset.mode == "gold":
            return False
        return BACKENDS[find_parser(self._settings, request.parser).backend].bulk

    def _load_parser(self, name: str, expected: Fingerprint) -> Parser:
        # The file may have changed since the job's check, as this loads at the first parse.
        parser = load_parser(find_parser(self._settings, name), self._settings.device)
        check_same("parser", expected, parser.identity)
        return parser


def shard_store(uri: str) -> FeatureStore:
    """Open the store for a worker, without a cache: shards do not share data."""
    return open_store(uri, cache_items=0)


def load_kernels() -> None:
    """Run every compiled kernel once.

    Loading them takes half a second; compiling them after an installation takes ten. A worker does
    it before it holds a lease.
    """
    conllu = Segment(conllu="1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    (parse,) = GoldAnalyser("en", Limits()).analyse([conllu])
    assert isinstance(parse, Parse)
    ids, offsets = np.array([1], np.int32), np.array([[0, 1]], np.int32)
    (features,) = batch_features([parse], ids, offsets, [1])
    many_matrix_blobs([features.head])


def parser_identity(settings: Settings, mode: str, name: str) -> ParserIdentity:
    """Identity of a parser by its name; nothing is loaded."""
    return GOLD if mode == "gold" else identify(find_parser(settings, name))


def dataset_handle(request: JobRequest, tokenizer: LoadedTokenizer) -> DatasetHandle:
    """The dataset of a job's rows."""
    return DatasetHandle(
        spec=request.dataset,
        tokenizer=request.tokenizer,
        tokenizer_fingerprint=tokenizer.fingerprint,
        special_tokens=tokenizer.special_tokens,
        matrices=request.matrices,
    )
