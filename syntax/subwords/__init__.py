"""Ways to lay a tree over words onto their wordpieces."""

from syntax.subwords.attach import attach
from syntax.subwords.base import POLICIES, PieceTree, Policy
from syntax.subwords.broadcast import broadcast
from syntax.subwords.chain import chain
from syntax.subwords.copy_head import copy_head
from syntax.subwords.none import none

__all__ = ["POLICIES", "PieceTree", "Policy", "attach", "broadcast", "chain", "copy_head", "none"]
