"""Which tokens of a dataset the pieces of its texts show.

A dataset brings tokens of its own; a tokenizer may join several in one piece, and a parser may cut
them into words otherwise. Pieces and tokens are compared by the characters they cover.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.compiled import njit
from syntax.matrices.offsets import as_offsets, for_numba, sizes

_TEXT: Final = 1 << 32
"""More than any text has characters or tokens: numbers of one text end before the next begins."""


def token_ids_of(
    offsets: ArrayLike,
    segment_offsets: ArrayLike,
    token_offsets: ArrayLike,
    token_bounds: ArrayLike,
) -> NDArray[np.int32]:
    """The first token that shares a character with each piece, counted within its segment.

    Args:
        offsets: Characters of the segment's text that each piece covers. *Shape:* (N, 2).
        segment_offsets: First piece of each segment, and the end. *Shape:* (S + 1,).
        token_offsets: Characters that each token covers, in order. *Shape:* (T, 2).
        token_bounds: First token of each segment, and the end. *Shape:* (S + 1,).

    Returns:
        -1 for a piece that shows none, as in a segment without tokens. *Shape:* (N,), int32.

    >>> token_ids_of([(0, 3), (3, 6), (7, 9), (10, 11)], [0, 4], [(0, 3), (4, 9)], [0, 2]).tolist()
    [0, 1, 1, -1]
    """
    pieces, tokens = (for_numba(x, np.int32).reshape(-1, 2) for x in (offsets, token_offsets))
    of_pieces = as_offsets(segment_offsets, len(pieces))
    of_tokens = as_offsets(token_bounds, len(tokens))
    ids = np.full(len(pieces), -1, np.int32)
    _find_tokens(pieces, of_pieces, tokens, of_tokens, ids)
    return ids


@njit(cache=True, nogil=True)
def _find_tokens(
    pieces: NDArray[np.int32],
    of_pieces: NDArray[np.int64],
    tokens: NDArray[np.int32],
    of_tokens: NDArray[np.int64],
    ids: NDArray[np.int32],
) -> None:
    """One walk along pieces and tokens of each text, both in order."""
    for segment in range(len(of_pieces) - 1):
        token, end = of_tokens[segment], of_tokens[segment + 1]
        for piece in range(of_pieces[segment], of_pieces[segment + 1]):
            first, behind = pieces[piece]
            while token < end and tokens[token, 1] <= first:
                token += 1
            at = token
            while at < end and tokens[at, 0] == tokens[at, 1]:
                at += 1
            if at < end and first < behind and tokens[at, 0] < behind:
                ids[piece] = at - of_tokens[segment]


def first_of_tokens(
    token_ids: NDArray[np.int32], segment_offsets: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether each piece is the first that shows its token. *Shape:* (N,)."""
    keys = _keys(token_ids, segment_offsets)
    before = np.maximum.accumulate(np.concatenate([[-1], keys]))[:-1]
    first: NDArray[np.bool_] = (token_ids >= 0) & (keys > before)
    return first


def words_of_tokens(
    token_ids: NDArray[np.int32],
    segment_offsets: NDArray[np.int64],
    first_of_words: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """At the first piece of each word: its number in its token, and how many words begin there.

    A word over several tokens begins in the first of them. 0 and 0 everywhere else.
    *Shape:* (N, 2), int32.
    """
    at = np.flatnonzero(first_of_words & (token_ids >= 0))
    keys = _keys(token_ids, segment_offsets)[at]
    runs = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    counts = np.diff(runs)
    words = np.zeros((len(token_ids), 2), np.int32)
    words[at, 0] = np.arange(len(at)) - np.repeat(runs[:-1], counts)
    words[at, 1] = np.repeat(counts, counts)
    return words


def _keys(token_ids: NDArray[np.int32], segment_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each token of all segments, in order; none is before the first of its text."""
    texts = np.arange(len(segment_offsets) - 1) * _TEXT
    return np.repeat(texts, sizes(segment_offsets)) + token_ids
