"""From parent vectors to distance, depth and ancestor matrices."""

from syntax.matrices.buffers import MatrixBuffers
from syntax.matrices.forest import FUSED, UNREACHABLE8, UNREACHABLE16
from syntax.matrices.heads import ISOLATED, ROOT
from syntax.matrices.registry import MATRICES, Matrix
from syntax.matrices.tree import (
    TreeMatrices,
    ancestor_mask,
    batch_matrices,
    tree_depth,
    tree_distance,
    tree_matrices,
)

__all__ = [
    "FUSED",
    "ISOLATED",
    "MATRICES",
    "ROOT",
    "UNREACHABLE8",
    "UNREACHABLE16",
    "Matrix",
    "MatrixBuffers",
    "TreeMatrices",
    "ancestor_mask",
    "batch_matrices",
    "tree_depth",
    "tree_distance",
    "tree_matrices",
]
