"""A parsed text in columns, since an object for each word takes more time than a whole pipeline."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter, le, lt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import InputError
from syntax.trees.sentence import Sentence, Token, Word
from syntax.trees.spacing import safe_column, spacing_entries, with_spacing

WORD_COLUMNS: Final = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel")
"""CoNLL-U's columns of a parse, one entry per word, from which tables, views and JSON are made."""


@dataclass(frozen=True, slots=True)
class Parse:
    """One text and its UD analysis: a forest, one tree per sentence.

    Character offsets refer to ``text`` exactly as received. Each word belongs to one token and
    each token to one sentence, in order, so the columns hold only their starts.

    Attributes:
        form ... misc: One entry per syntactic word (W), ``None`` where the parser has no value.
        head: One per word, 1-based within its sentence, 0 for a root, as in CoNLL-U.
        word_start, word_end: Character span of each word. The words of a multiword token split
            its span if their forms spell it; else each has the whole span.
        token_start, token_end: Character span of each surface token (T).
        token_first_word: Position of each token's first word in the text, 0-based.
        sentence_start, sentence_end: Character span of each sentence (S).
        sentence_first_word: Position of each sentence's first word in the text, 0-based.
    """

    text: str
    form: list[str]
    lemma: list[str | None]
    upos: list[str | None]
    xpos: list[str | None]
    feats: list[str | None]
    head: list[int]
    deprel: list[str | None]
    word_start: list[int]
    word_end: list[int]
    token_start: list[int]
    token_end: list[int]
    token_first_word: list[int]
    sentence_start: list[int]
    sentence_end: list[int]
    sentence_first_word: list[int]
    misc: list[str | None] | None = field(default=None)

    def __post_init__(self) -> None:
        for kind, names in _COLUMNS.items():
            _same_length(kind, self, names)
        _partition("token", self.token_first_word, self.word_count)
        _partition("sentence", self.sentence_first_word, self.word_count)
        _in_order("word", self.word_start, self.word_end, len(self.text))
        _in_order("token", self.token_start, self.token_end, len(self.text))

    @property
    def word_count(self) -> int:
        return len(self.form)

    def word_ranges(self) -> list[tuple[int, int]]:
        """First word and end of each sentence, as positions in the text."""
        return list(pairwise([*self.sentence_first_word, self.word_count]))

    def token_ranges(self) -> list[tuple[int, int]]:
        return list(pairwise([*self.token_first_word, self.word_count]))

    def parents(self) -> NDArray[np.int32]:
        """Head of each word, 0-based through the whole text, -1 at roots. *Shape:* (W,)."""
        heads = np.asarray(self.head, dtype=np.int32)
        starts = np.asarray(self.sentence_first_word, dtype=np.int32)
        lengths = np.diff(starts, append=np.int32(self.word_count))
        return np.where(heads > 0, heads - 1 + np.repeat(starts, lengths), -1).astype(np.int32)

    def sentence_ids(self) -> NDArray[np.int32]:
        starts = np.asarray(self.sentence_first_word, dtype=np.int32)
        lengths = np.diff(starts, append=np.int32(self.word_count))
        return np.repeat(np.arange(len(starts), dtype=np.int32), lengths)

    def sentences(self) -> list[Sentence]:
        """CoNLL-U sentences, which are valid for any text.

        MISC records the spacing (`syntax.trees.spacing`), so that
        ``parse_from_sentences(sentences, layout="spaces")`` restores text and spans exactly.
        Tabs and line breaks of a form become spaces, and are kept in ``SpacesInToken``.
        """
        pairs = zip(self.word_ranges(), self._token_spans(), strict=True)
        return [_sentence(self, *pair) for pair in pairs]

    def document(self, name: str) -> list[Sentence]:
        """The `sentences` with ``# sent_id``, as UD's validator requires: ``name`` and a number."""
        return [
            replace(sentence, comments=(f"# sent_id = {name}-{number}", *sentence.comments))
            for number, sentence in enumerate(self.sentences(), 1)
        ]

    def surfaces(self) -> list[SurfaceSentence]:
        """Text and spacing of `sentences`, in a quarter of the time."""
        return [_surface_sentence(self, *span) for span in self._token_spans()]

    def _token_spans(self) -> list[tuple[int, int]]:
        cuts = [bisect_left(self.token_first_word, first) for first in self.sentence_first_word]
        return list(pairwise([*cuts, len(self.token_start)]))


_COLUMNS = {
    "word": (*WORD_COLUMNS, "word_start", "word_end"),
    "token": ("token_start", "token_end", "token_first_word"),
    "sentence": ("sentence_start", "sentence_end", "sentence_first_word"),
}
_VALUES = {names: attrgetter(*names) for names in _COLUMNS.values()}


def _same_length(kind: str, parse: Parse, columns: tuple[str, ...]) -> None:
    lengths = [*map(len, _VALUES[columns](parse))]
    if lengths.count(lengths[0]) != len(lengths):
        found = dict(zip(columns, lengths, strict=True))
        raise InputError(f"the {kind} columns of a parse differ in length: {found}")


def _partition(kind: str, first_word: list[int], words: int) -> None:
    bounds = [*first_word, words]
    if bounds[0] != 0 or not all(map(lt, bounds, bounds[1:])):
        raise InputError(
            f"the {kind}s of a parse must begin at word 0, each at a later word than the one "
            f"before, the last before word {words}; {kind}_first_word is {first_word}"
        )


def _in_order(kind: str, start: list[int], end: list[int], length: int) -> None:
    bounds_are_sound = not start or (start[0] >= 0 and end[-1] <= length)
    in_order = start == sorted(start) and end == sorted(end)
    if not (bounds_are_sound and in_order and all(map(le, start, end))):
        raise InputError(
            f"the {kind} spans of a parse must lie in its text ({length} characters), start and "
            f"end in order; they are {list(zip(start, end, strict=True))}"
        )


@dataclass(frozen=True, slots=True)
class SurfaceSentence:
    """``# text`` and MISC of a sentence, without the spacing of multiword tokens."""

    text: str
    word_misc: list[str | None]


@dataclass(frozen=True, slots=True)
class _Surface:
    form: str
    first_word: int
    end_word: int
    spacing: list[str]


def _sentence(parse: Parse, words: tuple[int, int], tokens: tuple[int, int]) -> Sentence:
    surfaces = [_Surface(*_spelled(parse, at)) for at in range(*tokens)]
    spacing = {token.first_word: token.spacing for token in surfaces if not _is_multiword(token)}
    gaps = ("" if "SpaceAfter=No" in token.spacing else " " for token in surfaces)
    text = "".join(token.form + gap for token, gap in zip(surfaces, gaps, strict=True)).strip()
    return Sentence(
        words=tuple(_word(parse, at, words[0], spacing.get(at)) for at in range(*words)),
        tokens=tuple(_token(token, words[0]) for token in surfaces),
        comments=(f"# text = {text}",),
    )


def _spelled(parse: Parse, at: int) -> tuple[str, int, int, list[str]]:
    text, starts, first_words = parse.text, parse.token_start, parse.token_first_word
    start, end, first_word = starts[at], parse.token_end[at], first_words[at]
    is_last = at + 1 == len(starts)
    end_word = len(parse.form) if is_last else first_words[at + 1]
    written = text[start:end]
    form = safe_column(parse.form[first_word] if end_word - first_word == 1 else written)
    before = "" if at else text[:start]
    after = text[end:] if is_last else text[end : starts[at + 1]]
    return form, first_word, end_word, spacing_entries(form, written, before, after)


def _surface_sentence(parse: Parse, first: int, end: int) -> SurfaceSentence:
    texts: list[str] = []
    word_misc: list[str | None] = []
    for at in range(first, end):
        form, first_word, end_word, entries = _spelled(parse, at)
        texts.append(form if "SpaceAfter=No" in entries else form + " ")
        own = None
        if parse.misc is not None:
            own = [_column(misc) for misc in parse.misc[first_word:end_word]]
        if end_word - first_word == 1:
            word_misc.append(with_spacing(None if own is None else own[0], entries))
        else:
            word_misc += own or [None] * (end_word - first_word)
    return SurfaceSentence("".join(texts).strip(), word_misc)


def _is_multiword(token: _Surface) -> bool:
    return token.end_word - token.first_word > 1


def _token(token: _Surface, sentence_first: int) -> Token:
    first = token.first_word - sentence_first + 1
    word_ids = tuple(range(first, token.end_word - sentence_first + 1))
    misc = with_spacing(None, token.spacing) if _is_multiword(token) else None
    return Token(token.form, word_ids, misc=misc)


def _word(parse: Parse, at: int, sentence_first: int, spacing: list[str] | None) -> Word:
    misc = _column(parse.misc[at] if parse.misc is not None else None)
    return Word(
        id=at - sentence_first + 1,
        form=safe_column(parse.form[at]),
        lemma=_column(parse.lemma[at]),
        upos=_column(parse.upos[at]),
        xpos=_column(parse.xpos[at]),
        feats=_column(parse.feats[at]),
        head=parse.head[at],
        deprel=_column(parse.deprel[at]),
        misc=misc if spacing is None else with_spacing(misc, spacing),
    )


def _column(value: str | None) -> str | None:
    column = safe_column(value or "_")
    return None if column == "_" else column
