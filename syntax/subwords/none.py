"""``none.v1``: only first pieces stand in the tree (GATE and other word-level systems)."""

from __future__ import annotations

import numpy as np

from syntax.matrices import ISOLATED
from syntax.subwords.base import POLICIES, IntArray, PieceTree, later_pieces, themselves


def none(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """Later pieces are isolated: unreachable, at depth 0."""
    later = later_pieces(attach_head, word_ids)
    return PieceTree(np.where(later, np.int32(ISOLATED), attach_head), themselves(attach_head))


POLICIES.add("none.v1", none)
