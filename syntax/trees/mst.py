"""The best tree of a matrix of arc scores: Chu and Liu (1965), Edmonds (1967)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import InputError


def spanning_tree(scores: ArrayLike, single_root: bool = True) -> NDArray[np.int32]:
    """Heads of the tree with the highest sum of arc scores. *Shape:* (W,), int32.

    ``scores`` (W, W + 1): row = dependent, column 0 = ROOT, column i = word i, counted from 1. The
    score of a word as its own head is not read. With ``single_root`` exactly one word hangs from
    ROOT, else one or more. Heads are 1-based, 0 for a root. Of several best heads of a word the
    first counts, so the result is always the same.

    >>> spanning_tree([[5.0, 0, 8], [4, 9, 0]]).tolist()
    [0, 1]
    """
    matrix = np.array(scores, np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(matrix) + 1:
        raise InputError(
            f"scores of shape {matrix.shape} are not scores of heads; give (W, W + 1): a row for "
            "each of W words, and a column for ROOT and for each word"
        )
    if not np.isfinite(matrix).all():
        raise InputError("a score of a head is NaN or infinite; give finite scores")
    if (found := _greedy_heads(matrix, single_root)) is not None:
        return found
    square = np.zeros((len(matrix) + 1, len(matrix) + 1))
    square[1:] = matrix
    np.fill_diagonal(square, 0)
    if single_root:
        # No tree can gain so much elsewhere that a second root would pay. What is not read takes
        # no part: from a huge number, little of the roots' scores would be left.
        square[1:, 0] -= 1 + 2 * len(matrix) * float(np.abs(square).max(initial=0))
    return _best_heads(square)[1:]


def sentence_heads(
    scores: ArrayLike, sentences: ArrayLike, single_root: bool = True
) -> NDArray[np.int32]:
    """Heads of the words of several sentences (-1: padding), each with a tree of its own.

    They are positions among all words, 1-based, 0 for roots and padding. *Shape:* (W,).
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
    """True for ``root``, with a subtype or without. *Shape:* (R,)."""
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


def _greedy_heads(scores: NDArray[np.float64], single_root: bool) -> NDArray[np.int32] | None:
    """Best head of each word, if they are a tree, else ``None``; overwrites the diagonal."""
    own = np.arange(len(scores))
    scores[own, own + 1] = -np.inf
    heads = scores.argmax(1)
    if single_root and np.count_nonzero(heads == 0) != 1:
        return None
    above = np.concatenate([[0], heads])
    for _ in range(len(own).bit_length()):
        above = above[above]
    return None if above.any() else heads.astype(np.int32)


def _best_heads(scores: NDArray[np.float64]) -> NDArray[np.int32]:
    """Heads of the best tree over nodes, of which 0 is the root; overwrites the scores.

    Each word takes its best head. A cycle becomes one node, under its first node, whose arcs say
    what the whole costs when another arc enters it. Noted are the nodes where an arc from another
    node would enter a cycle, and from which another node would hang.
    """
    np.fill_diagonal(scores, -np.inf)
    alive = np.ones(len(scores), bool)
    noted = []
    while True:
        heads = scores.argmax(1)
        heads[0] = 0
        cycle = _on_cycle(heads, alive)
        if cycle is None:
            break
        alive[cycle] = False
        others = np.flatnonzero(alive)
        first = int(cycle.min())
        alive[first] = True
        enter = scores[np.ix_(cycle, others)] - scores[cycle, heads[cycle]][:, None]
        leave = scores[np.ix_(others, cycle)]
        noted.append((cycle, heads[cycle], others, enter.argmax(0), leave.argmax(1)))
        scores[:, cycle] = -np.inf
        scores[first, others] = enter.max(0)
        scores[others, first] = leave.max(1)
    for cycle, within, others, enters, leaves in reversed(noted):
        first = int(cycle.min())
        above = heads[first]
        hang = heads[others] == first
        heads[others[hang]] = cycle[leaves[hang]]
        heads[cycle] = within
        heads[cycle[enters[others == above]]] = above
    return np.asarray(heads, np.int32)


def _on_cycle(heads: NDArray[np.int64], alive: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Nodes of the first cycle that a walk from head to head finds; ``None`` without one."""
    above = heads.tolist()
    walks = [0] * len(above)  # the walk on which a node was seen first
    for start in np.flatnonzero(alive).tolist()[1:]:
        node = start
        while node and not walks[node]:
            walks[node] = start
            node = above[node]
        if node and walks[node] == start:
            nodes = [node]
            while above[nodes[-1]] != node:
                nodes.append(above[nodes[-1]])
            return np.array(nodes)
    return None
