"""Syntax-aware local attention (SLA): windowed distances and their mask.

Sources: Li et al. 2021 (Findings of ACL), eq. 3-5; the variant ``as_released`` is that of the
re-implementation `lr-sib`, whose window lacks the right neighbour.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import SpecError
from syntax.matrices.nodes import Nodes
from syntax.matrices.tree import matrices_of_one, one_forest
from syntax.trees.ud import upos_id
from syntax.variant import Variant, is_released

PUNCT: Final = upos_id("PUNCT")

RELEASED_PUNCTUATION: Final = "!\"#$%&'()*+,.-/:;<=>?@[\\]^_"
"""SLA's release treats every substring of this string as punctuation."""


def windowed_distance(
    parents: ArrayLike, *, source: ArrayLike | None = None, variant: Variant = "as_published"
) -> NDArray[Any]:
    """The distance to j from i or from a neighbour of i, whichever is nearest (eq. 3).

    ``[i, j] = min(D[i - 1, j], D[i, j], D[i + 1, j])``, where D is `tree_distance`; not symmetric.
    Neighbours are adjacent in the text, also across trees. Nodes that show their parent (later
    pieces of a word under ``broadcast``) are not neighbours. The released window is {i - 1, i}.
    ``parents`` and ``source`` are as in `tree_matrices`. Dtype and padding are those of
    `tree_distance`. *Shape:* (L, L).

    >>> windowed_distance([1, -1, 1])     # kids <- playing -> outside
    array([[0, 0, 1],
           [0, 0, 0],
           [1, 0, 0]], dtype=uint8)
    >>> windowed_distance([1, -1, 1], variant="as_released")
    array([[0, 1, 2],
           [0, 0, 1],
           [1, 0, 0]], dtype=uint8)
    """
    without_right = is_released(variant)
    forest = one_forest(parents, source)
    distance = matrices_of_one(forest, ("distance",))["distance"]
    before, after = _neighbours(forest.trees.source)
    windowed: NDArray[Any] = np.minimum(distance, distance[before])
    if not without_right:
        np.minimum(windowed, distance[after], out=windowed)
    return windowed


def sla_mask(
    parents: ArrayLike,
    *,
    source: ArrayLike | None = None,
    special: ArrayLike | None = None,
    upos: ArrayLike | None = None,
    threshold: int = 3,
    variant: Variant = "as_published",
    punctuation: bool = False,
) -> NDArray[np.bool_]:
    """``[i, j]`` is True if i may attend to j: near by `windowed_distance`, or special.

    Near is a distance up to ``threshold``. Every node attends to the special tokens (``special``
    (L,)), and they attend to every node. As released, only the first of them does; the rows of the
    others are empty, which with that release's finite mask means ordinary attention. With
    ``punctuation`` every node attends to nodes tagged PUNCT (``upos`` (L,), ids of
    `syntax.trees.ud`). SLA's release does so, by the string (`released_punctuation`); its paper
    does not mention it.
    """
    if threshold < 0:
        raise SpecError(f"threshold is {threshold}; distances begin at 0")
    distance = windowed_distance(parents, source=source, variant=variant)
    nodes = Nodes.of(parents, source)
    specials = nodes.column("special", special, np.bool_)
    visible = specials.copy()
    if punctuation:
        visible |= nodes.column("upos", upos, np.uint8) == PUNCT
    near = (distance <= threshold) & (distance < np.iinfo(distance.dtype).max)
    mask: NDArray[np.bool_] = near | nodes.shown(visible)
    mask[specials] = not is_released(variant)
    mask[np.flatnonzero(specials)[:1]] = True
    return mask


def released_punctuation(pieces: list[str]) -> NDArray[np.bool_]:
    """True for strings that SLA's release treats as punctuation. *Shape:* (len(pieces),), bool.

    "$" and "%", which UD tags SYM, are punctuation, and "…" is not.

    >>> released_punctuation([".", "...", "%", "a", ""]).tolist()
    [True, False, True, False, False]
    """
    return np.array([bool(piece) and piece.lower() in RELEASED_PUNCTUATION for piece in pieces])


def _neighbours(source: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Nodes before and after each node, among nodes that show themselves; at the ends the node."""
    points = np.flatnonzero(source == np.arange(len(source)))
    rank = np.searchsorted(points, source)
    if not len(points):
        return rank, rank
    last = len(points) - 1
    return points[np.maximum(rank - 1, 0)], points[np.minimum(rank + 1, last)]
