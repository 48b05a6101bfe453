"""What a parser is: text in, one `syntax.Parse` out; no HTTP and no store in it.

An implementer provides a folder beside ``udpipe/`` with a class that satisfies `Parser`, a
`Backend` that loads it, and a line in `service.parsers.registry`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from syntax import Fingerprint, Parse, fingerprint

ParseMode = Literal["raw", "sentence", "pretokenized"]
"""How a text is to be read.

``raw``: the parser splits sentences and words; ``sentence``: the text is one sentence, whatever
line breaks it holds; ``pretokenized``: the given tokens are the words of one sentence.
"""


@dataclass(frozen=True, slots=True)
class ParseInput:
    """One text to parse: ``text``, or the ``tokens`` of mode ``pretokenized``."""

    mode: ParseMode
    text: str | None = None
    tokens: tuple[str, ...] | None = None

    @property
    def characters(self) -> int:
        """Length of the text in code points, joining spaces included."""
        if self.tokens is not None:
            return sum(map(len, self.tokens)) + max(len(self.tokens) - 1, 0)
        return len(self.text or "")

    @property
    def joined(self) -> str:
        """The text that offsets refer to: as received, or the tokens joined by single spaces."""
        return " ".join(self.tokens) if self.tokens is not None else self.text or ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a parser accepts.

    Limits are not part of a parser's identity: within them they never change an answer.
    """

    max_chars_per_text: int = 200_000
    max_words_per_sentence: int = 1_000


@dataclass(frozen=True)
class ParserIdentity:
    """Everything that decides what a parser answers.

    Attributes:
        name: Backend and model, such as ``udpipe/english-ewt``.
        langs: ISO codes that it serves; empty when nobody knows.
        content: Backend, its version, model name, SHA-256 of the model's file, options.
    """

    name: str
    langs: tuple[str, ...]
    content: dict[str, Any] = field(hash=False)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Fingerprint of ``content``; it goes into every parse key."""
        return fingerprint(self.content)


class Parser(Protocol):
    """A loaded model. Not thread-safe: one process, one parser, one text at a time."""

    @property
    def identity(self) -> ParserIdentity:
        """What the parser is."""
        ...

    def parse(self, item: ParseInput, limits: Limits) -> Parse:
        """Parse one text that `service.pipeline.check_input` has accepted.

        Raises:
            TextError: The text holds no word, or a sentence longer than the limit.
            TreeError: The model gave a sentence whose heads form no tree.
        """
        ...


@dataclass(frozen=True)
class ModelFile:
    """A model on disk and what its card says; nothing is loaded yet.

    Attributes:
        backend: Registered name of its backend, such as ``udpipe.v1``.
        name: As callers ask for it, such as ``udpipe/english-ewt``.
        path: The model's file.
        langs: ISO codes of its languages.
        sha256: Checksum that the card records, if there is a card.
        card: The card's content; empty without one.
    """

    backend: str
    name: str
    path: Path
    langs: tuple[str, ...]
    sha256: str | None = None
    card: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Backend:
    """A kind of model.

    Attributes:
        family: First part of its models' names.
        suffix: File suffix of its models.
        version: Gives the version of the library behind it.
        load: Loads a model; raises `ModelLoadError`.
    """

    family: str
    suffix: str
    version: Callable[[], str]
    load: Callable[[Path, ParserIdentity], Parser]
