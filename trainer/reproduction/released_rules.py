"""Behaviour of published releases on an example, as short rules that count on any data.

The rules are written from descriptions; they use none of the releases' code. `rows.releases` names
the releases and their commits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

import numpy as np

from syntax.trees.sentence import Sentence

Span = tuple[int, int]
"""Start and end, in characters."""

_WHITE_SPACE: Final = " \t\r\n\u202f"
"""Characters at which SG-Net's reader, as that of BERT, splits words."""


def written_by_csv(text: str) -> str:
    r"""A field as a CSV writer with TAB writes it, and a reader that splits at TAB gets it.

    >>> written_by_csv('He said "no".')
    '"He said ""no""."'
    """
    line = io.StringIO()
    csv.writer(line, delimiter="\t", lineterminator="").writerow([text, ""])
    return line.getvalue().removesuffix("\t")


def token_of(word: Span, tokens: Sequence[Span]) -> int | None:
    """The first token that a word lies in, begins with or ends with; None: the example is lost."""
    start, end = word
    for number, (first, last) in enumerate(tokens):
        if (first <= start and end <= last) or start == first or end == last:
            return number
    return None


def answer_is_found(passage: str, start: int, answer: str) -> bool:
    """True if the words at an answer's place contain the answer with its white space made plain."""
    words: list[str] = []
    word_at: list[int] = []
    is_new = True
    for character in passage:
        if character in _WHITE_SPACE:
            is_new = True
        elif is_new:
            words.append(character)
            is_new = False
        else:
            words[-1] += character
        word_at.append(len(words) - 1)
    last = min(start + len(answer), len(passage)) - 1
    there = " ".join(words[word_at[start] : word_at[last] + 1])
    return " ".join(answer.split()) in there


def heads_of(sentence: Sentence) -> list[int]:
    return [word.head or 0 for word in sentence.words]


def has_wide_span(heads: Sequence[int]) -> bool:
    """True if the span from the first to the last word of some subtree has other words in it."""
    size = len(heads)
    inside = np.eye(size, dtype=bool)  # inside[a, w]: a is w or above it
    for word in range(size):
        above = heads[word]
        while above:
            inside[above - 1, word] = True
            above = heads[above - 1]
    places = np.arange(size)
    first = np.where(inside, places, size).min(axis=1)
    last = np.where(inside, places, -1).max(axis=1)
    return bool((inside.sum(axis=1) != last - first + 1).any())


def words_without_themselves(heads: Sequence[int], pieces: Sequence[int]) -> int:
    """Words whose only piece may not attend to itself: those that no word depends on."""
    with_dependents = {head - 1 for head in heads if head}
    return sum(count == 1 and word not in with_dependents for word, count in enumerate(pieces))


def rows_by_continuation(pieces: Sequence[str]) -> int:
    """Count the words of an alignment that takes each piece without ## as the start of one."""
    return sum(not piece.startswith("##") for piece in pieces)
