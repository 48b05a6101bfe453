"""From parent vectors to distance, depth, ancestor and further matrices."""

from syntax.matrices.forest import COMPILED, UNREACHABLE8, UNREACHABLE16, MatrixBuffers
from syntax.matrices.gate import distance_weights, gate_weights, pruned_distance
from syntax.matrices.heads import ISOLATED, ROOT
from syntax.matrices.lca import (
    common_ancestor,
    common_ancestors,
    lca_depth,
    lowest_common_ancestor,
)
from syntax.matrices.registry import COLUMNS, MATRICES, UNREACHABLE, Matrix, MatrixRegistry
from syntax.matrices.sgnet import SgNetVariant, sgnet_mask
from syntax.matrices.sla import released_punctuation, sla_mask, windowed_distance
from syntax.matrices.subtrees import Subtrees, subtrees
from syntax.matrices.tree import (
    TreeMatrices,
    ancestor_mask,
    batch_matrices,
    tree_depth,
    tree_depths,
    tree_distance,
    tree_matrices,
    tree_squares,
)

__all__ = [
    "COLUMNS",
    "COMPILED",
    "ISOLATED",
    "MATRICES",
    "ROOT",
    "UNREACHABLE",
    "UNREACHABLE8",
    "UNREACHABLE16",
    "Matrix",
    "MatrixBuffers",
    "MatrixRegistry",
    "SgNetVariant",
    "Subtrees",
    "TreeMatrices",
    "ancestor_mask",
    "batch_matrices",
    "common_ancestor",
    "common_ancestors",
    "distance_weights",
    "gate_weights",
    "lca_depth",
    "lowest_common_ancestor",
    "pruned_distance",
    "released_punctuation",
    "sgnet_mask",
    "sla_mask",
    "subtrees",
    "tree_depth",
    "tree_depths",
    "tree_distance",
    "tree_matrices",
    "tree_squares",
    "windowed_distance",
]
