"""Surface tokens of a sentence before its analysis, and the cutting of long sentences."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Final

from syntax import Parse
from syntax.errors import SentenceTooLongError
from syntax.examples import LongSentences

CONTINUED: Final = "ContinuedSentence=Yes"
"""MISC entry on the first word of every piece of a cut sentence but the first piece."""

_LOOK_BACK: Final = 4
"""Share of a piece (a quarter) in which a cut moves back to punctuation."""


@dataclass(frozen=True, slots=True)
class Surface:
    """The surface tokens (T) of one sentence.

    Attributes:
        start, end: Character span of each token.
        words: Number of words of each token.
        continues: True if the sentence continues one that was cut before it.
    """

    start: Sequence[int]
    end: Sequence[int]
    words: Sequence[int]
    continues: bool = False

    @property
    def word_count(self) -> int:
        return sum(self.words)


def is_continued(parse: Parse, word: int) -> bool:
    misc = None if parse.misc is None else parse.misc[word]
    return CONTINUED in (misc or "").split("|")


def joined_surface(tokens: Sequence[str]) -> Surface:
    """Words of one sentence, joined by single spaces.

    >>> joined_surface(["New York", "!"])
    Surface(start=[0, 9], end=[8, 10], words=[1, 1], continues=False)
    """
    ends = list(accumulate(map(len, tokens), lambda end, length: end + 1 + length))
    starts = [end - len(token) for end, token in zip(ends, tokens, strict=True)]
    return Surface(starts, ends, [1] * len(tokens))


def with_words(
    tokens: Sequence[str], found: Iterable[tuple[Sequence[str], Surface]]
) -> tuple[list[str], Surface]:
    """Given tokens as one sentence, with multiword tokens split into words.

    A token is split if the tokenizer finds exactly its characters to be one token of several
    words. Any other token is one word.

    >>> found = Surface([0, 3, 5], [2, 5, 6], [2, 1, 1])
    >>> with_words(["du", "Dr."], [(["de", "le", "Dr", "."], found)])
    (['de', 'le', 'Dr.'], Surface(start=[0, 3], end=[2, 6], words=[2, 1], continues=False))
    """
    several: dict[tuple[int, int], Sequence[str]] = {}
    for forms, surface in found:
        last = accumulate(surface.words)
        for start, end, count, after in zip(
            surface.start, surface.end, surface.words, last, strict=True
        ):
            if count > 1:
                several[start, end] = forms[after - count : after]
    whole = joined_surface(tokens)
    spans = zip(whole.start, whole.end, tokens, strict=True)
    words = [several.get((start, end), [token]) for start, end, token in spans]
    surface = Surface(whole.start, whole.end, [*map(len, words)])
    return list(chain.from_iterable(words)), surface


def within_limit(
    text: str,
    surface: Surface,
    limit: int,
    long: LongSentences,
    way: str = "raise max_words_per_sentence",
) -> list[Surface]:
    """The sentence, or pieces that end at a token's end; ``way`` is advice other than splitting."""
    if surface.word_count <= limit:
        return [surface]
    if long == "refuse" or max(surface.words) > limit:
        raise SentenceTooLongError(
            f"a sentence has {surface.word_count} words; at most {limit} are parsed. Split it, "
            f"{way}, or ask for `long_sentences=split`",
            words=surface.word_count,
            limit=limit,
        )
    return list(_pieces(text, surface, limit))


def _pieces(text: str, surface: Surface, limit: int) -> Iterator[Surface]:
    first = 0
    while first < len(surface.words):
        end = _cut(text, surface, first, limit)
        span = slice(first, end)
        continues = surface.continues or first > 0
        yield Surface(surface.start[span], surface.end[span], surface.words[span], continues)
        first = end


def _cut(text: str, surface: Surface, first: int, limit: int) -> int:
    end, words = first, 0
    while end < len(surface.words) and words + surface.words[end] <= limit:
        words += surface.words[end]
        end += 1
    if end == len(surface.words):
        return end
    nearest = end - (end - first) // _LOOK_BACK
    for at in range(end, nearest, -1):
        if _is_punctuation(text[surface.start[at - 1] : surface.end[at - 1]]):
            return at
    return end


def _is_punctuation(written: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in written)
