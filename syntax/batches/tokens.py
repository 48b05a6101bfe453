"""Tokens of a dataset that the pieces of its texts show, found by the characters both cover."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.compiled import njit
from syntax.matrices.offsets import as_offsets, for_numba, sizes

_TEXT: Final = 1 << 32
"""Bound of the characters and tokens of a text, so that numbers of texts do not overlap."""


def token_ids_of(
    offsets: ArrayLike,
    segment_offsets: ArrayLike,
    token_offsets: ArrayLike,
    token_bounds: ArrayLike,
) -> NDArray[np.int32]:
    """The first token that shares a character with each piece, counted within its segment; else -1.

    ``offsets`` (N, 2) and ``token_offsets`` (T, 2) are characters of pieces and tokens;
    ``segment_offsets`` and ``token_bounds`` (S + 1,) say where segments begin. (N,), int32.

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
    """True for the first piece that shows a token. *Shape:* (N,)."""
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

    A word over several tokens begins in the first. 0 and 0 elsewhere. *Shape:* (N, 2), int32.
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
    texts = np.arange(len(segment_offsets) - 1) * _TEXT
    return np.repeat(texts, sizes(segment_offsets)) + token_ids
