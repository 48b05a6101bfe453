"""Word vectors from files in fastText's text format, beside the parses that have the words.

Published: fastText's vectors of Wikipedia (Bojanowski et al. 2017), brought into one space by Smith
et al. (2017). A word is looked for with its digits as 0, then in lower case; without a vector it
has zeros, as some rare words in training, or, as released, the vector of the English word that is
written alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore import ParsedDataset, WordStates
from featurestore.dataset.parsed import ParsedWindow
from featurestore.stream.window import Window, WindowReader
from syntax.errors import SpecError
from syntax.fingerprint import fingerprint
from syntax.variant import Variant, is_released

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore

Vectors = Mapping[str, NDArray[np.float16]]

_DIGIT: Final = re.compile(r"[0-9]")
_FALLBACK: Final = "en"
"""The language whose vectors other languages' words take in the release, whatever the source."""


def with_vectors(
    store: FeatureStore | None,
    dataset: FeatureDataset,
    pattern: str,
    width: int,
    missing: Variant = "as_published",
) -> FeatureDataset:
    if store is None:
        raise SpecError(
            "vectors are found by the forms of words in a store; evaluate on a dataset, or train "
            "a model that reads none (model.words)"
        )
    return VectoredDataset(store, dataset, pattern, width, missing)


class VectoredDataset(ParsedDataset):
    """A dataset whose streams give ``word_states``, the vectors of its words, and ``rare_words``.

    Only the vectors of the dataset's own words are held; those that occur once are rare. An example
    has one text. ``{lang}`` in ``pattern``, the path of the file, stands for its language.
    """

    def __init__(
        self,
        store: FeatureStore,
        data: FeatureDataset,
        pattern: str,
        width: int,
        missing: Variant = "as_published",
    ) -> None:
        super().__init__(store, data)
        self.pattern, self.width, self.missing = pattern, width, missing
        counts: dict[str, Counter[str]] = {}
        for start in range(0, len(self), _AT_ONCE):
            examples = np.arange(start, min(start + _AT_ONCE, len(self)))
            for example, own in zip(examples.tolist(), self.records(examples), strict=True):
                words = counts.setdefault(self.lang_of(example), Counter())
                words.update(map(as_looked_up, own[0].parse.form))
        self.rare = {
            lang: {word for word, times in own.items() if times == 1}
            for lang, own in counts.items()
        }
        self.vectors = {lang: self._read(lang, own) for lang, own in counts.items()}

    def __reduce__(self) -> tuple[type[VectoredDataset], tuple[Any, ...], dict[str, Any]]:
        made_of = (self._store, self._data, self.pattern, self.width, self.missing)
        return VectoredDataset, made_of, self._kept_in_copies()

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        found = {
            lang: fingerprint({word: of.tobytes().hex() for word, of in sorted(own.items())})
            for lang, own in self.vectors.items()
        }
        return {**super().fingerprints, "vectors": found}

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        return VectorsReader(self, super().open_reader(stored, offsets, tokens))

    def _read(self, lang: str, words: Iterable[str]) -> Vectors:
        found = read_vectors(Path(self.pattern.replace("{lang}", lang)), words, self.width)
        if lang == _FALLBACK or not is_released(self.missing):
            return found
        others = [word for word in words if word not in found]
        english = Path(self.pattern.replace("{lang}", _FALLBACK))
        return {**found, **read_vectors(english, others, self.width)}

    def lang_of(self, example: int) -> str:
        _, lang = self.rows.parts[int(self.rows.part[example])]
        return lang


_AT_ONCE: Final = 4096


class VectorsReader:
    """Reads examples with the vectors of their words."""

    def __init__(self, data: VectoredDataset, reader: WindowReader) -> None:
        self._data, self._reader = data, reader

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        self._reader.fetch(examples, is_wanted)

    def read(self, examples: NDArray[np.int64]) -> Window:
        window = self._reader.read(examples)
        own = {field.name: getattr(window, field.name) for field in fields(window)}
        langs = [self._data.lang_of(example) for example in examples.tolist()]
        return VectoredWindow(**own, langs=langs, data=self._data)


@dataclass(frozen=True)
class VectoredWindow(ParsedWindow):
    """Examples with their parses, of whose words the vectors are found batch by batch."""

    langs: list[str] = field(default_factory=list)
    data: VectoredDataset | None = None

    def batch(self, start: int, end: int) -> Window:
        window = super().batch(start, end)
        assert self.data is not None
        states, rare = [], []
        for lang, parses in zip(self.langs[start:end], window.labels["parses"], strict=True):
            words = [as_looked_up(form) for form in parses[0].form]
            known = self.data.vectors[lang]
            found = np.zeros((len(words), self.data.width), np.float16)
            for at, word in enumerate(words):
                if word in known:
                    found[at] = known[word]
            states.append(WordStates(np.array([len(words)], np.int32), found))
            rare.append(np.array([word in self.data.rare[lang] for word in words], bool))
        return replace(window, labels={**window.labels, "word_states": states, "rare_words": rare})


def as_looked_up(form: str) -> str:
    """A word as it is looked for: every digit is 0.

    >>> as_looked_up("1990s")
    '0000s'
    """
    return _DIGIT.sub("0", form)


@dataclass(frozen=True, slots=True)
class VectorLine:
    """A line of a file of vectors: a word and its numbers, with spaces between them."""

    path: Path
    number: int
    word: str
    numbers: str

    def vector(self, width: int) -> NDArray[np.float32]:
        numbers = self.numbers.split(" ")
        try:
            if len(numbers) == width:
                return np.array(numbers, np.float32)
        except ValueError as error:
            raise _unreadable(self.path, error) from error
        raise SpecError(
            f"{self.path}, line {self.number}, has {len(numbers)} numbers for {self.word!r}, and "
            f"model.vector_width is {width}; name a file of that width"
        )


def vector_lines(path: Path, width: int) -> Iterator[VectorLine]:
    """The lines of a file but its head, the numbers of words and of columns, if it has one."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                word, _, numbers = line.rstrip("\n").rstrip(" ").partition(" ")
                if number > 1 or width == 1 or " " in numbers:
                    yield VectorLine(path, number, word, numbers)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> SpecError:
    return SpecError(
        f"no word vectors can be read from {path}: {error}; set model.vectors to a file in "
        "fastText's text format, with {lang} for the language"
    )


def read_vectors(path: Path, words: Iterable[str], width: int) -> Vectors:
    """The vectors that a file has of some words; of those alone that are asked for.

    ``words`` are as `as_looked_up` gives them.
    """
    wanted = {name: None for word in words for name in (word, word.lower())}
    found: dict[str, NDArray[np.float16]] = {}
    for line in vector_lines(path, width):
        if line.word in wanted and line.word not in found:
            found[line.word] = line.vector(width).astype(np.float16)
    chosen = {word: found.get(word, found.get(word.lower())) for word in words}
    return {word: vector for word, vector in chosen.items() if vector is not None}
