"""Analysers: make a parse of a segment with a parser, or from its gold trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final, Protocol, cast, get_args

from service.parsers import (
    Limits,
    ParseInput,
    Parser,
    ParserIdentity,
)
from service.parsers.base import Outcome
from service.pipeline.inputs import check_input, parse_key
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
        """Whether segments are analysed faster together than one by one."""
        ...

    def key(self, segment: Segment) -> str:
        """Key of the segment's parse, 32 hexadecimal digits.

        Raises:
            InputError: No parser could analyse the segment.
        """
        ...

    def analyse(self, segments: Sequence[Segment]) -> Iterator[Outcome]:
        """The parse, or the error, of each segment that has a key; in order.

        The call loads the model if needed. Unless the analyser is `bulk`, a segment is parsed only
        when its outcome is requested.
        """
        ...


class TextAnalyser:
    """Parses texts and tokens; the model is loaded when the first parse is missing.

    Args:
        identity: The parser.
        load: Returns the loaded parser.
        lang: Language of the job.
        mode: Mode of the segments.
        limits: Limits of the texts.
        long_sentences: How sentences over the limit are treated.
    """

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
        """See `Analyser.key`."""
        item = self._input(segment)
        check_input(item, self._limits)
        return parse_key(self._identity, self._lang, item)

    def analyse(self, segments: Sequence[Segment]) -> Iterator[Outcome]:
        """See `Analyser.analyse`."""
        return self._parser.parse_many([*map(self._input, segments)], self._limits)

    @cached_property
    def _parser(self) -> Parser:
        return self._load()

    def _input(self, segment: Segment) -> ParseInput:
        return ParseInput(self._mode, segment.text, segment.tokens, self._long_sentences)


class GoldAnalyser:
    """Reads the trees of CoNLL-U segments.

    Args:
        lang: Language of the job.
        limits: Limits of the CoNLL-U.
    """

    bulk = False

    def __init__(self, lang: str, limits: Limits) -> None:
        self._lang = lang
        self._limits = limits

    def key(self, segment: Segment) -> str:
        """See `Analyser.key`."""
        check_input(ParseInput("raw", segment.conllu), self._limits)
        return fingerprint([GOLD.fingerprint, self._lang, "gold", segment.conllu])

    def analyse(self, segments: Sequence[Segment]) -> Iterator[Outcome]:
        """See `Analyser.analyse`."""
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


def parse_mode(mode: str) -> ParseMode:
    """The parser's mode of a job that is not gold."""
    if mode not in get_args(ParseMode):
        raise SpecError(f"no parser reads mode {mode!r}")
    return cast(ParseMode, mode)


def same_parser(expected: Fingerprint, identity: ParserIdentity) -> ParserIdentity:
    """Check that the parser is the one that the job was accepted with.

    Raises:
        SpecError: The model or its library has changed.
    """
    if identity.fingerprint != expected:
        raise SpecError(
            f"the parser {identity.name!r} is {identity.fingerprint} now and was {expected} when "
            "the job was accepted; send the backfill again to use the new one",
            expected=expected,
            found=identity.fingerprint,
        )
    return identity
