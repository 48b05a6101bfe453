"""Character spans of syntactic words, given those of the surface tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise


def word_spans(
    text: str,
    token_start: Sequence[int],
    token_end: Sequence[int],
    token_first_word: Sequence[int],
    form: Sequence[str],
) -> tuple[list[int], list[int]]:
    """Span of every word: that of its token, or its own part of a multiword token.

    The words of a multiword token split its span if their forms in sequence spell it (*don't* =
    *do* + *n't*); else each has the whole span (*du* = *de* + *le*).

    >>> word_spans("don't", [0], [5], [0], ["do", "n't"])
    ([0, 2], [2, 5])
    >>> word_spans("du", [0], [2], [0], ["de", "le"])
    ([0, 0], [2, 2])
    """
    if len(token_start) == len(form):
        return list(token_start), list(token_end)
    starts: list[int] = []
    ends: list[int] = []
    ranges = pairwise([*token_first_word, len(form)])
    for start, end, (first, last) in zip(token_start, token_end, ranges, strict=True):
        words = form[first:last]
        if last - first == 1:
            cuts = [start, end]
        elif "".join(words) == text[start:end]:
            cuts = list(accumulate(map(len, words), initial=start))
        else:
            cuts = []
        starts += cuts[:-1] or [start] * (last - first)
        ends += cuts[1:] or [end] * (last - first)
    return starts, ends
