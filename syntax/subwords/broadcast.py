"""``broadcast.v1``: every piece of a word shows the word's row and column (SLA, SG-Net's paper)."""

from __future__ import annotations

import numpy as np

from syntax.subwords.base import POLICIES, IntArray, PieceTree, later_pieces, themselves


def broadcast(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """Later pieces show their first piece, so that pieces of one word are at distance 0."""
    later = later_pieces(attach_head, word_ids)
    return PieceTree(attach_head, np.where(later, attach_head, themselves(attach_head)))


POLICIES.add("broadcast.v1", broadcast)
