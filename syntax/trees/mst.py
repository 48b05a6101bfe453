"""The best tree of a matrix of arc scores: Chu and Liu (1965), Edmonds (1967).

Each word takes its best head. Where that makes a cycle, the cycle becomes one node, whose arcs say
what the whole costs when another arc enters it; the best tree of the smaller graph tells where the
cycle is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.compiled import njit
from syntax.errors import InputError


def spanning_tree(scores: ArrayLike, single_root: bool = True) -> NDArray[np.int32]:
    """The heads of the tree with the highest sum of arc scores.

    Args:
        scores: Score of each head of each word: row = dependent, column 0 = ROOT, column i = word
            i, counted from 1. The score of a word as its own head is not read; it may be a huge
            negative number. *Shape:* (W, W + 1).
        single_root: Exactly one word hangs from ROOT, as Universal Dependencies want it;
            otherwise any number, at least one.

    Returns:
        Head of each word, 1-based, 0 for a root, as in CoNLL-U. *Shape:* (W,), int32. Where a word
        has several best heads, the first counts, so the result is always the same.

    >>> spanning_tree([[5.0, 0, 8], [4, 9, 0]]).tolist()
    [0, 1]
    """
    matrix = np.ascontiguousarray(scores, np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(matrix) + 1:
        raise InputError(
            f"scores of shape {matrix.shape} are not scores of heads; give (W, W + 1): a row for "
            "each of W words, and a column for ROOT and for each word"
        )
    if not np.isfinite(matrix).all():
        raise InputError("a score of a head is NaN or infinite; give finite scores")
    square = np.zeros((len(matrix) + 1, len(matrix) + 1))
    square[1:] = matrix
    np.fill_diagonal(square, 0)
    if single_root:
        # No tree can gain so much elsewhere that a second root would pay. What is not read takes
        # no part: from a huge number, little of the roots' scores would be left.
        square[1:, 0] -= 1 + 2 * len(matrix) * float(np.abs(square).max(initial=0))
    return _best_heads(square)[1:]


def greedy_heads(scores: NDArray[Any]) -> NDArray[np.int64] | None:
    """The best head of each word, if they are a tree with one root; else ``None``.

    Such heads are those of `spanning_tree`, in a tenth of the time, and most sentences have them.

    >>> greedy_heads(np.array([[5.0, 0, 8], [9, 4, 0]])).tolist()
    [2, 0]
    """
    size = len(scores)
    own = np.arange(size)
    scores = scores.copy()
    scores[own, own + 1] = -np.inf
    heads = scores.argmax(1)
    if np.count_nonzero(heads == 0) != 1:
        return None
    above = np.concatenate([[0], heads])
    for _ in range(size.bit_length()):
        above = above[above]
    return None if above.any() else heads


def sentence_heads(
    scores: ArrayLike, sentences: ArrayLike, single_root: bool = True
) -> NDArray[np.int32]:
    """The heads of the words of several sentences, each with a tree of its own. *Shape:* (W,).

    They are positions among all words, 1-based, 0 for roots and padding.

    Args:
        scores: As for `spanning_tree`, over all words; those between sentences are not read.
        sentences: Sentence of each word; -1 for padding. *Shape:* (W,).
        single_root: As for `spanning_tree`.
    """
    matrix, owner = np.asarray(scores, np.float64), np.asarray(sentences)
    heads = np.zeros(len(owner), np.int32)
    for sentence in np.unique(owner[owner >= 0]).tolist():
        words = np.flatnonzero(owner == sentence)
        columns = np.concatenate([[0], words + 1])
        found = spanning_tree(matrix[np.ix_(words, columns)], single_root)
        heads[words] = columns[found]
    return heads


def are_root(relations: Sequence[str]) -> NDArray[np.bool_]:
    """Which relations are ``root``, with a subtype or without. *Shape:* (R,)."""
    return np.array([name.partition(":")[0] == "root" for name in relations], bool)


def best_relations(
    scores_BWR: NDArray[Any], at_root_BW: NDArray[np.bool_], is_root_R: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The best relation of each word: a root's is ``root``, and no other word's. *Shape:* (B, W).

    A model that knows no such relation, or no other, chooses among those that it knows.

    >>> known, scores = are_root(["root", "obj"]), np.array([[[2, 1], [0, 1]]])
    >>> best_relations(scores, np.array([[False, True]]), known)
    array([[1, 0]])
    """
    if is_root_R.any() and not is_root_R.all():
        fits_BWR = at_root_BW[:, :, None] == is_root_R
        scores_BWR = np.where(fits_BWR, scores_BWR, -np.inf)
    return np.asarray(scores_BWR.argmax(-1), np.int64)


@njit(cache=True, nogil=True)
def _best_heads(scores: NDArray[np.float64]) -> NDArray[np.int32]:
    """Heads of the best tree over nodes, of which 0 is the root; overwrites the scores.

    A cycle lives on under its first node. ``enters[k, h]`` says at which node of the k-th cycle the
    arc from h would enter it, ``leaves[k, d]`` from which of its nodes d would hang.
    """
    size = len(scores)
    alive = np.ones(size, np.bool_)
    head = np.zeros(size, np.int32)
    cycles = np.zeros((size, size), np.int32)  # 1 + the head within the k-th cycle, or 0
    enters = np.zeros((size, size), np.int32)
    leaves = np.zeros((size, size), np.int32)
    first = np.zeros(size, np.int32)
    count = 0
    while True:
        for node in range(1, size):
            if alive[node]:
                head[node] = _best_head(scores, alive, node)
        found = _on_cycle(head, alive)
        if found < 0:
            break
        node = found
        first[count] = found
        while True:
            cycles[count, node] = 1 + head[node]
            first[count] = min(first[count], node)
            node = head[node]
            if node == found:
                break
        _contract(scores, alive, cycles[count], first[count], enters[count], leaves[count])
        count += 1
    for cycle in range(count - 1, -1, -1):
        _expand(head, alive, cycles[cycle], first[cycle], enters[cycle], leaves[cycle])
    return head


@njit(cache=True, nogil=True)
def _best_head(scores: NDArray[np.float64], alive: NDArray[np.bool_], node: int) -> int:
    best = -1
    for head in range(len(scores)):
        if alive[head] and head != node and (best < 0 or scores[node, head] > scores[node, best]):
            best = head
    return best


@njit(cache=True, nogil=True)
def _on_cycle(head: NDArray[np.int32], alive: NDArray[np.bool_]) -> int:
    """A node of a cycle; -1 without one."""
    walk = np.zeros(len(head), np.int32)  # the walk on which a node was seen first
    for start in range(1, len(head)):
        node = start
        while alive[start] and node != 0 and walk[node] == 0:
            walk[node] = start
            node = head[node]
        if alive[start] and node != 0 and walk[node] == start:
            return node
    return -1


@njit(cache=True, nogil=True)
def _contract(
    scores: NDArray[np.float64],
    alive: NDArray[np.bool_],
    cycle: NDArray[np.int32],
    first: int,
    enters: NDArray[np.int32],
    leaves: NDArray[np.int32],
) -> None:
    """Make one node of a cycle: the scores of its arcs, and which of its nodes they belong to."""
    for other in range(len(scores)):
        if not alive[other] or cycle[other]:
            continue
        into, out_of = -np.inf, -np.inf
        for node in range(1, len(scores)):
            if not cycle[node]:
                continue
            gain = scores[node, other] - scores[node, cycle[node] - 1]
            if gain > into:
                into, enters[other] = gain, node
            if scores[other, node] > out_of:
                out_of, leaves[other] = scores[other, node], node
        # Written behind the reading: the arcs of the first node are overwritten here. What no
        # longer lives is not read again, so the scores within the cycle may stay.
        scores[first, other], scores[other, first] = into, out_of
    for node in range(1, len(scores)):
        if cycle[node] and node != first:
            alive[node] = False


@njit(cache=True, nogil=True)
def _expand(
    head: NDArray[np.int32],
    alive: NDArray[np.bool_],
    cycle: NDArray[np.int32],
    first: int,
    enters: NDArray[np.int32],
    leaves: NDArray[np.int32],
) -> None:
    """Give the nodes of a cycle their heads, and those that hang from it their right one."""
    above = head[first]
    for node in range(1, len(head)):
        if alive[node] and node != first and head[node] == first:
            head[node] = leaves[node]
    for node in range(1, len(head)):
        if cycle[node]:
            head[node] = cycle[node] - 1
            alive[node] = True
    head[enters[above]] = above
