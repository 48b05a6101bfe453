"""How well predicted distances and depths spell a tree (Hewitt and Manning 2019, section 3).

Letters in shapes: ``W`` words of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import rankdata

Edges = set[tuple[int, int]]
"""Pairs of positions, the smaller first."""


def spanning_edges(distance: NDArray[Any]) -> Edges:
    """The edges of the minimum spanning tree.

    Args:
        distance: Distances between all words, of any sign; only their order matters. *Shape:*
            (W, W), symmetric.

    >>> sorted(spanning_edges(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])))
    [(0, 1), (1, 2)]
    """
    # To scipy a weight of 0 is no edge.
    weights = np.asarray(distance, float) - np.min(distance, initial=0.0) + 1.0
    found = minimum_spanning_tree(np.triu(weights, 1)).tocoo()
    pairs = zip(found.row.tolist(), found.col.tolist(), strict=True)
    return {(min(pair), max(pair)) for pair in pairs}


def right_edges(
    predicted: NDArray[Any], gold: NDArray[Any], kept: NDArray[np.bool_]
) -> tuple[int, int]:
    """Edges that both spanning trees over the kept words have, and how many there are.

    Args:
        predicted, gold: Distances between all words. *Shape:* (W, W).
        kept: Words that count; the original leaves out punctuation. *Shape:* (W,).
    """
    square = np.ix_(kept, kept)
    ours, theirs = spanning_edges(predicted[square]), spanning_edges(gold[square])
    return len(ours & theirs), len(theirs)


def is_root_right(
    predicted: NDArray[Any], gold: NDArray[Any], kept: NDArray[np.bool_]
) -> bool | None:
    """Whether the kept word of least predicted depth is the one of least depth; None without any.

    Args:
        predicted, gold: Depths. *Shape:* (W,).
        kept: Words that count. *Shape:* (W,).
    """
    if not kept.any():
        return None
    return bool(np.argmin(predicted[kept]) == np.argmin(gold[kept]))


def spearman(predicted: NDArray[Any], gold: NDArray[Any]) -> NDArray[np.float64]:
    """Rank correlation of each row; 0 where one of the two is constant.

    Args:
        predicted, gold: *Shape:* (R, W).

    Returns:
        *Shape:* (R,).

    >>> spearman(np.array([[1.0, 2.0, 9.0]]), np.array([[1, 2, 3]])).tolist()
    [1.0]
    """
    ours, theirs = (_centred(rankdata(values, axis=1)) for values in (predicted, gold))
    products = (ours * theirs).sum(1)
    spread = np.sqrt((ours**2).sum(1) * (theirs**2).sum(1))
    return np.divide(products, spread, out=np.zeros(len(products)), where=spread > 0)


def mean_over_lengths(values: Mapping[int, Iterable[float]], shortest: int, longest: int) -> float:
    """The mean over sentence lengths of the mean at each length; 0 without any sentence.

    Args:
        values: By number of words.
        shortest, longest: Lengths that count, both ends of them too.
    """
    chosen = [fmean(own) for length, own in values.items() if shortest <= length <= longest]
    return fmean(chosen) if chosen else 0.0


def _centred(ranks: NDArray[Any]) -> NDArray[Any]:
    centred: NDArray[Any] = ranks - ranks.mean(1, keepdims=True)
    return centred
