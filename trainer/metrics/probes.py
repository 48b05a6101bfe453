"""Agreement of predicted distances and depths with a tree (Hewitt and Manning 2019, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

Edges = set[tuple[int, int]]
"""Pairs of positions, the smaller first."""


def spanning_edges(distance: NDArray[Any]) -> Edges:
    """The edges of the minimum spanning tree; only the order of distances, (W, W), matters.

    >>> sorted(spanning_edges(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])))
    [(0, 1), (1, 2)]
    """
    from scipy.sparse.csgraph import minimum_spanning_tree  # takes long to import

    # To scipy a weight of 0 is no edge.
    weights = np.asarray(distance, float) - np.min(distance, initial=0.0) + 1.0
    found = minimum_spanning_tree(np.triu(weights, 1)).tocoo()
    pairs = zip(found.row.tolist(), found.col.tolist(), strict=True)
    return {(min(pair), max(pair)) for pair in pairs}


def edges_of(distance: NDArray[Any], kept: NDArray[np.bool_]) -> Edges:
    """The edges of the minimum spanning tree over the kept words, as positions among all."""
    place = np.flatnonzero(kept).tolist()
    found = spanning_edges(distance[np.ix_(kept, kept)])
    return {(place[one], place[other]) for one, other in found}


def root_of(depth: NDArray[Any], kept: NDArray[np.bool_]) -> int:
    """The word of least depth among the kept, or among all if none is; the first of equals."""
    return int(np.argmin(np.where(kept, depth, np.inf) if kept.any() else depth))


def spearman(predicted: NDArray[Any], gold: NDArray[Any]) -> NDArray[np.float64]:
    """Rank correlation of each row, (R, W) to (R,); 0 where one of the two is constant.

    >>> spearman(np.array([[1.0, 2.0, 9.0]]), np.array([[1, 2, 3]])).tolist()
    [1.0]
    """
    from scipy.stats import rankdata  # takes long to import

    ranks = (rankdata(values, axis=1) for values in (predicted, gold))
    ours, theirs = (own - own.mean(1, keepdims=True) for own in ranks)
    products = (ours * theirs).sum(1)
    spread = np.sqrt((ours**2).sum(1) * (theirs**2).sum(1))
    found: NDArray[np.float64] = np.zeros(len(products))
    np.divide(products, spread, out=found, where=spread > 0)
    return found


def mean_over_lengths(values: Mapping[int, Iterable[float]], shortest: int, longest: int) -> float:
    """The mean over sentence lengths of the mean at each length; 0 without any sentence."""
    chosen = [fmean(own) for length, own in values.items() if shortest <= length <= longest]
    return fmean(chosen) if chosen else 0.0
