"""Sentences with words, but without trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from service.parsers.base import ParseInput
from service.parsers.columns import Annotation
from service.parsers.stanza.processors import UNKNOWN, trimmed
from service.parsers.surface import Surface, joined_surface, with_words, within_limit

_LINE_BREAK: Final = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Draft:
    """One sentence; the models see ``shown`` in place of the words' forms."""

    surface: Surface
    form: list[str]
    shown: list[str]

    def within(self, item: ParseInput, limit: int) -> Iterator[Draft]:
        first = 0
        for surface in within_limit(item.joined, self.surface, limit, item.long_sentences):
            words = slice(first, first + surface.word_count)
            yield Draft(surface, self.form[words], self.shown[words])
            first = words.stop

    def annotation(self, words: Sequence[Any]) -> Annotation:
        return Annotation(
            form=self.form,
            lemma=[None if word.text == UNKNOWN else word.lemma for word in words],
            upos=[word.upos for word in words],
            xpos=[word.xpos for word in words],
            feats=[word.feats for word in words],
            head=[int(word.head) for word in words],
            deprel=[word.deprel for word in words],
        )


def shown_text(item: ParseInput) -> tuple[str, int]:
    """Text for the tokenizer, and its start; in one sentence, line breaks are spaces, 1:1."""
    text = item.joined if item.mode == "raw" else _LINE_BREAK.sub(" ", item.joined)
    return trimmed(text)


def given_draft(tokens: Sequence[str], longest: int) -> Draft:
    shown = [token if len(token) <= longest else UNKNOWN for token in tokens]
    return Draft(joined_surface(tokens), list(tokens), shown)


def split_draft(tokens: Sequence[str], found: Sequence[Draft], longest: int) -> Draft:
    """Sentence of given tokens, with the words of multiword tokens in ``found``."""
    form, surface = with_words(tokens, [(draft.form, draft.surface) for draft in found])
    return Draft(surface, form, [word if len(word) <= longest else UNKNOWN for word in form])


def read_draft(text: str, sentence: Any, shift: int) -> Draft:
    starts = [token.start_char + shift for token in sentence.tokens]
    ends = [token.end_char + shift for token in sentence.tokens]
    shown = [[word.text for word in token.words] or [token.text] for token in sentence.tokens]
    # A long token reads "<UNK>": the text knows better.
    written = [" ".join(text[span].split()) for span in map(slice, starts, ends)]
    form = [words if len(words) > 1 else [own] for words, own in zip(shown, written, strict=True)]
    surface = Surface(starts, ends, [len(words) for words in shown])
    return Draft(surface, list(chain(*form)), list(chain(*shown)))
