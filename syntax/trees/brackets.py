"""Binary brackets of a tree: divisions of its stretches of words into two parts.

Constituents are binary by branching to the right: behind its first part the others are a stretch of
their own. Dependency trees have no constituents. There the word takes its dependents on the right,
the nearest first, and then those on the left, the nearest first. So a stretch divides behind the
subtree of its leftmost dependent, and, once nothing is left of the head, before that of its
rightmost one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.compiled import njit

IntArray = NDArray[np.int32]

LEAST_WORDS: Final = 3
"""Words of the shortest stretch that can be divided in more than one way."""


def brackets(parents: ArrayLike) -> IntArray | None:
    """First word, last word and last word of the first part of each bracket. *Shape:* (S, 3).

    Only of stretches of at least `LEAST_WORDS` words. None for a tree that is not projective.
    ``parents`` (n,) has -1 for the one root.

    >>> brackets([3, 3, 3, -1, 3]).tolist()     # he is very happy now
    [[0, 4, 0], [1, 4, 1], [2, 4, 2]]
    """
    heads = np.asarray(parents, np.int32)
    first, last, size = _subtrees(heads)
    if (last - first + 1 != size).any():
        return None
    found: IntArray = _divide(heads, first, last)
    return found[found[:, 1] - found[:, 0] + 1 >= LEAST_WORDS]


def constituent_brackets(constituents: Iterable[tuple[int, int]]) -> IntArray:
    """As `brackets`, of constituents, first word and end of each; the widest is the sentence.

    >>> constituent_brackets([(0, 6), (1, 5), (2, 5)]).tolist()  # he (is (very very happy)) now
    [[0, 5, 0], [1, 5, 4], [1, 4, 1], [2, 4, 2]]
    """
    ends: dict[int, list[int]] = {}
    for start, end in sorted(set(constituents), reverse=True):
        ends.setdefault(start, []).append(end)
    found = []
    for start, end in sorted((start, end) for start, of in ends.items() for end in of):
        at = start
        while at < end:
            # The widest constituent that begins here inside of this one; else a word.
            inner = (one for one in ends.get(at, ()) if one <= end and (at, one) != (start, end))
            part = next(inner, at + 1)
            if part < end and end - at >= LEAST_WORDS:
                found.append((at, end - 1, part - 1))
            at = part
    return np.array(found, np.int32).reshape(-1, 3)


@njit(cache=True, nogil=True)
def _subtrees(parents: IntArray) -> Any:
    first = np.arange(len(parents)).astype(np.int32)
    last, size = first.copy(), np.zeros(len(parents), np.int32)
    for word in range(len(parents)):
        at = word
        while at >= 0:
            first[at], last[at] = min(first[at], word), max(last[at], word)
            size[at] += 1
            at = parents[at]
    return first, last, size


@njit(cache=True, nogil=True)
def _divide(parents: IntArray, first: IntArray, last: IntArray) -> IntArray:
    """Every division of a projective tree of n words. *Shape:* (n - 1, 3)."""
    found, count = np.empty((max(len(parents) - 1, 0), 3), np.int32), 0
    for head in range(len(parents)):
        low, high = first[head], last[head]
        for word in range(first[head], head):
            if parents[word] == head:
                found[count, 0], found[count, 1], found[count, 2] = low, high, last[word]
                low, count = last[word] + 1, count + 1
        for word in range(last[head], head, -1):
            if parents[word] == head:
                found[count, 0], found[count, 1], found[count, 2] = low, high, first[word] - 1
                high, count = first[word] - 1, count + 1
    return found
