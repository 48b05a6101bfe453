"""A whole parse in one piece of bytes, the column ``record`` of the table ``parses``.

The columns are for those who ask about many parses. Who wants one reads this column alone, a tenth
of the work. A record is

* a head: version of the encoding, what the numbers are (`_DTYPES`), flags, and how many words,
  tokens, sentences and numbers there are;
* numbers, little-endian, all of the smallest type that holds them: places of language, parser and
  mode in a list of strings; spans of words, of tokens and of sentences, each as gap to the one
  before and length; the first word of each token and sentence, after their spans; the heads; for
  each column of strings the place of each word's; the length of the text, and of those strings
  that are not `_KNOWN`;
* the text and these strings in UTF-8, end to end.

Tokens that are the words are left out. A form that the text spells, and a lemma that is the form,
have places of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any, Final

import numpy as np

from featurestore.records import ParseRecord
from syntax.errors import StoreFormatError
from syntax.trees.parse import Parse
from syntax.trees.ud import DEPREL, UPOS

_VERSION: Final = 1
_HEAD: Final = struct.Struct("<BBBxIIII")
_DTYPES: Final = ("<u1", "<i1", "<u2", "<i2", "<i4", "<i8")
_RANGES: Final = [(np.iinfo(dtype).min, np.iinfo(dtype).max) for dtype in _DTYPES]

_HAS_MISC: Final = 1
_TOKENS_ARE_WORDS: Final = 2

_WRITTEN: Final = 1
"""Place of a form that is the text at its span."""

_SAME: Final = 1
"""Place of a lemma that is the form."""

_LOWERED: Final = 2
"""Place of a lemma that is the form with a-z for A-Z."""

_KNOWN: Final = (None, None, None, *dict.fromkeys((*UPOS, *DEPREL)))
"""Strings that need not be written; the first is "none". Another list is another `_VERSION`."""

_PLACES: Final[dict[str | None, int]] = {
    None: 0,
    **{name: place for place, name in enumerate(_KNOWN) if name is not None},
}

_PER_WORD: Final = ("upos", "xpos", "feats", "deprel")


class _Places(dict[str | None, int]):
    def __missing__(self, string: str | None) -> int:
        place = self[string] = len(self) + 2  # two places have no string
        return place

    def written(self) -> list[str]:
        return [string for string in list(self)[len(_PLACES) :] if string is not None]


def pack_record(record: ParseRecord) -> bytes:
    parse, places = record.parse, _Places(_PLACES)
    names = [places[name] for name in (record.lang, record.parser, record.mode)]
    tokens = (
        []
        if _tokens_are_words(parse)
        else [*_gaps(parse.token_start, parse.token_end), *parse.token_first_word]
    )
    numbers = [
        *names,
        *_gaps(parse.word_start, parse.word_end),
        *tokens,
        *_gaps(parse.sentence_start, parse.sentence_end),
        *parse.sentence_first_word,
        *parse.head,
        *_string_places(parse, places),
    ]
    written = places.written()
    numbers.extend(map(len, (parse.text, *written)))
    flags = _HAS_MISC * (parse.misc is not None) + _TOKENS_ARE_WORDS * (not tokens)
    body = "".join((parse.text, *written)).encode()
    least, most = min(numbers), max(numbers)
    kind = next(at for at, (low, high) in enumerate(_RANGES) if low <= least and most <= high)
    counts = (len(parse.form), len(parse.token_start), len(parse.sentence_start), len(numbers))
    head = _HEAD.pack(_VERSION, kind, flags, *counts)
    content = bytes(numbers) if kind == 0 else np.array(numbers, _DTYPES[kind]).tobytes()
    return b"".join((head, content, body))


def _tokens_are_words(parse: Parse) -> bool:
    return (
        parse.token_start == parse.word_start
        and parse.token_end == parse.word_end
        and parse.token_first_word == list(range(len(parse.form)))
    )


def _gaps(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """For each span, the gap to the one before (negative where they overlap) and its length."""
    bounds = list(chain.from_iterable(zip(starts, ends, strict=True)))
    return [bound - before for bound, before in zip(bounds, [0, *bounds], strict=False)]


def _string_places(parse: Parse, places: _Places) -> Iterable[int]:
    text = parse.text
    forms = [
        _WRITTEN if form == text[start:end] else places[form]
        for form, start, end in zip(parse.form, parse.word_start, parse.word_end, strict=True)
    ]
    lemmas = [
        _SAME if lemma == form else _LOWERED if _is_lowered(form, lemma) else places[lemma]
        for form, lemma in zip(parse.form, parse.lemma, strict=True)
    ]
    # Word by word: tags that come together are then neighbours, which compresses better.
    words = zip(*(getattr(parse, name) for name in _PER_WORD), strict=True)
    tags = [*map(places.__getitem__, chain.from_iterable(words))]
    columns = (tags[at :: len(_PER_WORD)] for at in range(len(_PER_WORD)))
    return chain(forms, lemmas, *columns, map(places.__getitem__, parse.misc or ()))


def _is_lowered(form: str, lemma: str | None) -> bool:
    """Only ASCII: what is lower case elsewhere changes with the version of Unicode."""
    return lemma is not None and form != "" and form.isascii() and lemma == form.lower()


def unpack_record(key: str, packed: bytes) -> ParseRecord:
    try:
        return _unpacked(key, packed)
    except (struct.error, ValueError, IndexError, AttributeError) as error:
        raise StoreFormatError(f"the packed record of parse {key} is damaged: {error}") from error


def _head(key: str, packed: bytes) -> tuple[int, ...]:
    version, *head = _HEAD.unpack_from(packed)
    if version != _VERSION:
        raise StoreFormatError(
            f"the packed record of parse {key} has encoding {version}; this release reads "
            f"{_VERSION}: install a newer parsebank"
        )
    return tuple(head)


def _unpacked(key: str, packed: bytes) -> ParseRecord:
    kind, flags, words, tokens, sentences, count = _head(key, packed)
    if max(words, tokens, sentences) > count:
        raise ValueError(
            f"{count} numbers for {words} words, {tokens} tokens, {sentences} sentences"
        )
    flat = np.frombuffer(packed, _DTYPES[kind], count, _HEAD.size)
    numbers = _Numbers(flat.tolist())
    names = numbers.take(3)
    spans = numbers.spans("word", words)
    if flags & _TOKENS_ARE_WORDS:
        spans["token_start"], spans["token_end"] = spans["word_start"][:], spans["word_end"][:]
        spans["token_first_word"] = list(range(words))
    else:
        spans |= numbers.spans("token", tokens)
        spans["token_first_word"] = numbers.take(tokens)
    spans |= numbers.spans("sentence", sentences)
    spans["sentence_first_word"] = numbers.take(sentences)
    spans["head"] = numbers.take(words)
    places = [numbers.take(words) for _ in range(7 if flags & _HAS_MISC else 6)]
    text, *written = _strings(packed[_HEAD.size + flat.nbytes :].decode(), numbers.rest())
    strings: list[Any] = [*_KNOWN, *written]
    lang, parser, mode = (strings[place] for place in names)
    tags = _string_columns(text, spans, places, strings)
    return ParseRecord(key, lang, parser, mode, Parse(text=text, **spans, **tags))


class _Numbers:
    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers
        self._at = 0

    def take(self, count: int) -> list[int]:
        start, self._at = self._at, self._at + count
        return self._numbers[start : self._at]

    def spans(self, kind: str, count: int) -> dict[str, Any]:
        bounds = list(accumulate(self.take(2 * count)))
        return {f"{kind}_start": bounds[::2], f"{kind}_end": bounds[1::2]}

    def rest(self) -> list[int]:
        return self._numbers[self._at :]


def _strings(body: str, lengths: list[int]) -> list[str]:
    ends = list(accumulate(lengths))
    if ends[-1] != len(body):
        raise ValueError(f"{len(body)} characters of strings, where their lengths say {lengths}")
    return [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _string_columns(
    text: str, spans: dict[str, Any], places: list[list[int]], strings: list[Any]
) -> dict[str, Any]:
    bounds = zip(spans["word_start"], spans["word_end"], strict=True)
    form = [
        text[start:end] if place == _WRITTEN else strings[place]
        for place, (start, end) in zip(places[0], bounds, strict=True)
    ]
    lemma = [
        form if place == _SAME else form.lower() if place == _LOWERED else strings[place]
        for form, place in zip(form, places[1], strict=True)
    ]
    tags = [[*map(strings.__getitem__, column)] for column in places[2:]]
    misc = tags.pop() if len(tags) > len(_PER_WORD) else None
    return {
        **dict(zip(("form", "lemma", *_PER_WORD), (form, lemma, *tags), strict=True)),
        "misc": misc,
    }
