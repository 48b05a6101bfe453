"""Length, depth, arity and crossing arcs of many dependency trees at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.compiled import njit
from syntax.errors import InputError


@dataclass(frozen=True)
class TreeShapes:
    """One number per tree, of words or edges. *Shape:* (T,) each, int64.

    Attributes:
        arity: Largest number of dependents of a word.
        crossing: Words whose arc covers a word that is not a descendant of their head; a tree is
            projective if it has none.
    """

    length: NDArray[np.int64]
    depth: NDArray[np.int64]
    arity: NDArray[np.int64]
    crossing: NDArray[np.int64]


def tree_shapes(heads: ArrayLike, starts: ArrayLike) -> TreeShapes:
    """Shapes of T trees from ``starts`` (T + 1,); ``heads`` (N,) are as in CoNLL-U.

    >>> tree_shapes([2, 0, 2, 1], [0, 4]).crossing
    array([1])
    """
    flat = np.ascontiguousarray(heads, dtype=np.int64)
    bounds = np.ascontiguousarray(starts, dtype=np.int64)
    out = np.zeros((4, max(len(bounds) - 1, 0)), dtype=np.int64)
    unsound = _shapes(flat, bounds, out)
    if unsound >= 0:
        raise InputError(
            f"tree {unsound} is not a tree: a head lies outside of it, or heads form a cycle"
        )
    return TreeShapes(*out)


@njit(cache=True, nogil=True)
def _shapes(heads: Any, starts: Any, out: Any) -> int:
    """Fill ``out``; the first malformed tree, or -1."""
    for tree in range(len(starts) - 1):
        words = heads[starts[tree] : starts[tree + 1]]
        depth = _depth(words)
        if depth < 0:
            return tree
        out[0, tree] = len(words)
        out[1, tree] = depth
        out[2, tree] = _arity(words)
        out[3, tree] = _crossing(words)
    return -1


@njit(cache=True, nogil=True)
def _depth(words: Any) -> int:
    deepest = 0
    for word in range(len(words)):
        steps, head = 0, words[word]
        while head != 0:
            steps += 1
            if head < 0 or head > len(words) or steps > len(words):
                return -1
            head = words[head - 1]
        deepest = max(deepest, steps)
    return deepest


@njit(cache=True, nogil=True)
def _arity(words: Any) -> int:
    dependents = np.zeros(len(words) + 1, np.int64)
    for head in words:
        dependents[head] += 1
    return int(dependents[1:].max()) if len(words) else 0


@njit(cache=True, nogil=True)
def _crossing(words: Any) -> int:
    crossing = 0
    for word in range(1, len(words) + 1):
        head = words[word - 1]
        # The arc of the root comes from outside of the sentence and covers no word.
        if head != 0 and _is_crossing(words, word, head):
            crossing += 1
    return crossing


@njit(cache=True, nogil=True)
def _is_crossing(words: Any, word: int, head: int) -> bool:
    for between in range(min(word, head) + 1, max(word, head)):
        above = between
        while above != 0 and above != head:
            above = words[above - 1]
        if above == 0:
            return True
    return False
