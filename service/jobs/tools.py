"""The tools of a job's shards: parser, tokenizer and dataset, loaded once per process."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from featurestore import FeatureStore, open_store
from featurestore.records import DatasetHandle
from featurestore.tables.encode.blobs import many_matrix_blobs
from service.jobs.analysers import (
    GOLD,
    Analyser,
    GoldAnalyser,
    TextAnalyser,
    parse_mode,
    same_parser,
)
from service.jobs.records import JobRequest
from service.jobs.shard import Tools
from service.parsers import (
    BACKENDS,
    Limits,
    Parser,
    ParserIdentity,
    find_parser,
    identify,
    load_parser,
)
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from service.tokenizers import LoadedTokenizer
from syntax.alignment import batch_features
from syntax.errors import SpecError
from syntax.examples import Segment
from syntax.fingerprint import Fingerprint
from syntax.trees.parse import Parse

KEPT = 2
"""Parsers that a worker keeps: those of the current and the previous job."""


class Toolbox:
    """Makes the `Tools` of each job.

    Args:
        settings: Folder of models, and limits.
        store: The store.
    """

    def __init__(self, settings: Settings, store: FeatureStore) -> None:
        self._settings = settings
        self._store = store
        self._tokenizers = TokenizerCache(settings, anywhere=True)
        self._parser = lru_cache(maxsize=KEPT)(self._load_parser)
        self._described: set[Fingerprint] = set()

    def tools(self, request: JobRequest) -> Tools:
        """The tools for one job; its fingerprints are described in the store.

        Raises:
            UnknownNameError: The parser or tokenizer no longer exists.
            SpecError: The parser or tokenizer has changed since the job was accepted.
            ModelLoadError: The model's file is missing or damaged.
        """
        identity = self._identity(request)
        tokenizer = self._tokenizers.get(request.tokenizer)
        _same_tokenizer(request.tokenizer_fingerprint, tokenizer)
        self._describe(identity, tokenizer)
        return Tools(
            store=self._store,
            handle=dataset_handle(request, tokenizer),
            analyser=self.analyser(request),
            tokenizer=tokenizer,
        )

    def _identity(self, request: JobRequest) -> ParserIdentity:
        identity = parser_identity(self._settings, request.dataset.mode, request.parser)
        return same_parser(request.parser_fingerprint, identity)

    def analyser(self, request: JobRequest) -> Analyser:
        """The analyser of one job's segments; it loads the parser at the first parse."""
        identity, spec = self._identity(request), request.dataset
        limits = job_limits(self._settings)
        if spec.mode == "gold":
            return GoldAnalyser(spec.lang, limits)
        return TextAnalyser(
            identity,
            lambda: self._parser(request.parser),
            spec.lang,
            parse_mode(spec.mode),
            limits,
            long_sentences=request.long_sentences,
        )

    def makes_cycles(self, request: JobRequest) -> bool:
        """Whether a job's parser makes reference cycles."""
        if request.dataset.mode == "gold":
            return False
        return BACKENDS[find_parser(self._settings, request.parser).backend].bulk

    def _load_parser(self, name: str) -> Parser:
        return load_parser(find_parser(self._settings, name), self._settings.device)

    def _describe(self, identity: ParserIdentity, tokenizer: LoadedTokenizer) -> None:
        contents = {
            identity.fingerprint: ("parser", identity.description),
            tokenizer.fingerprint: ("tokenizer", {"name": tokenizer.name, **tokenizer.content}),
        }
        for key, (kind, content) in contents.items():
            if key not in self._described:
                self._store.describe(key, kind, content)
                self._described.add(key)


def shard_store(uri: str) -> FeatureStore:
    """The store for workers, without a cache: shards do not share data."""
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
    """Identity of a parser by its name; nothing is loaded.

    Raises:
        UnknownParserError: There is no parser with this name.
        ModelLoadError: Its file is missing or not the one that its card describes.
    """
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


def job_limits(settings: Settings) -> Limits:
    """Limits of texts, the same as for interactive routes."""
    return Limits(settings.max_chars_per_text, settings.max_words_per_sentence)


def _same_tokenizer(expected: Fingerprint, tokenizer: LoadedTokenizer) -> None:
    if tokenizer.fingerprint != expected:
        raise SpecError(
            f"the tokenizer {tokenizer.name!r} is {tokenizer.fingerprint} now and was {expected} "
            "when the job was accepted; send the backfill again to use the new one",
            expected=expected,
            found=tokenizer.fingerprint,
        )
