"""Subword policies: ways to turn the tree over words into a tree over wordpieces.

The store keeps the *attach* tree, from which every policy derives its tree: later pieces of a word
hang from its first piece, and first pieces hang as their words do.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from syntax.matrices import ISOLATED
from syntax.registry import Registry

__all__ = [
    "POLICIES",
    "PieceTree",
    "Policy",
    "attach",
    "broadcast",
    "chain",
    "copy_head",
    "later_pieces",
    "none",
    "themselves",
]

IntArray = NDArray[np.int32]


class PieceTree(NamedTuple):
    """A tree over L pieces, and the piece (itself or its parent) whose row and column each shows.

    A parent is -1 at the root of a sentence, -2 outside of every sentence. *Shape:* (L,) each.
    """

    parents: IntArray
    source: IntArray


class Policy(Protocol):
    """From the attach tree to another tree over the same pieces.

    One call may take segments end to end, if heads are positions in the whole array and no piece
    has its head in another segment.
    """

    def __call__(self, attach_head: IntArray, word_ids: IntArray) -> PieceTree: ...


POLICIES: Registry[Policy] = Registry("subword policy")


def attach(attach_head: IntArray, word_ids: IntArray) -> PieceTree:  # noqa: ARG001
    """``attach.v1``: later pieces hang from their word's first piece (Syntax-MBERT, lr-sib)."""
    return PieceTree(attach_head, themselves(attach_head))


def broadcast(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """``broadcast.v1``: later pieces show their first one, at distance 0 (SLA, SG-Net's paper)."""
    later = later_pieces(attach_head, word_ids)
    return PieceTree(attach_head, np.where(later, attach_head, themselves(attach_head)))


def chain(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """``chain.v1``: each later piece hangs from its word's piece before (UD-PrLM, strategy 2)."""
    later = later_pieces(attach_head, word_ids)
    own = themselves(attach_head)
    first = np.where(later, attach_head, own)
    by_word = np.argsort(first, kind="stable").astype(np.int32)
    before = np.empty_like(own)
    before[by_word[1:]] = by_word[:-1]
    return PieceTree(np.where(later, before, attach_head), own)


def copy_head(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """``copy_head.v1``: later pieces take the head of their first one (UD-PrLM, strategy 0)."""
    later = later_pieces(attach_head, word_ids)
    parents = np.where(later, attach_head[np.where(later, attach_head, 0)], attach_head)
    return PieceTree(parents, themselves(attach_head))


def none(attach_head: IntArray, word_ids: IntArray) -> PieceTree:
    """``none.v1``: later pieces are unreachable, at depth 0 (GATE, word-level systems)."""
    later = later_pieces(attach_head, word_ids)
    return PieceTree(np.where(later, np.int32(ISOLATED), attach_head), themselves(attach_head))


POLICIES.add("attach.v1", attach)
POLICIES.add("broadcast.v1", broadcast)
POLICIES.add("chain.v1", chain)
POLICIES.add("copy_head.v1", copy_head)
POLICIES.add("none.v1", none)


def later_pieces(attach_head: IntArray, word_ids: IntArray) -> NDArray[np.bool_]:
    """True for pieces that are not the first of their word."""
    if not len(word_ids):
        return np.zeros(0, np.bool_)
    later: NDArray[np.bool_] = word_ids[np.maximum(attach_head, 0)] == word_ids
    return later & (attach_head >= 0) & (word_ids >= 0)


def themselves(pieces: IntArray) -> IntArray:
    return np.arange(len(pieces), dtype=np.int32)
