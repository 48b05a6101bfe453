"""``chain.v1``: each later piece hangs from the piece before it (UD-PrLM, strategy 2)."""

from __future__ import annotations

import numpy as np

from syntax.subwords.base import POLICIES, IntArray, PieceTree, later_pieces, themselves


def chain(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """The pieces of a word form a chain, whether or not they are neighbours in the text."""
    later = later_pieces(attach_head, word_ids)
    own = themselves(attach_head)
    first = np.where(later, attach_head, own)
    by_word = np.argsort(first, kind="stable").astype(np.int32)
    before = np.empty_like(own)
    before[by_word[1:]] = by_word[:-1]
    return PieceTree(np.where(later, before, attach_head), own)


POLICIES.add("chain.v1", chain)
