"""Copy UDPipe sentences into the columns of a `syntax.Parse`.

UDPipe's word objects point into their sentence and silently change when it is freed, so
everything is copied while the caller still holds the sentence.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from syntax import DependencyTree, Parse
from syntax.spans import word_spans


class Columns:
    """The columns of one text, growing sentence by sentence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.form: list[str] = []
        self.lemma: list[str | None] = []
        self.upos: list[str | None] = []
        self.xpos: list[str | None] = []
        self.feats: list[str | None] = []
        self.head: list[int] = []
        self.deprel: list[str | None] = []
        self.token_start: list[int] = []
        self.token_end: list[int] = []
        self.token_first_word: list[int] = []
        self.sentence_start: list[int] = []
        self.sentence_end: list[int] = []
        self.sentence_first_word: list[int] = []

    def add(self, sentence: Any, shift: int = 0) -> None:
        """Append a sentence whose tokens carry ranges; ``shift`` is added to them."""
        words = list(sentence.words)[1:]
        first_token = len(self.token_start)
        self._add_tokens(words, sentence.multiwordTokens, shift)
        self._add_annotation(words)
        self.sentence_start.append(self.token_start[first_token])
        self.sentence_end.append(self.token_end[-1])

    def add_joined(self, sentence: Any, tokens: tuple[str, ...]) -> None:
        """Append a sentence of ``tokens``, which the text joins by single spaces."""
        ends = list(accumulate(map(len, tokens), lambda end, length: end + 1 + length))
        self.token_start += [end - len(token) for end, token in zip(ends, tokens, strict=True)]
        self.token_end += ends
        self.token_first_word += range(len(tokens))
        self._add_annotation(list(sentence.words)[1:])
        self.sentence_start.append(0)
        self.sentence_end.append(len(self.text))

    def parse(self) -> Parse:
        """The finished columns."""
        starts, ends = word_spans(
            self.text, self.token_start, self.token_end, self.token_first_word, self.form
        )
        return Parse(word_start=starts, word_end=ends, **vars(self))

    def _add_tokens(self, words: list[Any], multiword: Any, shift: int) -> None:
        """Ranges sit on multiword tokens and on single words, never on words inside a token."""
        first, at = len(self.form), 0
        for token in multiword:
            self._add_singles(words[at : token.idFirst - 1], first + at, shift)
            self._add_singles([token], first + token.idFirst - 1, shift)
            at = token.idLast
        self._add_singles(words[at:], first + at, shift)

    def _add_singles(self, tokens: list[Any], first_word: int, shift: int) -> None:
        self.token_start += [token.getTokenRangeStart() + shift for token in tokens]
        self.token_end += [token.getTokenRangeEnd() + shift for token in tokens]
        self.token_first_word += range(first_word, first_word + len(tokens))

    def _add_annotation(self, words: list[Any]) -> None:
        heads = [word.head for word in words]
        deprels = [word.deprel for word in words]
        if heads.count(0) != 1 or min(heads) < 0 or max(heads) > len(heads):
            # The transition system builds trees; anything else deserves the tree's own error.
            DependencyTree(heads, deprels)
        self.sentence_first_word.append(len(self.form))
        self.head += heads
        self.deprel += [_given(deprel) for deprel in deprels]
        self.form += [word.form for word in words]
        self.lemma += [_given(word.lemma) for word in words]
        self.upos += [_given(word.upostag) for word in words]
        self.xpos += [_given(word.xpostag) for word in words]
        self.feats += [_given(word.feats) for word in words]


def _given(value: str) -> str | None:
    """``None`` for a column that the model does not fill; UDPipe writes "_" for a lemma."""
    return None if value in ("", "_") else value
