"""GATE: distances pruned around an entity pair, and attention divided by them.

Sources: Ahmad et al. 2021 (AAAI), whose attention divides by the distance; pruning as in its code,
after Zhang et al. 2018 (EMNLP).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import SpecError
from syntax.matrices import relations
from syntax.matrices.nodes import Nodes
from syntax.matrices.tree import matrices_of_one, one_forest
from syntax.variant import Variant, is_released


def pruned_distance(
    parents: ArrayLike,
    *,
    source: ArrayLike | None = None,
    marks: ArrayLike | None = None,
    keep: int = 1,
) -> NDArray[Any]:
    """Distances in the tree pruned around the marked nodes.

    The dtype is that of `tree_distance`; its maximum stands where no path is left. Pruning keeps
    the paths from marked nodes (``marks`` (L,), non-zero) up to their lowest common ancestor, and
    nodes at most ``keep`` edges below those paths, GATE's ``prune_k``; negative for the whole tree.
    Trees with marks are each pruned around their own. Without any nothing is pruned. ``parents``
    and ``source`` are as in `tree_matrices`.

    >>> pruned_distance([1, -1, 1, 2], marks=[0, 0, 1, 1], keep=0)
    array([[  0, 255, 255, 255],
           [255,   0, 255, 255],
           [255, 255,   0,   1],
           [255, 255,   1,   0]], dtype=uint8)
    """
    forest = one_forest(parents, source)
    distance = matrices_of_one(forest, ("distance",))["distance"]
    nodes = Nodes.from_forest(forest)
    pruned = _pruned(nodes, marks, keep)
    unreachable = np.iinfo(distance.dtype).max
    distance[pruned] = unreachable
    distance[:, pruned] = unreachable
    np.fill_diagonal(distance, 0)
    return nodes.shown_pairs(distance)


def gate_weights(
    parents: ArrayLike,
    *,
    source: ArrayLike | None = None,
    marks: ArrayLike | None = None,
    keep: int = -1,
    threshold: int = 2,
    variant: Variant = "as_published",
) -> NDArray[np.float32]:
    """`distance_weights` of `pruned_distance`, by default of the whole tree."""
    distance = pruned_distance(parents, source=source, marks=marks, keep=keep)
    return distance_weights(distance, threshold, variant)


def distance_weights(
    distance: NDArray[Any], threshold: int, variant: Variant = "as_published"
) -> NDArray[np.float32]:
    """Factors of GATE's attention probabilities, which are then normalised again. float32.

    ``1 / distance`` (..., L, L) up to ``threshold`` (delta), else 0. The paper divides by 0 on the
    diagonal and means 1. As released the diagonal is 0, so that no word attends to itself. Nodes at
    distance 0, such as the pieces of one word under ``broadcast``, count as the diagonal.

    >>> distance_weights(np.array([[0, 2, 3], [2, 0, 255], [3, 255, 0]], np.uint8), 2).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    most = np.iinfo(distance.dtype).max
    if not 0 < threshold < most:
        raise SpecError(f"threshold is {threshold}; it must lie between 1 and {most - 1}")
    weights = np.zeros(threshold + 2, np.float32)
    weights[1:-1] = np.float32(1) / np.arange(1, threshold + 1, dtype=np.float32)
    weights[0] = 0 if is_released(variant) else 1
    taken: NDArray[np.float32] = weights[np.minimum(distance, threshold + 1)]
    return taken


def _pruned(nodes: Nodes, marks: ArrayLike | None, keep: int) -> NDArray[np.bool_]:
    marked = np.zeros(len(nodes), np.bool_)
    # A span marks all pieces of its words; a piece that shows another marks that one.
    marked[nodes.source[nodes.column("marks", marks, np.bool_)]] = True
    if keep < 0 or not marked.any():
        return np.zeros(len(nodes), np.bool_)
    edges = np.empty(len(nodes), np.int32)
    relations.off_path(nodes.parents, nodes.order, nodes.depth, nodes.root, marked, edges)
    return nodes.shown(edges > keep)
