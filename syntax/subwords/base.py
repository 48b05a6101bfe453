"""What a subword policy is.

The store keeps one tree over wordpieces, the *attach* tree: later pieces of a word hang from its
first piece, and first pieces hang as their words do. Every other way to lay a word tree over
pieces follows from it and the word of each piece.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from syntax.registry import Registry

IntArray = NDArray[np.int32]


class PieceTree(NamedTuple):
    """A tree over L pieces.

    Attributes:
        parents: Position of each piece's parent, -1 at the root of a sentence, -2 for a piece
            outside of every sentence. *Shape:* (L,), int32.
        source: The piece whose row and column each piece shows in matrices: itself or its parent.
            *Shape:* (L,), int32.
    """

    parents: IntArray
    source: IntArray


class Policy(Protocol):
    """From the attach tree to another tree over the same pieces.

    Segments laid end to end are one call, as long as heads are positions in the whole array and
    pieces of different segments are never each other's heads.
    """

    def __call__(self, attach_head: IntArray, word_ids: IntArray) -> PieceTree:
        """Make the tree.

        Args:
            attach_head: The attach tree: position of each piece's head, -1 or -2 for none.
                *Shape:* (L,), int32.
            word_ids: Word of each piece, -1 for none. *Shape:* (L,), int32.
        """
        ...


POLICIES: Registry[Policy] = Registry("subword policy")


def later_pieces(attach_head: IntArray, word_ids: IntArray) -> NDArray[np.bool_]:
    """Which pieces are not the first of their word: those whose head is of the same word."""
    if not len(word_ids):
        return np.zeros(0, np.bool_)
    later: NDArray[np.bool_] = word_ids[np.maximum(attach_head, 0)] == word_ids
    return later & (attach_head >= 0) & (word_ids >= 0)


def themselves(pieces: IntArray) -> IntArray:
    """Every piece its own source."""
    return np.arange(len(pieces), dtype=np.int32)
