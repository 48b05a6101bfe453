"""SG-Net: each word attends to itself and the words that it hangs below.

Source: Zhang et al. 2020 (AAAI), eq. 6, read with row = dependent; the released code takes the
span of a word's yield for its descendants.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.matrices import relations
from syntax.matrices.nodes import Nodes
from syntax.matrices.subtrees import subtrees_of
from syntax.matrices.tree import matrices_of_one, one_forest
from syntax.variant import Variant, is_released


def sgnet_mask(
    parents: ArrayLike,
    *,
    source: ArrayLike | None = None,
    special: ArrayLike | None = None,
    variant: Variant = "as_published",
) -> NDArray[np.bool_]:
    """Which node may attend to which, row = dependent.

    As published: ``[i, j]`` iff j is i or an ancestor of i; special tokens attend to themselves
    only, and nothing else attends to them.

    As released (the mask of `run_squad2`): ``[i, j]`` iff i lies between the first and the last
    node of j's subtree, and that are two nodes or more. So gaps of a non-projective subtree
    attend to its head; leaves of one piece and later pieces do not attend to themselves; under
    ``attach`` nobody attends to later pieces; and rows of special tokens are empty, which with
    that release's finite mask means ordinary attention.

    Args:
        parents: As in `syntax.matrices.tree_matrices`. *Shape:* (L,).
        source: Likewise. *Shape:* (L,).
        special: Which nodes are special tokens. Default: none. *Shape:* (L,), bool.
        variant: Which of the two.

    Returns:
        *Shape:* (L, L), bool.

    Raises:
        SpecError: An unknown variant.
        HeadOutOfRangeError, CycleError, InputError: As `syntax.matrices.tree_matrices`; a column
            of another length.

    >>> sgnet_mask([1, -1, 1], variant="as_released").astype(int)     # kids <- playing -> outside
    array([[0, 1, 0],
           [0, 1, 0],
           [0, 1, 0]])
    """
    released = is_released(variant)
    forest = one_forest(parents, source)
    nodes = Nodes.from_forest(forest)
    specials = nodes.column("special", special, np.bool_)
    mask: NDArray[np.bool_]
    if released:
        mask = nodes.shown_pairs(_yield_spans(nodes))
    else:
        mask = matrices_of_one(forest, ("ancestor",))["ancestor"]
    mask[specials] = False
    mask[:, specials] = False
    if not released:
        mask[specials, specials] = True
    return mask


def _yield_spans(nodes: Nodes) -> NDArray[np.bool_]:
    found = subtrees_of(nodes)
    last = np.where(found.first < found.last, found.last, found.first - 1)
    spans = np.zeros((len(nodes), len(nodes)), np.bool_)
    relations.fill_spans(found.first, last, spans)
    return spans
