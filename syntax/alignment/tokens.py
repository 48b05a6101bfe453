"""Alignment of a dataset's tokens with the words of a parse, and projection of labels to words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from syntax.errors import InputError
from syntax.labels import are_span_labels
from syntax.trees.parse import Parse

_OPENING: Final = frozenset("BSU")
_CLOSING: Final = frozenset("ESLU")


def token_words(tokens: Sequence[str], parse: Parse) -> list[list[int]]:
    """Words that share a character with each token, in linear time.

    The text is the tokens joined by single spaces; a word over several tokens belongs to each. In
    *des New York*, tokens ``["des", "New", "York"]``, a model may read *de les New York*::

        parse.form          ["de", "les", "New York"]
        word spans          (0, 3) (0, 3) (4, 12)
        token_words         [[0, 1], [2], [2]]
        word_tokens         [[0], [0], [1, 2]]

    Words are 0-based in the whole text. A token has no word only if the parser leaves its
    characters out (such as a lone zero-width space). Words of no width belong to no token.
    """
    if " ".join(tokens) != parse.text:
        raise InputError(
            "the parsed text is not these tokens joined by single spaces; parse the same tokens"
        )
    ends = accumulate(map(len, tokens), lambda end, length: end + 1 + length)
    spans = ((end - len(token), end) for token, end in zip(tokens, ends, strict=True))
    return list(_overlaps(spans, parse.word_start, parse.word_end))


def word_tokens(tokens: Sequence[str], parse: Parse) -> list[list[int]]:
    """Inverse of `token_words`."""
    found: list[list[int]] = [[] for _ in range(parse.word_count)]
    for token, words in enumerate(token_words(tokens, parse)):
        for word in words:
            found[word].append(token)
    return found


def project_labels(
    labels: Sequence[str], token_words: Sequence[Sequence[int]], words: int
) -> list[str | None]:
    """Label of every word, from that of its token; ``None`` for a word without one.

    Labels that are all ``O`` or ``B-``, ``I-``, ``E-``, ``S-``, ``L-``, ``U-`` and a type are read
    as spans (IOB1, BIO, BIOES, BILOU), and each span is rewritten over the words of its tokens:

    * over more words than tokens, ``B- I-`` continue with ``I-``, ``S-`` becomes ``B- .. E-``,
      ``E-`` becomes ``I- .. E-``, likewise ``U-`` and ``L-``; over fewer, ``B- E-`` becomes ``S-``;
    * a word over several tokens belongs to the first span that covers it. A later span starts at
      its next own word; a span without a word of its own is lost;
    * where no word is left between two spans of one type, ``I-`` becomes ``B-``.

    A valid sequence stays valid. Other labels (part-of-speech tags, say) are copied to each word
    of the token; a word over several tokens takes the first that is not ``O``.

    >>> project_labels(["B-LOC", "I-LOC", "O"], [[0, 1], [2], [3]], 4)
    ['B-LOC', 'I-LOC', 'I-LOC', 'O']
    >>> project_labels(["S-LOC", "NOUN"], [[0, 1], [2]], 3)
    ['S-LOC', 'S-LOC', 'NOUN']
    >>> project_labels(["B-PER", "B-LOC", "I-LOC"], [[0], [0], [1]], 2)
    ['B-PER', 'B-LOC']
    """
    if len(labels) != len(token_words):
        raise InputError(f"there are {len(labels)} labels for {len(token_words)} tokens")
    if are_span_labels(labels):
        return _project_spans(labels, token_words, words)
    return _project_plain(labels, token_words, words)


def _overlaps(
    spans: Iterable[tuple[int, int]], word_start: Sequence[int], word_end: Sequence[int]
) -> Iterator[list[int]]:
    first = 0
    for start, end in spans:
        while first < len(word_end) and word_end[first] <= start:
            first += 1
        stop = first
        while stop < len(word_start) and word_start[stop] < end:
            stop += 1
        yield [at for at in range(first, stop) if word_start[at] < word_end[at]]


def _project_plain(
    labels: Sequence[str], token_words: Sequence[Sequence[int]], words: int
) -> list[str | None]:
    found: list[str | None] = [None] * words
    for label, own in zip(labels, token_words, strict=True):
        for word in own:
            if found[word] in (None, "O"):
                found[word] = label
    return found


def _project_spans(
    labels: Sequence[str], token_words: Sequence[Sequence[int]], words: int
) -> list[str | None]:
    found = _project_plain(["O"] * len(labels), token_words, words)
    for span in _spans(labels):
        touched = dict.fromkeys(word for token in span for word in token_words[token])
        own = [word for word in touched if found[word] == "O"]
        if not own:
            continue
        before = found[own[0] - 1] if own[0] else None
        first, last = labels[span[0]], labels[span[-1]]
        opens = first[0] in _OPENING or _continues(before or "O", first)
        for word, letter in zip(own, _letters(len(own), opens, last[0]), strict=True):
            found[word] = letter + first[1:]
    return found


def _spans(labels: Sequence[str]) -> Iterator[list[int]]:
    span: list[int] = []
    for at, label in enumerate(labels):
        if span and not _continues(labels[at - 1], label):
            yield span
            span = []
        if label != "O":
            span.append(at)
    if span:
        yield span


def _continues(before: str, label: str) -> bool:
    return (
        "O" not in (before, label)
        and before[1:] == label[1:]
        and before[0] not in _CLOSING
        and label[0] not in _OPENING
    )


def _letters(count: int, opens: bool, last: str) -> list[str]:
    letters = ["I"] * count
    if opens:
        letters[0] = "B"
    if last in _CLOSING:
        end, alone = "LU" if last in "LU" else "ES"
        letters[-1] = alone if opens and count == 1 else end
    return letters
