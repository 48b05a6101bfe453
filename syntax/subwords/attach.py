"""``attach.v1``: later pieces hang from their word's first piece (Syntax-MBERT, lr-sib)."""

from __future__ import annotations

from syntax.subwords.base import POLICIES, IntArray, PieceTree, themselves


def attach(attach_head: IntArray, word_ids: IntArray) -> PieceTree:  # noqa: ARG001
    """The stored tree as it is."""
    return PieceTree(attach_head, themselves(attach_head))


POLICIES.add("attach.v1", attach)
