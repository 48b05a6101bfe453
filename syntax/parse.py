"""A parsed text, in columns: what parsers return, the store keeps and pipelines align.

Objects per word would cost more than the rest of the pipeline together, so a parse is a handful
of flat lists over the words and tokens of the whole text; `Parse.sentences` gives the objects to
whoever wants to read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from syntax.errors import InputError
from syntax.sentence import Sentence, Token, Word


@dataclass(frozen=True, slots=True)
class Parse:
    """One text and its UD analysis: a forest, one tree per sentence.

    Character offsets refer to ``text`` exactly as received. Each word belongs to exactly one
    token and each token to exactly one sentence, all in order, so starts are enough.

    Attributes:
        text: The text as received (for pre-tokenized input, the tokens joined by single spaces).
        form ... misc: One entry per syntactic word (W), ``None`` where the parser gave nothing.
        head: One per word, 1-based within its sentence, 0 for a root, as in CoNLL-U.
        word_start, word_end: Character span of each word. The words of a multiword token split
            its span when their forms spell it, else all share it.
        token_start, token_end: Character span of each surface token (T).
        token_first_word: Position of each token's first word in the text, 0-based.
        sentence_start, sentence_end: Character span of each sentence (S).
        sentence_first_word: Position of each sentence's first word in the text, 0-based.

    Raises:
        InputError: Columns of one kind differ in length.
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
        _same_length("word", self, _WORD_COLUMNS)
        _same_length("token", self, ("token_start", "token_end", "token_first_word"))
        _same_length("sentence", self, ("sentence_start", "sentence_end", "sentence_first_word"))

    @property
    def word_count(self) -> int:
        """Number of syntactic words, W."""
        return len(self.form)

    def word_ranges(self) -> list[tuple[int, int]]:
        """First word and end of each sentence, as positions in the text."""
        return list(pairwise([*self.sentence_first_word, self.word_count]))

    def token_ranges(self) -> list[tuple[int, int]]:
        """First word and end of each token, as positions in the text."""
        return list(pairwise([*self.token_first_word, self.word_count]))

    def parents(self) -> NDArray[np.int32]:
        """Head of each word, 0-based through the whole text, -1 at roots. *Shape:* (W,)."""
        heads = np.asarray(self.head, dtype=np.int32)
        starts = np.asarray(self.sentence_first_word, dtype=np.int32)
        lengths = np.diff(starts, append=np.int32(self.word_count))
        return np.where(heads > 0, heads - 1 + np.repeat(starts, lengths), -1).astype(np.int32)

    def sentence_ids(self) -> NDArray[np.int32]:
        """Sentence of each word, 0-based. *Shape:* (W,)."""
        starts = np.asarray(self.sentence_first_word, dtype=np.int32)
        lengths = np.diff(starts, append=np.int32(self.word_count))
        return np.repeat(np.arange(len(starts), dtype=np.int32), lengths)

    def sentences(self) -> list[Sentence]:
        """The same analysis as CoNLL-U sentences, with ``# text`` and ``SpaceAfter=No``."""
        return [_sentence(self, index) for index in range(len(self.sentence_start))]


_WORD_COLUMNS = (
    *("form", "lemma", "upos", "xpos", "feats", "head", "deprel"),
    *("word_start", "word_end"),
)


def _same_length(kind: str, parse: Parse, columns: tuple[str, ...]) -> None:
    lengths = {name: len(getattr(parse, name)) for name in columns}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the {kind} columns of a parse differ in length: {lengths}")


def _sentence(parse: Parse, index: int) -> Sentence:
    first, end = parse.word_ranges()[index]
    text = parse.text[parse.sentence_start[index] : parse.sentence_end[index]]
    comment = f"# text = {' '.join(text.split())}"
    tokens = tuple(
        _token(parse, position, first)
        for position, start in enumerate(parse.token_first_word)
        if first <= start < end
    )
    spacing = {token.word_ids[0]: token.misc for token in tokens if not token.is_multiword}
    words = tuple(_word(parse, at, first, spacing.get(at - first + 1)) for at in range(first, end))
    return Sentence(words=words, tokens=tokens, comments=(comment,))


def _token(parse: Parse, position: int, sentence_first: int) -> Token:
    first, end = parse.token_ranges()[position]
    word_ids = tuple(range(first - sentence_first + 1, end - sentence_first + 1))
    start_char, end_char = parse.token_start[position], parse.token_end[position]
    glued = parse.text[end_char : end_char + 1].strip() != ""
    misc = "SpaceAfter=No" if glued else None
    return Token(form=parse.text[start_char:end_char], word_ids=word_ids, misc=misc)


def _word(parse: Parse, at: int, sentence_first: int, spacing: str | None) -> Word:
    own = parse.misc[at] if parse.misc is not None else None
    return Word(
        id=at - sentence_first + 1,
        form=parse.form[at],
        lemma=parse.lemma[at],
        upos=parse.upos[at],
        xpos=parse.xpos[at],
        feats=parse.feats[at],
        head=parse.head[at],
        deprel=parse.deprel[at],
        misc=own if own is not None else spacing,
    )
