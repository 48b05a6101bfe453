"""UDPipe 1: sentence objects read directly, with exact character spans.

Writing CoNLL-U and reading it back would lose the offsets of multiword tokens and cost ten times
as much as copying the attributes. UDPipe's word objects point into their sentence and silently
change when it is freed, so everything is copied while the caller still holds the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

import ufal.udpipe

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    attempt,
)
from service.parsers.columns import Annotation, Columns
from service.parsers.languages import language_of
from service.parsers.records import model_card
from service.parsers.surface import Surface, joined_surface, with_words, within_limit
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError

_FORCED_BREAK: Final = 500
"""Tokens of ``emergency_sentence_split`` in MorphoDiTa's unicode tokenizer."""

_MAGIC: Final = b"\x12morphodita_parsito"

_RAW: Final = "ranges"
_ONE: Final = "ranges;presegmented"
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_PARAGRAPH: Final = re.compile(r"\r\n\s*\r\n|\n\s*\n|\r\s*\r")

_ATTRIBUTES: Final = attrgetter("form", "lemma", "upostag", "xpostag", "feats", "head", "deprel")

_Found = tuple[Any, Surface]


class UdpipeParser:
    """A loaded UDPipe model."""

    def __init__(self, model: Any, identity: ParserIdentity) -> None:
        self._model = model
        self._identity = identity

    @property
    def identity(self) -> ParserIdentity:
        return self._identity

    def parse(self, item: ParseInput, limits: Limits) -> Parse:
        found = self._fitting(item, limits.max_words_per_sentence)
        self._analyse(item, found)
        return _copied(item, found)

    def parse_many(self, items: Sequence[ParseInput], limits: Limits) -> Iterator[Outcome]:
        """Copy after all analyses: UDPipe's weights drive Python out of the processor's caches."""
        limit = limits.max_words_per_sentence
        texts = [attempt(self._fitting, item, limit) for item in items]
        for item, found in zip(items, texts, strict=True):
            if not isinstance(found, ParsebankError):
                self._analyse(item, found)
        for item, found in zip(items, texts, strict=True):
            yield found if isinstance(found, ParsebankError) else attempt(_copied, item, found)

    def segmented(self, item: ParseInput) -> list[tuple[list[str], Surface]]:
        return _segments(self._found(item))

    def _fitting(self, item: ParseInput, limit: int) -> list[_Found]:
        fitting: list[_Found] = []
        for sentence, surface in self._found(item):
            pieces = within_limit(item.joined, surface, limit, item.long_sentences)
            if pieces == [surface]:
                fitting.append((sentence, surface))
            else:
                fitting += _cut_up(_forms_of(sentence), pieces)
        return fitting

    def _found(self, item: ParseInput) -> list[_Found]:
        if item.mode == "pretokenized" and item.tokens is not None:
            return [(_from_words(item.tokens, item.tags or ()), joined_surface(item.tokens))]
        if item.mode == "tokens_mwt" and item.tokens is not None:
            forms, surface = with_words(item.tokens, _segments(self._one(item.joined)))
            return [(_from_words(forms), surface)]
        if item.mode == "raw":
            return self._split(item.joined)
        return self._one(item.joined)

    def _analyse(self, item: ParseInput, found: list[_Found]) -> None:
        model = self._model
        for sentence, _ in found:
            is_tagged = item.tags is not None or model.tag(sentence, "")
            if not (is_tagged and model.parse(sentence, "")):
                name = self._identity.name
                raise ModelLoadError(f"{name} has no tagger or no parser; use another")

    def _one(self, text: str, shift: int = 0) -> list[_Found]:
        """Text as one sentence; line breaks are shown to UDPipe as spaces, 1:1."""
        shown = _LINE_BREAK.sub(" ", text)
        return [(found, _surface_of(found, shift)) for found in self._sentences(shown, _ONE)]

    def _split(self, text: str) -> list[_Found]:
        """Rejoin pieces of a long sentence, so that our limit decides on it and not UDPipe's."""
        found: list[_Found] = []
        pieces = [(sentence, _surface_of(sentence)) for sentence in self._sentences(text, _RAW)]
        for run in _runs(text, pieces):
            if len(run) == 1:
                found += run
                continue
            start, end = run[0][1].start[0], run[-1][1].end[-1]
            found += self._one(text[start:end], start)
        return found

    def _sentences(self, text: str, options: str) -> list[Any]:
        tokenizer = self._model.newTokenizer(options)
        tokenizer.setText(text)
        found = []
        sentence = ufal.udpipe.Sentence()
        while tokenizer.nextSentence(sentence):
            found.append(sentence)
            sentence = ufal.udpipe.Sentence()
        return found


def find_udpipe(folder: Path) -> Iterator[ModelFile]:
    return map(model_in, sorted(folder.glob("*.udpipe")))


def model_in(path: Path) -> ModelFile:
    """Model of a file, with a card ``<name>.json`` beside it or not."""
    card: dict[str, Any] = {}
    problem = None
    try:
        card = model_card(path.with_suffix(".json"))
    except ModelLoadError as error:
        problem = error.message
    lang = card.get("language") or language_of(path.stem)
    sha256 = card.get("sha256")
    if problem is None and sha256 is None and not _begins_as_a_model(path):
        # A recorded checksum finds more; without one the first text would.
        problem = f"{path} is not a UDPipe 1 model; fetch it again"
    langs = (lang,) if lang else ()
    return ModelFile("udpipe.v1", f"udpipe/{path.stem}", path, langs, sha256, card, problem=problem)


def _begins_as_a_model(path: Path) -> bool:
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode):  # opening a pipe would wait for a writer
            return True
        return _first_bytes(path, found.st_mtime_ns, found.st_size) == _MAGIC
    except OSError:  # named where the file is used
        return True


@lru_cache(maxsize=1024)
def _first_bytes(path: Path, changed_at: int, size: int) -> bytes:  # noqa: ARG001 - what tells versions apart
    with path.open("rb") as file:
        return file.read(len(_MAGIC))


def load_udpipe(model_file: ModelFile, identity: ParserIdentity, device: str) -> UdpipeParser:  # noqa: ARG001 - it runs on the processor whatever is asked for
    path = model_file.path
    model = ufal.udpipe.Model.load(str(path))
    if model is None:
        raise ModelLoadError(
            f"{path} is missing or is no UDPipe 1 model; fetch it again", path=str(path)
        )
    if model.newTokenizer("") is None:
        raise ModelLoadError(f"{path} has no tokenizer; use a complete model", path=str(path))
    parser = UdpipeParser(model, identity)
    parser.parse(ParseInput("pretokenized", tokens=("a",)), Limits())
    return parser


def udpipe_version() -> str:
    version = ufal.udpipe.Version.current()
    return f"{version.major}.{version.minor}.{version.patch}"


UDPIPE: Final = Backend("udpipe", find_udpipe, udpipe_version, load_udpipe)


def _segments(found: Iterable[_Found]) -> list[tuple[list[str], Surface]]:
    return [(_forms_of(sentence), surface) for sentence, surface in found]


def _copied(item: ParseInput, found: list[_Found]) -> Parse:
    columns = Columns(item.joined)
    for sentence, surface in found:
        columns.add(surface, _annotation_of(sentence))
    return columns.parse()


def _from_words(forms: Iterable[str], tags: Iterable[tuple[str, str, str, str]] = ()) -> Any:
    sentence = ufal.udpipe.Sentence()
    for form in forms:
        sentence.addWord(form)
    for at, tagged in enumerate(tags, 1):
        word = sentence.words[at]
        word.lemma, word.upostag, word.xpostag, word.feats = tagged
    return sentence


def _cut_up(forms: list[str], pieces: list[Surface]) -> Iterator[_Found]:
    first = 0
    for piece in pieces:
        end = first + piece.word_count
        yield _from_words(forms[first:end]), piece
        first = end


def _runs(text: str, found: list[_Found]) -> Iterator[list[_Found]]:
    """Group sentences that UDPipe separated only because they were growing too long."""
    run: list[_Found] = []
    for sentence in found:
        if run and not _was_forced(text, run[-1][1], sentence[1]):
            yield run
            run = []
        run.append(sentence)
    if run:
        yield run


def _was_forced(text: str, before: Surface, after: Surface) -> bool:
    if len(before.words) < _FORCED_BREAK:
        return False
    return _PARAGRAPH.search(text[before.end[-1] : after.start[0]]) is None


def _surface_of(sentence: Any, shift: int = 0) -> Surface:
    """Tokens from ranges, which are on multiword tokens and words, not on words inside one."""
    words, tokens, counts, at = list(sentence.words)[1:], [], [], 0
    for token in sentence.multiwordTokens:
        first = token.idFirst - 1
        tokens += [*words[at:first], token]
        counts += [1] * (first - at) + [token.idLast - first]
        at = token.idLast
    tokens += words[at:]
    counts += [1] * (len(words) - at)
    starts = [token.getTokenRangeStart() + shift for token in tokens]
    return Surface(starts, [token.getTokenRangeEnd() + shift for token in tokens], counts)


def _forms_of(sentence: Any) -> list[str]:
    return [word.form for word in list(sentence.words)[1:]]


def _annotation_of(sentence: Any) -> Annotation:
    # A call for each column would look every attribute's getter up again for each word.
    words = map(_ATTRIBUTES, list(sentence.words)[1:])
    return Annotation(*zip(*words, strict=True))
