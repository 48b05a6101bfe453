"""SG-Net: each word attends to itself and to its ancestors.

Source: Zhang et al. 2020 (AAAI), eq. 6, read with row = dependent; the released code takes the
span of a word's yield for its descendants.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import SpecError
from syntax.matrices import relations
from syntax.matrices.nodes import Nodes
from syntax.matrices.subtrees import subtrees_of
from syntax.matrices.tree import matrices_of_one, one_forest

SgNetVariant: TypeAlias = Literal["as_published", "as_released", "convert_span"]
"""Mask of the paper, or of one of the release's scripts."""


def sgnet_mask(
    parents: ArrayLike,
    *,
    source: ArrayLike | None = None,
    special: ArrayLike | None = None,
    variant: SgNetVariant = "as_published",
) -> NDArray[np.bool_]:
    """``[i, j]`` is True if i, the dependent, may attend to j.

    As published: j is i or an ancestor of i. A special token attends only to itself, and no other
    node attends to it.

    As released (the mask of `run_squad2` and `run_race`): i lies between the first and the last
    node of j's subtree, and that subtree has two nodes or more. So nodes in the gaps of a
    non-projective subtree attend to its head; leaves of one piece and later pieces do not attend to
    themselves; under ``attach`` no node attends to later pieces; and rows of special tokens are
    empty, which with that release's finite mask means ordinary attention.

    ``convert_span`` is the mask of that script of the release: as released, but subtrees of one
    node count too, so that every node except special tokens attends to itself.

    ``parents`` and ``source`` are as in `tree_matrices`; ``special`` (L,) is True for special
    tokens.

    >>> sgnet_mask([1, -1, 1], variant="as_released").astype(int)     # kids <- playing -> outside
    array([[0, 1, 0],
           [0, 1, 0],
           [0, 1, 0]])
    """
    if variant not in get_args(SgNetVariant):
        raise SpecError(f"variant is {variant!r}; it is one of {', '.join(get_args(SgNetVariant))}")
    forest = one_forest(parents, source)
    nodes = Nodes.from_forest(forest)
    specials = nodes.column("special", special, np.bool_)
    mask: NDArray[np.bool_]
    if variant == "as_published":
        mask = matrices_of_one(forest, ("ancestor",))["ancestor"]
    else:
        mask = nodes.shown_pairs(_yield_spans(nodes, alone=variant == "convert_span"))
    mask[specials] = False
    mask[:, specials] = False
    if variant == "as_published":
        mask[specials, specials] = True
    return mask


def _yield_spans(nodes: Nodes, alone: bool) -> NDArray[np.bool_]:
    """``[i, j]``: i lies in the span of j's subtree; ``alone`` counts subtrees of one node."""
    found = subtrees_of(nodes)
    last = np.where(alone | (found.first < found.last), found.last, found.first - 1)
    spans = np.zeros((len(nodes), len(nodes)), np.bool_)
    relations.fill_spans(found.first, last, spans)
    return spans
