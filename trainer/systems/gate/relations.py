"""GATE's matrices on a device: distances in the pruned tree, and factors of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from syntax.errors import SpecError
from syntax.variant import Variant, is_released
from trainer.batch import UNREACHABLE
from trainer.matrices.forest import DeviceForest


def pruned_distance(forest: DeviceForest, keep: int = 1) -> Tensor:
    distance_BNN = forest.distance_BNN
    gone_BN = _pruned(forest, keep)
    gone_BNN = gone_BN[:, :, None] | gone_BN[:, None, :]
    gone_BNN = gone_BNN & ~torch.eye(gone_BN.shape[1], dtype=torch.bool, device=gone_BN.device)
    return distance_BNN.masked_fill(gone_BNN, UNREACHABLE[distance_BNN.dtype])


def _pruned(forest: DeviceForest, keep: int) -> Tensor:
    """True for nodes that are cut off; none of a sequence without marks."""
    if keep < 0:
        return torch.zeros_like(forest.real_BN)
    marked_BN = torch.zeros_like(forest.parents_BN, dtype=torch.int32).scatter_reduce(
        1, forest.source_BN, forest.marked_BN.int(), "amax"
    )
    path_BN = _on_paths(forest, marked_BN)
    above_BN, _ = forest.nearest_above(path_BN)
    far_BN = (above_BN < 0) | (forest.depth_BN - above_BN > keep)
    return far_BN & marked_BN.any(1, keepdim=True)


def _on_paths(forest: DeviceForest, marked_BN: Tensor) -> Tensor:
    """Nodes between a marked one and the lowest common ancestor of all marked ones of its tree."""
    ancestor_BNN = forest.ancestor_BNN
    below_BN = (ancestor_BNN * marked_BN[:, :, None]).sum(1)
    of_tree_BN = ((forest.shared_BNN > 0) * marked_BN[:, :, None]).sum(1)
    covers_BN = (below_BN > 0) & (below_BN == of_tree_BN)
    deepest_BN = forest.highest_below(torch.where(covers_BN, forest.depth_BN, -1))
    return (below_BN > 0) & (~covers_BN | (deepest_BN == forest.depth_BN))


def gate_weights(
    forest: DeviceForest, keep: int = -1, threshold: int = 2, variant: Variant = "as_published"
) -> Tensor:
    """Factors of attention. *Shape:* (B, N, N), float32."""
    return distance_weights(pruned_distance(forest, keep), threshold, variant)


def distance_weights(distance: Tensor, threshold: int, variant: Variant = "as_published") -> Tensor:
    """`syntax.matrices.distance_weights` on a device: float32, the shape of ``distance``."""
    most = UNREACHABLE[distance.dtype]
    if not 0 < threshold < most:
        raise SpecError(f"threshold is {threshold}; it must lie between 1 and {most - 1}")
    steps = torch.arange(threshold + 2, dtype=torch.float32, device=distance.device)
    weights = 1 / steps
    weights[0] = 0 if is_released(variant) else 1
    weights[-1] = 0
    return weights[distance.int().clamp(max=threshold + 1)]


RELATIONS: Final[dict[str, Callable[..., Tensor]]] = {
    "gate_distance.v1": pruned_distance,
    "gate_weights.v1": gate_weights,
}
