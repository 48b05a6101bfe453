"""``copy_head.v1``: all pieces of a word hang from its head's first piece (UD-PrLM strategy 0)."""

from __future__ import annotations

import numpy as np

from syntax.subwords.base import POLICIES, IntArray, PieceTree, later_pieces, themselves


def copy_head(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """Later pieces take their first piece's head; those of a root word hang from its first piece.

    So one root stays one.
    """
    later = later_pieces(attach_head, word_ids)
    copied = attach_head[np.where(later, attach_head, 0)]
    parents = np.where(later & (copied >= 0), copied, attach_head)
    return PieceTree(parents, themselves(attach_head))


POLICIES.add("copy_head.v1", copy_head)
