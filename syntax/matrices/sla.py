"""Syntax-aware local attention (SLA): distances seen through a window, and their mask.

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
"""What SLA's release takes for punctuation: every string that is part of this one."""


def windowed_distance(
    parents: ArrayLike, *, source: ArrayLike | None = None, variant: Variant = "as_published"
) -> NDArray[Any]:
    """The distance to j from i or from a neighbour of i, whichever is nearest.

    ``[i, j] = min(D[i - 1, j], D[i, j], D[i + 1, j])``, where D is `tree_distance`; not symmetric.
    Neighbours are those in the order of the text, of whatever tree they are; nodes that show
    their parent, the later pieces of a word under ``broadcast``, are passed over. The released
    window is {i - 1, i}.

    Args:
        parents: As in `syntax.matrices.tree_matrices`. *Shape:* (L,).
        source: Likewise. *Shape:* (L,).
        variant: Which window.

    Returns:
        *Shape:* (L, L), the dtype of `tree_distance`, whose maximum means that no path leads.

    Raises:
        SpecError: An unknown variant.
        HeadOutOfRangeError, CycleError, InputError: As `syntax.matrices.tree_matrices`.

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
    """What each node may attend to: what is near by `windowed_distance`, and special tokens.

    Special tokens are visible to all and see all. As released, only the first of them does; the
    rows of the others are empty, which with that release's finite mask means all.

    Args:
        parents: As in `syntax.matrices.tree_matrices`. *Shape:* (L,).
        source: Likewise. *Shape:* (L,).
        special: Which nodes are special tokens. Default: none. *Shape:* (L,), bool.
        upos: Ids of `syntax.trees.ud`. *Shape:* (L,).
        threshold: The largest distance that is near.
        variant: The window, and the rows of special tokens.
        punctuation: All see what is tagged PUNCT (as SLA's release does, whose paper does not
            say so; it goes by the string, see `released_punctuation`).

    Returns:
        ``[i, j]``: i may attend to j. *Shape:* (L, L), bool.

    Raises:
        SpecError: An unknown variant, or a negative threshold.
        HeadOutOfRangeError, CycleError, InputError: As `windowed_distance`; a column of another
            length.
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
    """Which strings SLA's release takes for punctuation, be it words or a vocabulary.

    It goes by the string: "$" and "%", which UD tags SYM, are punctuation, and "…" is not.

    >>> released_punctuation([".", "...", "%", "a", ""]).tolist()
    [True, False, True, False, False]
    """
    return np.array([bool(piece) and piece.lower() in RELEASED_PUNCTUATION for piece in pieces])


def _neighbours(source: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The nodes before and after each, among those that show themselves; at the ends oneself."""
    points = np.flatnonzero(source == np.arange(len(source)))
    rank = np.searchsorted(points, source)
    if not len(points):
        return rank, rank
    last = len(points) - 1
    return points[np.maximum(rank - 1, 0)], points[np.minimum(rank + 1, last)]
