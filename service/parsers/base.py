"""The parser protocol, free of HTTP and store; docs/extend/parser.md says how to add a parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from syntax import Fingerprint, Parse, fingerprint
from syntax.errors import ParsebankError
from syntax.examples import LongSentences, ParseMode
from syntax.fingerprint import MAX_WORDS

Outcome = Parse | ParsebankError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParseInput:
    """One text to parse: ``text``, or the ``tokens`` of `syntax.examples.TOKEN_MODES`.

    Attributes:
        tags: With ``pretokenized`` and UDPipe: lemma, upos, xpos and feats of each token, which the
            parser then follows instead of its own tagger.
    """

    mode: ParseMode
    text: str | None = None
    tokens: tuple[str, ...] | None = None
    long_sentences: LongSentences = "refuse"
    tags: tuple[tuple[str, str, str, str], ...] | None = None

    @property
    def characters(self) -> int:
        """Length in code points, joining spaces included."""
        if self.tokens is not None:
            return sum(map(len, self.tokens)) + max(len(self.tokens) - 1, 0)
        return len(self.text or "")

    @property
    def words(self) -> int:
        """Estimated number of words; scripts without spaces are counted by their characters."""
        if self.tokens is not None:
            return len(self.tokens)
        return max(len((self.text or "").split()), self.characters // _CHARACTERS_PER_WORD)

    @property
    def joined(self) -> str:
        """Text that offsets refer to: as received, or the tokens joined by single spaces."""
        return " ".join(self.tokens) if self.tokens is not None else self.text or ""


_CHARACTERS_PER_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the input.

    They are not part of a parser's identity: within them they change no answer, except where
    long sentences are split. The key of a parse says so (`syntax.fingerprint.parse_key`).
    """

    max_chars_per_text: int = 200_000
    max_words_per_sentence: int = MAX_WORDS


@dataclass(frozen=True)
class ParserIdentity:
    """Everything that decides a parser's answers.

    Attributes:
        name: Backend and model, such as ``udpipe/english-ewt``.
        langs: ISO codes that it serves; empty if unknown.
        content: Backend, its version, model name, SHA-256 of the model's file, options.
        origin: Facts that decide nothing: treebank, licence, LAS (`records.card_las`).
    """

    name: str
    langs: tuple[str, ...]
    content: dict[str, Any] = field(hash=False)
    origin: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def description(self) -> dict[str, Any]:
        return {"name": self.name, **self.origin, **self.content}

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Fingerprint of ``content``; it goes into every parse key."""
        return fingerprint(self.content)


class Parser(Protocol):
    """A loaded model. Not thread-safe: one process, one parser, one call at a time."""

    @property
    def identity(self) -> ParserIdentity: ...

    def parse(self, item: ParseInput, limits: Limits) -> Parse:
        """Parse one text that `service.pipeline.check_input` has accepted.

        Raises:
            TextError: The text holds no word, or a sentence longer than the limit that is not to
                be cut; or the library fails on it.
            TreeError: The model gave a sentence whose heads form no tree.
        """
        ...

    def parse_many(self, items: Sequence[ParseInput], limits: Limits) -> Iterator[Outcome]:
        """Parse texts; a parser may give none before all are done, unlike `one_by_one`."""
        ...


def one_by_one(parser: Parser, items: Iterable[ParseInput], limits: Limits) -> Iterator[Outcome]:
    for item in items:
        yield attempt(parser.parse, item, limits)


def attempt(do: Callable[..., T], *arguments: Any) -> T | ParsebankError:
    try:
        return do(*arguments)
    except ParsebankError as error:
        return error


@dataclass(frozen=True)
class ModelFile:
    """A model on disk and its recorded facts; nothing is loaded yet.

    Attributes:
        backend, name: Such as ``udpipe.v1`` and ``udpipe/english-ewt``.
        path: The model's file, or the folder that its library is pointed at.
        langs: ISO codes of its languages.
        sha256: Recorded checksum (`service.parsers.registry.checksum`), if any.
        card: Recorded facts: language, treebank, licence, ...; may be empty.
        parts: The files of a model that is more than one file.
        problem: Why its record cannot be read; such a model is listed, not loaded.
    """

    backend: str
    name: str
    path: Path
    langs: tuple[str, ...]
    sha256: str | None = None
    card: dict[str, Any] = field(default_factory=dict, hash=False)
    parts: tuple[Path, ...] = ()
    problem: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        return self.parts or (self.path,)

    @property
    def size(self) -> int:
        return sum(file.stat().st_size for file in self.files)


@dataclass(frozen=True)
class Backend:
    """A kind of model.

    Attributes:
        family: First part of its models' names.
        find: Its models directly in a folder, read without loading the library.
        version: Gives the version of the library behind it; raises `MissingExtraError`.
        load: Loads a model onto a device (``auto``, ``cpu``, ``cuda``).
        options: Other facts that decide the answers of its models, for their fingerprints.
        bulk: True if the library answers a batch as a whole, and faster than one by one.
        remote: True if texts leave the machine: its models answer to their full names alone.
    """

    family: str
    find: Callable[[Path], Iterable[ModelFile]]
    version: Callable[[], str]
    load: Callable[[ModelFile, ParserIdentity, str], Parser]
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    bulk: bool = False
    remote: bool = False
