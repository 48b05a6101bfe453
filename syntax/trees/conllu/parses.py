"""From gold sentences to a `Parse`, with exact character spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from syntax.errors import ConlluError, NoSentenceError
from syntax.spans import word_spans
from syntax.trees.parse import Parse
from syntax.trees.sentence import Sentence, Word
from syntax.trees.spacing import space_after, space_before, surface

Layout = Literal["text", "spaces"]


def parse_from_sentences(sentences: Sequence[Sentence], layout: Layout = "text") -> Parse:
    """Put one or more CoNLL-U sentences into columns.

    ``text[start:end]`` is each token's ``SpacesInToken`` if the text has it, else its form. The
    text is each sentence's ``# text`` (or else its tokens), joined by spaces; or, with ``spaces``,
    the tokens and the white space that MISC records, which restores the text behind
    `Parse.sentences` exactly.
    """
    if not sentences:
        raise NoSentenceError("there are no sentences; a parse needs at least one")
    place = _place_by_text if layout == "text" else _place_by_spaces
    columns = _Columns()
    for sentence in sentences:
        place(columns, sentence)
        columns.add_words(sentence)
    return columns.parse()


@dataclass(slots=True)
class _Columns:
    text: str = ""
    words: list[Word] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    token_start: list[int] = field(default_factory=list)
    token_end: list[int] = field(default_factory=list)
    token_first_word: list[int] = field(default_factory=list)
    sentence_first_token: list[int] = field(default_factory=list)
    sentence_first_word: list[int] = field(default_factory=list)

    def add_tokens(self, sentence: Sentence, spans: Iterable[tuple[int, int]]) -> None:
        self.sentence_first_token.append(len(self.token_start))
        for token, (start, end) in zip(sentence.tokens, spans, strict=True):
            self.token_start.append(start)
            self.token_end.append(end)
            self.token_first_word.append(len(self.words) + token.word_ids[0] - 1)

    def add_words(self, sentence: Sentence) -> None:
        self.sentence_first_word.append(len(self.words))
        self.words += sentence.words
        self.heads += sentence.tree.heads

    def parse(self) -> Parse:
        words = self.words
        form = [word.form for word in words]
        word_start, word_end = word_spans(
            self.text, self.token_start, self.token_end, self.token_first_word, form
        )
        misc = [word.misc for word in words]
        last_tokens = [*(first - 1 for first in self.sentence_first_token[1:]), -1]
        return Parse(
            text=self.text,
            form=form,
            lemma=[word.lemma for word in words],
            upos=[word.upos for word in words],
            xpos=[word.xpos for word in words],
            feats=[word.feats for word in words],
            head=self.heads,
            deprel=[word.deprel for word in words],
            word_start=word_start,
            word_end=word_end,
            token_start=self.token_start,
            token_end=self.token_end,
            token_first_word=self.token_first_word,
            sentence_start=[self.token_start[token] for token in self.sentence_first_token],
            sentence_end=[self.token_end[token] for token in last_tokens],
            sentence_first_word=self.sentence_first_word,
            misc=misc if any(misc) else None,
        )


def _place_by_text(columns: _Columns, sentence: Sentence) -> None:
    offset = len(columns.text) + 1 if columns.text else 0
    columns.text = f"{columns.text} {sentence.text}" if columns.text else sentence.text
    columns.add_tokens(sentence, _found_spans(sentence, columns.text, offset))


def _found_spans(sentence: Sentence, text: str, offset: int) -> list[tuple[int, int]]:
    spans = []
    position = offset
    for token in sentence.tokens:
        start = _skip_spaces(text, position)
        # Texts have a token's surface or its form; where both fit, one begins with the other.
        candidates = (token.form, surface(token.form, sentence.misc_of(token)))
        found = [written for written in candidates if text.startswith(written, start)]
        written = max(found, key=len, default=None)
        if written is None:
            raise _mismatch(sentence, f"token {token.form!r}", text, offset, start)
        position = start + len(written)
        spans.append((start, position))
    rest = _skip_spaces(text, position)
    if rest < len(text):
        raise _mismatch(sentence, "the end of the sentence", text, offset, rest)
    return spans


def _skip_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _mismatch(sentence: Sentence, wanted: str, text: str, offset: int, at: int) -> ConlluError:
    return ConlluError(
        f"sentence {sentence.sent_id!r}: its text does not consist of its tokens: at character "
        f"{at - offset} it has {text[at : at + 20]!r} where {wanted} should be; correct # text or "
        "the tokens",
        sent_id=sentence.sent_id,
        character=at - offset,
    )


def _place_by_spaces(columns: _Columns, sentence: Sentence) -> None:
    parts = [columns.text]
    position = len(columns.text)
    spans = []
    for token in sentence.tokens:
        misc = sentence.misc_of(token)
        before, written, after = space_before(misc), surface(token.form, misc), space_after(misc)
        start = position + len(before)
        spans.append((start, start + len(written)))
        position = start + len(written) + len(after)
        parts += [before, written, after]
    columns.text = "".join(parts)
    columns.add_tokens(sentence, spans)
